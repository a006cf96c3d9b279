"""Checks that every rewrite must pass, whoever wrote it."""
