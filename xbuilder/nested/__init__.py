"""Graphs inside graphs: subgraphs, local functions, splicing."""
