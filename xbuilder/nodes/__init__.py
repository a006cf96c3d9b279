"""NodeProto: made, copied, read, checked."""
