"""What runtimes can run: operators, opsets, types, by execution provider."""
