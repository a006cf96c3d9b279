"""The optimizer: matches, applies and cleans, until a fixed point."""
