"""The notation `__enzyme_autodiff(f, ...)` of C and C++ programs.

Takes the linked IR of a program; gives the same program with those calls replaced by calls of derivatives. What a
program registers becomes rules of its own compilation.
"""
