"""How constants fold into convolutions, products and normalizations."""
