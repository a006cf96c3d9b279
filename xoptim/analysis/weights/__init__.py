"""Constants folded into convolutions, products and normalizations."""
