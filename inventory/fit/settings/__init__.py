"""How an engine is set: what was given, what it fills in by itself, and on which cards."""
