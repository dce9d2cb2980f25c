"""What a start depends on in a model: shape, layers, quantisation, files."""
