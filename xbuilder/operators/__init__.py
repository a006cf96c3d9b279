"""What operators are: schemas, opsets, domains, one table of their traits."""
