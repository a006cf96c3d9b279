"""GraphBuilder, the facade: seven files of one class, and the origin of an exported model."""
