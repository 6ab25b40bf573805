"""Primal values in the reverse sweep.

Takes what the reverse sweep asks for; decides whether a value is still there, is read again, is computed again or is
saved, and where. The arena and the caller's buffer hold what is saved.
"""
