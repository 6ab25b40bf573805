"""How shadows lie in registers and in memory.

Takes a type or a value of the primal and the width of the derivative; gives the type, the address and the accesses of
its shadow. Lanes lie side by side, or apart for a program's own arrays. What runs a sweep is in the packages above.
"""
