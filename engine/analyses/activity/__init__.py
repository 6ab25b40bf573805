"""Which values and memory carry derivatives.

Takes a module, its root and the differentiated arguments; gives activity with the reason for each active value, the
pointers that need shadows, and the adjoints that are zero by structure. `Facts` holds these results together with those
of the other analyses.
"""
