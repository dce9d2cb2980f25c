"""A service rendered as the text of its systemd unit. Pure: the same service, the same bytes.

Sources of the defaults: vLLM 0.32.0's own behaviour at start and stop, and two dozen units in
the wild. Few of those limit restarts, and none does it by the time that a model takes to load.
"""

import re
from collections.abc import Mapping

from inventory.service import Service, tensor_parallel_size

HARDENING = (
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",  # the snapshot and the engine are read-only to the engine
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectControlGroups=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",  # gloo asks AF_NETLINK
    "UMask=0077",
)
"""What a CUDA process that compiles kernels tolerates. Left out because they break it:
MemoryDenyWriteExecute (Triton and inductor map code), PrivateDevices (hides /dev/nvidia*),
CPUAffinity (vLLM's NUMA binding switches itself off when the affinity is already narrowed)."""


def unit_text(
    service: Service,
    *,
    folder: str,
    gpu_environment: Mapping[str, str],
    numa_nodes: tuple[int, ...] | None = None,
    conflicts: tuple[str, ...] = (),
    accepted: tuple[str, ...] = (),
) -> str:
    """The unit file of a service.

    + folder: the snapshot's directory
    + gpu_environment: variables that pin the chosen GPUs; empty without GPUs
    + numa_nodes: NUMA node of each GPU, in their order, where workers are to be bound; else None
    + conflicts: units that must not run beside this one, full names
    + accepted: rules of the fit that the operator overrode: the unit says so
    """
    engine = service.engine
    environment = variables(service, gpu_environment)
    limits = service.start_limits
    lines = [
        "# Written by boxwright: the next run replaces what is changed here by hand.",
        *([f"# Accepted against the fit: {' '.join(accepted)}."] if accepted else []),
        "[Unit]",
        f"Description={_escaped(f'{service.served_model_name} (vLLM {engine.version})')}",
        "Wants=network-online.target",
        "After=network-online.target nvidia-persistenced.service",
        # Without the mount the engine would find an empty folder and crash in a loop.
        f"RequiresMountsFor={folder} {engine.environment_folder}",
        # Two services on the same GPUs never run together, no matter who starts them.
        *([f"Conflicts={' '.join(conflicts)}"] if conflicts else []),
        f"StartLimitBurst={limits.burst}",
        # systemd's 10 s never trips when each crash comes minutes after its start.
        f"StartLimitIntervalSec={limits.interval}",
        "",
        "[Service]",
        "Type=exec",  # vLLM 0.32 does not notify; exec at least reports a missing binary
        f"User={service.user}",
        f"Group={service.user}",
        f"CacheDirectory={_cache(service)}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in environment.items()),
        "ExecStart=" + _command_line(command_words(service, folder, numa_nodes)),
        # An engine that dies ends the server with status 0 (vllm-project/vllm#48966).
        "Restart=always",
        f"RestartSec={limits.restart}",
        # The server first, then what is left of the group: workers that get SIGTERM with it
        # break its drain, and a killed server leaves workers on the GPUs (#55510).
        "KillMode=mixed",
        f"TimeoutStopSec={limits.stop}",
        "LimitNOFILE=1048576",  # below 65535 ZeroMQ runs out of files
        "LimitMEMLOCK=infinity",  # NCCL pins memory
        "TasksMax=infinity",
        "OOMScoreAdjust=-500",  # the kernel should look elsewhere first
        *HARDENING,
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def command_words(
    service: Service, folder: str, numa_nodes: tuple[int, ...] | None = None
) -> list[str]:
    """The engine's command line, word by word."""
    engine = service.engine
    return [
        f"{engine.environment_folder}/{engine.command[0]}",
        *engine.command[1:],
        *([folder] if engine.command[-1] == "serve" else ["--model", folder]),
        *("--served-model-name", service.served_model_name),
        *("--host", service.listen.host, "--port", str(service.listen.port)),
        *engine.flags(tensor_parallel_size(service)),
        # Said explicitly: vLLM's own detection refuses one-node boxes and narrowed affinities.
        *(["--numa-bind", "--numa-bind-nodes", *map(str, numa_nodes)] if numa_nodes else []),
    ]


def variables(service: Service, gpu_environment: Mapping[str, str]) -> dict[str, str]:
    """The engine's environment."""
    cache = _cache(service)
    return {
        # A static user has no writable home here; JIT caches of one engine version do not fit
        # another.
        "HOME": f"/var/cache/{cache}",
        "XDG_CACHE_HOME": f"/var/cache/{cache}",
        "VLLM_CACHE_ROOT": f"/var/cache/{cache}/vllm",
        "TRITON_CACHE_DIR": f"/var/cache/{cache}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"/var/cache/{cache}/inductor",
        "FLASHINFER_WORKSPACE_BASE": f"/var/cache/{cache}",
        # JIT compilers (ninja, nvcc) are looked for on PATH, and a unit's own is bare.
        "PATH": f"{service.engine.environment_folder}/bin:/usr/local/cuda/bin:/usr/local/sbin:"
        "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HF_HUB_OFFLINE": "1",  # the snapshot is complete: nothing to ask, nothing to leak
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONUNBUFFERED": "1",  # the last lines before a crash must reach the journal
        **gpu_environment,
        **service.environment,
    }


def _cache(service: Service) -> str:
    """Folder of compiled kernels, below /var/cache."""
    return f"vllm/{service.engine.package}-{service.engine.version}"


def visible_gpus(text: str) -> tuple[str, ...]:
    """UUIDs of the GPUs that a unit's text pins, in order; empty where it pins none."""
    match = re.search(r'^Environment="?CUDA_VISIBLE_DEVICES=([^"\n]*)', text, re.MULTILINE)
    return tuple(match.group(1).split(",")) if match else ()


def _command_line(words: list[str]) -> str:
    """The words, one flag with its values to a line: a diff then shows which one changed."""
    first, *rest = (_argument(word) for word in words)
    return first + "".join(f" \\\n    {w}" if w.startswith("-") else f" {w}" for w in rest)


def _argument(word: str) -> str:
    """One word of ExecStart: quoted where systemd would split or unquote it, `$` doubled."""
    return _quoted(word.replace("$", "$$"))


def _quoted(text: str) -> str:
    escaped = _escaped(text)
    if re.fullmatch(r"[A-Za-z0-9_./:=,+@%$-]+", escaped):
        return escaped
    return '"' + escaped.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    """`%` starts a specifier in every value of a unit file."""
    return text.replace("%", "%%")
