"""Shape functions of the layers of neural networks."""
