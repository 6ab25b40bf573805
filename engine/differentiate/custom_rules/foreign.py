"""Compiled functions that bodies of rules call: `ctx.foreign(symbol, prototype)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irgrad.engine.differentiate.custom_rules.symbols import Pointer, Scalar, Variable, ir_type
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Value
from irgrad.rules.definitions.prototype import Prototype
from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.tracing import innermost_line

if TYPE_CHECKING:
    from irgrad.engine.differentiate.custom_rules.writer import Writer

__all__ = ["Foreign", "check_prototype", "signature_of"]


class Foreign:
    """A function that a body calls."""

    def __init__(self, writer: Writer, symbol: Any, prototype: Prototype | None) -> None:
        self.writer = writer
        self.symbol = symbol if isinstance(symbol, str) else symbol.__name__
        unit = writer.unit
        if unit.rules is not None and self.symbol in unit.rules.symbols:
            unit.rules.wanted.add(self.symbol)
        found = unit.module.functions.get(self.symbol)
        if prototype is None and unit.rules is not None:
            prototype = unit.rules.prototype(self.symbol)
        self.prototype = prototype
        if prototype is not None:
            self.ftype = signature_of(prototype)
        elif self.symbol == writer.site.callee.name:
            assert writer.site.call.call is not None
            self.ftype = writer.site.call.call.fn_type
        elif found is not None:
            self.ftype = found.ftype
        else:
            raise RuleError(f"the prototype of `{self.symbol}` is not known", where=writer.site.rule.place,
                            which=innermost_line(), because="the module neither defines nor declares it",
                            fix=f'ctx.foreign("{self.symbol}", "void(f64[n] x, i64 n)")')  # fmt: skip
        if found is not None and prototype is not None and not found.is_declaration:
            check_prototype(found, self.ftype, prototype, writer.site.rule.place)
        self.fn = found if found is not None else self._declared()

    def _declared(self) -> Function:
        fn: Function = self.writer.unit.declare(self.symbol, self.ftype, "nounwind")
        if self.prototype is not None:
            fn.tail = "nounwind memory(argmem: readwrite, errnomem: write)"
            for arg, p in zip(fn.args, self.prototype.params, strict=True):
                if not p.by_value:
                    arg.attrs = "captures(none)" + ("" if p.writes else " readonly" if p.reads else "")
        return fn

    def __call__(self, *args: Any) -> Any:
        code = self.writer.code
        if len(args) != len(self.ftype.params):
            shown = f"`{self.prototype}`" if self.prototype is not None else f"`{self.ftype}`"
            raise RuleError(
                f"`{self.symbol}` is called with {len(args)} arguments",
                which=innermost_line(),
                because=f"it takes {len(self.ftype.params)}: {shown}",
                fix="one argument for each parameter",
            )
        values = [self._argument(i, a) for i, a in enumerate(args)]
        call = code.b.call(self.fn, values, self.ftype)
        if self.ftype.ret is ty.VOID:
            return None
        if self.ftype.ret.is_ptr:
            return Pointer(code, call, None)
        return Scalar(code, call)

    def _argument(self, i: int, given: Any) -> Value:
        code, wanted = self.writer.code, self.ftype.params[i]
        from irgrad.engine.differentiate.custom_rules.arguments import Adjoint, Nothing, Reference

        if isinstance(given, Adjoint | Nothing):
            raise self._wrong(i, given, "the derivative of a Const or by-value argument")
        if isinstance(given, Variable) and wanted.is_ptr:
            return given.slot
        if wanted.is_ptr:
            by_reference = self.prototype is None or self.prototype.params[i].kind == "reference"
            if isinstance(given, Reference) and not by_reference:
                return given.ref.v
            if isinstance(given, Pointer):
                self._check_element(i, given)
                if self.prototype is None or self.prototype.params[i].reads:
                    given.read()
                return given.v
            if by_reference and (isinstance(given, Scalar | int | float)):
                element = ir_type(self.prototype.params[i].dtype) if self.prototype is not None else None
                number = code.number(given, element)
                value = code.cast(number, element) if element is not None else number.v
                slot = code.stack(value.type)
                code.b.store(value, slot)
                return slot
            raise self._wrong(i, given, "no pointer")
        if isinstance(given, Pointer):
            raise self._wrong(i, given, "a pointer")
        return code.cast(code.number(given, wanted), wanted)

    def _check_element(self, i: int, given: Pointer) -> None:
        if self.prototype is None or self.prototype.params[i].dtype == "ptr" or given.element is None:
            return
        wanted = ir_type(self.prototype.params[i].dtype)
        if given.element is not wanted and wanted.is_fp and given.element.is_fp:
            raise self._wrong(i, given, f"memory of `{given.element}`", f"p.astype({self.prototype.params[i].dtype})")

    def _wrong(self, i: int, given: Any, what: str, fix: str = "") -> RuleError:
        shown = str(self.prototype.params[i]) if self.prototype is not None else str(self.ftype.params[i])
        return RuleError(
            f"argument {i} of `{self.symbol}` is {what}",
            which=innermost_line(),
            because=f"the prototype says `{shown}`",
            fix=fix or f"pass what `{shown}` means",
        )


def signature_of(prototype: Prototype) -> ty.FunctionType:
    """The LLVM type of a prototype."""
    ret = ty.VOID if prototype.returns == "void" else ir_type(prototype.returns)
    return ty.function(ret, tuple(ir_type(p.dtype) if p.by_value else ty.PTR for p in prototype.params))


def check_prototype(fn: Function, ftype: ty.FunctionType, prototype: object, place: str) -> None:
    """Raise RuleError, showing both, when a function of the module has another type than a rule says."""
    if fn.ftype.ret is ftype.ret and fn.ftype.params == ftype.params:
        return
    raise RuleError(f"the prototype of `{fn.name}` is another one", where=place,
                    which=f"{fn.ftype.ret} @{fn.name}({', '.join(map(str, fn.ftype.params))})",
                    because=f"the module defines it so, the rule says `{prototype}`",
                    fix="give the prototype of the function that the module defines")  # fmt: skip


