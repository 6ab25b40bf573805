"""Width: types and addresses of shadows, and derivatives of several widths against separate ones."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz.verdicts import Verdict, in_workers
from fuzz.widths import MODES, compare
from handwritten.cases import HEADER, all_cases
from handwritten.made import make

from irgrad.engine.differentiate.layout.lanes import (
    at_least,
    constant_offset,
    extract,
    gep,
    helpers,
    insert,
    load,
    scaled,
    splat,
    store,
)
from irgrad.engine.differentiate.layout.shadow_types import shadow_type
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstAggregate, ConstInt, Instruction, Value, const_float

pytestmark = pytest.mark.long

CASES = {c.name: c for c in all_cases()}


def builder() -> Builder:
    return Builder(Block("b"))


def test_types_of_shadows() -> None:
    """A float has its lanes side by side, an integer as many bits, a pointer is itself."""
    assert shadow_type(ty.F64, 1) is ty.F64
    assert shadow_type(ty.F64, 3) is ty.vector(3, ty.F64)
    assert shadow_type(ty.vector(2, ty.F32), 4) is ty.vector(8, ty.F32)
    assert shadow_type(ty.I64, 3) is ty.int_(192)
    assert shadow_type(ty.PTR, 8) is ty.PTR
    assert shadow_type(ty.vector(2, ty.PTR), 8) is ty.vector(2, ty.PTR)
    record = ty.struct((ty.F32, ty.array(2, ty.F64), ty.PTR, ty.I32))
    assert str(shadow_type(record, 2)) == "{ <2 x float>, [2 x <2 x double>], ptr, i64 }"


def test_address_of_a_shadow() -> None:
    """Every index moves W times as far, and constants are added up."""
    b, record = builder(), ty.struct((ty.F64, ty.array(4, ty.F32)))
    base, i = Argument(ty.PTR, "p", 0), Argument(ty.I64, "i", 1)
    operands: list[Value] = [base, i, ConstInt(ty.I32, 1), ConstInt(ty.I64, 3)]
    instr = Instruction("getelementptr", ty.PTR, operands, elem=record, flags=("inbounds",))
    gep(b, instr, operands, 3)
    first, second = b.block.instructions
    assert first.elem is ty.array(3 * 24, ty.I8) and first.operands[1] is i
    assert second.elem is ty.I8 and second.operands[1].value == 3 * (8 + 3 * 4)  # type: ignore[attr-defined]
    assert constant_offset(record, [ConstInt(ty.I64, 2), ConstInt(ty.I32, 1), ConstInt(ty.I64, 1)]) == 48 + 8 + 4
    assert constant_offset(record, [i]) is None


def test_memory_of_an_aggregate_goes_part_by_part() -> None:
    """The lanes of the second field begin at W times its offset."""
    b = builder()
    pair = ty.struct((ty.F32, ty.F64))
    value = load(b, pair, Argument(ty.PTR, "p", 0), 2, 8)
    offsets = [i.operands[1].value for i in b.block.instructions if i.opcode == "getelementptr"]  # type: ignore[attr-defined]
    loads = [(str(i.type), i.align) for i in b.block.instructions if i.opcode == "load"]
    assert offsets == [16] and loads == [("<2 x float>", 4), ("<2 x double>", 8)]
    assert value.type is shadow_type(pair, 2)
    b = builder()
    store(b, pair, value, Argument(ty.PTR, "p", 0), 2, 1)
    assert [i.align for i in b.block.instructions if i.opcode == "store"] == [1, 1]


def test_lanes_of_vectors() -> None:
    """Elements of a vector are groups of lanes."""
    b = builder()
    vector = Argument(ty.vector(4, ty.F64), "v", 0)
    part = extract(b, vector, 1, 2)
    assert part.type is ty.vector(2, ty.F64)
    whole = insert(b, vector, part, ConstInt(ty.I32, 0), 2)
    assert whole.type is vector.type
    mask = b.block.instructions[-1].operands[2]
    assert isinstance(mask, ConstAggregate)
    assert [e.value for e in mask.elems] == [4, 5, 2, 3]  # type: ignore[attr-defined]
    constant = splat(b, const_float(ty.F64, 2.0), 3)
    assert isinstance(constant, ConstAggregate) and constant.type is ty.vector(3, ty.F64)


def test_lengths_and_helpers() -> None:
    """Lengths are W times as long; long doubles are copied lane by lane."""
    b = builder()
    assert scaled(b, ConstInt(ty.I32, 5), 4).value == 20  # type: ignore[attr-defined]
    assert at_least(b, ConstInt(ty.I64, 16)).value == 64  # type: ignore[attr-defined]
    assert at_least(b, ConstInt(ty.I64, 256)).value == 256  # type: ignore[attr-defined]
    (name, args), = helpers(b, ty.F64, ConstInt(ty.I64, 24), 8, 0, 3)
    assert name == "double.x3" and [a.value for a in args] == [72, 24, 0]  # type: ignore[attr-defined]
    assert [name for name, _ in helpers(b, ty.F80, ConstInt(ty.I64, 32), 16, 0, 2)] == ["x86_fp80", "x86_fp80"]


def test_width_one_is_the_single_derivative() -> None:
    """Not a single instruction differs."""
    source = "void f(double *x, double *y) { for (int i = 0; i < 9; i++) y[i] = x[i] * x[i + 1] + sin(x[i]); }"
    for mode in ("forward", "reverse"):
        plain, one = (make(source, "f", mode, ["dup", "dup"], **o).text for o in ({}, {"width": 1}))  # type: ignore[arg-type]
        assert plain == one


def test_nan_stays_in_its_lane() -> None:
    """A NaN among the tangents of one direction does not reach the others."""
    loop = "for (int i = 0; i < 4; i++) { s += x[i] * x[i]; y[i] = s; }"
    source = f"void f(double *x, double *y) {{ double s = 0; {loop} }}"
    made = make(source, "f", "forward", ["dup", "dup"], width=3)
    x, tangent = np.arange(1.0, 5.0), np.ones((4, 3))
    tangent[1, 2] = np.nan
    y, got = np.zeros(4), np.zeros((4, 3))
    made(x, tangent, y, got)
    assert np.allclose(got[:, :2], np.cumsum(2 * x)[:, None])
    assert np.isnan(got[1:, 2]).all() and got[0, 2] == 2.0


def test_the_text_hardly_grows_with_the_width() -> None:
    """Lanes are elements of vectors: the number of instructions is the same for every width."""
    source = "void f(double *x, double *y) { for (int i = 0; i < 9; i++) y[i] = exp(x[i]) / x[i + 1]; }"
    for mode in ("forward", "reverse"):
        made = [make(source, "f", mode, ["dup", "dup"], width=w) for w in (4, 16)]
        assert len({sum(1 for _ in m.function.instructions()) for m in made}) == 1


_verdicts: dict[str, Verdict] = {}


def _work(cases: list[Any], report: Callable[[Any], None]) -> None:
    import irgrad

    for case in cases:
        report(case.name)
        try:
            language = {"c": "c", "cc": "c++"}[case.language]
            library = irgrad.load(HEADER + case.source, flags=case.flags, language=language)
            kernel = library.kernel(case.function, case.signature)
            tolerance = 1e-12 if case.tolerance < 1e-8 else 1e-4
            found = [d for m in MODES for d in compare(kernel, case.inputs(), case.active, 3, m, tolerance)]
            report(Verdict(case.name, "wrong" if found else "ok", "\n".join(found[:2])))
        except Exception:
            report(Verdict(case.name, "error", traceback.format_exc(limit=-6)))


@pytest.mark.xdist_group("width")
@pytest.mark.parametrize("name", list(CASES))
def test_cases_at_width_three(name: str, request: pytest.FixtureRequest) -> None:
    """Every kernel of the table, forward and reverse: three lanes against three derivatives."""
    if name not in _verdicts:
        wanted = {
            item.callspec.params["name"]
            for item in request.session.items
            if isinstance(item, pytest.Function) and item.function is request.function
        }
        _verdicts.update({v.name: v for v in in_workers(_work, [c for n, c in CASES.items() if n in wanted])})
    verdict = _verdicts[name]
    assert verdict.kind == "ok", f"{verdict.kind}: {verdict.detail}\n{CASES[name].source}"


@pytest.mark.parametrize(("inner", "outer"), [(1, 3), (2, 1), (2, 3), (4, 4)])
@pytest.mark.parametrize("word", ["pullback.jvp_only", "jvp_only.pullback"])
def test_widths_nest(word: str, inner: int, outer: int) -> None:
    """W tangents of W' gradients, and W gradients of W' tangents: bilinear in their seeds, with the Hessian inside."""
    import irgrad
    from irgrad import engine
    from irgrad.engine.kernel.run import Run

    loop = "for (long i = 0; i < n; i++) { w[i % 4] += x[i] * s; s = sin(s) + x[i] * x[i]; if (s > 1) s *= x[0]; }"
    source = f"#include <math.h>\ndouble g(double *x, long n) {{ double s = 1, w[4] = {{0}}; {loop} return s * w[1]; }}"
    kernel = irgrad.load(source).kernel("g", "f64(f64[n] x, i64 n)")
    rng, x = np.random.default_rng(0), np.linspace(0.1, 1.0, 9)
    first = getattr(kernel.primal, word.split(".", maxsplit=1)[0])((0, 2), inner)
    if word.startswith("pullback"):  # x and all that the pullback writes
        active = [i for i, s in enumerate(first.slots) if s.differentiable and (s.role != "in" or not s.steps)]
    else:  # x and the tangent of the result
        active = [i for i, s in enumerate(first.slots) if (s.index, len(s.steps)) in ((0, 0), (2, 1))]
    second = getattr(first, word.split(".")[1])(active, outer)
    run = Run(second, kernel.bind((x,), {}), {})
    matrix = engine.hessian(kernel, width=1)(x)
    if word.startswith("pullback"):
        seeds = {second.find(2, 0): rng.uniform(-1, 1, inner), second.find(0, 1): rng.uniform(-1, 1, (9, outer))}
        result, subscripts = second.find(0, 0, 1), "ij,w,jv->iwv"
    else:
        weights, tangents = rng.uniform(-1, 1, (inner, outer)), rng.uniform(-1, 1, (9, inner))
        seeds = {second.find(2, 0, 1): weights, second.find(0, 0): tangents}
        result, subscripts = second.find(0, 1), "ij,wv,jw->iv"
    full = run({slot: value.reshape(run.buffers[slot].shape) for slot, value in seeds.items()})  # type: ignore[index]
    want = np.einsum(subscripts, matrix, *seeds.values())
    np.testing.assert_allclose(full[result].reshape(want.shape), want, rtol=1e-12, atol=1e-12)  # type: ignore[index]
