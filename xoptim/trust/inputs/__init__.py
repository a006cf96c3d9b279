"""The inputs models are compared on, and the branches they run."""
