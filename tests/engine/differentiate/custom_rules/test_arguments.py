"""Arguments as bodies of rules see them: what is added to derivatives arrives, of Const arguments nothing does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handwritten.coded import coded, writer_of

import irgrad
from irgrad import engine
from irgrad.engine import vjp
from irgrad.engine.differentiate.custom_rules.arguments import (
    Adjoint,
    ArrayArgument,
    Nothing,
    Number,
    PointerArgument,
    Reference,
    Result,
)
from irgrad.engine.differentiate.custom_rules.symbols import Code, Scalar
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Value
from irgrad.rules import layer, rule
from irgrad.rules.errors import RuleError

NAN = np.nan


def _loaded(code: Code, pointer: Value) -> Value:
    return code.b.load(ty.F64, pointer)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_the_adjoint_of_a_number_is_added_to() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        x = Number(code, _loaded(code, pointers[0]), "x", "reverse", True)
        assert x.active
        x.d += 2.0 * x
        x.d -= 0.25
        x.d += 3
        code.b.store(x.adjoint, pointers[1])
        code.b.store(code.b.load(ty.F64, x.place), pointers[2])

    adjoint, memory = np.full(1, NAN), np.full(1, NAN)
    coded(body, np.array([1.5]), adjoint, memory)
    assert (adjoint[0], memory[0]) == (5.75, 5.75)


def test_what_is_added_to_a_const_number_goes_nowhere() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        x = Number(code, _loaded(code, pointers[0]), "x", "reverse", False)
        assert not x.active
        before = len(code.b.block.instructions)
        x.d += 2.0
        x.d -= 1.0
        assert isinstance(x.d, Adjoint) and x.d.variable is None
        assert len(code.b.block.instructions) == before

    coded(body, np.array([1.5]))


def test_the_tangent_of_a_number_is_given() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        x, other = (Number(code, _loaded(code, pointers[0]), name, "forward", True) for name in "xy")
        x._tangent = Scalar(code, _loaded(code, pointers[1]))
        code.b.store((x.d * 2.0 + other.d).v, pointers[2])
        with pytest.raises(RuleError, match="the derivative of `x` is assigned"):
            x.d = 1.0

    out = np.full(1, NAN)
    coded(body, np.array([1.5]), np.array([4.0]), out)
    assert out[0] == 8.0


def test_the_result_has_a_cotangent_or_gets_a_tangent() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        value, given = _loaded(code, pointers[0]), _loaded(code, pointers[1])
        reverse, unused, forward = (Result(code, value, d, mode) for d, mode in
                                    ((given, "reverse"), (None, "reverse"), (None, "forward")))  # fmt: skip
        assert (reverse.active, unused.active, forward.active) == (True, False, True)
        assert forward.tangent is None
        forward.d = 7
        forward.d = forward.d + reverse.d + unused.d
        assert forward.tangent is not None and forward.tangent.v.type is ty.F64
        code.b.store(forward.d.v, pointers[2])
        with pytest.raises(RuleError, match="the cotangent of the result is assigned"):
            reverse.d = 1.0

    out = np.full(1, NAN)
    coded(body, np.array([1.5]), np.array([4.0]), out)
    assert out[0] == 11.0


def test_a_number_by_reference_has_an_element_of_the_shadow() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        at, reverse, forward, cleared, out = pointers
        value = _loaded(code, at)
        x = Reference(code, value, "x", "reverse", at, reverse)
        x.d += 2.0 * x
        y = Reference(code, value, "y", "forward", at, forward)
        code.b.store((y.d * 3.0).v, out)
        y.d = 8.0
        Reference(code, value, "z", "reverse", at, cleared).clear()
        none = Reference(code, value, "none", "reverse", at, None)
        none.d += 5.0
        none.clear()
        assert (x.active, none.active, none.shadow) == (True, False, None)
        assert x.ref.v is at

    x, reverse, forward, cleared, out = (np.array([v]) for v in (1.5, 10.0, 4.0, 6.0, NAN))
    coded(body, x, reverse, forward, cleared, out)
    assert (x[0], reverse[0], forward[0], cleared[0], out[0]) == (1.5, 13.0, 8.0, 0.0, 12.0)


# -- pointers and arrays -----------------------------------------------------------------------------------------------


def test_shadows_of_pointers_and_arrays_are_memory() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        at, first, second = pointers
        writer = writer_of(code, "reverse")
        p = PointerArgument(writer, 0, "p", at, first, ty.F64)
        assert p.active
        p.d[1] += p[0] * 2.0
        x = ArrayArgument(writer, 0, "x", at, second, ty.F64, [code.number(2)])
        x.d += 3.0 * x
        x.d[0] += 1.0

    x, first, second = np.array([1.5, 2.5]), np.ones(2), np.ones(2)
    coded(body, x, first, second)
    assert (first.tolist(), second.tolist()) == ([1.0, 4.0], [6.5, 8.5])


def test_arrays_are_cleared_in_reverse_and_set_in_forward_mode() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        at, first, second = pointers
        shape = [code.number(2)]
        x = ArrayArgument(writer_of(code, "reverse"), 0, "x", at, first, ty.F64, shape)
        with pytest.raises(RuleError, match="the shadow of `x` is assigned"):
            x.d = 2.0
        x.d = 0.0
        y = ArrayArgument(writer_of(code, "forward"), 0, "y", at, second, ty.F64, shape)
        y.d = 2.0 * y
        p = PointerArgument(writer_of(code, "forward"), 0, "p", at, second, ty.F64)
        with pytest.raises(RuleError, match="the shadow of `p` is assigned as a whole"):
            p.d = 2.0

    x, first, second = np.array([1.5, 2.5]), np.ones(2), np.ones(2)
    coded(body, x, first, second)
    assert (first.tolist(), second.tolist()) == ([0.0, 0.0], [3.0, 5.0])


def test_const_arrays_have_a_shadow_of_zeros_and_const_pointers_none() -> None:
    def body(code: Code, pointers: list[Value]) -> None:
        writer = writer_of(code, "reverse")
        x = ArrayArgument(writer, 0, "x", pointers[0], None, ty.F64, [code.number(2)])
        assert not x.active
        zeros = x.d
        assert isinstance(zeros, Nothing) and zeros[...] is zeros
        x.d += 3.0 * x
        x.d[0] = 5.0
        code.b.store((x.d[1] + x[1]).v, pointers[1])
        p = PointerArgument(writer, 0, "p", pointers[0], None, ty.F64)
        assert not p.active
        with pytest.raises(RuleError, match="`p` is Const here, it has no shadow") as caught:
            _ = p.d
        assert caught.value.fix == "if p.active: ..."

    x, out = np.array([1.5, 2.5]), np.full(1, NAN)
    coded(body, x, out)
    assert x.tolist() == [1.5, 2.5] and out[0] == 2.5


def test_contents_are_asked_for_by_time_and_count() -> None:
    asked: list[tuple[int, str, Any, Any]] = []

    def body(code: Code, pointers: list[Value]) -> None:
        def contents(position: int, when: str, count: Any, element: Any) -> Value:
            asked.append((position, when, getattr(count, "v", count), element))
            return pointers[1]

        writer = writer_of(code, "reverse", contents=contents)
        p = PointerArgument(writer, 3, "p", pointers[0], None, ty.F64)
        rows = code.number(2)
        x = ArrayArgument(writer, 4, "x", pointers[0], None, ty.F64, [rows])
        for found in (p.saved(7), p.result(8), x.saved, x.result):
            assert found.v is pointers[1] and found.element is ty.F64
        code.b.store((x.saved[1] + p.saved(7)[0]).v, pointers[2])

    out = np.full(1, NAN)
    coded(body, np.zeros(2), np.array([1.0, 20.0]), out)
    assert out[0] == 21.0
    assert [a[:2] for a in asked[:4]] == [(3, "before"), (3, "after"), (4, "before"), (4, "after")]
    assert asked[0][2:] == (7, ty.F64) and asked[1][2] == 8 and asked[2][2].value == 2


SCALE = """
void scale(int n, double a, double *x) { for (int i = 0; i < n; i++) x[i] *= a; }
double outer(double *x, long n, double a) { scale((int)n, a, x); return x[0] * x[n - 1]; }
"""
ERRORS: list[tuple[Any, str, str]] = [
    (lambda ctx, n, a, x: setattr(a, "d", 2.0), "the derivative of `a` is assigned", "a.d += value"),
    (lambda ctx, n, a, x: setattr(x, "d", 2.0), "the shadow of `x` is assigned", "x.d += value"),
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


OVERWRITTEN = """
void squares(const double *x, double *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] * x[i]; }
double kept(double *x, long n) {
    double y[8], s = 0;
    squares(x, y, n);
    for (long i = 0; i < n; i++) s += y[i];
    return s;
}
double replaced(double *x, long n) { double s = kept(x, n); for (long i = 0; i < n; i++) x[i] = 7; return s; }
"""


@pytest.mark.parametrize("read", ["x", "x[i]", "x.pointer + n", "foreign", "copy"])
def test_memory_that_the_program_wrote_over_is_not_read_in_reverse(read: str) -> None:
    library = irgrad.load(OVERWRITTEN)
    kept = library.kernel("kept", "f64(f64[n] x, i64 n)")
    replaced = library.kernel("replaced", "f64(inout f64[n] x, i64 n)")
    start = np.array([1.0, 2.0, 3.0])

    def body(ctx: Any, x: Any, y: Any, n: Any) -> None:
        if read == "x":
            x.d += 2.0 * x * y.d
        elif read in ("foreign", "copy"):
            held = ctx.temporary(n)
            if read == "copy":
                ctx.copy(held, x, n)
            else:
                ctx.foreign("squares", "void(f64[n] x, out f64[n] y, i64 n)")(x, held, n)
            with ctx.for_range(n) as i:
                x.d[i] += 2.0 * (held[i] if read == "copy" else np.sqrt(held[i])) * y.d[i]
        else:
            with ctx.for_range(n) as i:
                x.d[i] += 2.0 * (x[i] if read == "x[i]" else (x.pointer + n)[i - n]) * y.d[i]

    with layer():
        rule(library.kernel("squares", "void(f64[n] x, out f64[n] y, i64 n)"), mode="reverse")(body)
        assert engine.grad(kept)(start).tolist() == [2, 4, 6]
        with pytest.raises(RuleError, match=r"`x` is read in reverse, when it may hold something else") as caught:
            engine.grad(replaced)(start)
    assert "x.saved" in str(caught.value)
