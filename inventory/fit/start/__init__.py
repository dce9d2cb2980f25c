"""How a model is started: settings, what the engine fills in, and on which cards."""
