"""How values change from one iteration to the next.

Takes a function and its loops; gives linear forms over loop counters, trip counts, reductions that may be reassociated,
and whether memory still holds a loaded value when the reverse sweep runs.
"""
