"""What a rewrite is, what it may ask, how it is registered and selected."""
