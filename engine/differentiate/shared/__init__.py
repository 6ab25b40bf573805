"""What all functions of one derivative share.

`Unit` holds the facts about a root and the functions that are made for it; the other modules say how derived functions
are called, which rule a call gets, and what is refused. The sweeps and the shadows use it, and it uses none of them.
"""
