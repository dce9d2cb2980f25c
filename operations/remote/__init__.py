"""Programs that run on the box itself: standard library, huggingface_hub and tenacity only."""
