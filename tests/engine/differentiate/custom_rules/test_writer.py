"""What bodies of rules write into: what it keeps of the call, each thing once, and what it knows of the call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import grad, vjp
from irgrad.engine.differentiate.custom_rules.writer import (
    Shape,
    clone,
    own_arguments,
    plain_call_of,
    shape_of,
)
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, CallInfo, ConstInt, Instruction
from irgrad.rules import Active, Const, Duplicated, DuplicatedNoNeed, Ptr, f64, i64, layer, rule
from irgrad.rules.definitions.types import mode_type
from irgrad.rules.errors import RuleError

SOURCE = """
double cube(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i] * x[i]; return s; }
double twice(double *x, int n) {
  double s = cube(x, n);
  for (int i = 0; i < n; i++) x[i] = 2 * x[i];
  return s + cube(x, n);
}
double once(double *x, int n) { return 3 * cube(x, n); }
"""
X = np.array([0.5, -1.5, 2.0])


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """From a file of its own: what the cache knows runs no body."""
    path = tmp_path_factory.mktemp("writer") / "cube.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


def test_the_shape_of_a_call_follows_from_its_types() -> None:
    types = (mode_type("reverse"), Active[f64], Duplicated[Ptr[f64]], Const[i64], Active[f64],
             DuplicatedNoNeed[Ptr[f64]], Const[Ptr[f64]])  # fmt: skip
    site: Any = SimpleNamespace(types=types)
    assert shape_of(site) == Shape((False, False, True, False, False), (True, False, False, True, False), True)
    site.types = (types[0], Const[f64], *types[2:])
    assert not shape_of(site).active


def test_each_shadow_follows_its_argument() -> None:
    writer: Any = SimpleNamespace(params=[ty.PTR, ty.I64, ty.PTR], shape=Shape((), (True, False, True), False))
    assert own_arguments(writer) == [True, False, True, True, False]


def test_the_call_of_the_function_itself_is_no_tail_call() -> None:
    info = CallInfo(ty.function(ty.F64, (ty.F64,)), tail="tail", fn_attrs="nounwind")
    plain = plain_call_of(SimpleNamespace(call=SimpleNamespace(call=info)))  # type: ignore[arg-type]
    assert (plain.tail, plain.fn_attrs, plain.fn_type) == ("", "nounwind", info.fn_type)


def test_counts_are_computed_again_elsewhere() -> None:
    first, second = Builder(Block()), Builder(Block())
    n, there = Argument(ty.I64, "n", 0), Argument(ty.I64, "n", 0)
    count = first.add(first.mul(n, n), ConstInt(ty.I64, 3))
    site: Any = SimpleNamespace(rule=SimpleNamespace(place="here.py:1"))
    known = {n: there}
    again = clone(count, known, second, set(), site)
    product, total = second.block.instructions
    assert again is total is not count
    assert (product.operands, total.operands[0]) == ([there, there], product)
    assert clone(count, known, second, set(), site) is again and len(second.block.instructions) == 2
    kept = first.mul(n, ConstInt(ty.I64, 5))
    assert isinstance(kept, Instruction)
    assert clone(kept, {}, second, {kept}, site) is kept


def test_what_the_body_computes_is_not_known_before() -> None:
    b, site = Builder(Block()), SimpleNamespace(rule=SimpleNamespace(place="here.py:1"))
    loaded = b.load(ty.I64, Argument(ty.PTR, "p", 0))
    with pytest.raises(RuleError, match="depends on what the body computes") as caught:
        clone(b.add(loaded, ConstInt(ty.I64, 1)), {}, b, set(), site)  # type: ignore[arg-type]
    assert caught.value.where == "here.py:1"


def test_it_says_what_is_overwritten(lib: Any) -> None:
    said = []
    with layer():

        @rule("cube", mode="reverse")
        def _(ctx, x, n):  # type: ignore[no-untyped-def]
            said.append((ctx.overwritten(x), ctx.mode, ctx.width, ctx.needs_primal))
            saved = x.saved(n)
            with ctx.for_range(n) as i:
                x.d[i] += 3.0 * saved[i] ** 2 * ctx.result.d

        once, twice = (lib.kernel(name, "f64(inout f64[n] x, i32 n)") for name in ("once", "twice"))
        np.testing.assert_allclose(vjp(once, X)[1]((1.0, np.zeros(3)))[0], 9 * X**2)
        assert [s[0] for s in said] == [False]
        np.testing.assert_allclose(vjp(twice, X)[1]((1.0, np.zeros(3)))[0], 27 * X**2)
        assert sorted(s[0] for s in said[1:]) == [False, True]  # only the first call's x is overwritten
        assert said[0][1:3] == ("reverse", 1)


def test_what_is_asked_for_twice_is_kept_once(lib: Any) -> None:
    kept = []
    with layer():

        @rule("cube", mode="reverse")
        def _(ctx, x, n):  # type: ignore[no-untyped-def]
            first, again, more = x.saved(n), x.saved(n), x.saved(n + 1)
            kept.append([(k.kind, k.position, k.slot) for k in ctx._writer.requests])
            with ctx.for_range(n) as i:
                x.d[i] += (first[i] + again[i] + more[i]) * first[i] * ctx.result.d

        twice = lib.kernel("twice", "f64(inout f64[n] x, i32 n)")
        padded = np.append(X, 0.0)
        got = vjp(twice, padded)[1]((1.0, np.zeros(4)))[0]
    np.testing.assert_allclose(got, 27 * padded**2)
    assert sorted(kept, key=len)[-1] == [("before", 0, 0), ("before", 0, 1)]


def test_names_of_the_rule_of_the_prototype_or_made_up(lib: Any) -> None:
    said: list[str] = []
    with layer():

        @rule("cube", mode="reverse")
        def _(ctx, values, count):  # type: ignore[no-untyped-def]
            said.extend(ctx._writer.name(i) for i in range(3))
            assert ctx._writer.needs_primal

        grad(lib.kernel("once", "f64(f64[n] x, i32 n)"))(X)
    assert said == ["values", "count", "a2"]


SCALE = """
void scale(int n, double a, double *x) { for (int i = 0; i < n; i++) x[i] *= a; }
double outer(double *x, long n, double a) { scale((int)n, a, x); return x[0] * x[n - 1]; }
"""
ERRORS: list[tuple[Any, str, str]] = [
    (lambda ctx, n, a, x: ctx.result, "`scale` returns nothing", "out.result"),
    (lambda ctx, n, a, x: x.saved(x.d[0].astype(f64)), "depends on what the body computes", "count from"),
]


@pytest.mark.parametrize(("body", "what", "fix"), ERRORS, ids=[e[1] for e in ERRORS])
def test_messages(body: Any, what: str, fix: str) -> None:
    kernel = irgrad.load(SCALE).kernel("outer", "f64(inout f64[n] x, i64 n, f64 a)")
    with layer():
        rule("scale", mode="reverse")(body)
        with pytest.raises(RuleError) as caught:
            vjp(kernel, np.ones(3), 0.7)[1]((1.0, np.zeros(3)))
        assert what in caught.value.what
        assert fix in caught.value.fix
