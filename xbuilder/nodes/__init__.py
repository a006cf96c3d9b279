"""NodeProto: making, copying, reading and checking nodes."""
