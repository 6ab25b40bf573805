"""`irgrad tune`: measured, shown, taken away."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from irgrad.engine.codegen.llvm import host_cpu
from irgrad.engine.codegen.machine_costs import host_costs, read_costs, written
from irgrad.engine.codegen.own_sources import forget_costs
from irgrad.interop import tuning
from irgrad.interop.cli import main
from irgrad.rules.errors import LoadError
from irgrad.rules.expressions.costs import SHIPPED, Costs


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the table goes."""
    path = tmp_path / "deep" / "costs.txt"
    monkeypatch.setenv("IRGRAD_COSTS", str(path))
    forget_costs()
    yield path
    monkeypatch.undo()
    forget_costs()


def test_measured_written_shown_and_removed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune"]) == 0
    said = capsys.readouterr().out
    cpu, costs = read_costs(file.read_bytes(), str(file))
    assert cpu == host_cpu() and host_costs() == costs and f"{file}: written" in said
    found = dict(costs.measured)
    assert 1 <= costs.tape < 2000
    assert 1 <= found["fdiv"] < found["pow"] and 1 < found["exp"] < 2000 and found["call"] > 1
    assert main(["tune", "--show"]) == 0
    said = capsys.readouterr().out
    assert f"from {file}" in said and any(row.split() == ["exp", str(found["exp"]), "20"] for row in said.splitlines())
    assert main(["tune", "--reset"]) == 0
    assert f"{file}: removed" in capsys.readouterr().out and not file.exists()
    assert main(["tune", "--reset"]) == 0
    assert "there is no table" in capsys.readouterr().out


def test_a_damaged_table_is_shown_as_an_error_and_measured_anew(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "measure", lambda: tuning.Measured(Costs(9), 0.03, 5.0, 16.0))
    file.parent.mkdir()
    file.write_bytes(b"nonsense")
    assert main(["tune", "--show"]) == 1
    assert "to fix  irgrad tune" in capsys.readouterr().err
    assert main(["tune"]) == 0
    assert host_costs() == Costs(9)
    assert "5 additions in the caches, 16 beyond them" in capsys.readouterr().out


def test_tables_are_measured_anew_over_a_damaged_one(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"nonsense")
    assert tuning.measure().costs.tape >= 1


def test_the_shipped_costs_are_shown_where_nothing_was_measured(
    monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    monkeypatch.setenv("IRGRAD_COSTS", "0")
    forget_costs()
    assert "from the shipped costs" in tuning.shown() and host_costs() is SHIPPED
    with pytest.raises(LoadError, match="no place for this machine's table"):
        tuning.tune()


def test_what_cannot_be_written_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "measure", lambda: tuning.Measured(Costs(9), 0.03, 5.0, 16.0))
    file.parent.write_text("a file in the place of the folder")
    with pytest.raises(LoadError, match="cannot be written"):
        tuning.tune()


def test_a_process_does_not_take_what_was_cached_under_other_costs(tmp_path: Path) -> None:
    """A cached gradient is of its table: tapes differ with it, and go back with it."""
    code = tmp_path / "program.py"
    code.write_text(
        """
import irgrad as ig, numpy as np
lib = ig.load('''#include <math.h>
double f(double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) {
        double y = sqrt(x[i] + 1) / (x[i] + 2); s += exp(y) * sin(y); x[i] = y; }
    return s; }''')
g = ig.grad(lib.kernel("f", "f64(inout f64[n] x, i64 n)"))
g(np.linspace(0.2, 2, 60))
print(g.tape_bytes)
""", encoding="utf-8")  # fmt: skip
    table = tmp_path / "costs.txt"

    def tape(costs: Costs | None) -> int:
        table.unlink(missing_ok=True)
        if costs is not None:
            table.write_bytes(written(costs, host_cpu()))
        environment = {**os.environ, "IRGRAD_COSTS": str(table) if costs else "0", "IRGRAD_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, str(code)], env=environment, capture_output=True, text=True,
                              timeout=300, check=True)  # fmt: skip
        return int(done.stdout)

    shipped, cheap, dear = tape(None), tape(Costs(1)), tape(Costs(5000))
    assert cheap > dear
    assert [tape(Costs(1)), tape(None), tape(Costs(5000))] == [cheap, shipped, dear]
