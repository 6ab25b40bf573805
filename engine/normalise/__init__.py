"""The shape of functions that analyses and sweeps expect.

Takes a module as LLVM left it; rewrites it in place: calls that do several things taken apart, reducible control flow,
canonical loops, one return. The function computes the same bits as before.
"""
