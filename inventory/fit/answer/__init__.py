"""What follows: verdicts, settings that were left open, times, and words for people."""
