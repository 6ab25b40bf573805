"""Values that travel under another type.

Rewrites moves of floats as integers, and of vectors that hold several things, into moves of what they carry. No bit
that is moved changes.
"""
