"""The command line of vLLM 0.32.0: every flag by name, so that an unknown one is refused as
vLLM refuses it, with the usage first and status 2.

The names are those that ``vllm serve`` 0.32.0 prints as its usage.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

_SWITCHES = """
    headless grpc trust-request-chat-template trust-request-mm-kwargs
    return-tokens-as-token-ids enable-auto-tool-choice exclude-tools-when-tool-choice-none
    enable-prompt-tokens-details enable-per-request-metrics enable-server-load-tracking
    enable-force-include-usage enable-tokenizer-info-endpoint enable-log-outputs
    enable-log-deltas cohere-is-reasoning-model log-error-stack tokens-only enable-scale-out
    disable-uvicorn-access-log allow-credentials enable-ssl-refresh
    enable-request-id-headers disable-fastapi-docs enable-offline-docs
    enable-flash-late-interaction trust-remote-code allow-deprecated-quantization
    enforce-eager enable-return-routed-experts return-sampling-mask use-fp64-gumbel
    enable-trace-replay disable-sliding-window disable-cascade-attn skip-tokenizer-init
    enable-prompt-embeds enable-sleep-mode sleep-mode-offload-cudagraph
    enable-cumem-allocator enable-nccl-comm-suspend use-tqdm-on-load
    enable-mamba-cache-stochastic-rounding numa-bind dcp-q-replicate data-parallel-hybrid-lb
    data-parallel-external-lb data-parallel-multi-port-external-lb enable-hc-sp
    enable-expert-parallel enable-batch-sharded-sampling enable-ep-weight-filter enable-dbo
    enable-shm-tensor-arena enable-elastic-ep disable-nccl-for-dp-synchronization
    enable-eplb ray-workers-use-nsight disable-custom-all-reduce enable-fault-tolerance
    enable-prefix-caching kv-sharing-fast-prefill swa-bounded-replay
    enable-mamba-shared-prefix-checkpoint use-replayssm language-model-only enable-mm-embeds
    mm-encoder-only interleave-mm-strings skip-mm-profiling mm-device-do-normalize
    enable-lora enable-tower-connector-lora fully-sharded-loras specialize-active-lora
    enable-mixed-moe-lora-format enable-moe-shared-loras kv-cache-metrics cudagraph-metrics
    enable-layerwise-nvtx-tracing enable-mfu-metrics enable-logging-iteration-details
    jit-monitor-verbose long-prefill-token-threshold-adaptive enable-chunked-prefill
    disable-chunked-mm-input scheduler-reserve-full-isl disable-hybrid-kv-cache-manager
    async-scheduling enable-flashinfer-autotune disable-log-stats aggregate-engine-logging
    fail-on-environ-validation enable-log-requests
"""
_VALUES = """
    api-server-count config chat-template chat-template-content-format
    default-chat-template-kwargs response-role tool-call-parser tool-parser-plugin
    tool-strict-level tool-server max-log-len sse-keep-alive-interval cohere-format
    anthropic-disabled-thinking-effort fingerprint-mode fingerprint-value host port
    grpc-port data-parallel-supervisor-port dp-supervisor-probe-interval-s
    dp-supervisor-probe-timeout-s dp-supervisor-probe-failure-threshold uds
    uvicorn-log-level disable-access-log-for-endpoints allowed-origins allowed-methods
    allowed-headers ssl-keyfile ssl-certfile ssl-ca-certs ssl-cert-reqs ssl-ciphers
    root-path middleware h11-max-incomplete-event-size h11-max-header-count model runner
    convert tokenizer dtype seed hf-config-path allowed-local-media-path revision
    code-revision tokenizer-revision max-model-len quantization quantization-config
    max-logprobs logprobs-mode hf-overrides model-class-overrides pooler-config
    generation-config override-generation-config io-processor-plugin renderer-num-workers
    load-format download-dir safetensors-load-strategy safetensors-prefetch-num-threads
    safetensors-prefetch-block-size model-loader-extra-config pt-load-map-location
    attention-backend mamba-backend mamba-ssu-algorithm mamba-cache-philox-rounds
    reasoning-parser reasoning-parser-plugin pipeline-parallel-size master-addr master-port
    nnodes node-rank distributed-timeout-seconds cpu-distributed-timeout-seconds device-ids
    tensor-parallel-size decode-context-parallel-size dcp-comm-backend
    dcp-kv-cache-interleave-size cp-kv-cache-interleave-size prefill-context-parallel-size
    data-parallel-size data-parallel-rank data-parallel-start-rank data-parallel-size-local
    data-parallel-address data-parallel-rpc-port data-parallel-backend all2all-backend
    ubatch-size elastic-ep-max-dp-size dbo-decode-token-threshold dp-sync-interval
    dbo-prefill-token-threshold eplb-config expert-placement-strategy
    max-parallel-loading-workers worker-cls worker-extension-cls fault-tolerance-config
    block-size gpu-memory-utilization kv-cache-memory-bytes kv-cache-dtype
    num-gpu-blocks-override prefix-caching-hash-algo prefix-cache-retention-interval
    mamba-cache-dtype mamba-ssm-cache-dtype mamba-block-size prefix-match-unit
    mamba-cache-mode replayssm-buffer-len kv-offloading-size kv-offloading-backend
    offload-backend cpu-offload-gb offload-group-size offload-num-in-group
    offload-prefetch-step limit-mm-per-prompt media-io-kwargs mm-processor-kwargs
    mm-processor-cache-gb mm-processor-cache-type mm-hasher-algorithm
    mm-shm-cache-max-object-size-mb mm-encoder-tp-mode mm-encoder-attn-backend
    mm-encoder-attn-dtype mm-encoder-fp8-scale-path mm-encoder-fp8-scale-save-path
    mm-encoder-fp8-scale-save-margin video-pruning-rate video-pruning-method mm-tensor-ipc
    mm-processor-device mm-ipc-gpu-memory-gb max-loras max-lora-rank lora-dtype
    max-cpu-loras default-mm-loras max-lora-cls-labels logging-config log-level
    log-config-file show-hidden-metrics-for-version otlp-traces-endpoint
    per-request-spec-decode-metrics kv-cache-metrics-sample custom-histogram-buckets
    jit-monitor-mode max-num-batched-tokens max-num-scheduled-tokens max-num-seqs
    max-num-active-seqs max-num-queued-reqs max-num-queued-tokens
    long-prefill-token-threshold scheduling-policy scheduler-cls watermark
    prefill-schedule-interval stream-interval max-cudagraph-capture-size ir-op-priority
    moe-backend linear-backend sparse-indexer-topk-backend speculative-config spec-method
    spec-model spec-tokens watermark-config diffusion-config kv-transfer-config
    kv-events-config ec-transfer-config ec-manager-config compilation-config
    attention-config engram-config reasoning-config kernel-config additional-config
    structured-outputs-config aux-output-config profiler-config optimization-level
    performance-mode weight-transfer-config shutdown-timeout gdn-prefill-backend
    kda-prefill-backend kda-decode-backend
"""
_LISTS = """
    lora-modules api-key tokenizer-mode allowed-media-domains served-model-name
    config-format hf-token sleep-preserve-parameter-names model-impl logits-processors
    ignore-patterns distributed-executor-backend numa-bind-nodes numa-bind-cpus
    kv-cache-dtype-skip-layers cpu-offload-params offload-params lora-target-modules
    collect-detailed-traces cudagraph-capture-sizes
"""
SWITCHES, VALUES, LISTS = _SWITCHES.split(), _VALUES.split(), _LISTS.split()

INTEGERS = frozenset(
    {
        "port",
        "max-model-len",
        "max-num-seqs",
        "max-num-batched-tokens",
        "tensor-parallel-size",
        "pipeline-parallel-size",
        "data-parallel-size",
        "shutdown-timeout",
    }
)
SHORT = {"tensor-parallel-size": "-tp", "pipeline-parallel-size": "-pp"}
DEFAULTS = {
    "port": 8000,
    "tensor-parallel-size": 1,
    "pipeline-parallel-size": 1,
    "gpu-memory-utilization": 0.92,
    "kv-cache-dtype": "auto",
}


def parser(without: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of one version.

    + without: flags that this version does not have, without the dashes
    """
    found = argparse.ArgumentParser(prog="api_server.py", allow_abbrev=False)
    found.add_argument("model_tag", nargs="?")
    for name in SWITCHES:
        if name not in without:
            found.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=None)
    for name in (*VALUES, *LISTS):
        if name in without:
            continue
        kind = int if name in INTEGERS else float if name == "gpu-memory-utilization" else str
        names = [f"--{name}", *([SHORT[name]] if name in SHORT else [])]
        many = "+" if name in LISTS else None
        found.add_argument(*names, type=kind, nargs=many, default=DEFAULTS.get(name))
    return found


def parse(words: Sequence[str], without: Sequence[str] = ()) -> argparse.Namespace:
    """Read a command line. Ends the process with status 2 as argparse does.

    ``--max_num_seqs`` is read as ``--max-num-seqs``, as by vLLM; ``--help=all`` as ``--help``.
    """
    plain = []
    for word in words:
        flag, equals, value = word.partition("=")
        if flag == "--help":
            plain.append(flag)
        elif flag.startswith("--"):
            plain.append(f"--{flag[2:].replace('_', '-')}{equals}{value}")
        else:
            plain.append(word)
    arguments = parser(without).parse_args(plain)
    arguments.model = arguments.model or arguments.model_tag
    return arguments


def said(arguments: argparse.Namespace) -> dict[str, object]:
    """The arguments that are not at their default, by name: vLLM logs them at its start."""
    defaults = {name.replace("-", "_"): value for name, value in DEFAULTS.items()}
    return {
        name: value
        for name, value in vars(arguments).items()
        if value is not None and value != defaults.get(name)
    }
