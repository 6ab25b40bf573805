"""Random kernels through the public API against the interpreter."""
