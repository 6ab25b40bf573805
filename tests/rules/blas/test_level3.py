"""Matrix-matrix routines: all flags, both orders, both conventions, both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_cases import arguments, check, check_single, flag_cases, flag_values, kernel

from irgrad.engine import vjp
from irgrad.rules.blas.spelling import spelled

ROUTINES = ("gemm", "symm", "syrk", "syr2k", "trmm", "trsm")


def _case(
    spelling: Any, flags: dict[str, int], rng: np.random.Generator, sizes: tuple[int, int, int], beta: float
) -> Any:
    """Arguments of a call: matrices with gaps behind their lines; NaN in C where beta is zero."""
    m, n, k = sizes
    row = flags.get("order") == 101

    def is_(name: str, which: int) -> bool:
        return flags[name] == flag_values(name, spelling.c)[which]

    shapes: dict[str, tuple[int, int]] = {"c": (m, n), "a": (m, k), "b": (k, n)}
    if spelling.routine == "gemm":
        shapes["a"] = (k, m) if is_("transa", 1) else (m, k)
        shapes["b"] = (n, k) if is_("transb", 1) else (k, n)
    elif spelling.routine in ("syrk", "syr2k"):
        shapes = {"c": (n, n), "a": (k, n) if is_("trans", 1) else (n, k)}
        shapes["b"] = shapes["a"]
    else:
        order = m if is_("side", 0) else n
        shapes = {"c": (m, n), "a": (order, order), "b": (m, n)}
    made: dict[str, Any] = {"m": m, "n": n, "k": k, "alpha": 0.7, "beta": beta, **flags}
    for gap, (name, (rows, columns)) in enumerate(shapes.items()):
        outer, inner = (rows, columns) if row else (columns, rows)
        ld = max(1, inner + gap)
        made[f"ld{name}"] = ld
        values = rng.normal(size=(max(outer, 1), ld))
        if name == "a" and spelling.routine in ("trmm", "trsm"):
            values = 0.4 * values
            values[:, :inner] += 2 * np.eye(*values[:, :inner].shape)  # far from singular
        made[name] = values.reshape(-1)
    if beta == 0:
        made["c"][:] = np.nan
    return arguments(spelling, made)


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("symbol", ["cblas_d{}", "d{}_"])
def test_all_flags(symbol: str, routine: str) -> None:
    spelling = spelled(symbol.format(routine))
    assert spelling is not None
    rng = np.random.default_rng(1)
    for flags in flag_cases(spelling):
        check(spelling, _case(spelling, flags, rng, (2, 3, 4), 0.3), rng)


def _known(symbol: str) -> Any:
    spelling = spelled(symbol)
    assert spelling is not None
    return spelling


@pytest.mark.parametrize("routine", ROUTINES)
def test_nan_in_c_and_no_elements(routine: str) -> None:
    rng = np.random.default_rng(2)
    spelling = _known(f"cblas_d{routine}")
    first, *_, last = flag_cases(spelling)
    for sizes in ((2, 3, 2), (0, 2, 2), (2, 2, 0), (1, 1, 1)):
        for flags in (first, last):
            check(spelling, _case(spelling, flags, rng, sizes, 0.0), rng)


@pytest.mark.parametrize("routine", ROUTINES)
def test_single_precision(routine: str) -> None:
    spelling = _known(f"cblas_s{routine}" if ROUTINES.index(routine) % 2 else f"s{routine}_")
    flags = flag_cases(spelling)[-2]
    given = _case(spelling, flags, np.random.default_rng(3), (3, 2, 4), 0.5)
    check_single(spelling, given, np.random.default_rng(4))


@pytest.mark.parametrize("m", [63, 130])
def test_triangles_of_several_blocks(m: int) -> None:
    """The product on a triangle is computed block by block."""
    rng = np.random.default_rng(5)
    spelling = _known("cblas_dtrmm")
    for order, uplo, trans in ((101, 121, 111), (102, 122, 112), (102, 121, 111), (101, 122, 112)):
        a, b = rng.normal(size=(m, m)), rng.normal(size=(m, 3))
        full = np.triu(a) if uplo == 121 else np.tril(a)
        seed = rng.normal(size=(m, 3))
        lay = (lambda x: x) if order == 101 else (lambda x: x.T)
        flat = [np.ascontiguousarray(lay(x)).reshape(-1) for x in (a, b, seed)]
        args = (order, 141, uplo, trans, 131, m, 3, 0.5, flat[0], m, flat[1], 3 if order == 101 else m)
        out, pull = vjp(kernel(spelling), *args)
        op = full if trans == 111 else full.T
        np.testing.assert_allclose(lay(np.reshape(out, lay(b).shape)), 0.5 * op @ b, rtol=1e-12, atol=1e-12)
        alpha, da, db = (g for g in pull(flat[2]) if g is not None)
        want = 0.5 * (seed @ b.T if trans == 111 else b @ seed.T)
        want = np.triu(want) if uplo == 121 else np.tril(want)
        np.testing.assert_allclose(lay(np.reshape(da, (m, m))), want, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(lay(np.reshape(db, lay(b).shape)), 0.5 * op.T @ seed, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(alpha, np.sum(seed * (op @ b)), rtol=1e-12)
