"""Operators of parallel constructs: what a kernel `c = a op b` on k numbers of state takes and gives.

    double add(double a, double b)                                           one number
    void compose(double a0, double b0, double a1, double b1, double *a, double *b)    two numbers, each by itself
    void matmul(const double *a, const double *b, double *c)                 four numbers in one array: f64[4] a, ...

An operator with m outputs takes m inputs for its left side, m for its right side, then what all calls share. The words
`part` and `parts` stand for the m numbers or arrays of one side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.trees import TreeKernel
from irgrad.engine.signature.dtypes import DType
from irgrad.engine.signature.extents import ConstExtent, Extent
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.slots import RETURN
from irgrad.rules.errors import SignatureError

__all__ = ["Operator", "Part", "flat_kernel"]

_FIX = "c = a op b: `f64(f64 a, f64 b)`, or `void(f64[4] a, f64[4] b, out f64[4] c)`, with constant extents"


@dataclass(frozen=True, slots=True)
class Part:
    """A number or an array of the state.

    name: of the operator's right input; result: of its output; shape: () for a number; left, right, output: positions
    of its parameters in the operator's signature, `output` None for the return value
    """

    name: str
    result: str
    dtype: DType
    shape: tuple[int, ...]
    left: int
    right: int
    output: int | None

    @property
    def count(self) -> int:
        """Numbers in it."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def memory(self) -> str:
        """Its LLVM type in memory."""
        return self.dtype.memory if self.count == 1 else f"[{self.count} x {self.dtype.memory}]"


class Operator:
    """A kernel as an operator. Raises SignatureError for one that is none.

    kernel: of numbers and arrays; parts: of the state; shared: positions of the parameters that all calls share
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = flat_kernel(kernel, "an operator")
        signature = self.kernel.signature
        if signature.status is not None:
            self._no_operator("it reports a status", "an operator that cannot fail")
        if any(p.intent == "inout" for p in signature.parameters):
            self._no_operator("it overwrites an argument", "`in` and `out` parameters")
        inputs = [i for i, p in enumerate(signature.parameters) if p.is_input and p.name not in signature.sizes]
        outputs = [None if name == RETURN else i for i, name in zip(self.kernel.output_positions,
                                                                   self.kernel.output_names, strict=True)]  # fmt: skip
        m = len(outputs)
        if not m or len(inputs) < 2 * m:
            self._no_operator(f"it has {len(inputs)} inputs and {m} outputs", _FIX)
        rows = zip(inputs[:m], inputs[m : 2 * m], outputs, strict=True)
        self.parts = tuple(self._part(left, right, output) for left, right, output in rows)
        taken = {*inputs[: 2 * m], *(i for i in outputs if i is not None)}
        self.shared = tuple(i for i in range(len(signature.parameters)) if i not in taken)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the kernel."""
        return self.kernel.signature.parameters

    @cached_property
    def recognised(self) -> str:
        """`fadd` or `fmul` for the sum or product of two numbers, else "", also where a rule says what it is.

        Found in the operator's code.
        """
        from irgrad.engine.ir.model import Instruction
        from irgrad.engine.ir.text.reader import read
        from irgrad.rules.layers import current

        source = self.kernel.source
        if any(not table.builtin for table in current().find(source.name, source.digest)):
            return ""

        part = self.parts[0]
        if len(self.parts) > 1 or part.shape or self.shared or not part.dtype.is_float:
            return ""
        stage = self.kernel.primal.stage
        function = read(stage.text, roots=[stage.name]).functions[stage.name]
        code = function.blocks[0].instructions
        if len(function.blocks) > 1 or len(code) != 5:
            return ""
        value = code[-2].operands[0]  # of the store
        if not isinstance(value, Instruction) or value.opcode not in ("fadd", "fmul"):
            return ""
        places = {id(o.operands[0]) for o in value.operands if isinstance(o, Instruction) and o.opcode == "load"}
        return value.opcode if places == {id(argument) for argument in function.args[:2]} else ""

    def _part(self, left: int, right: int, output: int | None) -> Part:
        signature = self.kernel.signature
        a, b = signature.parameters[left], signature.parameters[right]
        c = Parameter("result", signature.returns) if output is None else signature.parameters[output]  # type: ignore[arg-type]
        shapes = [self._constant(p) for p in (a, b, c)]
        if not (a.dtype == b.dtype == c.dtype and shapes[0] == shapes[1] == shapes[2]):
            self._no_operator(f"its sides and its result differ: `{a}`, `{b}`, `{c}`", _FIX)
        if a.dtype.kind == "b":
            self._no_operator(f"`{a}` is a bool", "an integer: `i8`")
        return Part(b.name, c.name, a.dtype, shapes[0], left, right, output)

    def _constant(self, p: Parameter) -> tuple[int, ...]:
        extents: Sequence[Extent] = p.shape or ()
        if not all(isinstance(extent, ConstExtent) for extent in extents):
            self._no_operator(f"the number of elements of `{p}` is not constant", _FIX)
        return tuple(extent.number for extent in extents if isinstance(extent, ConstExtent))

    def _no_operator(self, because: str, fix: str) -> None:
        raise SignatureError("the kernel is no operator", where=f"`{self.kernel.signature}`", because=because, fix=fix)


def flat_kernel(kernel: Any, what: str) -> Kernel:
    """The kernel itself, that of the fields for a kernel of structs. Raises SignatureError for what is no kernel."""
    found = kernel.kernel if isinstance(kernel, TreeKernel) else kernel
    if not isinstance(found, Kernel):
        raise SignatureError(f"{what} has to be a kernel", because=f"got {type(kernel).__name__}",
                             fix='lib.kernel("add", "f64(f64 a, f64 b)") makes one')  # fmt: skip
    return found
