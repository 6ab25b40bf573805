"""Forward mode.

`Sweep` copies a function and computes shadows beside its values; reverse mode uses it for the primal sweep as well.
`replay` runs the tangents alone, by a log of the primal run.
"""
