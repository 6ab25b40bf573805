"""The tape of an iteration is reserved before the loop where its bytes are known there, and used again elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import Made, asked, make

from irgrad.engine.ir.model import Function
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.text.validate import validate
from irgrad.engine.normalise.segments import Choice
from irgrad.engine.pipeline.derivatives import derive

SOURCE = """
void f(double *x, long *n, long *m, double *o) {
    double s = 0;
    for (long i = 0; i < *n; i++) {
        double a = x[i], b = 0;
        for (long j = 0; j < COUNT; j++) { a = sin(a) + x[j % 3]; b += a * a; }
        s += b;
    }
    *o = s;
}"""
LINE = "8"  # behind the lines of a header
COUNTS = {
    "as many for all": ("*m", True),
    "as what is read says": ("(x[1] > 0.5 ? *m : 0)", False),
    "another one each": ("*m + i % 4", False),
}
ACTIVE = ["dup", "const", "const", "dup"]


def _made(count: str, *, fused: bool = True) -> Made:
    chosen = ((LINE, Choice(fused=True)),) if fused else ()
    return make(SOURCE.replace("COUNT", count), "f", "reverse", ACTIVE, "-g", checkpoint=chosen)


def _one(made: Made) -> Function:
    return next(fn for name, fn in made.module.functions.items() if ".vjp.f.fused.one." in name)


def _slope(made: Made, x: np.ndarray, n: int, m: int) -> np.ndarray:
    dx = np.zeros_like(x)
    made(x, dx, np.array([n]), np.array([m]), np.zeros(1), np.ones(1))
    return dx


@pytest.mark.parametrize("name", COUNTS)
def test_gradients_and_what_an_iteration_reserves(name: str) -> None:
    count, before = COUNTS[name]
    made, plain = _made(count), _made(count, fused=False)
    taken = [i.callee_name for i in _one(made).instructions() if i.is_call and "tape." in (i.callee_name or "")]
    assert ("irgrad.tape.alloc" in taken) is not before
    assert ("irgrad.tape.reuse" in taken) is not before
    assert "irgrad.tape.acquire" not in taken and "irgrad.tape.finish" not in taken
    validate(read(to_text(made.module), roots=[made.derived.name]))
    for x in (np.linspace(0.1, 1, 50), np.linspace(1, 0.1, 50)):
        for n, m in ((0, 5), (1, 0), (50, 5), (50, 0)):
            np.testing.assert_allclose(_slope(made, x, n, m), _slope(plain, x, n, m), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", COUNTS)
def test_the_tape_is_that_of_one_iteration(name: str) -> None:
    made = _made(COUNTS[name][0])
    used = []
    for n in (50, 500):
        _slope(made, np.linspace(0.1, 1, 500), n, 64)
        used.append(made.tape_bytes())
    assert used[0] == used[1] < 4 * 68 * 8 + 200


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", COUNTS)
def test_differentiated_again(name: str, mode: str) -> None:
    """In reverse mode the tapes of all iterations are needed at once: none is used again."""
    from irgrad.engine.codegen.prepare import prepare

    x, v = np.linspace(0.3, 1, 20), np.cos(np.arange(20.0))
    first = _made(COUNTS[name][0])
    step = 1e-4
    wanted = (_slope(first, x + step * v, 20, 5) - _slope(first, x - step * v, 20, 5)) / (2 * step)
    module = read(prepare(to_text(first.module), [first.derived.name]), roots=[first.derived.name])
    active = ["dup", "dup", "const", "const", "dup", "dup"]
    second = Made(module, derive(module, asked(first.derived.name, mode, active)))
    got = np.zeros(20)
    of_x, of_dx = (v.copy(), got) if mode == "forward" else (got, v.copy())
    second(
        x, of_x, np.zeros(20), of_dx, np.array([20]), np.array([5]), np.zeros(1), np.zeros(1), np.ones(1), np.zeros(1)
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
