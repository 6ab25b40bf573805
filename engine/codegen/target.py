"""What code is generated for: the only place that knows the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from irgrad.engine.codegen.llvm import binding, host_cpu, host_features

__all__ = ["HOST", "Target"]


@dataclass(frozen=True)
class Target:
    """A kind of machine.

    name:        part of the key of everything that is made for it
    triple:      LLVM's name of architecture and system; cpu, features: LLVM's names of what it can do
    vector_math: whether calls of libm may become calls of the vector library (`vector_math.py`)
    gathers:     whether loads that lie apart are worth an instruction of their own in code that is no reverse sweep
    initialise:  makes LLVM know the architecture
    reloc, code_model: how addresses are made, in LLVM's words
    """

    name: str
    triple: Callable[[], str]
    cpu: Callable[[], str]
    features: Callable[[], str]
    vector_math: bool = True
    gathers: bool = False
    initialise: Callable[[], object] = binding
    reloc: str = "pic"
    code_model: str = "small"

    def machine(self, *, opt: int = 3, reloc: str = "", gathers: bool = True, features: str = "") -> Any:
        """LLVM's target machine, with features added or taken away; on the host its code is
        position-independent in the small code model. Target machines are not shared between threads."""
        llvm = binding()
        self.initialise()
        wanted = f"{self.features()},{features}".strip(",")
        if not gathers and "+avx2" in wanted:
            wanted += ",+prefer-no-gather"
        target = llvm.Target.from_triple(self.triple())
        return target.create_target_machine(cpu=self.cpu(), features=wanted, opt=opt, reloc=reloc or self.reloc,
                                            codemodel=self.code_model)  # fmt: skip

    def machine_for(self, *, adjoint: bool, opt: int = 3) -> Any:
        """The machine for a module. Loops over arrays of structs are not vectorised through gathers (measured: 1.9x on
        tangents of a skinned mesh, hardware gathers load lane by lane), except in adjoint code, where they won (1.4x on
        bundle adjustment)."""
        return self.machine(opt=opt, gathers=adjoint or self.gathers)


HOST = Target("host", lambda: str(binding().get_process_triple()), host_cpu, host_features)
"""This machine, with all that its CPU can do."""
