"""What no derivative can follow.

Takes an analysed unit; raises Unsupported with the source line, or returns nothing. No code has been made when these
run, and they change nothing.
"""
