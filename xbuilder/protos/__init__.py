"""Protos and files in, protos and text out."""
