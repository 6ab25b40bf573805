"""Many samples in one native call.

Takes a program for one sample and the arguments of a batch; gives functions over batches, the plan that the native
driver follows, and the machine code of blocks. Results are bitwise the same for any number of threads.
"""
