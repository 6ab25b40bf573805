"""A compiled function with a signature.

`Kernel` checks arguments and runs; `Program` is one function in normal form, the primal or a derivative, made and
compiled when it is first needed.
"""
