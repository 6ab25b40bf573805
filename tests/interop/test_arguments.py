"""Arguments from the command line: sizes, ranges, values, arrays from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad.interop.arguments import Choice, random_arguments, sizes_of
from irgrad.interop.cli import main

SOURCE = """
double decay(const double *x, double dt, long n, int steps) {
    double s = 0;
    for (long i = 0; i < n; i++) { double v = x[i]; for (int t = 0; t < steps; t++) v -= dt * v; s += v; }
    return s;
}
"""
SIGNATURE = "f64(f64[n] x, f64 dt, i64 n, i32 steps)"
DECAY = irgrad.load(SOURCE).kernel("decay", SIGNATURE)


def test_ranges_of_single_arguments() -> None:
    x, dt, steps = random_arguments(DECAY, Choice({"n": 50, "steps": 3}, of=["dt=0:0.02"], bounds=(1.0, 2.0)))
    assert x.shape == (50,) and x.min() >= 1 and x.max() <= 2 and 0 <= dt <= 0.02 and steps == 3


def test_values_and_arrays_of_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=np.arange(4.0), other=np.ones(7, np.float32))
    np.save(tmp_path / "one.npy", np.arange(3))
    by_name = random_arguments(DECAY, Choice({}, [f"x={tmp_path}/data.npz", "dt=0.5", "steps=2"]))
    assert by_name[0].tolist() == [0, 1, 2, 3] and by_name[1:] == [0.5, 2]
    (other, *_) = random_arguments(DECAY, Choice({}, [f"x={tmp_path}/data.npz:other"]))
    assert other.dtype == np.float64 and other.shape == (7,)
    assert random_arguments(DECAY, Choice({}, [f"x={tmp_path}/one.npy"]))[0].tolist() == [0, 1, 2]
    assert random_arguments(DECAY, Choice({"n": 2}, ["x=1.5"]))[0].tolist() == [1.5, 1.5]


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        (Choice({}, ["dtt=1"]), "the arguments are `x`, `dt`"),
        (Choice({}, ["dt"]), "--set dt=0.01"),
        (Choice({}, ["dt=fast"]), "takes a number or a file"),
        (Choice({}, ["x=none.npy"]), "there is no file"),
        (Choice({}, of=["dt=2:1"]), "--range dt=1:2"),
        (Choice({}, of=["dt=2"]), "--range dt=0.5:1.5"),
        (Choice({}, of=["y=1:2"]), "names nothing"),
        (Choice({}, bounds=(2.0, 1.0)), "--range 1 2"),
        (Choice({"m": 3}), "--size n=3"),
    ],
)
def test_what_cannot_be_meant(choice: Choice, says: str) -> None:
    with pytest.raises(irgrad.IRGradError) as caught:
        random_arguments(DECAY, choice)
    assert says in str(caught.value)


def test_files_that_hold_something_else(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", y=np.ones(2))
    with pytest.raises(irgrad.LoadError, match="it holds `y`"):
        random_arguments(DECAY, Choice({}, [f"x={tmp_path}/data.npz"]))
    (tmp_path / "bad.npy").write_text("no array", encoding="utf-8")
    with pytest.raises(irgrad.LoadError, match="is no file of arrays"):
        random_arguments(DECAY, Choice({}, [f"x={tmp_path}/bad.npy"]))


def test_sizes() -> None:
    assert sizes_of(["n=16", "k=-1"]) == {"n": 16, "k": -1}
    with pytest.raises(irgrad.SignatureError, match="--size n=16"):
        sizes_of(["n"])


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "decay.c"
    file.write_text(SOURCE, encoding="utf-8")
    words = ["check", str(file), "decay", "--sig", SIGNATURE]
    assert main([*words, "--range", "dt=0:0.02", "--range", "1", "2", "--set", "steps=10"]) == 0
    assert "the derivatives agree" in capsys.readouterr().out
    assert main([*words, "--set", "steps=ten"]) == 1
    assert main(words[:3]) == 1
    assert "--sig 'f64(f64[n] x, f64 dt, i64 n, i32 steps)'" in capsys.readouterr().err
