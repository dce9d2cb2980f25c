"""H7, H13, H15, H17, C1, C4: ports, limits and tools of the host."""

import re

from facts.diagnosis.rule import Evidence, Number, Numbers, Rule
from facts.journal.starts import restarts

_WANTED_FILES = 1048576
_ULIMIT = re.compile(r"Found ulimit of ([0-9]{1,9}) and failed to automatically increase")


def _port(evidence: Evidence) -> dict[str, Number | None]:
    return {"port": evidence.scene.settings.port}


def _listener(evidence: Evidence, n: Numbers) -> str:
    at = f"{evidence.scene.settings.host or '0.0.0.0'}:{n['port']}"  # noqa: S104
    return (
        f"another process listens on {at}: ss -ltnp 'sport = :{n['port']}' names it. Stop it "
        "(often an old vLLM), or give this service another port"
    )


def _limit(evidence: Evidence) -> dict[str, Number | None]:
    for line in evidence.scene.start.lines:
        if found := _ULIMIT.search(line.text):
            return {"nofile": int(found[1])}
    return {}


def _files(_: Evidence, n: Numbers) -> str:
    was = f" (the limit was {n['nofile']})" if "nofile" in n else ""
    return f"LimitNOFILE={_WANTED_FILES} in the unit{was}"


def _restarted(evidence: Evidence) -> dict[str, Number | None]:
    return {"restarts": restarts((evidence.scene.start, *evidence.scene.later)) or None}


HOST: tuple[Rule, ...] = (
    Rule(
        cause="H7",
        title="the port is in use",
        patterns=(
            r"\[Errno 98\].*(?:[Aa]ddress already in use)",
            r"error while attempting to bind",
        ),
        why="the server binds its port before it does anything else",
        next_step=_listener,
        source="vLLM 0.32.0 entrypoints/launchers; Blackwellboy/model-serving-minefield trap 53",
        numbers=_port,
    ),
    Rule(
        cause="H7-privileged",
        title="the port may not be bound",
        patterns=(r"\[Errno 13\] Permission denied$",),
        calls=r"\bbind\b|create_server_socket|sock\.",
        why="ports below 1024 are root's",
        next_step="a port of 1024 or more for --port (it is {port}), or "
        "AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit",
        source="bind(2)",
        numbers=_port,
    ),
    Rule(
        cause="H7-address",
        title="the address is not one of this box",
        patterns=(r"\[Errno 99\].*[Cc]annot assign requested address",),
        why="a server can only bind an address that the box has",
        next_step=lambda evidence, _: (
            f"--host {evidence.scene.settings.host or ''} is not an address of this box: ip "
            "address lists those, 127.0.0.1 and 0.0.0.0 always work"
        ),
        source="bind(2)",
        numbers=_port,
    ),
    Rule(
        cause="H13",
        title="the limit of open files is too low",
        patterns=(r"\[Errno 24\] Too many open files", r"socket: Too many open files"),
        why="each rank opens sockets to every other, and each shard is a file",
        next_step=_files,
        source="vLLM 0.32.0 utils/system_utils.py:255",
        numbers=_limit,
    ),
    Rule(
        cause="H15",
        title="a kernel has to be compiled, and the compiler is missing",
        patterns=(
            r"Could not find (?P<what>nvcc)",
            r"(?P<what>nvcc|ninja|gcc|c\+\+): (?:command )?not found",
            r"No such file or directory: '(?:\S{0,200}/)?(?P<what>nvcc|ninja|gcc|g\+\+|cc)'",
            r"(?P<what>[Nn]inja) is required to load C\+\+ extensions",
            r"Failed to find (?P<what>C compiler)",
        ),
        why="FlashInfer and Triton build kernels when they are first used, and {what} is not there",
        next_step="install flashinfer-cubin and flashinfer-jit-cache in the version of "
        "flashinfer-python (or run vllm download-kernels), or VLLM_USE_FLASHINFER_SAMPLER=0; or "
        "install {what}",
        source="vllm-project/vllm#21960, #49497, #36077",
    ),
    Rule(
        cause="H17",
        title="NUMA binding was asked for and cannot be done",
        patterns=(
            r"NUMA binding was requested, but vLLM could not detect the GPU-to-NUMA topology",
        ),
        why="the box shows one NUMA node, or the service's CPUs are limited already, or it may not "
        "change them",
        next_step="drop --numa-bind (NUMAPolicy= and CPUAffinity= of the unit do the same), or "
        "pass --numa-bind-nodes explicitly, one node for each GPU",
        source="vLLM 0.32.0 utils/numa_utils.py:65, 255",
    ),
    Rule(
        cause="H17b",
        title="--numa-bind lacks something",
        patterns=(
            r"numactl is required for NUMA binding",
            r"GPU index (?P<index>[0-9]{1,6}) exceeds numa_bind_nodes size (?P<size>[0-9]{1,6})",
        ),
        why="binding needs the numactl program, and a node for each GPU",
        next_step="install numactl, and one entry of --numa-bind-nodes for each visible GPU; or "
        "drop --numa-bind",
        source="vLLM 0.32.0 utils/numa_utils.py",
    ),
    Rule(
        cause="C4-numa-nodes",
        title="fewer NUMA nodes than workers on a CPU",
        patterns=(
            r"Not enough allowed NUMA nodes to bind threads of (?P<workers>[0-9]{1,6}) local "
            r"CPUWorkers",
        ),
        why="on a CPU each worker wants a NUMA node of its own",
        next_step="VLLM_CPU_OMP_THREADS_BIND with a list of cores for each of the {workers} "
        "workers (as 0|1), or a --tensor-parallel-size of at most the number of nodes",
        source="run of vLLM 0.32.0 on CPU",
    ),
    Rule(
        cause="C1-lscpu-segv",
        title="lscpu crashes in this environment",
        patterns=(
            r"Command 'lscpu[^']{0,200}' (?:returned non-zero exit status "
            r"(?P<exit_status>[0-9]{1,3})|died with )",
        ),
        why="vLLM on a CPU asks lscpu for the cores, and it dies on the /sys that it finds "
        "(a container with an inconsistent tree)",
        next_step="run lscpu --json --extended=CPU,CORE,NODE as the service's user: repair /sys or "
        "replace lscpu; or set VLLM_CPU_OMP_THREADS_BIND",
        source="run of vLLM 0.32.0 on CPU",
        numbers=_restarted,
    ),
)
