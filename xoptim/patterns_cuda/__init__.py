"""Families of rewrites; every module of this package is loaded by the registry."""
