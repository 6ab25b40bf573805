"""Reverse mode.

Takes a function and its facts; gives the primal sweep, the control flow run backwards, and the reverse of each
instruction. What the reverse sweep needs of primal values it asks of `tape`, where shadows lie of `shadow`.
"""
