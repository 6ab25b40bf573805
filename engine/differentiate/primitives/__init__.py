"""The reading of the rule tables as instructions.

Takes an instruction, its row and a builder; gives tangents and contributions to adjoints. Products may be strong: zero
times anything is zero.
"""
