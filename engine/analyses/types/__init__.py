"""Which bytes hold what.

Takes a module and its points-to sets; gives, for bytes of memory and for integers, the type of float, the pointer or
the integer that they carry. A conflict is a result too: `legality` decides whether it matters.
"""
