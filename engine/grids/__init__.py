"""Batches on a grid of threads: one sample a thread, for devices.

Takes programs in normal form; gives IR text of a kernel that runs one for each sample, and what a launch has to know.
"""
