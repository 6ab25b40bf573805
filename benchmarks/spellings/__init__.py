"""The kernels of `kernels/` in other spellings, and what each costs: python -m benchmarks.spellings."""
