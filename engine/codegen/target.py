"""What code is generated for: the only place that knows the machine."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from irgrad.engine.codegen.llvm import binding, host_cpu, host_features
from irgrad.rules.errors import CompileError

__all__ = ["BASELINE", "CPUS", "HOST", "Target", "check_instructions"]

_EVERYWHERE = {"+sse", "+sse2"}  # on every x86-64 CPU
_FEATURES = {
    r"sse": "sse", r"sse2": "sse2", r"sse3": "sse3", r"ssse3": "ssse3", r"sse41": "sse4.1", r"sse42": "sse4.2",
    r"avx": "avx", r"avx2": "avx2", r"fma": "fma", r"vcvtps2ph": "f16c", r"avx512(?=.*\.512$)": "avx512f",
    r"avx512(?=.*\.(?:128|256)$)": "avx512vl", r"avx512": "avx512f",
}  # fmt: skip
"""How intrinsics behind `llvm.x86.` begin, and the feature that they need."""


def check_instructions(module: Any, features: str, where: str = "") -> None:
    """Raise CompileError where a module of LLVM calls for an instruction that a CPU with these features lacks: code
    generation would end the process."""
    there = _EVERYWHERE | set(features.split(","))
    for function in module.functions:
        if not function.name.startswith("llvm.x86."):
            continue
        name = function.name.removeprefix("llvm.x86.")
        wanted = next((word for start, word in _FEATURES.items() if re.match(rf"{start}\b", name)), None)
        if wanted is not None and f"+{wanted}" not in there:
            raise CompileError(
                "the code has an instruction that the CPU has not", where=where, which=function.name,
                because=f"`{wanted}` is none of its features",
                fix="leave the -m flag out, or compute this part in plain C, which the compiler vectorises",
            )  # fmt: skip


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
BASELINE = Target("baseline", HOST.triple, lambda: "", lambda: "", vector_math=False)
"""Any machine of this architecture: no fused multiply-add, values are those of a compiler without -m options."""
CPUS = {"native": HOST, "baseline": BASELINE}
