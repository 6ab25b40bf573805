"""How loops of derivatives run.

Takes a derivative, or a loop while it is made; merges accesses of neighbouring cells, cuts wide loops in two, jams
them, or leaves out what is not read later. Each file handles one pattern and leaves every other loop as it is. Those
that a reverse derivative needs while it is made answer through `loop_schedule`; the others are passes of the pipeline.
"""
