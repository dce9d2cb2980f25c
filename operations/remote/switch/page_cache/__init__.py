"""The page cache: weights of the next service, read while the old one serves."""
