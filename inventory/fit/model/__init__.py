"""What a model is, as far as a start depends on it: shape, layers, quantisation, files."""
