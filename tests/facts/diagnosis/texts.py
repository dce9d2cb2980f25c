"""Every text of the failure catalogue as its source prints it, and the ways in which a journal can
show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.facts.diagnosis.examples.scenes import LOAD, oom
from tests.facts.diagnosis.journals import (
    API,
    ENGINE,
    Made,
    echoes,
    server_fails,
    worker,
    worker_fails,
)

Calls = Iterable[tuple[str, str]]


class Text(NamedTuple):
    """A text, and who prints it.

    + server: the API server while it reads the configuration; else a worker that loads
    + printed: on a line of its own, without a traceback
    """

    cause: str
    text: str
    server: bool = False
    calls: Calls = ()
    printed: bool = False

    @property
    def journal(self) -> str:
        """A start that ends by it."""
        if self.printed:
            made = Made().banner(tensor_parallel_size=2).workers(2).raw("vllm[301]", self.text)
            died = "Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down"
            return echoes(made.said(ENGINE, "ERROR", "multiproc_executor.py:315", died)).text
        return (server_fails if self.server else worker_fails)(self.text, self.calls)


WARM = (
    ("vllm/v1/worker/gpu_worker.py", "warmup_kernels(self.model_runner)"),
    ("vllm/v1/worker/gpu/warmup.py", "worker_sample_tokens(grammar_output)"),
)
DEEP_GEMM = (("vllm/utils/deep_gemm.py", "return _fp8_gemm_nt_impl(*args)"),)
JIT = (("flashinfer/jit/core.py", "check_cuda_arch()"),)

TEXTS: tuple[Text, ...] = (
    Text("M4b", oom("1.15 GiB", 0, "402.38 MiB"), calls=WARM),
    Text("M5", f"RuntimeError: Failed to load model - not enough GPU memory. {oom()}", calls=LOAD),
    Text("M7", "RuntimeError: NCCL error: Failed to CUDA malloc 4194304 bytes"),
    Text(
        "P3",
        "ValueError: The input_size of down's weight = 192 is not divisible by weight "
        "quantization block_k = 128.",
    ),
    Text(
        "P4",
        "ValueError: Weight input_size_per_partition = 192 is not divisible by weight "
        "quantization block_k = 128.",
    ),
    Text("P10", "ValueError: --device-ids must not mix integer IDs and UUIDs", server=True),
    Text(
        "P10",
        "ValueError: --device-ids index 4 is out of range for CUDA_VISIBLE_DEVICES=0,1",
        server=True,
    ),
    Text(
        "A1",
        "ValueError: The checkpoint you are trying to load has model type `minimax_m9` but "
        "Transformers does not recognize this architecture.",
        server=True,
    ),
    Text(
        "A4",
        "ValueError: The repository a/b contains custom code which must be executed to "
        "correctly load the model.",
        server=True,
    ),
    Text(
        "A5",
        "RuntimeError: Failed to load the tokenizer. If the tokenizer is a custom tokenizer "
        "not yet available in the HuggingFace transformers library, consider setting "
        "`trust_remote_code=True`",
        server=True,
    ),
    Text(
        "A5",
        "OSError: Can't load tokenizer for '/srv/models/m'. If you were trying to load it "
        "from 'https://huggingface.co/models', make sure you",
        server=True,
    ),
    Text(
        "A9",
        "triton.compiler.errors.CompilationError: type fp8e4nv not supported in this "
        "architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')",
    ),
    Text(
        "A10",
        "ValueError: Selected backend FLASHMLA is not valid for this configuration. "
        "Reason: ['compute capability not supported']",
    ),
    Text(
        "A11",
        "NotImplementedError: FlashInfer-CUTLASS MoE kernel does not support current device sm_120",
    ),
    Text(
        "A12",
        "RuntimeError: Assertion error (deep_gemm/csrc/jit.hpp:64): DeepGEMM: Unsupported "
        "architecture",
    ),
    Text("A12", "RuntimeError: cutlass_scaled_mm failed: Error Internal"),
    Text(
        "A12",
        "RuntimeError: Assertion error (/workspace/.deps/deepgemm-src/csrc/apis/../jit_kernels/"
        "impls/../heuristics/../../utils/layout.hpp:76): Unknown recipe",
        calls=DEEP_GEMM,
    ),
    Text(
        "A12",
        "RuntimeError: Assertion error (csrc/apis/layout.hpp:59): Unknown SF transformation",
        calls=DEEP_GEMM,
    ),
    Text(
        "A12",
        "RuntimeError: Failed: Assertion error csrc/utils/layout.hpp:57 'Unknown recipe'",
        calls=DEEP_GEMM,
    ),
    Text(
        "A13",
        "KeyError: 'invalid reasoning parser: qwen4 (chose from { glm45,qwen3 })'",
        server=True,
    ),
    Text(
        "A14",
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at "
        "least 8.0. Your Tesla T4 GPU has compute capability 7.5.",
        server=True,
    ),
    Text(
        "A16",
        "openai_harmony.HarmonyError: error downloading or loading vocab file: failed to "
        "download or load vocab file",
        server=True,
    ),
    Text(
        "D1",
        "FileNotFoundError: No such file or directory: "
        "'/srv/models/m/model-00002-of-00006.safetensors'",
        calls=LOAD,
    ),
    Text(
        "D2",
        "safetensors_rust.SafetensorError: Error while deserializing header: incomplete "
        "metadata, file not fully covered",
        calls=LOAD,
    ),
    Text(
        "D3",
        "safetensors_rust.SafetensorError: Error while deserializing header: header too large",
        calls=LOAD,
    ),
    Text(
        "D5",
        "OSError: minimax-m25 is not a local folder and is not a valid model identifier "
        "listed on 'https://huggingface.co/models'",
        server=True,
    ),
    Text(
        "D6",
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-2)\n"
        "\nCannot access gated repo for url https://huggingface.co/a/b/resolve/main/config.json.",
        server=True,
    ),
    Text(
        "D6-not-found",
        "huggingface_hub.errors.RevisionNotFoundError: 404 Client Error. "
        "Revision Not Found for url: https://huggingface.co/a/b/resolve/x/config.json.",
        server=True,
    ),
    Text(
        "D7",
        "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/"
        "api/models/a/b: offline mode is enabled. To disable it, please unset the "
        "`HF_HUB_OFFLINE` environment variable.",
        server=True,
    ),
    Text(
        "D7",
        "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in "
        "the disk cache and outgoing traffic has been disabled.",
        server=True,
    ),
    Text(
        "D8",
        "OSError: [Errno 122] Disk quota exceeded: '/home/vllm/.cache/huggingface/x'",
        server=True,
    ),
    Text(
        "D9",
        "PermissionError: [Errno 13] Permission denied: '/.cache/flashinfer'",
        calls=(("flashinfer/jit/env.py", "path.mkdir(parents=True)"),),
    ),
    Text(
        "H1",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12080). "
        "Please update your GPU driver",
    ),
    Text("H2", "RuntimeError: CUDA driver version is insufficient for CUDA runtime version"),
    Text(
        "H2",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda "
        "functions before calling NumCudaDevices() that might have already set an error? Error "
        "804: forward compatibility was attempted on non supported HW",
    ),
    Text(
        "H3",
        "torch.AcceleratorError: CUDA error: the provided PTX was compiled with an "
        "unsupported toolchain.\nCUDA kernel errors might be asynchronously reported",
    ),
    Text("H3", "RuntimeError: CUDA driver error: cudaErrorUnsupportedPtxVersion (222)"),
    Text("H3", "RuntimeError: Error in cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    Text(
        "H8",
        "RuntimeError: unable to allocate shared memory(shm) for file </torch_7_2_0>: No "
        "space left on device (28)",
    ),
    Text(
        "H9",
        "box:301:301 [1] misc/shmutils.cc:93 NCCL WARN Error while creating shared memory "
        "segment /dev/shm/nccl-X7 (size 33030528), error: No space left on device (28)",
        printed=True,
    ),
    Text("H13", "OSError: [Errno 24] Too many open files"),
    Text(
        "H14",
        "box:301:301 [1] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr_iova2 failed "
        "with error Cannot allocate memory",
        printed=True,
    ),
    Text(
        "H15",
        "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
    ),
    Text(
        "H15",
        "RuntimeError: Ninja build failed. Ninja output:\n/bin/sh: 1: "
        "/usr/local/cuda/bin/nvcc: not found\nninja: build stopped: subcommand failed.",
    ),
    Text("H16", "RuntimeError: FlashInfer requires GPUs with sm75 or higher", calls=JIT),
    Text("H17b", "RuntimeError: GPU index 3 exceeds numa_bind_nodes size 2"),
    Text(
        "H27", "Failed: Cuda error csrc/custom_all_reduce.cuh:455 'invalid argument'", printed=True
    ),
)
"""Wording: vLLM 0.32.0, PyTorch, NCCL, FlashInfer, safetensors, huggingface_hub, transformers; the
sources of each are with its rule."""


def coloured(text: str) -> str:
    """As ``VLLM_LOGGING_COLOR=1`` has it (vLLM 0.32.0 logging_utils)."""
    text = re.sub(r"(\(\w[\w ]* pid=\d+\))", "\x1b[0;36m\\1\x1b[0;0m", text)
    return re.sub(
        r"\b(INFO|WARNING|ERROR) (\d\d-\d\d \d\d:\d\d:\d\d) (\[[^\]]+\])",
        "\x1b[31m\\1\x1b[0m \x1b[90m\\2\x1b[0m \x1b[90m\\3\x1b[0m",
        text,
    )


def named_twice(text: str) -> str:
    """A worker has two names: as it began, and with its rank (seen from 0.17 to 0.19)."""
    return re.sub(r"\((Worker_TP\d+ pid=(\d+))\)", r"(Worker pid=\2) (\1)", text)


def named_on_every_line(text: str) -> str:
    """What goes to stderr has the process's name too (vLLM 0.10 and later)."""
    return re.sub(r"(?m)^(\S+ \S+ vllm\[100\]: )(?=\S|  )(?!\()", r"\1(APIServer pid=100) ", text)


def echo_first(text: str) -> str:
    """Another process's echo is written before the cause: the order of processes is nobody's."""
    lines = text.splitlines()
    where = "(APIServer pid=100) ERROR 11-30 10:00:01 [utils.py:1427]"
    head = lines[0].partition(" systemd[1]")[0]
    early = (
        f"{head} vllm[100]: {where} Frontend process failed during engine core initialization.",
        f"{head} vllm[100]: RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {}",
        f"{head} vllm[200]: (EngineCore pid=200) ERROR 11-30 10:00:01 [core.py:1510] EngineCore "
        "failed to start.",
    )
    return "\n".join([lines[0], *early, *lines[1:]]) + "\n"


def look_alike(text: str) -> str:
    """Before the cause stands what reads like a cause and only tells numbers."""
    lines = text.splitlines()
    harmless = Made().said(
        worker(1),
        "INFO",
        "gpu_worker.py:1010",
        "Free memory on device (92.1/94.97 GiB) on startup. Desired GPU memory utilization is "
        "(0.92, 87.37 GiB). Actual usage is 53.75 GiB for weight, 2.1 GiB for peak activation. "
        "Replace gpu_memory_utilization config with `--kv-cache-memory=1` to fit into requested "
        "memory, or `--kv-cache-memory=2` to fully utilize gpu memory.",
    )
    harmless.said(
        worker(1),
        "WARNING",
        "custom_all_reduce.py:272",
        "Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs.",
    )
    harmless.said(
        API,
        "WARNING",
        "model.py:2660",
        "User-specified max_model_len (9) is greater than the "
        "derived max_model_len (max_position_embeddings=8)",
    )
    return "\n".join([lines[0], *harmless.lines[1:], *lines[1:]]) + "\n"


def after_another(text: str) -> str:
    """An earlier start, by hand, failed of something else."""
    earlier = worker_fails("OSError: [Errno 5] Input/output error: '/srv/models/m/x'")
    return earlier.replace("2026-11-30T10", "2026-11-30T09") + text


def restarted(text: str) -> str:
    """systemd starts it again, and it fails the same way."""
    again = "2026-11-30T11:00:00+0000 box systemd[1]: vllm-x.service: Scheduled restart job, "
    return (
        f"{text}{again}restart counter is at 1.\n{text.replace('2026-11-30T10', '2026-11-30T11')}"
    )


def other_ranks_between(text: str) -> str:
    """Between any two lines stands one of another process, in the middle of a traceback too."""
    mixed = []
    for nth, line in enumerate(text.splitlines()):
        mixed.append(line)
        head = line.partition(" box ")[0]
        other = 900 + nth % 3
        mixed.append(
            f"{head} box vllm[{other}]: (Worker_TP{other - 890} pid={other}) ERROR 11-30 10:00:09 "
            f"[multiproc_executor.py:953] "
            + ("WorkerProc failed to start.", '  File "/opt/x.py", line 3, in f', "    f(x)")[
                nth % 3
            ]
        )
    return "\n".join(mixed) + "\n"


def clock_set_back(text: str) -> str:
    """The clock is corrected by an hour in the middle of the start."""
    lines = text.splitlines()
    half = len(lines) // 2

    def earlier(match: re.Match[str]) -> str:
        at = datetime.fromisoformat(match[0]) - timedelta(hours=1)
        return at.strftime("%Y-%m-%dT%H:%M:%S+0000")

    late = [re.sub(r"^\S+", earlier, line) for line in lines[half:]]
    return "\n".join([*lines[:half], *late]) + "\n"


def suppressed(text: str) -> str:
    """journald dropped lines of the unit and says so."""
    lines = text.splitlines()
    head = lines[1].partition(" box ")[0]
    said = f"{head} box systemd-journald[61]: Suppressed 4711 messages from vllm-x.service"
    return "\n".join([*lines[:2], said, *lines[2:]]) + "\n"


def tabs_and_carriage_returns(text: str) -> str:
    """A progress bar that rewrites its line stands before the cause."""
    lines = text.splitlines()
    head = lines[1].partition(" box ")[0]
    bar = "\rLoading safetensors checkpoint shards:   0% Completed | 0/6 [00:00<?, ?it/s]"
    return "\n".join([*lines[:2], f"{head} box vllm[300]: {bar * 3}", *lines[2:]]) + "\n"


WAYS: tuple[Callable[[str], str], ...] = (
    coloured,
    named_twice,
    named_on_every_line,
    echo_first,
    look_alike,
    after_another,
    restarted,
    other_ranks_between,
    clock_set_back,
    suppressed,
    tabs_and_carriage_returns,
)
