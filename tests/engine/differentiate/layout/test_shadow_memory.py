"""Layouts of shadow memory: the two that there are, and a third that a test adds in one class."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import make

from irgrad.engine.differentiate.layout import lanes
from irgrad.engine.differentiate.layout.shadow_memory import PRIMAL, Interleaved, Separate, memory_of
from irgrad.engine.differentiate.layout.shadow_types import Apart
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Value
from irgrad.engine.ir.types import Type

SOURCE = """
typedef struct { double a; float b[2]; } pair;
NOINLINE double scaled(double *p, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) { p[i] = sin(p[i]) * s + p[i]; s += p[i]; }
    return s;
}
void f(double *x, pair *q, long *n, double *o) {
    double copy[8];
    pair *mine = malloc(*n * sizeof *mine);
    memcpy(copy, x, *n * sizeof *x);
    memcpy(mine, q, *n * sizeof *q);
    double s = scaled(copy, *n);
    for (long i = 0; i < *n; i++) s += copy[i] * mine[i].a * mine[i].b[i & 1];
    free(mine);
    *o = s;
}"""
PAIR = np.dtype([("a", "f8"), ("b", "f4", (2,))])
N, W = 6, 4


class Backwards(Interleaved):
    """The lanes of an element side by side, the last one first."""

    def load(
        self, b: Builder, type_: Type, pointer: Value, align: int = 0, metadata: dict[str, str] | None = None
    ) -> Value:
        return self._turned(b, type_, super().load(b, type_, pointer, align, metadata))

    def store(
        self, b: Builder, type_: Type, value: Value, pointer: Value, align: int = 0,
        metadata: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().store(b, type_, self._turned(b, type_, value), pointer, align, metadata)

    def _turned(self, b: Builder, type_: Type, value: Value) -> Value:
        assert not type_.is_aggregate and not type_.is_vector
        return lanes.shuffle(b, value, None, range(self.width)[::-1]) if type_.is_float else value


def _arguments() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    q = np.zeros(N, PAIR)
    q["a"], q["b"] = rng.normal(size=N), rng.normal(size=(N, 2))
    return [rng.normal(size=N), q, np.array([N]), np.zeros(1)]


def _gradients(layout: object) -> tuple[np.ndarray, np.ndarray]:
    """Of W cotangents 1, 2, ...: shadows as the layout has them, the lanes of a field last."""
    made = make(SOURCE, "f", "reverse", ["dup", "dup", "const", "dup"], width=W, layout=layout)
    x, q, n, o = _arguments()
    dx, dq = np.zeros((N, W)), np.zeros(N * W * PAIR.itemsize, np.uint8)
    seeds = np.arange(1.0, W + 1)
    made(x, dx, q, dq, n, o, seeds[::-1].copy() if layout is Backwards else seeds)
    fields = dq.reshape(N, W * PAIR.itemsize)[:, : W * 8].copy().view(np.float64)
    return dx, fields


def test_a_third_layout_is_one_class() -> None:
    (dx, da), (back, back_a) = _gradients(Interleaved), _gradients(Backwards)
    np.testing.assert_allclose(dx, dx[:, :1] * np.arange(1, W + 1), rtol=1e-13)
    np.testing.assert_array_equal(back, dx[:, ::-1])
    np.testing.assert_array_equal(back_a, da[:, ::-1])
    assert np.abs(dx).min() > 1e-6 and np.abs(da).min() > 1e-6
    single = make(SOURCE, "f", "reverse", ["dup", "dup", "const", "dup"])
    x, q, n, o = _arguments()
    shadow = np.zeros(N)
    single(x, shadow, q, np.zeros(N, PAIR), n, o, np.ones(1))
    np.testing.assert_allclose(dx[:, 0], shadow, rtol=1e-12)


@pytest.mark.parametrize("width", [1, 4])
def test_what_a_width_asks_for(width: int) -> None:
    assert isinstance(memory_of(width), Interleaved) and memory_of(width).scale == width
    assert isinstance(memory_of(Apart(width)), Separate) and memory_of(Apart(width)).scale == 1
    assert [memory_of(w).separate for w in (width, Apart(width))] == [False, True]
    assert PRIMAL.scale == 1


def test_places_of_copies() -> None:
    b = Builder(Block())
    size = ConstInt(ty.I64, 24)
    wide, apart = Interleaved(4), Separate(Apart(4))
    assert [v.value for v in apart.places(b, size, 8, 4)] == [24, 8, 4]  # type: ignore[attr-defined]
    assert [v.value for v in wide.places(b, size, 8, 4)[1:]] == [32, 16]  # type: ignore[attr-defined]
    assert [name for name, _ in wide.helpers(b, ty.F64, size, 8, 0)] == ["double.x4"]
    assert [name for name, _ in wide.helpers(b, ty.F80, size, 16, 0)] == ["x86_fp80"] * 4
    assert [name for name, _ in apart.helpers(b, ty.F80, size, 16, 0)] == ["x86_fp80"]
