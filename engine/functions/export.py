"""Derivatives as plain machine code for other programs: a C function with a natural prototype, and its header.

For `f64 energy(f64[n,3] pos, f64[n] mass, i64 n)` and wrt `pos` it is

    double energy_grad(const double *pos, double *pos_grad, const double *mass, int64_t n);

which returns the value and ADDS the gradient to `pos_grad`. Scalars are passed by value, their gradients by pointer.
"""

from __future__ import annotations

from irgrad.engine.functions.gradients import Gradient
from irgrad.engine.kernel.host import refuse_hosted
from irgrad.engine.signature.extents import BinaryExtent, ConstExtent, Extent, NameExtent
from irgrad.engine.signature.prototype import quoted
from irgrad.engine.signature.signature import Signature
from irgrad.engine.signature.slots import RETURN, Slot
from irgrad.engine.signature.status import shown_name
from irgrad.rules.errors import Unsupported

__all__ = ["export_header", "export_text"]


def export_text(gradient: Gradient, name: str) -> str:
    """The gradient's IR with the C function `name`. Raises Unsupported when scratch memory has no computable size."""
    from irgrad.engine.pipeline.derivatives import link_runtime

    gradient = gradient.valued()  # the C function returns the primal's value
    stage = gradient.program.stage
    refuse_hosted(gradient.program.stage.text, repr(gradient.program), "an exported function")
    return link_runtime(stage.text, whole=True) + "\n" + _Wrapper(gradient, name).text(stage.name)


class _Wrapper:
    """Builds the text of the exported function."""

    def __init__(self, gradient: Gradient, name: str) -> None:
        self.gradient = gradient
        self.name = name
        self.signature: Signature = gradient.kernel.signature
        self.lines: list[str] = []
        self.frees: list[str] = []
        self.counter = 0

    def text(self, target: str) -> str:
        params, args = [], []
        for number, slot in enumerate(self.gradient.program.slots):
            param, arg = self._slot(slot, f"%s{number}")
            args.append(f"ptr {arg}")
            if param:
                params.append(param)
        returns = self.signature.returns
        kind = returns.ir if returns is not None else "void"
        close = [f"  call void @{quoted(target)}({', '.join(args)})", *self.frees]
        if returns is None:
            close.append("  ret void")
        else:
            close += [f"  %value = load {returns.memory}, ptr %return, align {returns.size}"]
            bool_ = ["  %bool = trunc i8 %value to i1", "  ret i1 %bool"]
            close += bool_ if returns.kind == "b" else [f"  ret {kind} %value"]
        body = "\n".join([*self.lines, *close])
        names = self._declared()
        return f"{names}define {kind} @{quoted(self.name)}({', '.join(params)}) {{\n{body}\n}}\n"

    def _slot(self, slot: Slot, name: str) -> tuple[str, str]:
        """The parameter of a slot ("" for none) and the pointer that stands for it."""
        p, size = slot.parameter, slot.dtype.size
        if slot.role == "scratch":
            return "", self._scratch(slot, name)
        if p.name == RETURN and not slot.steps:
            self.lines.append(f"  %return = alloca {slot.dtype.memory}, align {size}")
            return "", "%return"
        if slot.index == self.gradient.target and slot.steps:
            self.lines += [f"  {name} = alloca {slot.dtype.memory}, align {size}",
                           f"  store {slot.dtype.memory} {_ONE[slot.dtype.name]}, ptr {name}, align {size}"]
            return "", name
        if p.is_array or slot.steps:
            return f"ptr noalias noundef {name}", name
        value = f"{name}.value"
        self.lines.append(f"  {name} = alloca {slot.dtype.memory}, align {size}")
        stored = value
        if slot.dtype.kind == "b":
            self.lines.append(f"  {name}.byte = zext i1 {value} to i8")
            stored = f"{name}.byte"
        self.lines.append(f"  store {slot.dtype.memory} {stored}, ptr {name}, align {size}")
        return f"{slot.dtype.ir} {value}", name

    def _scratch(self, slot: Slot, name: str) -> str:
        count = "1"
        for extent in slot.parameter.shape or ():
            count = self._emit("mul", count, self._extent(extent))
        self.lines.append(f"  {name} = call ptr @calloc(i64 {count}, i64 {slot.dtype.size})")
        self.frees.append(f"  call void @free(ptr {name})")
        return name

    def _extent(self, extent: Extent) -> str:
        if isinstance(extent, ConstExtent):
            return str(extent.number)
        if isinstance(extent, BinaryExtent):
            op = {"+": "add", "-": "sub", "*": "mul", "/": "sdiv", "%": "srem"}[extent.op]
            return self._emit(op, self._extent(extent.left), self._extent(extent.right))
        name = extent.name if isinstance(extent, NameExtent) else ""
        for number, slot in enumerate(self.gradient.program.slots):
            p = slot.parameter
            if p.name == name and not slot.steps and not p.is_array:
                if slot.dtype.size == 8:
                    return f"%s{number}.value"
                self.counter += 1
                op = "sext" if slot.dtype.kind == "i" else "zext"
                self.lines.append(f"  %e{self.counter} = {op} {slot.dtype.ir} %s{number}.value to i64")
                return f"%e{self.counter}"
        raise Unsupported(f"`{self.name}` cannot be exported", where=f"`{self.signature}`",
                          because=f"its scratch memory depends on `{name}`, which is no parameter of the C function",
                          fix=f"add a parameter `i64 {name}` to the C function")

    def _emit(self, op: str, left: str, right: str) -> str:
        self.counter += 1
        self.lines.append(f"  %e{self.counter} = {op} i64 {left}, {right}")
        return f"%e{self.counter}"

    def _declared(self) -> str:
        if not self.frees:
            return ""
        known = self.gradient.program.ir
        lines = []
        for declaration in ("declare ptr @calloc(i64, i64)", "declare void @free(ptr)"):
            symbol = declaration[declaration.index(" @") : declaration.index("(") + 1]
            if not any(symbol in line for line in known.splitlines() if line.startswith(("declare", "define"))):
                lines.append(declaration + "\n")
        return "".join(lines)


_ONE = {"f64": "1.0", "f32": "1.0", "f16": "0xH3C00", "bf16": "0xR3F80"}


def export_header(gradient: Gradient, name: str) -> str:
    """A C header that declares the exported function."""
    signature = gradient.kernel.signature
    params = []
    wanted = set(gradient.positions)
    for index, p in enumerate(signature.parameters):
        if not p.is_array:
            params.append(f"{p.dtype.c_name} {p.name}")
        else:
            const = "const " if p.intent == "in" else ""
            params.append(f"{const}{p.dtype.c_name} *{p.name}")
        if index in wanted:
            params.append(f"{p.dtype.c_name} *{p.name}_grad")
    returns = "void" if signature.returns is None else signature.returns.c_name
    guard = "IRGRAD_" + "".join(c.upper() if c.isalnum() else "_" for c in name) + "_H"
    names = ", ".join(f"`{signature.parameters[i].name}_grad`" for i in gradient.positions)
    return f"""/* Gradient of
 *     {signature}
 * made by irgrad. Returns what `{shown_name(gradient.kernel.name)}` returns and ADDS the gradient to {names}.
 * Buffers must not overlap; `out` arrays must hold zeros on entry.
 */
#ifndef {guard}
#define {guard}
#include <stdbool.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif
{returns} {name}({', '.join(params) or 'void'});
#ifdef __cplusplus
}}
#endif
#endif
"""
