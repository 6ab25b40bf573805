"""Parallel regions: what a compiler makes of OpenMP, found in a module's text (`regions`).

Takes the text of a module; gives its regions, and the text in which each region is an ordinary call.
"""
