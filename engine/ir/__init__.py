"""LLVM IR as Python objects: types, model, reader, printer, builder, verifier and validator."""
