"""Derivatives of calls that a rule of the user gives.

Takes the rules in force and the types of a call; gives functions of the same shape as those derived from a body. Rules
may be partials, bodies with `ctx`, functions in C, Python, or registered by a C program.
"""
