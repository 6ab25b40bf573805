"""Benchmarks of irgrad: sixteen kernels, checked and timed against their primals. See README.md."""
