"""Errors, options and types the whole converter shares."""
