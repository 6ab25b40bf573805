"""Elementwise algebra on arrays of rules against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import vjp
from irgrad.rules import layer, rule
from irgrad.rules.errors import RuleError

SOURCE = """
void probe(const double *A, const double *v, double a, long m, long n, double *out) { out[0] = A[0] + v[0] + a; }
"""
SIGNATURE = "void(f64[m,n] A, f64[n] v, f64 a, i64 m, i64 n, out f64[m,n] out)"
A = np.arange(6.0).reshape(2, 3) + 0.5
V = np.array([1.0, -2.0, 0.25])
OUT = np.linspace(-1, 1, 6).reshape(2, 3)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("views") / "probe.c"
    path.write_text(SOURCE)
    return irgrad.load(path).kernel("probe", SIGNATURE)


def _run(probe: Any, body: Callable[..., None]) -> list[Any]:
    with layer():
        rule(probe, mode="reverse")(body)
        return list(vjp(probe, A, V, 2.0)[1](OUT))


def test_equal_shapes(probe: Any) -> None:
    def body(ctx, a, v, s, m, n, out):  # type: ignore[no-untyped-def]
        a.d += np.where(a.saved > 2, np.sin(a.saved) * out.d, -out.d / a.saved) + 2 * out.d**2 - 1
        v.d += 0.5 * v.saved

    got = _run(probe, body)
    np.testing.assert_allclose(got[0], np.where(A > 2, np.sin(A) * OUT, -OUT / A) + 2 * OUT**2 - 1, rtol=1e-14)
    np.testing.assert_allclose(got[1], 0.5 * V)
    assert got[2] == 0.0


def test_fewer_axes_and_sums(probe: Any) -> None:
    def body(ctx, a, v, s, m, n, out):  # type: ignore[no-untyped-def]
        a.d += s * v.saved * out.d
        s.d += np.sum(a.saved * v.saved * out.d) + np.dot(v.saved, v.saved) + (abs(out.d)).sum()

    got = _run(probe, body)
    np.testing.assert_allclose(got[0], 2.0 * V * OUT)
    assert got[2] == pytest.approx(np.sum(A * V * OUT) + V @ V + np.abs(OUT).sum())


def test_elements_shapes_and_loops(probe: Any) -> None:
    def body(ctx, a, v, s, m, n, out):  # type: ignore[no-untyped-def]
        assert a.ndim == 2
        scratch = ctx.temporary_like(a, zero=True)
        with ctx.for_range(a.shape[0]) as i, ctx.for_range(n) as j:
            scratch[i, j] = scratch[i, j] + out.d[i, j] * (i + 1)
            with ctx.when(j > i):
                v.d[j] += scratch[i, j]
        a.d[...] = scratch
        s.d += a.size

    got = _run(probe, body)
    weighted = OUT * np.array([[1.0], [2.0]])
    np.testing.assert_allclose(got[0], weighted)
    np.testing.assert_allclose(got[1], np.where(np.arange(3) > np.arange(2)[:, None], weighted, 0).sum(0))
    assert got[2] == 6.0


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (lambda ctx, a, v, s, m, n, out: v.d.assign(a.saved), "more axes is stored into one of fewer"),
        (lambda ctx, a, v, s, m, n, out: a.d[1], "1 indices for 2 axes"),
        (lambda ctx, a, v, s, m, n, out: np.linalg.norm(v.saved), "is not among the functions of rules"),
        (lambda ctx, a, v, s, m, n, out: np.add.reduce(v.saved), "`np.add.reduce` is not among"),
        (lambda ctx, a, v, s, m, n, out: setattr(s, "d", s.d.__iadd__(v.saved)), "an array is added"),
        (lambda ctx, a, v, s, m, n, out: 1 if a.saved == v.saved else 0, "decides with `if`"),
    ],
)
def test_messages(probe: Any, body: Any, what: str) -> None:
    with pytest.raises(RuleError) as caught:
        _run(probe, body)
    assert what in caught.value.what
