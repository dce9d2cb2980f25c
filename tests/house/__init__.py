"""The house itself: which module imports what, and what is defined where. Read from the source."""
