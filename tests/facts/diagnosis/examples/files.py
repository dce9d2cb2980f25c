"""D: files, Hub, disk, folders."""

from __future__ import annotations

from tests.facts.diagnosis.examples.kind import Example
from tests.facts.diagnosis.journals import server_fails, worker_fails

PERMISSION = "PermissionError: [Errno 13] Permission denied: '{}'"

FILES: tuple[Example, ...] = (
    Example(
        "D1",
        worker_fails(
            "FileNotFoundError: Weight files referenced in index but missing: "
            "{'/srv/models/m/model-00007-of-00009.safetensors', "
            "'/srv/models/m/model-00003-of-00009.safetensors'}"
        ),
        "referenced in index",
        ("model-00003-of-00009.safetensors", "1 more"),
        {"file": "model-00003-of-00009.safetensors", "files": 2},
    ),
    Example(
        "D2",
        worker_fails(
            "safetensors._safetensors_rust.SafetensorError: Error while deserializing header: "
            "MetadataIncompleteBuffer"
        ),
        "MetadataIncompleteBuffer",
        ("fetch", "again"),
        {"path": "/srv/models/m"},
    ),
    Example(
        "D3",
        worker_fails("SafetensorError: Error while deserializing header: HeaderTooLarge"),
        "HeaderTooLarge",
        ("git lfs pull", "find /srv/models/m"),
    ),
    Example(
        "D4",
        worker_fails("RuntimeError: Cannot find any model weights with `/srv/models/m`"),
        "Cannot find any model weights",
        ("download",),
        {"path": "/srv/models/m"},
    ),
    Example(
        "D13-not-in-checkpoint",
        worker_fails(
            "ValueError: Following weights were not initialized from checkpoint: {'lm_head.weight'}"
        ),
        "not initialized",
        ("fetch what differs",),
    ),
    Example(
        "D13-not-in-checkpoint",
        worker_fails(
            "KeyError: 'layers.61.mlp.shared_experts.up_proj.weight'",
            (("models/x.py", "loaded = self.model.load_weights(weights)"),),
        ),
        "layers.61",
        ("newer vLLM",),
    ),
    Example(
        "D14-shape-mismatch",
        worker_fails(
            "RuntimeError: The size of tensor a (128) must match the size of tensor b (256) at "
            "non-singleton dimension 1",
            (("models/utils.py", "weight_loader(param, weight_data)"),),
        ),
        "size of tensor a (128)",
        ("config.json", "one and the same commit"),
    ),
    Example(
        "D5",
        server_fails(
            "OSError: /srv/models/mm is not a local folder and is not a valid model identifier "
            "listed on 'https://huggingface.co/models'"
        ),
        "/srv/models/mm",
        ("correct the path",),
        {"path": "/srv/models/mm"},
    ),
    Example(
        "D6",
        server_fails(
            "OSError: You are trying to access a gated repo.\nMake sure to have access to it at "
            "https://huggingface.co/a/b."
        ),
        "gated repo",
        ("HF_TOKEN", "licence"),
    ),
    Example(
        "D6-not-found",
        server_fails(
            "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. Repository Not "
            "Found for url: https://huggingface.co/api/models/a/b."
        ),
        "RepositoryNotFoundError",
        ("name", "HF_TOKEN"),
    ),
    Example(
        "D7",
        server_fails(
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and "
            "couldn't find them in the cached files."
        ),
        "couldn't connect",
        ("HF_HUB_OFFLINE", "pre-stage"),
    ),
    Example(
        "D8",
        worker_fails("OSError: [Errno 28] No space left on device: '/var/cache/vllm/x'"),
        "No space left",
        ("/var/cache/vllm/x", "free space"),
    ),
    Example(
        "D9",
        worker_fails(PERMISSION.format("/.cache"), (("decorators.py", "os.makedirs(x)"),)),
        "'/.cache'",
        ("HOME", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR"),
        {"path": "/.cache"},
    ),
    Example(
        "D9",
        worker_fails("OSError: [Errno 30] Read-only file system: '/home/vllm/.cache'"),
        "Read-only file system",
        ("ReadWritePaths=/home/vllm/.cache", "ProtectHome"),
    ),
    Example(
        "D10-config-json",
        server_fails(
            "OSError: It looks like the config file at '/srv/models/m/config.json' is not a valid "
            "JSON file."
        ),
        "not a valid JSON file",
        ("/srv/models/m/config.json",),
    ),
    Example(
        "D10-json",
        worker_fails(
            "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 9 column 3 (char 200)",
            (("model_loader/weight_utils.py", "json.load(f)"),),
        ),
        "JSONDecodeError",
        ("line 9, column 3",),
        {"line": 9, "column": 3},
    ),
    Example(
        "D11-model-unreadable",
        server_fails(PERMISSION.format("/srv/models/m/config.json")),
        "/srv/models/m/config.json",
        ("chmod",),
    ),
    Example(
        "D11-device",
        worker_fails(PERMISSION.format("/dev/nvidia0")),
        "/dev/nvidia0",
        ("DeviceAllow=",),
    ),
    Example(
        "D12-io-error",
        worker_fails("OSError: [Errno 5] Input/output error"),
        "Input/output error",
        ("dmesg",),
    ),
)
