"""What a Python function returns: a number, an array, or a tuple of these, which the kernel writes to parameters.

The parameters of a signature that the function does not have, `out` ones in front, are its results in their order:
`"void(out f64[n] y, out f64 total, f64[n] x)"` for `return y, total`. Numba hands over an array as its owner, its
parent, the number of its elements, their size, the address, extents and strides; it is copied, and given back.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irgrad.rules.errors import SignatureError

if TYPE_CHECKING:
    from irgrad.engine.signature.parameter import Parameter
    from irgrad.engine.signature.signature import Signature

__all__ = ["OTHER_SHAPE", "Result", "fitting", "parsed", "split", "written"]

OTHER_SHAPE = 2  # status: an array of another shape than the signature says
_ARRAY = re.compile(r"(?:(?:readonly|unaligned|nonaligned) )*array\((\w+), (\d+)d, ([CFA])(?:, \w+)*\)")
_MANY = re.compile(r"UniTuple\((.*) x (\d+)\)")


@dataclass(frozen=True, slots=True)
class Result:
    """One result: NumPy's name of its type; of an array, how many axes it has and how they lie (C, F or A)."""

    name: str
    rank: int | None = None
    order: str = ""

    def fits(self, p: Parameter) -> bool:
        """Whether a parameter can take it."""
        extents = p.shape or ()
        return p.dtype.numpy_name == self.name and (bool(extents) == (self.rank is not None)) and (
            len(extents) == (self.rank or 0)
        )  # fmt: skip

    def draft(self, own: Sequence[Parameter]) -> str:
        """Its type as a signature says it: extents of an array of as many axes, where there is one."""
        from irgrad.engine.signature.dtypes import DTYPES

        dtype = next((name for name, known in DTYPES.items() if known.numpy_name == self.name), self.name)
        if not self.rank:
            return dtype
        alike = (p.shape for p in own if p.shape is not None and len(p.shape) == self.rank)
        return f"{dtype}[{','.join(map(str, next(alike, 'nmkl'[: self.rank])))}]"


def split(function: Any, signature: Signature) -> tuple[list[Parameter], list[Parameter]]:
    """The parameters that take results, and those of the function."""
    python = getattr(function, "py_func", function)
    parameters = list(signature.parameters)
    try:
        own = len(inspect.signature(python).parameters)
    except (TypeError, ValueError):
        return [], parameters
    more = max(len(parameters) - own, 0)
    if not all(p.intent == "out" for p in parameters[:more]):
        return [], parameters
    return parameters[:more], parameters[more:]


def parsed(returned: str) -> list[Result] | None:
    """The results of a function that returns what Numba calls `returned`; None for what no parameter can take."""
    many = _MANY.fullmatch(returned)
    if many:
        one = parsed(many[1])
        return one * int(many[2]) if one is not None and len(one) == 1 else None
    if returned.startswith("Tuple("):
        found = [parsed(row) for row in _rows(returned[len("Tuple(") : -1])]
        return [row[0] for row in found if row] if all(row and len(row) == 1 for row in found) else None
    array = _ARRAY.fullmatch(returned)
    if array:
        return [Result(array[1], int(array[2]), array[3])]
    if returned in ("none", "None"):
        return []
    return [Result(returned)] if re.fullmatch(r"\w+", returned) else None


def _rows(text: str) -> list[str]:
    """What commas separate outside of parentheses."""
    rows, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            rows.append("")
        else:
            rows[-1] += letter
    return [row.strip() for row in rows]


def fitting(returned: str, signature: Signature, results: Sequence[Parameter]) -> list[Result]:
    """The results that parameters take. Raises SignatureError where the function returns something else."""
    found = parsed(returned)
    if signature.returns is not None and not results:
        fine = found == [Result(signature.returns.numpy_name)]
    else:
        fine = signature.returns is None and found is not None and len(found) == len(results) and all(
            row.fits(p) for row, p in zip(found, results, strict=True)
        )  # fmt: skip
    if fine and found is not None:
        return found if results else []
    own = signature.parameters[len(results) :]
    if found is None:
        fix = "return a number, an array, or a tuple of numbers and arrays"
    elif len(found) == 1 and found[0].rank is None:
        fix = f'"{found[0].draft(own)}({", ".join(map(str, own))})"'
    else:
        outs = [f"out {row.draft(own)} {'yzuvw'[k] if k < 5 else f'y{k}'}" for k, row in enumerate(found)]
        fix = f'"void({", ".join([*outs, *map(str, own)])})": results are written, to parameters in front'
    raise SignatureError(f"the function returns `{returned}`", where=f"`{signature}`",
                         because=_said(signature, results), fix=fix)


def _said(signature: Signature, results: Sequence[Parameter]) -> str:
    if results:
        return "the signature has " + ", ".join(f"`{p}`" for p in results) + " for it"
    return f"the signature says `{signature.returns or 'void'}`"


def type_of(result: Result, p: Parameter) -> str:
    """The type of IR that Numba returns it as."""
    if result.rank is None:
        return "i8" if p.dtype.kind == "b" else p.dtype.ir
    return f"{{ ptr, ptr, i64, i64, ptr, [{result.rank} x i64], [{result.rank} x i64] }}"


def written(
    results: Sequence[Result], parameters: Sequence[Parameter], extents: Callable[[Parameter], list[str]],
) -> tuple[str, list[str], bool]:  # fmt: skip
    """The type of what the function returns, the IR that hands it on, and whether a shape may differ.

    The IR stands behind the call, which wrote to `%returned`; `%a.NAME` is where a result goes, `extents` the values
    of its extents. It is left by a branch to `%other.shape` where a shape differs.
    """
    types = [type_of(row, p) for row, p in zip(results, parameters, strict=True)]
    whole = types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}"
    rows: list[str] = []
    for k, (result, p) in enumerate(zip(results, parameters, strict=True)):
        at = "%returned"
        if len(types) > 1:
            at = f"%returned.{k}"
            rows.append(f"  {at} = getelementptr {whole}, ptr %returned, i64 0, i32 {k}")
        if result.rank is None:
            rows += [f"  %number.{k} = load {types[k]}, ptr {at}", f"  store {types[k]} %number.{k}, ptr %a.{p.name}"]
        else:
            rows += _copied(k, result, p, types[k], at, extents(p))
    return whole, rows, any(row.rank is not None for row in results)


def _copied(k: int, result: Result, p: Parameter, type_: str, at: str, extents: list[str]) -> list[str]:
    rank, size = len(extents), p.dtype.size
    rows = [f"  %owner.{k} = load ptr, ptr {at}",
            f"  %data.at.{k} = getelementptr {type_}, ptr {at}, i64 0, i32 4",
            f"  %data.{k} = load ptr, ptr %data.at.{k}", f"  %count.{k}.0 = add i64 1, 0"]  # fmt: skip
    same = "true"
    for axis, extent in enumerate(extents):
        rows += [f"  %extent.at.{k}.{axis} = getelementptr {type_}, ptr {at}, i64 0, i32 5, i64 {axis}",
                 f"  %extent.{k}.{axis} = load i64, ptr %extent.at.{k}.{axis}",
                 f"  %equal.{k}.{axis} = icmp eq i64 %extent.{k}.{axis}, {extent}",
                 f"  %same.{k}.{axis} = and i1 {same}, %equal.{k}.{axis}",
                 f"  %count.{k}.{axis + 1} = mul i64 %count.{k}.{axis}, {extent}"]  # fmt: skip
        same = f"%same.{k}.{axis}"
    rows += [f"  br i1 {same}, label %fits.{k}, label %other.shape", f"fits.{k}:"]
    if result.order == "C":
        rows += [f"  %bytes.{k} = mul i64 %count.{k}.{rank}, {size}",
                 f"  call void @llvm.memcpy.p0.p0.i64(ptr %a.{p.name}, ptr %data.{k}, i64 %bytes.{k}, i1 false)"]
    else:
        rows += _by_strides(k, p, type_, at, extents)
    return [*rows, f"  call void @NRT_decref(ptr %owner.{k})"]


def _by_strides(k: int, p: Parameter, type_: str, at: str, extents: list[str]) -> list[str]:
    """Nested loops over the axes, the last one innermost."""
    rows = [f"  %to.{k} = alloca i64", f"  store i64 0, ptr %to.{k}"]
    ends: list[str] = []
    before, address = f"fits.{k}", f"%data.{k}"
    for axis, extent in enumerate(extents):
        n = f"{k}.{axis}"
        rows += [f"  %stride.at.{n} = getelementptr {type_}, ptr {at}, i64 0, i32 6, i64 {axis}",
                 f"  %stride.{n} = load i64, ptr %stride.at.{n}", f"  br label %head.{n}", f"head.{n}:",
                 f"  %i.{n} = phi i64 [ 0, %{before} ], [ %more.{n}, %next.{n} ]",
                 f"  %left.{n} = icmp slt i64 %i.{n}, {extent}",
                 f"  br i1 %left.{n}, label %body.{n}, label %end.{n}", f"body.{n}:",
                 f"  %off.{n} = mul i64 %i.{n}, %stride.{n}",
                 f"  %row.{n} = getelementptr i8, ptr {address}, i64 %off.{n}"]  # fmt: skip
        before, address = f"body.{n}", f"%row.{n}"
        ends = [f"  br label %next.{n}", f"next.{n}:", f"  %more.{n} = add i64 %i.{n}, 1", f"  br label %head.{n}",
                f"end.{n}:", *ends]  # fmt: skip
    rows += [f"  %element.{k} = load {p.dtype.ir}, ptr {address}", f"  %place.{k} = load i64, ptr %to.{k}",
             f"  %spot.{k} = getelementptr {p.dtype.ir}, ptr %a.{p.name}, i64 %place.{k}",
             f"  store {p.dtype.ir} %element.{k}, ptr %spot.{k}", f"  %further.{k} = add i64 %place.{k}, 1",
             f"  store i64 %further.{k}, ptr %to.{k}"]  # fmt: skip
    return rows + ends
