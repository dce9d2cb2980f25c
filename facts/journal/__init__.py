"""A journal, read: typed lines, starts, tracebacks, phases, and the engine's own numbers. Pure."""
