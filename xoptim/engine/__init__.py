"""The loop: matching, applying, cleaning, until nothing changes."""
