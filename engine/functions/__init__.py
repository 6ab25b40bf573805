"""The public functions on kernels: gradients, Jacobians, products, sparse matrices, checks, exports.

They take a `Kernel` and arrays, and give arrays. Here is no differentiation: they choose programs, fill buffers and
run.
"""
