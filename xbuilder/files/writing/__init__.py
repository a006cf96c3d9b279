"""How bytes reach the disk: direct writes, write-back, prefetch, temporary files."""
