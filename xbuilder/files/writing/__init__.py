"""Writing bytes to the disk: direct writes, write-back, prefetch, temporary files."""
