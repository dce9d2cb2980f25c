"""Know before touching: will this model start on these GPUs with these flags, and how well?

Pure functions. :func:`inventory.fit.fit.fit` is the whole answer; each module holds one part:

- what a model is: architecture, config, config_parts, layers, quantisation, safetensors, known
- how its engine is set: settings, settings_of, resolve, card
- what is legal: shapes, shape_blocks, compatibility, engine_names, flags
- what it costs: weights, matrices, ignored; kv; overhead, outside_torch, constants; span;
  memory
- what follows: memory_verdicts, verdict, derive; fitted_service for one box
- how it is said: explain, cli. tests/benchmarks/published compares it with published starts
"""
