"""Programs that call the derivative themselves, in the notation `__enzyme_autodiff(f, ...)`: read, and lowered."""
