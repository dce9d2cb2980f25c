"""D1 to D4 and D10: the model's files are missing, torn, or not what they should be."""

import re
from pathlib import PurePosixPath

from facts.diagnosis.rule import Evidence, Number, Numbers, Rule, listed


def _missing(evidence: Evidence) -> dict[str, Number | None]:
    found = re.findall(r"'([^']{1,400})'", evidence.match["_listing"])
    names = sorted(PurePosixPath(path).name for path in found)
    return {
        "file": names[0] if names else None,
        "files": len(names) if len(names) > 1 else None,
    }


def _fetch_missing(_: Evidence, n: Numbers) -> str:
    more = f" and {int(n['files']) - 1} more" if "files" in n else ""
    return (
        f"fetch {n.get('file', 'the missing shards')}{more} again: "
        "model.safetensors.index.json lists it, the folder lacks it"
    )


def _model(evidence: Evidence) -> dict[str, Number | None]:
    bad = evidence.scene.hints.bad_files
    return {"path": evidence.scene.settings.model, "file": bad[0] if bad else None}


def _which(evidence: Evidence) -> str:
    """The damaged file, which the engine never names."""
    bad = evidence.scene.hints.bad_files
    if bad:
        return listed(bad)
    return "the shard (the engine does not name it: compare every file's size with the Hub's)"


def _again(evidence: Evidence, _: Numbers) -> str:
    return f"fetch {_which(evidence)} again"


def _pointer(evidence: Evidence, _: Numbers) -> str:
    folder = evidence.scene.settings.model or "the model's folder"
    find = f"; find {folder} -name '*.safetensors' -size -2k lists such files"
    named = bool(evidence.scene.hints.bad_files)
    return (
        f"replace {_which(evidence) if named else 'the pointer files'}: git lfs pull, or hf "
        f"download{'' if named else find}"
    )


def _position(evidence: Evidence) -> dict[str, Number | None]:
    """Where the JSON ends to be JSON: said by the exception underneath."""
    for raised in evidence.trace.chain if evidence.trace else ():
        found = raised.line and re.search(
            r"line ([0-9]{1,9}) column ([0-9]{1,9})", raised.line.text
        )
        if found:
            return {"line": int(found[1]), "column": int(found[2])}
    return {}


def _config(_: Evidence, n: Numbers) -> str:
    where = f" at line {n['line']}, column {n['column']}" if "line" in n else ""
    return f"repair {n.get('path', 'config.json')}{where}, or fetch it again"


FILES: tuple[Rule, ...] = (
    Rule(
        cause="D1",
        title="shards of the model are missing",
        patterns=(
            r"Weight files referenced in index but missing: \{(?P<_listing>.{0,4000})",
            r"No such file or directory: (?P<_listing>'[^']{1,400}\.safetensors')",
            r"FileNotFoundError: (?P<_listing>.{0,400}\.safetensors)",
        ),
        why="the index lists files that the folder does not have, so the download did not end",
        next_step=_fetch_missing,
        source="vLLM 0.32.0 model_loader/weight_utils.py:607",
        numbers=_missing,
    ),
    Rule(
        cause="D3",
        title="a shard is a git-lfs pointer",
        patterns=(
            r"SafetensorError: .*(?:HeaderTooLarge|[Hh]eader too large)",
            r"version https://git-lfs\.github\.com/spec",
        ),
        why="the file holds the text of a pointer, which is read as the length of a header",
        next_step=_pointer,
        source="safetensors 0.8",
        numbers=_model,
    ),
    Rule(
        cause="D2",
        title="a shard is cut off or empty",
        patterns=(
            r"SafetensorError: Error while deserializing header",
            r"SafetensorError: .*(?:MetadataIncompleteBuffer|InvalidHeader|invalid header)",
            r"incomplete metadata, file not fully covered",
        ),
        why="the file ends before what its header announces",
        next_step=_again,
        source="safetensors 0.8; QwenLM/Qwen3-VL#264",
        numbers=_model,
    ),
    Rule(
        cause="D4",
        title="the folder has no weights",
        patterns=(
            r"Cannot find any (?:safetensors )?model weights with `(?P<path>[^`]{1,400})`",
            r"Could not find checkpoint files '(?P<path>[^']{1,400})'",
        ),
        why="no file in {path} has the form that --load-format asks for",
        next_step="finish the download, or correct the path of the model (and --load-format, if "
        "one is given)",
        source="vLLM 0.32.0 model_loader/default_loader.py:260",
    ),
    Rule(
        cause="D13-not-in-checkpoint",
        title="the checkpoint lacks weights that the model needs",
        patterns=(
            r"Following weights were not initialized from checkpoint: (?P<_listing>.{0,2000})",
            r"Missing keys (?P<_listing>.{0,400}) in loaded state",
        ),
        why="files of another model, or of another version of it, are in the folder; or a flag "
        "(--quantization, --hf-overrides) makes vLLM expect other names",
        next_step="compare the folder's files with the repository's at one commit and fetch what "
        "differs; drop --quantization and --hf-overrides",
        source="vLLM 0.32.0 model_loader/default_loader.py:564",
        numbers=_model,
    ),
    Rule(
        cause="D14-shape-mismatch",
        title="the weights have other shapes than config.json says",
        patterns=(
            r"The size of tensor a \([0-9]{1,12}\) must match the size of tensor b",
            r"[Aa]ttempted to load weight \((?P<_weight>.{1,100})\) into parameter",
            r"^\s*assert .{0,80}\bloaded_weight\.(?:shape|size)",
            r"size mismatch for (?P<_name>\S{1,200}):",
        ),
        calls=r"load_weights|weight_loader|_load_param",
        why="config.json and the shards are not of one model, or not of one version of it",
        next_step="fetch config.json and the shards at one and the same commit; drop "
        "--hf-overrides",
        source="run of vLLM 0.32.0 on CPU; model_loader/weight_utils.py",
        numbers=_model,
    ),
    Rule(
        cause="D13-not-in-checkpoint",
        title="the checkpoint has weights that the model does not know",
        patterns=(
            r"There is no module or parameter named ['`]?(?P<_name>[\w.]{1,200})",
            r"^KeyError: '(?P<_key>[\w.]{1,200}\.[\w.]{1,200})'$",
        ),
        calls=r"load_weights",
        why="files of another model are in the folder, or this vLLM names the layers differently",
        next_step="fetch the folder's files again at one commit; a newer vLLM, if the checkpoint "
        "is newer than it",
        source="vLLM 0.32.0 model_executor/models/utils.py",
        numbers=_model,
    ),
    Rule(
        cause="D10-config-json",
        title="config.json is not JSON",
        patterns=(r"config file at '(?P<path>[^']{1,400})' is not a valid JSON file",),
        why="the file was edited by hand, or its download was torn",
        next_step=_config,
        source="transformers configuration_utils.py:991",
        numbers=_position,
    ),
    Rule(
        cause="D10-json",
        title="a JSON file of the model is not JSON",
        patterns=(
            r"JSONDecodeError: .{1,100}?: line (?P<line>[0-9]{1,9}) column (?P<column>[0-9]{1,9})",
        ),
        calls=r"transformers|tokenizers?|weight_utils|huggingface_hub|model_loader|config",
        why="the file was edited by hand, or its download was torn",
        next_step="find the file with: python3 -m json.tool FILE, for each *.json in the model's "
        "folder; it breaks off at line {line}, column {column}: fetch it again",
        source="Python json.decoder",
    ),
    Rule(
        cause="D12-io-error",
        title="a file cannot be read",
        patterns=(r"\[Errno 5\] Input/output error(?:: '(?P<path>[^']{1,400})')?",),
        why="the disk or the network file system failed, not the file's content",
        next_step="dmesg names the device; check the disk (smartctl -a) or the mount",
        source="errno(3), EIO",
    ),
)
