"""Drawings of graphs: vertices and edges, their places, SVG."""
