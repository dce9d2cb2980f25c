"""P: shapes and parallel sizes."""

from __future__ import annotations

from tests.facts.diagnosis.examples.kind import Example
from tests.facts.diagnosis.examples.scenes import invalid
from tests.facts.diagnosis.journals import worker_fails

P2 = "assert tp_size % self.total_num_kv_heads == 0"

SHAPES: tuple[Example, ...] = (
    Example(
        "P1",
        invalid(
            "ModelConfig",
            "Total number of attention heads (48) must be divisible by tensor parallel size (5).",
        ),
        "attention heads (48)",
        ("--tensor-parallel-size 1, 2, 4 or 8",),
        {"heads": 48, "tp": 5},
    ),
    Example(
        "P2",
        worker_fails("AssertionError", (("models/minimax_m2.py", P2),), count=6),
        P2,
        ("num_key_value_heads", "it is 6"),
        {"tp": 6},
    ),
    Example(
        "P3",
        worker_fails(
            "ValueError: The output_size of gate's and up's weight = 192 is not divisible by "
            "weight quantization block_n = 128.",
            count=8,
        ),
        "= 192 is not divisible",
        ("--tensor-parallel-size 1, 2 or 4", "--enable-expert-parallel"),
        {"size": 192, "block": 128},
    ),
    Example(
        "P3",
        worker_fails(
            "ValueError: The input_size of down's weight = 176 is not divisible by weight "
            "quantization block_k = 128."
        ),
        "= 176 is not divisible",
        ("--enable-expert-parallel",),
    ),
    Example(
        "P4",
        worker_fails(
            "ValueError: Weight output_partition_size = 576 is not divisible by weight "
            "quantization block_n = 128."
        ),
        "output_partition_size = 576",
        ("--tensor-parallel-size 1 or 2",),
    ),
    Example(
        "P5",
        worker_fails(
            "ValueError: Weight input_size_per_partition=64 for layer 'x.down' is not divisible "
            "by group_size=128. This happens when tensor_parallel_size splits the layer input"
        ),
        "input_size_per_partition=64",
        ("--tensor-parallel-size 1 or 2",),
    ),
    Example(
        "P6",
        worker_fails("AssertionError: 151 is not divisible by 4"),
        "151 is not divisible by 4",
        ("--tensor-parallel-size", "151"),
    ),
    Example(
        "P7",
        worker_fails(
            "ValueError: Tensor parallel size 16 is greater than the number of experts 8."
        ),
        "number of experts 8",
        ("--tensor-parallel-size 8",),
    ),
    Example(
        "P8",
        invalid(
            "ParallelConfig",
            "World size (8) is larger than the number of available GPUs (7) in this node.",
        ),
        "World size (8)",
        ("nvidia-smi -L", "CUDA_VISIBLE_DEVICES", "to 4"),
        {"world_size": 8, "gpus": 7},
    ),
    Example(
        "P8-device-ordinal",
        worker_fails("torch.AcceleratorError: CUDA error: invalid device ordinal"),
        "invalid device ordinal",
        ("CUDA_VISIBLE_DEVICES",),
    ),
    Example(
        "P8-device-ordinal",
        worker_fails("IndexError: visible device ordinal 5 is out of range for CVD=0,1"),
        "ordinal 5",
        ("--device-ids",),
        {"index": 5},
    ),
    Example(
        "P5",
        worker_fails(
            "ValueError: Weight output_size_per_partition = 32 is not divisible by  min_thread_n "
            "= 64. Consider reducing tensor_parallel_size or running with --quantization gptq."
        ),
        "output_size_per_partition = 32",
        ("--tensor-parallel-size 1 or 2",),
    ),
    Example(
        "P9",
        invalid(
            "ModelConfig",
            "User-specified max_model_len (400000) is greater than the derived max_model_len "
            "(max_position_embeddings=196608 or model_max_length=None in model's config.json).",
        ),
        "max_model_len (400000)",
        ("--max-model-len 196608",),
    ),
    Example(
        "P10",
        invalid("EngineArgs", "--device-ids must not contain duplicates"),
        "--device-ids",
        ("UUID",),
    ),
)
