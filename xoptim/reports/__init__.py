"""Tables and drawings."""
