"""Shape functions of other domains than the main one, and of quantization."""
