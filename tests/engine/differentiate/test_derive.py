"""The entrance: scratch arguments, both modes against each other, derivatives of derivatives, determinism."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from handwritten.made import OUT, Made, asked, gradient, make, module_of

from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.text.validate import validate
from irgrad.engine.pipeline.derivatives import derive

KERNEL = """
static double g(double x, double y) { return x > y ? sin(x) * y : exp(y) - x; }
static double (*const table[2])(double, double) = {g, atan2};
void f(double *x, double *w, long *n, double *o) {
    double *t = malloc(*n * sizeof(double));
    double s = 0;
    for (long i = 0; i < *n; i++) t[i] = x[i] * (i ? t[i - 1] : 1.0);
    for (long i = 0; i < *n; i++) for (long j = 0; j < i; j++) s += g(t[i], x[j]) * w[j] / (1 + s * s);
    free(t);
    *o = s;
}"""
X = np.linspace(0.4, 1.4, 6)
W = np.linspace(-1, 1, 6)
N = np.array([6])


def test_one_parameter_per_argument_and_shadow() -> None:
    made = make(KERNEL, "f", "reverse", ["dup", "const", "const", "dup"])
    assert len(made.function.args) == 6
    assert str(made.function.ftype.ret) == "void"


def test_memory_that_needs_a_shadow_is_asked_for_as_scratch() -> None:
    """t is a buffer of the caller that only intermediate results pass through."""
    source = """
    void f(double *x, double *t, double *o) { t[0] = x[0] * x[0]; t[1] = t[0] * x[1]; *o = t[1] * t[0]; }"""
    (dx, _), made = gradient(source, "f", "dcd", np.array([2.0, 3.0]), np.zeros(2), OUT)
    if made.derived.scratch:
        assert made.derived.scratch == (1,)
        assert len(made.function.args) == 6
    np.testing.assert_allclose(dx, [4 * 8.0 * 3.0, 16.0])


def test_the_modes_agree() -> None:
    rng = np.random.default_rng(0)
    v, vw = rng.uniform(-1, 1, (2, 6))
    o, to = np.zeros(1), np.zeros(1)
    make(KERNEL, "f", "forward", ["dup", "dup", "const", "dup"])(X, v, W, vw, N, o, to)
    (dx, dw, do), _made = gradient(KERNEL, "f", "ddcd", X, W, N, OUT)
    assert abs(to[0] - (dx @ v + dw @ vw)) < 1e-13 * max(1, abs(to[0]))
    assert do[0] == 0.0


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_output_is_valid_ir(mode: str) -> None:
    made = make(KERNEL, "f", mode, ["dup", "dup", "const", "dup"])
    validate(read(made.text, roots=[made.derived.name]))


def test_a_derivative_can_be_differentiated_again() -> None:
    """Forward over reverse: the Hessian of a quartic, in closed form."""
    from irgrad.engine.codegen.prepare import prepare

    source = "void f(double *x, double *o) { double s = x[0] * x[1]; *o = s * s + x[1] * x[1] * x[1]; }"
    first = make(source, "f", "reverse", ["dup", "dup"])
    module = read(prepare(to_text(first.module), [first.derived.name]), roots=[first.derived.name])
    # slots of the reverse: x, x', o, o'; directions for x, tangents for all the others
    second = Made(module, derive(module, asked(first.derived.name, "forward", ["dup"] * 4)))
    x = np.array([1.5, -0.5])
    hessian = np.array([[2 * x[1] ** 2, 4 * x[0] * x[1]], [4 * x[0] * x[1], 2 * x[0] ** 2 + 6 * x[1]]])
    for v in np.eye(2):
        gx, hv = np.zeros(2), np.zeros(2)
        second(x, v, gx, hv, np.zeros(1), np.zeros(1), np.ones(1), np.zeros(1))
        np.testing.assert_allclose(gx, [2 * x[0] * x[1] ** 2, 2 * x[0] ** 2 * x[1] + 3 * x[1] ** 2], rtol=1e-15)
        np.testing.assert_allclose(hv, hessian @ v, rtol=1e-14)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("loop", ["for (long i = 0; i < *n; i++)", "for (long i = 0; i < *n && s * s < 1e6; i++)"])
def test_a_derivative_with_a_tape_can_be_differentiated_again(mode: str, loop: str) -> None:
    """A Hessian-vector product, forward over reverse and reverse over reverse, with arrays and with records."""
    from irgrad.engine.codegen.prepare import prepare

    source = f"""
    void f(double *x, long *n, double *o) {{
        double *t = malloc(8), s = x[0];
        {loop} {{ *t = sin(s * x[1]); s = s * x[2] + *t / (s * s + 1); }}
        free(t);
        *o = s;
    }}"""
    x, v, n = np.array([0.4, 1.1, 0.7]), np.array([0.3, -1.0, 0.5]), np.array([12])
    first = make(source, "f", "reverse", ["dup", "const", "dup"])

    def slope(at: np.ndarray) -> np.ndarray:
        dx = np.zeros(3)
        first(at, dx, n, np.zeros(1), np.ones(1))
        return dx

    h = 1e-3
    want = (8 * (slope(x + h * v) - slope(x - h * v)) - (slope(x + 2 * h * v) - slope(x - 2 * h * v))) / (12 * h)
    module = read(prepare(to_text(first.module), [first.derived.name]), roots=[first.derived.name])
    second = Made(module, derive(module, asked(first.derived.name, mode, ["dup", "dup", "const", "dup", "dup"])))
    got = np.zeros(3)
    for _ in range(3):  # the tapes of both orders are given back and used again
        shadow_of_x, shadow_of_dx = (v.copy(), got) if mode == "forward" else (got, v.copy())
        got[:] = 0
        second(x, shadow_of_x, np.zeros(3), shadow_of_dx, n, np.zeros(1), np.zeros(1), np.ones(1), np.zeros(1))
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_nothing_active_is_nothing_to_do() -> None:
    made = make(KERNEL, "f", "reverse", ["const", "const", "const", "const"])
    assert len(made.function.args) == 4
    assert made.tape_bytes() == 0, "nothing has run"
    o, want = np.zeros(1), np.zeros(1)
    made(X, W, N, o)
    make(KERNEL, "f", "forward", ["const"] * 4)(X, W, N, want)
    assert o[0] == want[0] != 0
    assert made.tape_bytes() < 64, "at most the note that t is freed later"


def texts() -> str:
    """The IR of both derivatives of KERNEL."""
    from irgrad.engine.codegen.prepare import prepare
    from irgrad.engine.pipeline.derivatives import link_runtime

    text = to_text(module_of(KERNEL, "f", "-g0"))
    out = []
    for mode in ("forward", "reverse"):
        module = read(prepare(text, ["f"]), roots=["f"])
        derive(module, asked("f", mode, ["dup", "dup", "const", "dup"]))
        out.append(link_runtime(to_text(module)))
    lines = [line for text in out for line in text.splitlines()]
    return "\n".join(line for line in lines if "!DIFile" not in line and "source_filename" not in line)  # scratch paths


@pytest.mark.long
def test_the_ir_does_not_depend_on_the_hash_seed() -> None:
    """Byte for byte the same text in processes with different hash seeds (the disk cache is keyed by it)."""
    file = Path(__file__).resolve()
    program = (
        "import hashlib, sys\n"
        f"sys.path[:0] = [{str(file.parents[2])!r}, {str(file.parent)!r}]\n"
        "from test_derive import texts\n"
        "print(hashlib.sha256(texts().encode()).hexdigest())\n"
    )
    found = set()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout.strip())
    assert len(found) == 1


def test_and_not_on_what_was_derived_before() -> None:
    assert texts() == texts()
