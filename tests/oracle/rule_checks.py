"""The contract of a row: right against mpmath in float and double, right in its mpmath reading, every mutant caught,
every documented kink met. Each family's test file runs these checks on its rows."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

from irgrad.rules.expressions.expr import ZERO, Const, Expr, Op, Where, call, nodes, where
from irgrad.rules.expressions.readings import evaluate
from irgrad.rules.expressions.row import Row
from oracle.math_functions import primal, slope

TOLERANCE = {"f64": 1e-13, "f32": 2e-6}
POINTS = 64


def rows_of(family: str) -> list[Row]:
    """The rows of one file of the table that have float results."""
    return [row for row in importlib.import_module(f"irgrad.rules.table.{family}").family.rows if row.outputs]


def sample(row: Row, dtype: str, rng: random.Random) -> list[Any]:
    """A point of the row's domain that the type represents; None in the places of pointers."""
    real = np.float32 if dtype == "f32" else np.float64
    point: list[Any] = []
    for letter, (low, high) in zip(row.signature, row.domain, strict=True):
        if letter == "p":
            point.append(None)
        elif letter == "i":
            point.append(rng.randint(int(low), int(high)))
        else:
            point.append(real(rng.uniform(low, high)))
    return point


def exact(point: list[Any]) -> list[Any]:
    return [x if isinstance(x, int) else mp.mpf(float(x)) for x in point if x is not None]


def truth(row: Row, point: list[Any]) -> tuple[list[Any], list[list[float]]]:
    """Results and, per float argument, slopes of all results, from mpmath."""
    with mp.workdps(70):
        at = exact(point)
        position = {i: k for k, i in enumerate(i for i, x in enumerate(point) if x is not None)}
        slopes = [[+s for s in slope(row.key, at, position[i])] for i in row.floats]
        return primal(row.key, at), slopes


def is_complex(row: Row) -> bool:
    return len(row.outputs) == 2 and len(row.floats) > 1


def error(got: float, want: Any, size: Any) -> float:
    """Error relative to `size`; absolute where the derivative is zero."""
    if not np.isfinite(got):
        return float("inf")
    with mp.workdps(30):
        return float(abs(mp.mpf(float(got)) - want) / (size if size > mp.mpf("1e-15") else 1))


def worst_error(row: Row, dtype: Any, points: list[Any], table: Any = None) -> float:
    """Largest error of the partials (of `table` in place of the row's) over points with known truth."""
    worst = 0.0
    real = np.float32 if dtype == "f32" else np.float64
    for point, (results, slopes) in points:
        y = [real(float(r)) for r in results]
        for k, i in enumerate(row.floats):
            for j in range(len(row.outputs)):
                partial = (table or row.partials)[j][i]
                got = 0.0 if partial is ZERO else evaluate(partial, point, y, dtype)
                # one number, the complex derivative, has one error: its parts may cancel
                size = mp.hypot(*slopes[k]) if is_complex(row) else abs(slopes[k][j])
                worst = max(worst, error(got, slopes[k][j], size))
    return worst


def points_of(row: Row, dtype: str, count: int) -> list[Any]:
    rng = random.Random(f"{row.key} {dtype}")
    drawn = [sample(row, dtype, rng) for _ in range(count)]
    return [(point, truth(row, point)) for point in drawn]


def check_partials(row: Row, dtype: str, count: int = POINTS) -> None:
    """Within 1e-13 in double and 2e-6 in float, at `count` random points of the domain."""
    assert worst_error(row, dtype, points_of(row, dtype, count)) <= TOLERANCE[dtype]


def check_mpmath_reading(row: Row) -> None:
    """The third reading of a row, at high precision. digamma stops at the remainder of its series."""
    with mp.workdps(40):
        for point, (results, slopes) in points_of(row, "f64", 4):
            args = [None if x is None else x if isinstance(x, int) else mp.mpf(float(x)) for x in point]
            for k, i in enumerate(row.floats):
                for j in range(len(row.outputs)):
                    partial = row.partials[j][i]
                    got = 0 if partial is ZERO else evaluate(partial, args, results, "mp")
                    digits = 1e-14 if "gamma" in row.key else 1e-25
                    assert abs(got - slopes[k][j]) <= digits * (1 + abs(slopes[k][j]))


def rebuilt(root: Expr, replace: dict[Expr, Expr]) -> Expr:
    """`root` with some nodes replaced, everything above them built again."""
    new: dict[Expr, Expr] = {}
    for node in nodes(root):
        if node in replace:
            new[node] = replace[node]
        elif isinstance(node, Op):
            new[node] = call(node.name, *(new[c] for c in node.children))
        elif isinstance(node, Where):
            new[node] = where(*(new[c] for c in node.children))
        elif node.children:
            new[node] = type(node)(node.pred, *(new[c] for c in node.children))  # type: ignore[attr-defined,call-arg]
        else:
            new[node] = node
    return new[root]


def mutants(root: Expr) -> list[Expr]:
    """The partial with its sign flipped, and with one operation of it damaged."""
    found = [-root if root is not ZERO else Const(1.0)]
    for node in nodes(root):
        if not isinstance(node, Op):
            continue
        a = node.children[0]
        if node.name in ("sub", "div"):
            found.append(rebuilt(root, {node: call(node.name, node.children[1], a)}))
        if node.name in ("mul", "div"):
            found.append(rebuilt(root, {node: a}))
        if node.name in ("neg", "sqrt", "exp", "cos", "sin", "cosh", "sinh"):
            found.append(rebuilt(root, {node: a}))
        if node.name == "add":
            found.append(rebuilt(root, {node: call("sub", *node.children)}))
    return found


def same_function(row: Row, mutant: Expr, original: Expr, points: list[Any]) -> bool:
    """Whether the mutant equals the original to 12 digits at every point in mpmath: then it is no error."""
    with mp.workdps(40):
        for point, (results, _) in points:
            args = [None if x is None else x if isinstance(x, int) else mp.mpf(float(x)) for x in point]
            a, b = (evaluate(e, args, results, "mp") if e is not ZERO else 0 for e in (mutant, original))
            if abs(a - b) > mp.mpf("1e-12") * (1 + abs(b)):
                return False
    return True


def check_mutants(row: Row) -> None:
    """Every damaged version of every partial is told from the right one."""
    points = points_of(row, "f64", 12)
    for j in range(len(row.outputs)):
        for i in row.floats:
            for mutant in mutants(row.partials[j][i]):
                table = [list(of_result) for of_result in row.partials]
                table[j][i] = mutant
                caught = _damaged(lambda t=table: worst_error(row, "f64", points, t))
                assert caught or same_function(row, mutant, row.partials[j][i], points), f"{mutant} survives"


def _damaged(measure: Callable[[], float]) -> bool:
    return not measure() <= TOLERANCE["f64"]


def check_kinks(row: Row) -> None:
    """The partials at each kink are the documented ones."""
    for kink in row.kinks:
        point: list[Any] = [
            int(x) if letter == "i" else np.float64(x) for letter, x in zip(row.signature, kink.at, strict=False)
        ]
        with mp.workdps(30):
            y = [np.float64(primal_at(row.key, point))]
        for i, want in zip(range(len(kink.at)), kink.partials, strict=True):
            if want is None:
                continue
            partial = row.partials[0][i]
            got = 0.0 if partial is ZERO else float(evaluate(partial, point, y))
            assert got == want or (got != got and want != want), f"{row.key}{kink.at}: {got}, documented {want}"


def primal_at(key: str, point: list[Any]) -> float:
    """The primal at a kink, as C defines it there (mpmath has no opinion at 0 ** 0 or atan2(0, 0))."""
    known = {"pow": lambda a, b: float(a) ** b, "atan2": lambda a, b: 0.0, "log": lambda x: -np.inf,
             "atanh": lambda x: np.inf}  # fmt: skip
    if key in known:
        return float(known[key](*point))
    at = [x if isinstance(x, int) else mp.mpf(float(x)) for x in point]
    return float(primal(key, at)[0]) if key != "significand" or point[0] else 0.0
