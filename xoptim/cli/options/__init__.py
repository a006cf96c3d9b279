"""The options several commands share."""
