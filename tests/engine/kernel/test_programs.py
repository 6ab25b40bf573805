"""Words of programs: shared, keyed, and taken from disk by a second process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples import sample

import irgrad

SCRIPT = """
import irgrad, irgrad.engine.pipeline.derivatives as d
import sys
real = d.derive
def counted(*args, **kwargs):
    print("derived")
    return real(*args, **kwargs)
d.derive = counted
k = irgrad.load("double f(double x, double y) { return x * x * y; }").kernel("f")
print(float(irgrad.engine.grad(k)(3.0, 2.0)))
"""


def test_words_are_made_once_and_keys_differ() -> None:
    primal = sample("product").primal
    assert primal.vjp((0, 2)) is primal.vjp([2, 0])
    assert primal.vjp((0, 2), 1) is primal.vjp((0, 2)) and primal.vjp((0, 2), 4) is primal.vjp([2, 0], 4)
    programs = (primal, primal.vjp((0, 2)), primal.vjp((1, 2)), primal.jvp((0, 2)), primal.vjp((0, 2), 4),
                primal.vjp((0, 2), 8))  # fmt: skip
    assert len({program.key for program in programs}) == 6


def test_integers_cannot_be_active() -> None:
    with pytest.raises(irgrad.ActivityError, match="`n` has no derivative"):
        sample("cubes").primal.vjp((2,))


def test_a_second_process_does_not_differentiate(tmp_path: Path) -> None:
    env = {**os.environ, "IRGRAD_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True, timeout=120)
        for _ in range(2)
    ]
    assert [run.stdout.split() for run in runs] == [["derived", "12.0"], ["12.0"]]


def test_tape_bytes_are_counted() -> None:
    loop = "for (long i = 0; i < n; i++) s = __builtin_sin(s) * x;"
    source = f"double f(double x, long n) {{ double s = x; {loop} return s; }}"
    kernel = irgrad.load(source).kernel("f")
    gradient = irgrad.engine.grad(kernel)
    gradient(1.3, 1000)
    assert 8000 <= gradient.tape_bytes <= 64000 and kernel.primal.tape_bytes == 0


def test_only_what_a_kernel_reaches_is_read_and_compiled() -> None:
    """A function of the same library that irgrad refuses, and a thousand others, are nothing to it."""
    others = "".join(f"double other{i}(double x) {{ return x * {i}; }}\n" for i in range(1000))
    asm = 'double hostile(double x) { __asm__ volatile("hlt"); return x; }\n'
    library = irgrad.load(
        others + asm + "static double g(double x) { return x * x; }\ndouble f(double x) { return g(x); }"
    )
    kernel = library.kernel("f")
    assert irgrad.engine.grad(kernel)(3.0) == 6.0
    assert "other" not in kernel.primal.stage.text
    with pytest.raises(irgrad.IRInvalid, match="inline assembly"):
        library.kernel("hostile")(1.0)


def test_the_problem_that_a_program_poses() -> None:
    program = sample("product").primal.pullback((0, 2))
    module, request, rules = program.problem()
    assert request.function == sample("product").primal.stage.name
    assert request.derivative == "pullback" and sorted(request.active) == [0, 2]
    assert request.function in module.functions and program.stage.name not in module.functions
    assert rules is None


def test_a_program_can_be_made_again_without_the_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from irgrad.engine.pipeline import derivatives

    program = sample("product").primal.pullback((0, 2))
    before, made = program.stage.text, []
    real = derivatives.derive
    monkeypatch.setattr(derivatives, "derive", lambda *a, **k: made.append(1) or real(*a, **k))
    program.remake()
    assert made == [1] and program.stage.text == before
