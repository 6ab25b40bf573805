"""Shadows that need more than an address.

Takes an instruction and the sweep that meets it; gives the accesses of the shadows of copied memory, of integers that
carry floats or pointers, of words that hold either, and of memory that outlives a call. `layout` says how a shadow
lies; this package says which one it is.
"""
