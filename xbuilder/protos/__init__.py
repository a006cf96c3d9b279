"""Imports protos and files into graphs, exports graphs as protos and text."""
