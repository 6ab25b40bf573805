"""What `check_rule` runs: a kernel that calls the function, arguments for it, and a Jacobian that shares no code with
the rule.

A Kernel is its own subject. For a symbol a caller is written in IR: from the row of the tables, or from the prototype
that `extern` states.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.signature.dtypes import DTYPES, DType
from irgrad.engine.signature.prototype import quoted
from irgrad.rules.definitions.definition import Key
from irgrad.rules.errors import RuleError
from irgrad.rules.keys import key_of
from irgrad.rules.layers import current
from irgrad.rules.lookup import find

if TYPE_CHECKING:
    from irgrad.rules.definitions.definition import Rule
    from irgrad.rules.definitions.prototype import Prototype
    from irgrad.rules.expressions.row import Row

__all__ = ["Reference", "Subject", "sample", "subject_of", "symbol_of"]

Array = np.ndarray[Any, Any]
Reference = Callable[..., Any]
"""Arguments of the kernel -> for each float output, for each float argument, the derivatives (output entries by
argument entries)."""
EXTENT = 3  # of arrays for which nobody says how long they are


@dataclass(frozen=True)
class Subject:
    """A kernel whose derivative uses the rule under test.

    rules: those of the key in the innermost layer that has any; none when the row of the tables is meant
    points: lists of arguments, in the order of `kernel.signature.arguments`
    """

    title: str
    key: Key
    symbol: str
    kernel: Kernel
    rules: tuple[Rule, ...]
    row: Row | None
    points: tuple[tuple[Any, ...], ...]
    reference: Reference | None

    @property
    def has_body(self) -> bool:
        """Whether the module defines the function: its own derivative is the reference."""
        import re

        return re.search(rf'^define\b[^\n@]*@"?{re.escape(self.symbol)}"?\(', self.kernel.source.text, re.M) is not None

    @property
    def rule_text(self) -> str:
        """The rule under test, for people."""
        if not self.rules:
            return f"the row `{self.row.key}` of the tables" if self.row is not None else "nothing"
        return "; ".join(f"{r.signature} at {r.place}" for r in self.rules)


def subject_of(
    what: Any, *, kernel: Kernel | None, args: Sequence[Any] | None, dtype: str, points: int, seed: int,
    reference: Reference | None,
) -> Subject:  # fmt: skip
    """The subject for a key. Raises RuleError when there is no rule, or too little is known to call the function."""
    declared = key_of(what)
    key, match = declared.key, find(declared.key.name) if not declared.key.scope else None
    scope = key.scope or (kernel.source.digest if kernel is not None else "")
    rules = _under_test(key, scope)
    row = match.row if match is not None else _row_of(key)
    if not rules and row is None:
        raise RuleError(f"there is no rule for `{key}`", because="no layer and no table knows it",
                        fix=f'define one: @rule("{key.name}")   and call check_rule where it holds')  # fmt: skip
    if kernel is None and isinstance(what, Kernel):
        kernel = what
    rng = random.Random(f"{key} {dtype} {seed}")
    symbol = key.name
    if kernel is None:
        prototype = declared.prototype or current().prototype(key.name, scope)
        if prototype is not None:
            kernel = _caller_of_prototype(key.name, prototype)
        elif row is not None:
            kernel, symbol = _caller_of_row(row, dtype)
            reference = reference or _exact(row) or (_wider(row) if dtype == "f32" else None)
        else:
            raise RuleError(f"nothing says how `{key}` is called", because="a symbol has no types",
                            fix=f'check_rule(extern("{key.name}", "f64(f64[n] x, i64 n)"))   or   '
                            "kernel=: a kernel that calls it")  # fmt: skip
    table = row if kernel.source.name.startswith("irgrad.check.") else None
    given = [tuple(args)] if args is not None else [tuple(sample(kernel, rng, table)) for _ in range(points)]
    return Subject(f"{key} ({kernel.signature})", key, symbol, kernel, rules, row, tuple(given), reference)


def _row_of(key: Key) -> Row | None:
    """The row of an opcode, or of the key of a row that is no symbol (`complex.mul`)."""
    from irgrad.rules.lookup import opcode_row
    from irgrad.rules.table import rows

    if key.kind == "opcode":
        return opcode_row(key.name)
    return rows().get(key.name) if key.kind == "function" and not key.scope else None


def _under_test(key: Key, scope: str) -> tuple[Rule, ...]:
    snapshot = current()
    keys = snapshot.keys(key.name, scope) if key.kind == "function" else (key,)
    for frozen in snapshot.layers:
        rules = [rule for table in frozen.tables(keys, key.name) for rule in table.rules]
        if rules:
            return tuple(rules)
    return ()


def sample(kernel: Kernel, rng: random.Random, row: Row | None = None) -> list[Any]:
    """Arguments of a kernel: floats from the domain of the row, or between 0.5 and 2. Raises RuleError for integers
    that nobody can guess."""
    drawn: list[Any] = []
    names = [p.name for p in kernel.signature.parameters]
    for p in kernel.signature.arguments:
        low, high = (0.5, 2.0)
        if row is not None and names.index(p.name) < len(row.domain):
            low, high = row.domain[names.index(p.name)]
        if not p.dtype.is_float and row is None:
            raise RuleError(f"`{p.name}` is no size of an array: its value cannot be guessed",
                            where=f"`{kernel.signature}`", fix="check_rule(..., args=(...)): arguments of the kernel")
        shape = p.extents(dict.fromkeys(_names(kernel), EXTENT)) if p.is_array else ()
        if p.dtype.is_float:
            values = np.array([rng.uniform(low, high) for _ in range(int(np.prod(shape)))])
            drawn.append(values.reshape(shape).astype(p.dtype.numpy)[()])
        else:
            drawn.append(rng.randint(int(low), int(high)))
    return drawn


def _names(kernel: Kernel) -> set[str]:
    return {n for p in kernel.signature.parameters for extent in p.shape or () for n in extent.names()}


# -- callers ---------------------------------------------------------------------------------------------------------


def symbol_of(row: Row, dtype: str) -> str:
    """The spelling of a row that this process can call with that type, "" when there is none."""
    from irgrad.engine.codegen.symbols import resolve

    suffix = {"f64": "", "f32": "f"}[dtype]
    wanted = [base + suffix for base in row.libm] + [s for s, kind in row.exact if kind == dtype]
    for symbol in wanted:
        match = find(symbol)
        packed = match is not None and match.packed  # both parts in one vector: called by its parts
        if symbol.startswith("irgrad.parts.") or (resolve(symbol) and not packed):
            return symbol
    plain = [base for base in row.llvm if not base.startswith("experimental.")]
    return f"llvm.{plain[0]}.{dtype}" if plain else ""


def _caller_of_row(row: Row, dtype: str) -> tuple[Kernel, str]:
    """`T check(T a0, ...)`, which calls the function of a row (or is the instruction)."""
    real = DTYPES[dtype]
    symbol = row.opcode or symbol_of(row, dtype)
    if not symbol or not row.outputs:
        because = "it has no float result" if not row.outputs else "neither the C library nor an intrinsic has it"
        raise RuleError(f"`{row.key}` cannot be called as {dtype}", because=because,
                        fix="kernel=: a kernel that calls it")  # fmt: skip
    integer = "i64" if row.key == "scalbln" else "i32"
    kinds = [real.ir if c == "f" else integer if c == "i" else "ptr" for c in row.signature]
    values = [f"{kind} %a{i}" for i, kind in enumerate(kinds)]
    lines, result, store = _call_of_row(row, symbol, real, values)
    params, extra = _signature_of_row(row, dtype, integer)
    name = f"irgrad.check.{symbol}"
    head = ", ".join([*values, *(f"ptr %{n}" for n in extra)])
    returned = result if row.outputs[0] == "ret" else "void"
    lines += store
    text = f"define {returned} @{quoted(name)}({head}) {{\n" + "\n".join(f"  {line}" for line in lines) + "\n}\n"
    if row.opcode is None:
        text = f"declare {_declared(row, symbol, real, kinds)}\n{text}"
    signature = f"{dtype if returned != 'void' else 'void'}({', '.join(params)})"
    return Kernel(text, name, signature), symbol


def _signature_of_row(row: Row, dtype: str, integer: str) -> tuple[list[str], list[str]]:
    """Parameters of the caller, and the names of pointers to the parts of a struct."""
    params = []
    for i, letter in enumerate(row.signature):
        if letter == "p":
            params.append(f"out {dtype if ('ptr', i) in row.outputs else 'i32'}[] a{i}")
        else:
            params.append(f"{dtype if letter == 'f' else integer} a{i}")
    parts = [o for o in row.outputs if o != "ret" and o[0] == "ret"]
    extra = [f"r{k}" for k in range(len(parts))]
    return params + [f"out {dtype}[] {n}" for n in extra], extra


def _packed(row: Row, symbol: str, real: DType) -> tuple[bool, bool]:
    """Whether complex arguments, and a complex result, travel as <2 x float>."""
    match = find(symbol)
    argument = match is not None and match.packed
    parts = row.outputs and row.outputs[0] == ("ret", 0) and len(row.outputs) == 2
    return argument, bool(parts) and real.name == "f32" and not symbol.startswith("llvm.")


def _result_type(row: Row, symbol: str, real: DType) -> str:
    if row.outputs[0] == "ret":
        return real.ir
    if row.outputs[0][0] == "ptr":
        return "void"
    if _packed(row, symbol, real)[1]:
        return f"<2 x {real.ir}>"
    return f"{{ {real.ir}, {real.ir if len(row.outputs) == 2 else 'i32'} }}"


def _overloaded(row: Row, symbol: str) -> str:
    """Intrinsics that are also named after an integer type."""
    if symbol.startswith("llvm.") and ("i" in row.signature or row.outputs == (("ret", 0),)):
        return f"{symbol}.i32"
    return symbol


def _argument_types(row: Row, symbol: str, real: DType, kinds: Sequence[str]) -> list[str]:
    if _packed(row, symbol, real)[0]:
        return [f"<2 x {real.ir}>"] * (len(kinds) // 2)
    return list(kinds)


def _declared(row: Row, symbol: str, real: DType, kinds: Sequence[str]) -> str:
    types = _argument_types(row, symbol, real, kinds)
    return f"{_result_type(row, symbol, real)} @{quoted(_overloaded(row, symbol))}({', '.join(types)})"


def _call_of_row(row: Row, symbol: str, real: DType, values: list[str]) -> tuple[list[str], str, list[str]]:
    """Instructions that make %r, the type of the result, and those that end the caller."""
    if row.opcode is not None:
        names = ", ".join(v.split()[1] for v in values)
        return [f"%r = {row.opcode} {real.ir} {names}"], real.ir, [f"ret {real.ir} %r"]
    lines, args = [], values
    if _packed(row, symbol, real)[0]:
        vector, args = f"<2 x {real.ir}>", []
        for k in range(0, len(values), 2):
            lines.append(f"%h{k} = insertelement {vector} poison, {values[k]}, i32 0")
            lines.append(f"%v{k} = insertelement {vector} %h{k}, {values[k + 1]}, i32 1")
            args.append(f"{vector} %v{k}")
    result = _result_type(row, symbol, real)
    call = f"call {result} @{quoted(_overloaded(row, symbol))}({', '.join(args)})"
    if result == "void":
        return [*lines, call], result, ["ret void"]
    lines.append(f"%r = {call}")
    if row.outputs[0] == "ret":
        return lines, result, [f"ret {result} %r"]
    take = "extractelement" if result.startswith("<") else "extractvalue"
    store = []
    for k in range(len(row.outputs)):
        store.append(f"%p{k} = {take} {result} %r, {'i32 ' if result.startswith('<') else ''}{k}")
        store.append(f"store {real.ir} %p{k}, ptr %r{k}, align {real.size}")
    return lines, result, [*store, "ret void"]


def _caller_of_prototype(symbol: str, prototype: Prototype) -> Kernel:
    """A function that passes its arguments on. Raises RuleError for pointers of unknown extent."""
    params, kinds = [], []
    for i, p in enumerate(prototype.params):
        name = p.name or f"a{i}"
        if p.kind == "pointer":
            raise RuleError(f"the extent of `{name}` is not known", where=f"`{symbol}`, {prototype}",
                            because="check_rule has to make the memory that the function gets",
                            fix="extents in its prototype   or   kernel=: a kernel that calls it")  # fmt: skip
        intent = f"{p.intent} " if p.kind == "array" and p.intent != "in" else ""
        extents = f"[{','.join(p.extents)}]" if p.kind == "array" else "[]" if p.kind == "reference" else ""
        intent = f"{p.intent} " if p.kind == "reference" and p.intent != "in" else intent
        params.append(f"{intent}{p.dtype}{extents} {name}")
        kinds.append("ptr" if extents else DTYPES[p.dtype].ir)
    returns = "void" if prototype.returns == "void" else DTYPES[prototype.returns].ir
    types = ", ".join(kinds)
    values = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    name = f"irgrad.check.{symbol}"
    call = f"call {returns} @{quoted(symbol)}({values})"
    body = [call, "ret void"] if returns == "void" else [f"%r = {call}", f"ret {returns} %r"]
    text = f"declare {returns} @{quoted(symbol)}({types})\n"
    text += f"define {returns} @{quoted(name)}({values}) {{\n" + "\n".join(f"  {line}" for line in body) + "\n}\n"
    return Kernel(text, name, f"{prototype.returns}({', '.join(params)})")


# -- references ------------------------------------------------------------------------------------------------------

_OTHERWISE = frozenset(("fmod", "frexp"))
"""mpmath means something else by these names."""

def _exact(row: Row) -> Reference | None:
    """Derivatives of the function itself by mpmath, at 40 digits; None where mpmath (or the name in it) is missing."""
    try:
        import mpmath as mp
    except ImportError:
        return None
    from irgrad.rules.expressions.readings import MpReading

    if len(row.outputs) != 1 or "p" in row.signature or row.key in _OTHERWISE:
        return None
    name = row.opcode[1:] if row.opcode else row.key

    def jacobian(*args: Any) -> list[list[Array]]:
        with mp.workdps(40):
            at = [mp.mpf(float(a)) if row.signature[i] == "f" else int(a) for i, a in enumerate(args)]
            columns = []
            for i in row.floats:
                def along(x: Any, i: int = i) -> Any:
                    return MpReading().op(name, *(x if k == i else v for k, v in enumerate(at)))

                columns.append(np.array([[float(mp.diff(along, at[i]))]]))
            return [columns]

    try:
        with mp.workdps(20):
            MpReading().op(name, *(mp.mpf("0.5") if c == "f" else 1 for c in row.signature))
    except (AttributeError, TypeError, ValueError):
        return None
    return jacobian


def _wider(row: Row) -> Reference:
    """Five-point differences of the spelling in double, for one in float: steps that float allows cross jumps."""
    kernel, _ = _caller_of_row(row, "f64")

    def jacobian(*args: Any) -> list[list[Array]]:
        at = [float(a) if row.signature[i] == "f" else int(a) for i, a in enumerate(args)]
        found: list[list[Array]] = [[] for _ in row.outputs]
        for i in row.floats:
            h = 4e-4 * max(abs(at[i]), 1.0)
            ahead = [np.array(_results(kernel(*at[:i], at[i] + k * h, *at[i + 1 :]), row)) for k in (-2, -1, 1, 2)]
            slope = (ahead[0] - 8 * ahead[1] + 8 * ahead[2] - ahead[3]) / (12 * h)
            for k, value in enumerate(slope):
                found[k].append(np.array([[value]]))
        return found

    return jacobian


def _results(value: Any, row: Row) -> list[float]:
    """The float results, those of integers behind pointers left out."""
    values = list(value) if isinstance(value, tuple) else [value]
    return [float(v) for v in values if np.asarray(v).dtype.kind == "f"][: len(row.outputs)]
