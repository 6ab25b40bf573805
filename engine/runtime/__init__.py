"""IR that derivatives and batches call: the arena of the tape, adjoints of copied memory, the driver of batches.

Takes nothing of the program; gives text that is linked to a derivative, or compiled once. The one error here is that of
a tape without memory.
"""
