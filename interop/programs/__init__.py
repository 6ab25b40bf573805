"""One table of programs for every framework: what a kernel's values and derivatives are made of, and how they are run.

`algebra` says which program each derivative is, `terms` how programs are differentiated further, `arguments` turns the
arguments of a call into operands, `native` runs a program on memory that the caller owns. An adapter
(`irgrad.interop.jax`, `irgrad.interop.torch`, ...) adds what its framework wants, and nothing here imports one.
"""
