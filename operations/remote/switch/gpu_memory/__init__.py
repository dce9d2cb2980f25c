"""GPU memory: see it free before a start, and name who holds it."""
