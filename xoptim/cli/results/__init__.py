"""The outcome of a command, and its reports."""
