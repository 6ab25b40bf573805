"""The reader of LLVM's textual IR.

Takes text; gives the model (`irgrad.engine.ir.model`). `validate` refuses modules that would endanger the process,
before LLVM sees them.
"""
