"""The loops of parallel constructs, as functions in IR beside the operator that they call.

Each is a C function over arrays with one element of the state a row: the engine differentiates, batches and compiles it
as any other. The order of the elements is kept, so that results do not depend on how an operator rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irgrad.engine.constructs.operators import Operator, Part
from irgrad.engine.runtime.ir_writer import Writer
from irgrad.engine.signature.dtypes import DType
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.prototype import quoted
from irgrad.engine.signature.signature import Signature

__all__ = ["Body", "Neutral", "histogram_text", "reduce_text", "scan_text", "scatter_text"]

Neutral = Sequence[Sequence[str]]
"""Constants of IR, those of each part of the state."""
_DECLARED = {
    "calloc": "declare noalias ptr @calloc(i64, i64)",
    "free": "declare void @free(ptr captures(none))",
    "llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)",
}


class Body:
    """Writes the function of one construct.

    name: its symbol; signature: its own; operator: what it folds with, None for a scatter; part: only other constructs
    call it
    """

    def __init__(
        self, name: str, signature: Signature, operator: Operator | None = None, *, part: bool = False
    ) -> None:
        self.signature, self.operator = signature, operator
        self.numbers = {p.name: k for k, p in enumerate(signature.parameters)}
        self.returns = "void" if signature.returns is None else signature.returns.ir
        params = ", ".join(f"{'ptr' if p.is_array else passed(p.dtype)} %a{k}"
                           for k, p in enumerate(signature.parameters))  # fmt: skip
        kind, inline = ("internal ", " alwaysinline") if part else ("", "")
        self.w = Writer(f"define {kind}{self.returns} @{quoted(name)}({params}){inline}")
        parts = operator.parts if operator else ()
        self.state = [self.w.alloca(part.dtype.memory, part.count, part.dtype.size) for part in parts]
        self.next = [self.w.alloca(part.dtype.memory, part.count, part.dtype.size) for part in parts]

    def argument(self, name: str) -> str:
        """A parameter of the function."""
        return f"%a{self.numbers[name]}"

    def size(self, name: str) -> str:
        """A size, as i64."""
        return self.argument(name)

    def element(self, pointer: str, part: Part, index: str) -> str:
        """The address of an element of an array of states."""
        return self.w.at(pointer, index, part.memory)

    def elements(self, names: Sequence[str], index: str) -> list[str]:
        """Addresses of the parts of one state in the arguments of these names."""
        assert self.operator is not None
        return [self.element(self.argument(name), part, index)
                for name, part in zip(names, self.operator.parts, strict=True)]  # fmt: skip

    def copy(self, to: Sequence[str], source: Sequence[str]) -> None:
        """Copy a state."""
        assert self.operator is not None
        for part, target, pointer in zip(self.operator.parts, to, source, strict=True):
            self.move(part.dtype, part.count, target, pointer)

    def move(self, dtype: DType, count: int, target: str, pointer: str) -> None:
        """Copy some numbers."""
        if count == 1:
            value = self.w.load(dtype.memory, pointer, align=dtype.size)
            self.w.do(f"store {dtype.memory} {value}, ptr {target}, align {dtype.size}")
        elif count:
            align = f"align {dtype.size}"
            self.w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {align} {target}, ptr {align} {pointer}, "
                      f"i64 {count * dtype.size}, i1 false)")  # fmt: skip

    def fill(self, to: Sequence[str], neutral: Neutral) -> None:
        """Write the neutral state."""
        assert self.operator is not None
        for part, target, row in zip(self.operator.parts, to, neutral, strict=True):
            for number, constant in enumerate(row):
                place = self.w.at(target, str(number), part.dtype.memory)
                self.w.do(f"store {part.dtype.memory} {constant}, ptr {place}, align {part.dtype.size}")

    def apply(self, left: Sequence[str], right: Sequence[str]) -> None:
        """`self.next = left op right`; all are addresses."""
        operator, w = self.operator, self.w
        assert operator is not None
        args: dict[int, str] = {i: self.shared(operator.parameters[i]) for i in operator.shared}
        for part, a, b, c in zip(operator.parts, left, right, self.next, strict=True):
            args[part.left] = self._passed(operator.parameters[part.left], a)
            args[part.right] = self._passed(operator.parameters[part.right], b)
            if part.output is not None:
                args[part.output] = f"ptr {c}"
                zero = "0.0" if part.dtype.is_float else "0"  # outputs of a kernel start from zero
                self.fill_one(part, c, zero)
        returns = operator.kernel.signature.returns
        callee = f"@{quoted(operator.kernel.source.name)}({', '.join(args[i] for i in sorted(args))})"
        if returns is None:
            w.do(f"call void {callee}")
        else:
            value = w.emit(f"call {returns.ir} {callee}")
            w.do(f"store {returns.memory} {value}, ptr {self.next[self._returned()]}, align {returns.size}")

    def fill_one(self, part: Part, target: str, constant: str) -> None:
        """Write one number everywhere into a part."""
        self.w.do(f"store {part.memory} {constant if part.count == 1 else 'zeroinitializer'}, ptr {target}, "
                  f"align {part.dtype.size}")  # fmt: skip

    def advance(self, right: Sequence[str]) -> None:
        """`self.state = self.state op right`."""
        self.apply(self.state, right)
        self.copy(self.state, self.next)

    def text(self, module: str, result: str = "void") -> str:
        """The function, and what it needs of declarations that the module does not have."""
        body = self.w.text(result)
        missing = [line for symbol, line in _DECLARED.items() if f"@{symbol}(" in body and f"@{symbol}(" not in module]
        return "\n".join([module, body, *missing, ""])

    def _returned(self) -> int:
        assert self.operator is not None
        return next(k for k, part in enumerate(self.operator.parts) if part.output is None)

    def _passed(self, p: Parameter, address: str) -> str:
        if p.is_array:
            return f"ptr {address}"
        return f"{passed(p.dtype)} {self.w.load(p.dtype.ir, address, align=p.dtype.size)}"

    def shared(self, p: Parameter) -> str:
        """What all calls of the operator share, as it is passed to each."""
        return f"{'ptr' if p.is_array else passed(p.dtype)} {self.argument(p.name)}"


def passed(dtype: DType) -> str:
    """The type of a number that is passed by value: small integers are extended."""
    if dtype.ir in ("i1", "i8", "i16"):
        return f"{dtype.ir} {'signext' if dtype.kind == 'i' else 'zeroext'}"
    return dtype.ir


def reduce_text(body: Body, module: str, inputs: Sequence[str], results: Sequence[str | None], neutral: Neutral,
                extent: str) -> str:  # fmt: skip
    """The fold of all elements: `x[0] op x[1] op ...`, the neutral state where there are none.

    results: names of the outputs, None for a value that is returned
    """
    w, operator = body.w, body.operator
    assert operator is not None
    n = body.size(extent)
    body.fill(body.state, neutral)
    with w.when(w.compare("sgt", n, "0")):
        body.copy(body.state, body.elements(inputs, "0"))
        with w.loop(w.add(n, "-1")) as before:
            right = body.elements(inputs, w.add(before, "1"))
            if operator.recognised and not operator.kernel.options.strict_fp:
                _reassociated(body, operator, right[0])
            else:
                body.advance(right)
    part = operator.parts[0]
    if results[0] is None:
        value = w.load(part.dtype.ir, body.state[0], align=part.dtype.size)
        return body.text(module, f"{part.dtype.ir} {value}")
    body.copy([body.argument(name) for name in results if name is not None], body.state)
    return body.text(module)


def _reassociated(body: Body, operator: Operator, right: str) -> None:
    """A sum or product whose order is free, so that it runs in vectors."""
    w, dtype = body.w, operator.parts[0].dtype
    a, b = (w.load(dtype.ir, place, align=dtype.size) for place in (body.state[0], right))
    value = w.emit(f"{operator.recognised} reassoc {dtype.ir} {a}, {b}")
    w.do(f"store {dtype.ir} {value}, ptr {body.state[0]}, align {dtype.size}")


def scan_text(body: Body, module: str, inputs: Sequence[str], results: Sequence[str], extent: str, *,
              reverse: bool, last: Sequence[str] = ()) -> str:  # fmt: skip
    """All folds of the first elements, of the last ones with `reverse`: `y[i] = y[i+1] op x[i]`. last: the arguments to
    which the fold of all goes"""
    w = body.w
    n = body.size(extent)
    end = w.add(n, "-1")
    first = end if reverse else "0"
    with w.when(w.compare("sgt", n, "0")):
        body.copy(body.state, body.elements(inputs, first))
        body.copy(body.elements(results, first), body.state)
        with w.loop(end) as before:
            index = w.emit(f"sub i64 {w.add(end, '-1')}, {before}") if reverse else w.add(before, "1")
            body.advance(body.elements(inputs, index))
            body.copy(body.elements(results, index), body.state)
        if last:
            body.copy([body.argument(name) for name in last], body.state)
    return body.text(module)


def histogram_text(body: Body, module: str, at: str, inputs: Sequence[str], results: Sequence[str], neutral: Neutral,
                   extent: str, bins: int, marks: str = "") -> str:  # fmt: skip
    """For each bin the fold of the elements whose index it is, in their order.

    The first element of a bin is copied: an operator need not have a derivative at its neutral state. marks: the
    argument in which it is said of each bin whether it has elements
    """
    w, operator = body.w, body.operator
    assert operator is not None
    with w.loop(str(bins)) as number:
        body.fill(body.elements(results, number), neutral)
    plain = operator.recognised != ""
    seen = body.argument(marks) if marks else "" if plain else w.emit(f"call ptr @calloc(i64 {max(bins, 1)}, i64 1)")

    def update(index: str, number: str) -> None:
        places, right = body.elements(results, index), body.elements(inputs, number)
        if plain:
            if marks:
                w.do(f"store i8 1, ptr {w.at(seen, index)}, align 1")
            body.apply(places, right)
            body.copy(places, body.next)
            return
        mark = w.at(seen, index)
        known = w.emit(f"icmp ne i8 {w.load('i8', mark, align=1)}, 0")
        body.copy(body.next, right)
        w.do(f"store i8 1, ptr {mark}, align 1")
        with w.when(known):
            body.apply(places, right)
        body.copy(places, body.next)

    _each_index(body, at, extent, str(bins), update)
    if not plain and not marks:
        w.do(f"call void @free(ptr {seen})")
    return body.text(module)


def scatter_text(body: Body, module: str, at: str, extent: str, rows: str, dtype: DType, count: int,
                 names: tuple[str, str]) -> str:  # fmt: skip
    """`target[at[i]] = values[i]` in order, for indices that there are. names: of target and values."""
    w = body.w
    memory = dtype.memory if count == 1 else f"[{count} x {dtype.memory}]"

    def update(index: str, number: str) -> None:
        places = [w.at(body.argument(name), i, memory) for name, i in zip(names, (index, number), strict=True)]
        body.move(dtype, count, places[0], places[1])

    _each_index(body, at, extent, body.size(rows), update)
    return body.text(module)


def _each_index(body: Body, at: str, extent: str, rows: str, update: Callable[[str, str], None]) -> None:
    """Call `update(index, number)` for each index that is one of `rows`; others are passed over."""
    w = body.w
    dtype = body.signature.parameters[body.numbers[at]].dtype
    with w.loop(body.size(extent)) as number:
        index = w.load(dtype.ir, body.argument(at), number, align=dtype.size)
        if dtype.ir != "i64":
            index = w.emit(f"{'sext' if dtype.kind == 'i' else 'zext'} {dtype.ir} {index} to i64")
        with w.when(w.compare("ult", index, rows)):
            update(index, number)
