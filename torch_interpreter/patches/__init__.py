"""What torch does otherwise while it exports a model."""
