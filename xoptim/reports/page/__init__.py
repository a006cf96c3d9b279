"""The report of an optimization as one web page."""
