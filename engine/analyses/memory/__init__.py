"""Which memory is read and written where.

Takes a whole module; gives points-to sets, offsets of pointers and addresses as strided sets, and what instructions,
calls and functions may read and write. Answers are conservative: memory that is not understood may be anything that has
escaped.
"""
