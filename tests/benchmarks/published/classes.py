"""Failure classes of published starts, and the rules that name the same reason."""

from __future__ import annotations

RULES_OF_CLASS: dict[str, frozenset[str]] = {
    "heads_not_divisible": frozenset({"heads", "kv-heads", "vision-heads", "linear-heads"}),
    "not_divisible": frozenset({"vocabulary", "group-size", "kv-heads"}),
    "fp8_block_divisibility": frozenset({"fp8-block"}),
    "free_lt_requested": frozenset({"free-memory"}),
    "weights_oom": frozenset({"weights"}),
    "graph_or_profile_oom": frozenset({"profile", "graphs", "sampler", "state-blocks"}),
    "sampler_warmup_oom": frozenset({"sampler"}),
    "v2_warmup_oom": frozenset({"sampler"}),
    "no_cache_blocks": frozenset({"no-kv"}),
    "kv_lt_max_model_len": frozenset({"kv-context"}),
    "oom_unspecified": frozenset({"weights", "profile", "sampler", "graphs", "no-kv"}),
}
"""Failure class of a case -> rules that name the same reason."""
SHAPE_CLASSES = frozenset({"heads_not_divisible", "not_divisible", "fp8_block_divisibility"})
