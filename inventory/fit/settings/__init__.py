"""How an engine is started: its settings, and what it fills in by itself."""
