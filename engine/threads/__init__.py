"""Threads for one call: loops with independent iterations run on a team.

Takes the module of a function in canonical form, and the modules of its derivatives; gives them with the loops that a
team of threads shares in chunks. May touch nothing else: the team itself is `codegen/team.ll`.
"""
