"""What a start costs: weights, KV cache, and what is needed besides. Bytes a rank."""
