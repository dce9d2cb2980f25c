"""What is allowed: parallel sizes, flags, and what model, engine and card know of each other."""
