"""Oracles that share no code with the rules: an IR interpreter over a number type, differences, random kernels."""
