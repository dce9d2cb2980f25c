"""A1 to A16: model, tokenizer, quantisation, kernels and parsers."""

import re
from difflib import get_close_matches

from facts.diagnosis.rule import Evidence, Numbers, Rank, Rule, listed

_NAME = r"[\w.\-/]{1,120}"


def _parser(evidence: Evidence, n: Numbers) -> str:
    """The nearest parser that this version has; the message lists them all."""
    wanted = str(n.get("parser", ""))
    rest = evidence.line.text[evidence.match.end("parser") :]
    known = [name for name in re.findall(_NAME, rest) if name not in {"chose", "from"}]
    near = get_close_matches(wanted, known, n=3, cutoff=0.5)
    flag = (
        "--reasoning-parser" if "reasoning" in evidence.line.text.lower() else "--tool-call-parser"
    )
    if near:
        n["nearest"] = near[0]
        return f"{flag} {listed(near)}: these are near to {wanted!r} and known to this version"
    return f"{flag} with one of the names in the message, or a vLLM that has {wanted!r}"


def _drop_quantisation(_: Evidence, n: Numbers) -> str:
    return f"drop --quantization {n['argument']}: the checkpoint is {n['config']}"


MODEL: tuple[Rule, ...] = (
    Rule(
        cause="A3",
        title="this vLLM no longer has the model",
        patterns=(
            r"(?:architecture |Model architectures? )\[?'?(?P<what>\w{1,120})'?\]? .*"
            r"was supported in vLLM until v?(?P<version>[\w.]{1,30})",
            r"was supported in vLLM until v?(?P<version>[\w.]{1,30})",
        ),
        why="support for the architecture was removed after {version}",
        next_step="engine version {version} or older for this model, or a newer model",
        source="vLLM 0.32.0 model_executor/models/registry.py",
    ),
    Rule(
        cause="A1",
        title="this vLLM does not know the model",
        patterns=(
            r"Model architectures \['(?P<what>[^'\]]{1,200})'.*?\] are not supported for now",
            r"model type `(?P<what>[^`]{1,100})` but Transformers does not recognize this",
        ),
        why="the architecture {what} is newer than the engine, or no engine has it",
        next_step="a newer vLLM: the model's card or its recipe names the first version that has "
        "{what}",
        source="vLLM 0.32.0 model_executor/models/registry.py:1206",
    ),
    Rule(
        cause="A3",
        title="this vLLM has the model only as a plugin",
        patterns=(
            r"Model architecture (?P<what>\w{1,120}) is not supported in-tree anymore\. "
            r"Please install the plugin at (?P<path>\S{1,200})",
        ),
        why="support for {what} was moved out of vLLM",
        next_step="install the plugin from {path} into the engine's environment",
        source="vLLM 0.32.0 model_executor/models/registry.py:1199",
    ),
    Rule(
        cause="A2",
        title="the model's code could not be imported",
        patterns=(r"Model architectures \['(?P<what>[^'\]]{1,200})'.*?\] failed to be inspected",),
        rank=Rank.LOSS,
        why="vLLM imports a model's code in a process of its own, and that one failed",
        next_step="the lines above this one hold the import's own error: a missing package, a GPU "
        "name that the version cannot read (CUDA_VISIBLE_DEVICES with UUIDs), or a broken CUDA",
        source="vLLM 0.32.0 model_executor/models/registry.py; vllm-project/vllm#41848",
    ),
    Rule(
        cause="A4",
        title="the model brings code of its own",
        patterns=(
            r"Failed to load the model config\. If the model is a custom model not yet available",
            r"contains custom code which must be executed to correctly load",
            r"[Pp]lease pass the argument `trust_remote_code=True`",
        ),
        why="config.json points to code in the model's folder, which is run only if it is trusted",
        next_step="--trust-remote-code, if the source of the model is trusted (better: a vLLM that "
        "has the model built in)",
        source="vLLM 0.32.0 transformers_utils/config.py:412",
    ),
    Rule(
        cause="A5",
        title="the tokenizer could not be loaded",
        patterns=(
            r"Failed to load the tokenizer",
            r"Can't load tokenizer for '(?P<path>[^']{1,300})'",
            r"Couldn't instantiate the backend tokenizer",
        ),
        why="files of the tokenizer are missing or broken, or it brings code of its own",
        next_step="check that tokenizer.json, tokenizer_config.json (and tiktoken.model, "
        "*.model where the model has them) are complete, and fetch them again; "
        "--trust-remote-code if the tokenizer is custom code",
        source="vLLM 0.32.0 tokenizers/hf.py:198",
    ),
    Rule(
        cause="A6",
        title="the GPU cannot do this quantisation",
        patterns=(
            r"The quantization method (?P<argument>\S{1,60}) is not supported for the current "
            r"GPU\. Minimum capability: (?P<minimum>[0-9]{1,4})\. "
            r"Current capability: (?P<capability>[0-9]{1,4})",
        ),
        why="{argument} needs compute capability {minimum}, the GPU has {capability}",
        next_step="a checkpoint in another quantisation (AWQ, GPTQ or BF16), or a newer GPU",
        source="vLLM 0.32.0 config/vllm.py:901",
    ),
    Rule(
        cause="A6",
        title="the platform cannot do this quantisation",
        patterns=(
            r"(?P<argument>\S{1,60}) quantization is currently not supported in "
            r"(?P<what>\w{1,30})",
        ),
        why="{what} has no kernels for {argument}",
        next_step="a checkpoint in another quantisation (on a CPU BF16, AWQ or GPTQ)",
        source="vLLM 0.32.0 platforms/interface.py:1147",
    ),
    Rule(
        cause="A7",
        title="the GPU cannot do this quantisation scheme",
        patterns=(r"Quantization scheme is not supported for the current GPU\. Min capability",),
        why="a scheme of the checkpoint needs a newer compute capability than the GPU has",
        next_step="a checkpoint in another quantisation, or a newer GPU",
        source="vLLM 0.32.0 compressed_tensors.py:403, quark.py:358",
    ),
    Rule(
        cause="A8",
        title="--quantization contradicts the checkpoint",
        patterns=(
            r"Quantization method specified in the model config \((?P<config>[^)]{1,60})\) does "
            r"not match the quantization method specified in the `quantization` argument "
            r"\((?P<argument>[^)]{1,60})\)",
        ),
        why="the checkpoint says itself how it is quantised",
        next_step=_drop_quantisation,
        source="vLLM 0.32.0 config/model.py:1446",
    ),
    Rule(
        cause="A8",
        title="the quantisation method is not known",
        patterns=(r"Unknown quantization method:? '?(?P<argument>[\w\-]{1,60})",),
        why="this vLLM has no method {argument}",
        next_step="drop --quantization {argument}, or take a vLLM that has it",
        source="vLLM 0.32.0 config/model.py:1446",
    ),
    Rule(
        cause="A9",
        title="the GPU has no FP8 type",
        patterns=(r"type fp8e4nv not supported in this architecture",),
        why="FP8 in this form needs compute capability 8.9 or newer",
        next_step="drop --kv-cache-dtype fp8 (use auto), or a checkpoint that is not FP8",
        source="vllm-project/vllm#26431",
    ),
    Rule(
        cause="A10",
        title="no attention backend fits",
        patterns=(
            r"No valid attention backend found for (?P<what>\w{1,20}) with",
            r"Selected backend (?P<what>\S{1,80}) is not valid for this configuration",
            r"No valid (?:CPU )?MLA prefill backend found",
        ),
        why="none can do this attention with this KV cache type on this GPU",
        next_step="drop --attention-backend and --kv-cache-dtype; for MLA models on sm_120 "
        "--attention-backend TRITON_MLA with a BF16 KV cache; else a newer vLLM",
        source="local-inference-lab/rtx6kpro models/glm5; vLLM 0.32.0 platforms/cuda.py:132",
    ),
    Rule(
        cause="A11",
        title="FlashInfer's MoE kernel does not know the GPU",
        patterns=(
            r"FlashInfer-CUTLASS MoE kernel does not support current device (?P<what>\w{1,20})",
        ),
        why="this version's NVFP4 experts have no kernel for {what}",
        next_step="a vLLM newer than 0.15 (fixed in vllm-project/vllm#33417), or "
        "--moe-backend triton or marlin",
        source="vllm-project/vllm#33417",
    ),
    Rule(
        cause="A12",
        title="DeepGEMM or CUTLASS has no kernel for this GPU",
        patterns=(
            r"(?i:deep_?gemm).{0,80}(?:not supported|[Ff]ailed|[Uu]nsupported|[Aa]ssertion)",
            r"(?i:cutlass)\w* .{0,60}(?:not supported|[Uu]nsupported|[Ii]nternal [Ee]rror|failed)",
            r"no kernel image is available for execution on the device",
        ),
        why="kernels are built for certain GPUs, and this one is not among them",
        next_step="VLLM_USE_DEEP_GEMM=0 and --moe-backend triton; if that does not help, a wheel "
        "that is built for this GPU's compute capability",
        source="sgl-project/sglang#18870; vllm-project/recipes#112",
    ),
    Rule(
        cause="A12",
        title="DeepGEMM cannot do this layer on this GPU",
        patterns=(r"Assertion error \(?\S{1,300}\.hpp:[0-9]{1,6}\)?:? '?(?P<what>[^']{1,120})",),
        calls=r"deep_?gemm",
        why="DeepGEMM says: {what}; its pinned revision has no kernel for this GPU and these "
        "shapes, or could not compile one",
        next_step="VLLM_USE_DEEP_GEMM=0 in the unit; or a vLLM whose DeepGEMM knows the GPU (that "
        "of 0.24.0 does not know sm_120, later ones do)",
        source="vllm-project/vllm#47130, #47436; deepseek-ai/DeepGEMM#324",
    ),
    Rule(
        cause="A13",
        title="the parser is not known",
        patterns=(
            r"invalid (?:tool call|reasoning) parser: (?P<parser>[\w.\-]{1,80})",
            r"(?:Reasoning|Tool(?: call)?) parser '?(?P<parser>[\w.\-]{1,80})'? not found",
        ),
        why="this version has no parser {parser}",
        next_step=_parser,
        source="vLLM 0.32.0 entrypoints/launchers",
    ),
    Rule(
        cause="A14",
        title="the GPU has no BF16",
        patterns=(r"Bfloat16 is only supported on GPUs with compute capability of at least",),
        why="BF16 needs compute capability 8.0",
        next_step="--dtype half",
        source="vLLM 0.32.0 platforms/cuda.py:648",
    ),
    Rule(
        cause="A16",
        title="the harmony vocabulary could not be fetched",
        patterns=(
            r"HarmonyError",
            r"openai_harmony.*(?:[Ee]rror|failed)",
            r"(?:downloading|loading) (?:or loading )?(?:the )?vocab(?:ulary)? file",
        ),
        why="gpt-oss models fetch their vocabulary from the network at the first start",
        next_step="put o200k_base.tiktoken and cl100k_base.tiktoken into a folder and set "
        "TIKTOKEN_ENCODINGS_BASE to it",
        source="vllm-project/recipes gpt-oss",
    ),
)
