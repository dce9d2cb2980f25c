"""P1 to P10: shapes that do not divide, and parallel sizes that the box does not have."""

import re

from facts.diagnosis.rule import Evidence, Number, Numbers, Rule, listed

_INT = r"(?P<{}>[0-9]{{1,12}})"


def _dividing(heads: int, below: int) -> list[str]:
    """Powers of two that divide, up to the size that was asked for and twice as far."""
    sizes = [size for size in (1, 2, 4, 8, 16) if heads % size == 0 and size <= 2 * below]
    return [str(size) for size in sizes if size != below]


def _heads(_: Evidence, n: Numbers) -> str:
    heads, tp = int(n["heads"]), int(n["tp"])
    sizes = _dividing(heads, max(tp, 1))
    return f"--tensor-parallel-size {listed(sizes) or '1'}: each divides {heads} heads"


def _tp(evidence: Evidence) -> dict[str, Number | None]:
    return {"tp": evidence.scene.settings.tp}


def _blocks(evidence: Evidence, n: Numbers) -> str:
    """Sizes at which an expert's matrices keep whole quantisation blocks."""
    whole = int(n["size"]) * evidence.scene.settings.tp
    block = max(1, int(n["block"]))
    sizes = [
        str(size)
        for size in (1, 2, 4, 8, 16)
        if size != evidence.scene.settings.tp and whole % size == 0 and whole // size % block == 0
    ]
    fitting = f"--tensor-parallel-size {listed(sizes)}; or " if sizes else ""
    return (
        f"{fitting}--enable-expert-parallel, which leaves each expert whole (vLLM 0.32 refines "
        "the blocks where it can)"
    )


def _dense_blocks(evidence: Evidence, n: Numbers) -> str:
    whole = int(n["size"]) * evidence.scene.settings.tp
    block = max(1, int(n["block"]))
    sizes = [
        str(size)
        for size in (1, 2, 4, 8, 16)
        if size != evidence.scene.settings.tp and whole % size == 0 and whole // size % block == 0
    ]
    return (
        f"--tensor-parallel-size {listed(sizes)}"
        if sizes
        else "a smaller --tensor-parallel-size, or a checkpoint with another quantisation"
    )


def _world(_: Evidence, n: Numbers) -> str:
    gpus = int(n["gpus"])
    largest = max((size for size in (1, 2, 4, 8, 16) if size <= gpus), default=0)
    lower = f", or lower --tensor-parallel-size to {largest}" if largest else ""
    return (
        f"only {gpus} GPUs are visible to the service: compare nvidia-smi -L with "
        f"CUDA_VISIBLE_DEVICES and DeviceAllow= of the unit, and look in dmesg for a GPU that fell "
        f"off the bus{lower}"
    )


def _longest(_: Evidence, n: Numbers) -> str:
    longest = f" {n['derived']}" if "derived" in n else " to what config.json allows"
    return (
        f"--max-model-len{longest}, or leave the flag out; VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 takes "
        "the check away and not its reason"
    )


def _derived(evidence: Evidence) -> dict[str, Number | None]:
    found = re.search(
        r"(?:max_position_embeddings|model_max_length|derived max_model_len)[^0-9]{1,3}"
        r"([0-9]{1,12})",
        evidence.line.text,
    )
    return {"derived": int(found[1]) if found else None}


SHAPES: tuple[Rule, ...] = (
    Rule(
        cause="P1",
        title="attention heads do not divide among the GPUs",
        patterns=(
            rf"Total number of attention heads \({_INT.format('heads')}\) must be divisible by "
            rf"tensor parallel size \({_INT.format('tp')}\)",
        ),
        why="each rank gets the same number of attention heads",
        next_step=_heads,
        source="vLLM 0.32.0 config/model.py:1546",
    ),
    Rule(
        cause="P2",
        title="key and value heads do not divide among the GPUs",
        patterns=(r"^\s*assert .*\b\w*heads\w*(?:\.\w+)? *% ?|^\s*assert .* % .*heads",),
        why="the key and value heads must divide by the tensor parallel size, or it by them",
        next_step="--tensor-parallel-size that divides the model's num_key_value_heads, or is a "
        "multiple of it (with 8: 1, 2, 4, 8 or 16); it is {tp}",
        source="vLLM 0.32.0 model_executor/models/minimax_m2.py",
        numbers=_tp,
    ),
    Rule(
        cause="P3",
        title="an expert's slice is not a whole number of FP8 blocks",
        patterns=(
            rf"The (?:output_size of gate's and up's|input_size of down's) weight = "
            rf"{_INT.format('size')} is not divisible by weight quantization "
            rf"block_[nk] = {_INT.format('block')}",
        ),
        why="tensor parallelism cuts each expert's intermediate size, here into {size}, and the "
        "checkpoint's scales cover blocks of {block}",
        next_step=_blocks,
        source="vLLM 0.32.0 fp8_utils.py:1361; vllm-project/vllm#17569, "
        "vllm-project/recipes MiniMax-M2.5",
        numbers=_tp,
    ),
    Rule(
        cause="P4",
        title="a layer's slice is not a whole number of FP8 blocks",
        patterns=(
            rf"Weight (?:output_partition_size|input_size_per_partition) = {_INT.format('size')} "
            rf"is not divisible by weight quantization block_[nk] = {_INT.format('block')}",
        ),
        why="tensor parallelism cuts the layer into {size}, and the checkpoint's scales cover "
        "blocks of {block}",
        next_step=_dense_blocks,
        source="vLLM 0.32.0 fp8_utils.py:1325",
        numbers=_tp,
    ),
    Rule(
        cause="P5",
        title="a layer's slice is not a whole number of quantisation groups",
        patterns=(
            rf"Weight (?:input|output)_size_per_partition ?= ?{_INT.format('size')}"
            rf"(?: for layer '[^']{{0,200}}')? is not divisible by {{1,3}}"
            rf"(?:group_size|min_thread_\w{{1,4}}) ?= ?{_INT.format('block')}",
            r"Consider reducing tensor_parallel_size",
        ),
        why="tensor parallelism cuts a layer inside a quantisation group",
        next_step=lambda evidence, n: (
            _dense_blocks(evidence, n)
            if "size" in n and "block" in n
            else "a smaller --tensor-parallel-size"
        ),
        source="vLLM 0.32.0 distributed/utils.py:76",
        numbers=_tp,
    ),
    Rule(
        cause="P6",
        title="a size does not divide among the GPUs",
        patterns=(
            rf"^(?:AssertionError: )?{_INT.format('size')} is not divisible by "
            rf"{_INT.format('by')}$",
        ),
        why="{size} cannot be cut into {by} equal parts",
        next_step="another --tensor-parallel-size: one that divides {size}",
        source="vLLM 0.32.0 distributed/utils.py:54",
        numbers=_tp,
    ),
    Rule(
        cause="P7",
        title="there are fewer experts than GPUs",
        patterns=(
            rf"Tensor parallel size {_INT.format('tp')} is greater than the number of experts "
            rf"{_INT.format('experts')}",
        ),
        why="each rank needs at least one expert",
        next_step="--tensor-parallel-size {experts} or less",
        source="vLLM 0.32.0 model_executor/models/minimax_m2.py",
    ),
    Rule(
        cause="P8",
        title="the box shows fewer GPUs than the service wants",
        patterns=(
            rf"World size \({_INT.format('world_size')}\) is larger than the number of available "
            rf"GPUs \({_INT.format('gpus')}\)",
        ),
        why="{world_size} workers need {world_size} GPUs",
        next_step=_world,
        source="vLLM 0.32.0 config/parallel.py:1053",
    ),
    Rule(
        cause="P8-device-ordinal",
        title="a GPU that was asked for does not exist",
        patterns=(
            r"CUDA error: invalid device ordinal",
            r"visible device ordinal (?P<index>[0-9]{1,6}) is out of range for",
            r"Physical device \S{1,80} for logical device \S{1,80} is not visible",
        ),
        why="a worker was given a GPU number beyond those that it may see",
        next_step="compare nvidia-smi -L with CUDA_VISIBLE_DEVICES and --device-ids, and look in "
        "dmesg for a GPU that fell off the bus",
        source="CUDA runtime API, cudaErrorInvalidDevice",
        numbers=_tp,
    ),
    Rule(
        cause="P9",
        title="the context is longer than the model's",
        patterns=(
            rf"User-specified max_model_len \({_INT.format('max_model_len')}\) is greater than "
            r"the derived max_model_len",
        ),
        why="positions beyond what the model was made for give nonsense, or crash it",
        next_step=_longest,
        source="vLLM 0.32.0 config/model.py:2646",
        numbers=_derived,
    ),
    Rule(
        cause="P10",
        title="--device-ids is malformed",
        patterns=(
            r"--device-ids must not (?P<what>contain duplicates|mix integer IDs and UUIDs)",
            r"--device-ids index (?P<index>[0-9]{1,6}) is out of range for CUDA_VISIBLE_DEVICES",
        ),
        why="each worker needs one GPU of its own, named in one way",
        next_step="name the GPUs by UUID only (nvidia-smi -L), each once, and leave "
        "CUDA_VISIBLE_DEVICES out",
        source="vLLM 0.32.0 engine/arg_utils.py:2101",
    ),
)
