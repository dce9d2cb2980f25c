"""In which order: the story of a switch, and one short file per model."""
