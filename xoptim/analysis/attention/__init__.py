"""Heads, projections, rotary tables, guards and scales of an attention."""
