"""Expressions of partial derivatives: what rows and rules are written in, and the functions that build them.

Takes Python functions of symbols, gives trees that any context can read; knows neither engines nor libraries.
"""
