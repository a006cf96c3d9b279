"""The kernels of runtimes: operators, opsets and types, by execution provider."""
