"""Shared material: configurations in the form of config.json, and shorthand for questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inventory.fit.fit import Fit, fit
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from inventory.fit.model.known import known_architecture
from inventory.fit.settings.card import parse_cards
from inventory.fit.settings.settings import EngineSettings

FIXTURES = Path(__file__).parents[2] / "fixtures" / "fit"

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "original_max_position_embeddings": 8192,
    },
    "tie_word_embeddings": False,
}
GPT_OSS_20B: dict[str, Any] = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "num_hidden_layers": 24,
    "hidden_size": 2880,
    "head_dim": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "intermediate_size": 2880,
    "vocab_size": 201088,
    "max_position_embeddings": 131072,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
    },
}
QWEN35_MOE: dict[str, Any] = {
    # As Qwen/Qwen3.5-397B-A17B nests it, with the numbers of the 35B.
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "model_type": "qwen3_5_moe",
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "qwen3_5_moe_text",
        "attn_output_gate": True,
        "full_attention_interval": 4,
        "num_hidden_layers": 40,
        "hidden_size": 2048,
        "head_dim": 256,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "mamba_ssm_dtype": "float32",
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "mtp_num_hidden_layers": 1,
        "vocab_size": 248320,
        "max_position_embeddings": 262144,
    },
    "vision_config": {
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_heads": 16,
    },
}

MINIMAX = known_architecture("MiniMaxAI/MiniMax-M2.5")
KIMI_INT4 = known_architecture("moonshotai/Kimi-K2.5")
KIMI_NVFP4 = known_architecture("nvidia/Kimi-K2.5-NVFP4")


def asked(architecture: Architecture, gpus: str, **settings: Any) -> Fit:
    """The answer for some GPUs, with vLLM 0.32.0 and one rank a GPU unless said otherwise."""
    cards = parse_cards(gpus)
    return fit(
        architecture, EngineSettings(**{"engine": "0.32.0", "tp": len(cards), **settings}), cards
    )


def nested(name: str, text: dict[str, Any]) -> Architecture:
    """A multimodal model: its class, and the numbers of its text part."""
    return read_architecture({"architectures": [name], "text_config": text})


def rules(answer: Fit) -> set[str]:
    """Names of everything that was found."""
    return {verdict.rule for verdict in answer.verdicts}


def fixture(name: str) -> Any:
    """A JSON file of the fixtures."""
    return json.loads((FIXTURES / name).read_text(encoding="utf-8"))
