"""Operators: their schemas, opsets and domains, one table of their traits."""
