"""The safetensors format: what the fit's reader and the fetch's check both know of it."""

LENGTH_BYTES = 8
"""A file begins with the length of its header, little-endian."""

LARGEST_HEADER = 100_000_000
"""Bytes: the format's own limit (MAX_HEADER_SIZE in safetensors' tensor.rs)."""
