"""Large weights computed block by block from the bytes of a file."""
