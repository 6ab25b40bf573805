"""Derivatives of LAPACK routines, by calls of the same LAPACK and BLAS, one family of routines per file."""
