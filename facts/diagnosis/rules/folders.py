"""D9 and its neighbours: what the service's user may not write or read."""

from facts.diagnosis.rule import Evidence, Numbers, Rule

_CACHES = "VLLM_CACHE_ROOT, XDG_CACHE_HOME, TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR"
_PATH = r"(?P<path>[^']{1,400})"


def _of_model(evidence: Evidence) -> bool:
    model, path = evidence.scene.settings.model or "", evidence.match["path"]
    return model.startswith("/") and (path == model or path.startswith(f"{model.rstrip('/')}/"))


def _of_device(evidence: Evidence) -> bool:
    return evidence.match["path"].startswith("/dev/")


def _home(_: Evidence, n: Numbers) -> str:
    path = str(n["path"])
    if path.startswith("~"):
        begin = (
            "HOME is unset and the service's user has no entry in passwd, so ~ stays as it is: "
            "set HOME"
        )
    else:
        begin = f"{path} cannot be created by the service's user: set HOME"
    return f"{begin}, or each of {_CACHES}, to a folder that it can write"


def _read_only(_: Evidence, n: Numbers) -> str:
    return (
        f"ReadWritePaths={n['path']} in the unit (ProtectHome=read-only and ProtectSystem=strict "
        f"make it read-only), or VLLM_CACHE_ROOT and HOME in a folder that is writable"
    )


FOLDERS: tuple[Rule, ...] = (
    Rule(
        cause="D11-device",
        title="the service may not use a device",
        patterns=(rf"\[Errno (?:1|13)\] (?:Permission denied|Operation not permitted): '{_PATH}'",),
        when=_of_device,
        why="{path} is closed to the service's user, or to the unit",
        next_step="DeviceAllow= and PrivateDevices=no in the unit, and the user's group for {path}",
        source="systemd.exec(5), systemd.resource-control(5)",
    ),
    Rule(
        cause="D11-model-unreadable",
        title="the service may not read the model",
        patterns=(rf"\[Errno 13\] Permission denied: '{_PATH}'",),
        when=_of_model,
        why="{path} belongs to somebody else and is not readable for the service's user",
        next_step="chmod -R o+rX on the model's folder (and o+x on those above it), or give it to "
        "the service's user",
        source="errno(3), EACCES",
    ),
    Rule(
        cause="D9",
        title="the cache folder cannot be written",
        patterns=(rf"\[Errno 13\] Permission denied: '{_PATH}'",),
        why="compiled kernels are kept in a cache folder, under HOME unless told otherwise; "
        "without one, compiling ends the start",
        next_step=_home,
        source="vllm-project/vllm#20127; gpustack/gpustack#5175",
    ),
    Rule(
        cause="D9",
        title="the cache folder is on a read-only file system",
        patterns=(rf"\[Errno 30\] Read-only file system: '{_PATH}'",),
        why="compiled kernels are kept in a cache folder, under HOME unless told otherwise; the "
        "unit's sandbox makes it read-only",
        next_step=_read_only,
        source="systemd.exec(5); vllm-project/vllm#20127",
    ),
)
