"""From IR text to machine code: prepare, optimise, JIT, object files, disk cache."""
