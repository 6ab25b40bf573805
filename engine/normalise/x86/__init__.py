"""x86's vector intrinsics as the generic IR that does the same.

Compilers write `llvm.x86.*` where a header of C names an instruction. Arithmetic, movement and accesses of memory
become instructions and intrinsics that every other part knows, so that values, derivatives and widths follow.
"""
