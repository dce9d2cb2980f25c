"""How a checkpoint's weights are stored, from its quantization_config."""

import re
from collections.abc import Mapping
from typing import Any

from inventory.base import Unknown
from inventory.fit.model.architecture import Quantisation
from inventory.fit.model.reading import Fields, as_mapping, as_texts

_BITS: dict[str, float] = {
    "fp8": 8,
    "fbgemm_fp8": 8,
    "modelopt-fp8": 8,
    "mxfp8": 8,
    "mxfp4": 4,
    "modelopt-nvfp4": 4,
    "modelopt-nvfp4_awq": 4,
    "modelopt_fp4": 4,
    "awq": 4,
    "awq_marlin": 4,
    "gptq": 4,
    "gptq_marlin": 4,
    "bitsandbytes": 4,
}
"""Bits of a weight where the configuration does not say them."""

_CONVERT_EVERYTHING = frozenset(_BITS) - {"modelopt-nvfp4", "modelopt-nvfp4_awq", "modelopt-fp8"}

_NVFP4_GROUP, _MXFP4_GROUP = 16, 32
_MODULES_UNSAID = Unknown(unknown="which modules keep the model's own type is not said")


def quantisation(raw: object) -> Quantisation | None:
    """The quantisation; None for a model that has none.

    + raw: ``quantization_config`` (or ``compression_config``) of config.json
    """
    config = as_mapping(raw)
    if not config:
        return None
    fields = Fields(config)
    method = (fields.text("quant_method") or "unknown").lower()
    algorithm = fields.text("quant_algo")
    if method == "modelopt" and algorithm:
        method = f"modelopt-{algorithm.lower()}"
    if method == "compressed-tensors":
        return _compressed_tensors(fields)
    layers = fields.mapping("quantized_layers")
    if layers:
        # ModelOpt's mixed precision names every quantised module with its own algorithm; the
        # most frequent stands for all (the experts, in practice).
        algorithms = [str(as_mapping(one).get("quant_algo")) for one in layers.values()]
        method = f"modelopt-{max(set(algorithms), key=algorithms.count).lower()}"
    bits: float | Unknown = _bits(fields, method)
    group = fields.optional("group_size", "q_group_size")
    scale = 0.0
    if "nvfp4" in method or method == "modelopt_fp4":
        group, scale = _NVFP4_GROUP, 8 / _NVFP4_GROUP
    elif method == "mxfp4":
        group, scale = _MXFP4_GROUP, 8 / _MXFP4_GROUP
    elif not isinstance(bits, Unknown) and bits < 8:  # noqa: PLR2004
        # A 16-bit scale and, where zeros are kept, one packed zero a group.
        group = group or 128
        scale = (16 + bits) / group
    return Quantisation(
        method=method,
        weight_bits=bits,
        scale_bits=scale,
        block=_block(fields.raw("weight_block_size")),
        group=group,
        ignored=_ignored(fields, method),
        only=tuple(layers),
        kv_cache_fp8=_is_fp8(fields.mapping("kv_cache_scheme")),
    )


def _bits(fields: Fields, method: str) -> float | Unknown:
    if method == "bitsandbytes":
        return 8 if fields.flag("load_in_8bit") else 4
    if method in {"auto-round", "autoround"} and fields.optional("bits") is None:
        return 4
    said = fields.optional("bits", "w_bit")
    if said is not None and said <= 16:  # noqa: PLR2004
        return said
    if method in _BITS:
        return _BITS[method]
    return Unknown(unknown=f"bits of a weight under {method[:40]!r} are not said")


def _compressed_tensors(fields: Fields) -> Quantisation:
    layout = (fields.text("format") or "").lower()
    weights: Mapping[str, Any] = {}
    for one in fields.mapping("config_groups").values():
        weights = as_mapping(as_mapping(one).get("weights"))
        if weights:
            break
    group_fields = Fields(weights, {"group_size": fields.raw("group_size")})
    bits: float | Unknown = Unknown(unknown="bits of a weight are not said")
    said = group_fields.optional("num_bits")
    if said is not None and said <= 16:  # noqa: PLR2004
        bits = said
    elif "nvfp4" in layout or "mxfp4" in layout:
        bits = 4
    elif layout == "float-quantized":
        bits = 8
    group = group_fields.optional("group_size")
    scale = 0.0
    if "nvfp4" in layout:
        group, scale = _NVFP4_GROUP, 8 / _NVFP4_GROUP
    elif isinstance(bits, int) and bits < 8 and group:  # noqa: PLR2004
        scale = 16 / group
    shape = group_fields.raw("block_structure")
    return Quantisation(
        method="compressed-tensors" + (f"-{layout}" if layout else ""),
        weight_bits=bits,
        scale_bits=scale,
        block=_block(shape) if group_fields.text("strategy") == "block" else None,
        group=group,
        ignored=as_texts(fields.raw("ignore"))
        if fields.raw("ignore") is not None
        else _MODULES_UNSAID,
        kv_cache_fp8=_is_fp8(fields.mapping("kv_cache_scheme")),
    )


def _block(raw: object) -> tuple[int, int] | None:
    if isinstance(raw, str):
        raw = [int(part) for part in re.findall(r"\d{1,6}", raw)]
    if (
        isinstance(raw, (list, tuple))
        and len(raw) == 2  # noqa: PLR2004
        and all(isinstance(part, int) and not isinstance(part, bool) for part in raw)
        and all(0 < part <= 1 << 20 for part in raw)
    ):
        return (raw[0], raw[1])
    return None


def _ignored(fields: Fields, method: str) -> tuple[str, ...] | Unknown:
    raw = fields.raw("modules_to_not_convert", "exclude_modules", "ignore", "ignored_layers")
    if raw is not None:
        return as_texts(raw)
    # These convert every linear layer unless told otherwise. ModelOpt always writes its list
    # beside the config, in hf_quant_config.json.
    if method in _CONVERT_EVERYTHING:
        return ()
    return _MODULES_UNSAID


def _is_fp8(scheme: Mapping[str, Any]) -> bool:
    return scheme.get("num_bits") == 8 and scheme.get("type") == "float"  # noqa: PLR2004
