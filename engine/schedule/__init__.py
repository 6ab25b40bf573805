"""How loops of derivatives run.

Takes a derivative, or a loop while it is made; merges accesses of neighbouring cells, cuts wide loops in two, jams
them, or leaves out what is not read later. Each file handles one pattern and leaves every other loop as it is.
"""
