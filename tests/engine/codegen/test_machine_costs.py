"""This machine's table of costs: where it is, what is read of it, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from irgrad.engine.codegen.llvm import host_cpu
from irgrad.engine.codegen.machine_costs import CostWarning, host_costs, read_costs, written
from irgrad.engine.codegen.own_sources import cost_file, cost_text, forget_costs, source_digest
from irgrad.engine.functions.gradients import grad
from irgrad.engine.kernel.kernel import Kernel
from irgrad.interop.loaders import load
from irgrad.rules.errors import LoadError
from irgrad.rules.expressions.costs import SHIPPED, Costs

SOURCE = """
#include <math.h>
double f(double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) {
        double y = sqrt(x[i] + 1) / (x[i] + 2);
        s += exp(y) * sin(y);
        x[i] = y;
    }
    return s;
}
"""
SIGNATURE = "f64(inout f64[n] x, i64 n)"
Use = Callable[[Costs | bytes | None], None]


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Use]:
    """Make a table that of this machine; None: there is none."""
    path = tmp_path / "costs.txt"

    def write(table: Costs | bytes | None) -> None:
        if table is not None:
            path.write_bytes(written(table, host_cpu()) if isinstance(table, Costs) else table)
        monkeypatch.setenv("IRGRAD_COSTS", "0" if table is None else str(path))
        forget_costs()

    yield write
    monkeypatch.undo()
    forget_costs()


def test_what_is_written_is_read() -> None:
    costs = Costs(21, measured=(("exp", 42), ("call", 30)))
    assert read_costs(written(costs, "znver5"), "file") == ("znver5", costs)


@pytest.mark.parametrize(("text", "where", "because"), [
    (b"", "file", "it is empty"),
    (b"\0" * 99, "file", "does not begin"),
    (b"irgrad-costs 1\ncpu a\ntape 3\n", "file", "end with `end`"),  # cut off
    (b"irgrad-costs 2\ncpu a\ntape 3\nend\n", "file", "does not begin"),
    (b"irgrad-costs 1\ncpu a\nend\n", "file", "does not say"),
    (b"irgrad-costs 1\ntape 3\nend\n", "file", "does not say"),
    (b"irgrad-costs 1\ncpu a\ntape 3\ntape 4\nend\n", "file:4", "names it again"),
    (b"irgrad-costs 1\ncpu a\ntape 3\nfrobnicate 4\nend\n", "file:4", "names nothing"),
    *((f"irgrad-costs 1\ncpu a\ntape {value}\nend\n".encode(), "file:3", "has no cost")
      for value in ("0", "-3", "nan", "1e9", "3.5", "", "9" * 8, "9" * 5000, "\u0663")),
])  # fmt: skip
def test_damaged_and_absurd_tables_are_refused(text: bytes, where: str, because: str) -> None:
    with pytest.raises(LoadError) as caught:
        read_costs(text, "file")
    assert caught.value.where == where and because in (caught.value.because or "")
    assert all(way in (caught.value.fix or "") for way in ("irgrad tune", "--reset", "IRGRAD_COSTS=0"))


def test_without_a_table_the_shipped_costs_are_used(
    use: Use, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(None)
    before = source_digest()
    assert host_costs() is SHIPPED and cost_file() is None
    monkeypatch.delenv("IRGRAD_COSTS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    forget_costs()
    assert cost_file() == tmp_path / "none" / "irgrad" / "costs.txt"
    assert cost_text() is None and host_costs() is SHIPPED and source_digest() == before


def test_a_named_file_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, use: Use, tmp_path: Path) -> None:
    use(None)
    monkeypatch.setenv("IRGRAD_COSTS", str(tmp_path / "none"))
    forget_costs()
    with pytest.raises(LoadError, match="table of costs cannot be used"):
        host_costs()


def test_a_folder_in_its_place_is_refused(monkeypatch: pytest.MonkeyPatch, use: Use, tmp_path: Path) -> None:
    use(None)
    monkeypatch.setenv("IRGRAD_COSTS", str(tmp_path))
    forget_costs()
    with pytest.raises(LoadError, match="table of costs cannot be used"):
        host_costs()


def test_a_table_of_another_cpu_is_not_used_and_said_so(use: Use) -> None:
    use(written(Costs(3), "abacus"))
    with pytest.warns(CostWarning, match="measured on another CPU .`abacus`"):
        assert host_costs() is SHIPPED


def test_the_key_of_programs_follows_from_the_table(use: Use) -> None:
    keys = set()
    for table in (None, Costs(27), Costs(29), Costs(27, measured=(("exp", 3),))):
        use(table)
        keys.add(load(SOURCE).kernel("f", SIGNATURE).primal.key)
    assert len(keys) == 4


def test_a_dear_tape_holds_less_and_every_table_gives_the_same_gradient(use: Use) -> None:
    """One process after the other would find the programs in the same disk cache: none is served under other costs."""
    x, step = np.linspace(0.2, 2, 60), 1e-6
    tapes, gradients = [], []
    for table in (Costs(1), None, Costs(5000)):
        use(table)
        kernel = load(SOURCE).kernel("f", SIGNATURE)
        tapes.append(_tape(kernel, x))
        gradients.append(grad(kernel)(x))
    assert tapes[0] > tapes[2]
    assert tapes[0] >= tapes[1] >= tapes[2]
    for gradient in gradients:
        np.testing.assert_allclose(gradient, gradients[1], rtol=1e-13)
    kernel = load(SOURCE).kernel("f", SIGNATURE)
    for i in (0, 30, 59):
        moved = [kernel(x + step * sign * (np.arange(60) == i)) for sign in (1, -1)]
        slope = (_value(moved[0]) - _value(moved[1])) / (2 * step)
        np.testing.assert_allclose(gradients[0][i], slope, rtol=1e-6)


def test_a_damaged_table_stops_derivatives_and_no_values(use: Use) -> None:
    use(b"irgrad-costs 1\ncpu a\ntape much\nend\n")
    kernel = load("double g(double x) { return x * x * 17; }").kernel("g")
    assert kernel(2.0) == 68
    with pytest.raises(LoadError, match="table of costs cannot be used"):
        grad(kernel)(2.0)


def _value(result: object) -> float:
    return float(result[0] if isinstance(result, tuple) else result)  # type: ignore[arg-type]


def _tape(kernel: Kernel, x: np.ndarray) -> int:
    derivative = grad(kernel)
    derivative(x)
    return int(derivative.tape_bytes)
