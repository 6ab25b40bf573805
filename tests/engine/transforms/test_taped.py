"""The two halves of a root, run apart on buffers that have moved, against complex steps and differences."""

from __future__ import annotations

import ctypes
import json
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irgrad.engine.ir.printer import to_text
from irgrad.engine.transforms.room import Room
from irgrad.engine.transforms.taped import Pair, halves, reverse_name

from .made import Made, module_of

N = 7
X = np.linspace(0.3, 1.4, N)
W = np.cos(np.arange(1.0, N + 1))


class Halves:
    """Both functions of `void f(double *x, double *y, long *n)` as machine code."""

    def __init__(self, source: str, width: int = 1, roles: str = "ioc") -> None:
        self.module = module_of(source, "f")
        self.roles = roles
        outputs = [i for i, role in enumerate(roles) if role in "ob"]
        args = ["const" if role == "c" else "dup" for role in roles]
        self.pair: Pair = halves(self.module, "f", args, outputs, width=width)
        self.note: dict[str, str] = json.loads(self.pair.note)

    def bytes(self, n: int) -> int:
        found = Room.from_text(self.note["room"]).bytes({len(self.roles) - 1: n})
        assert found is not None
        return found

    def half(self, name: str) -> Made:
        made = Made(self.module, self.pair)  # type: ignore[arg-type]
        made.derived = Named(name)  # type: ignore[assignment]
        return made


class Named:
    """What `Made` wants to know."""

    def __init__(self, name: str) -> None:
        self.name = name


def _read_only(data: np.ndarray) -> tuple[np.ndarray, Any]:
    """A copy at another address in pages that cannot be written."""
    memory = mmap.mmap(-1, max(data.nbytes, 1))
    copy = np.frombuffer(memory, np.uint8, data.nbytes)
    copy[:] = data
    address = ctypes.c_void_p(copy.__array_interface__["data"][0])
    assert ctypes.CDLL(None).mprotect(address, ctypes.c_size_t(max(data.nbytes, 1)), 1) == 0
    return copy, memory


def _run(made: Halves, x: np.ndarray, cotangents: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """y, and the gradient for each cotangent from a tape that was made once."""
    n = len(x)
    raw = np.full(made.bytes(n) + 192, 0xA5, np.uint8)
    first = 64 - raw.ctypes.data % 64
    tape = raw[first : first + made.bytes(n)]
    y, size, count = np.zeros(n), np.array([tape.nbytes]), np.array([n])
    made.half(made.pair.name)(x.copy(), y, count, tape, size)
    assert (raw[:first] == 0xA5).all() and (raw[first + tape.nbytes :] == 0xA5).all()
    moved, memory = _read_only(tape)
    tape[:] = 0x5A
    reverse, gradients = made.half(reverse_name(made.pair.note)), []
    for w in cotangents:
        shape = w.shape[1:]
        dx, dy = np.zeros((n, *shape)), w.copy()
        reverse(x.copy(), dx, dy, count.copy(), moved)
        gradients.append(dx)
    del moved, memory
    return y, gradients


def _complex_step(f: Callable[[Any], Any], x: np.ndarray, w: np.ndarray) -> np.ndarray:
    steps = [x + 1e-40j * row for row in np.eye(len(x))]
    return np.array([np.dot(w, np.imag(f(z))) / 1e-40 for z in steps])


def recurrence(x: Any) -> Any:
    s, out = 0.5, []
    for v in x:
        s = np.sin(s * v) + v
        out.append(s)
    return np.array(out)


def in_place(x: Any) -> Any:
    y = np.array(x)
    for i in range(1, len(y)):
        y[i] = y[i] * np.exp(-y[i - 1])
    return y


def with_work(x: Any) -> Any:
    work = np.array([np.exp(v) for v in x])
    for i in range(1, len(x)):
        work[i] = work[i] * work[i - 1] * x[i]
    return work * work


def nested(x: Any) -> Any:
    out = []
    for v in x:
        t = v
        for k in range(len(x)):
            t = np.sin(t) * (1 + 0.1 * k) + x[k] * t
        out.append(t)
    return np.array(out)


def by_sign(x: Any) -> Any:
    out, s = [], 0.1
    for v in x:
        s = np.exp(-s) * v if np.real(v * s) > 0.4 else np.sin(s) + v
        out.append(s)
    return np.array(out)


def ring(x: Any) -> Any:
    y, v = np.array(x), 0 * np.array(x)
    for _ in range(3):
        v = v - 0.1 * (np.sin(y) + 0.1 * (y - np.roll(y, -1)))
        y = y + 0.1 * v
    return y


SOURCES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "recurrence": ("""void f(double *x, double *y, long *n) {
        double s = 0.5;
        for (long i = 0; i < *n; i++) { s = sin(s * x[i]) + x[i]; y[i] = s; } }""", recurrence),
    "outputs are overwritten": ("""void f(double *x, double *y, long *n) {
        for (long i = 0; i < *n; i++) y[i] = x[i];
        for (long i = 1; i < *n; i++) y[i] *= exp(-y[i - 1]); }""", in_place),
    "memory from malloc": ("""void f(double *x, double *y, long *n) {
        double *work = malloc(*n * sizeof *work);
        for (long i = 0; i < *n; i++) work[i] = exp(x[i]);
        for (long i = 1; i < *n; i++) work[i] *= work[i - 1] * x[i];
        for (long i = 0; i < *n; i++) y[i] = work[i] * work[i];
        free(work); }""", with_work),
    "memory on the stack": ("""void f(double *x, double *y, long *n) {
        double work[64];
        for (long i = 0; i < *n; i++) work[i] = exp(x[i]);
        for (long i = 1; i < *n; i++) work[i] *= work[i - 1] * x[i];
        for (long i = 0; i < *n; i++) y[i] = work[i] * work[i]; }""", with_work),
    "memory of variable size": ("""void f(double *x, double *y, long *n) {
        double work[*n + 1];
        for (long i = 0; i < *n; i++) work[i] = exp(x[i]);
        for (long i = 1; i < *n; i++) work[i] *= work[i - 1] * x[i];
        for (long i = 0; i < *n; i++) y[i] = work[i] * work[i]; }""", with_work),
    "a nest of loops": ("""void f(double *x, double *y, long *n) {
        for (long i = 0; i < *n; i++) {
          double t = x[i];
          for (long k = 0; k < *n; k++) t = sin(t) * (1 + 0.1 * k) + x[k] * t;
          y[i] = t; } }""", nested),
    "an index that is carried along": ("""void f(double *x, double *y, long *n) {
        double v[64] = {0};
        for (long i = 0; i < *n; i++) y[i] = x[i];
        for (long k = 0; k < 3; k++) {
          for (long i = 0; i < *n; i++) v[i] -= 0.1 * (sin(y[i]) + 0.1 * (y[i] - y[(i + 1) % *n]));
          for (long i = 0; i < *n; i++) y[i] += 0.1 * v[i]; } }""", ring),
    "branches on values": ("""void f(double *x, double *y, long *n) {
        double s = 0.1;
        for (long i = 0; i < *n; i++) {
          if (x[i] * s > 0.4) s = exp(-s) * x[i]; else s = sin(s) + x[i];
          y[i] = s; } }""", by_sign),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_gradients_of_a_tape_that_was_moved(name: str) -> None:
    """One tape serves two cotangents; it lies in read-only memory elsewhere, as do the arguments."""
    source, f = SOURCES[name]
    made = Halves(source)
    y, gradients = _run(made, X, [W, W * W])
    np.testing.assert_allclose(y, f(X), rtol=1e-13)
    for w, gradient in zip((W, W * W), gradients, strict=True):
        np.testing.assert_allclose(gradient, _complex_step(f, X, w), rtol=1e-11, atol=1e-12)
    assert made.bytes(N) > 0


def test_lanes_share_the_tape_of_one() -> None:
    source, f = SOURCES["memory from malloc"]
    one, four = Halves(source), Halves(source, width=4)
    assert one.note["layout"] == four.note["layout"] != Halves(SOURCES["recurrence"][0]).note["layout"]
    w = np.stack([W, W * W, np.sin(W), np.ones(N)], axis=1)
    _, (wide,) = _run(four, X, [w])
    for k in range(4):
        np.testing.assert_allclose(wide[:, k], _complex_step(f, X, w[:, k]), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_short_loops(n: int) -> None:
    _, (gradient,) = _run(Halves(SOURCES["recurrence"][0]), X[:n], [W[:n]])
    np.testing.assert_allclose(gradient, _complex_step(recurrence, X[:n], W[:n]), rtol=1e-12)


def test_a_branch_on_an_address_is_remembered() -> None:
    """What was decided by an address must not be decided again where the buffers lie elsewhere."""
    made = Halves("""void f(double *x, double *y, long *n) {
        double s = x[0];
        if (((unsigned long)x >> 3) & 1) for (long i = 0; i < *n; i++) { s = sin(s) * x[i]; y[i] = s; }
        else for (long i = 0; i < *n; i++) { s = exp(-s * x[i]); y[i] = s; } }""")  # fmt: skip

    def f(x: Any, odd: bool) -> Any:
        s, out = x[0], []
        for v in x:
            s = np.sin(s) * v if odd else np.exp(-s * v)
            out.append(s)
        return np.array(out)

    room = np.zeros(N + 3)
    start = room.ctypes.data // 8 % 2
    for odd in (False, True):
        at = (start + odd) % 2
        there, elsewhere = room[at : at + N], np.zeros(N + 3)
        there[:] = X
        tape, count = np.zeros(made.bytes(N) + 64, np.uint8), np.array([N])
        tape = tape[-tape.ctypes.data % 64 :][: made.bytes(N)]
        y = np.zeros(N)
        made.half(made.pair.name)(there, y, count, tape, np.array([tape.nbytes]))
        np.testing.assert_allclose(y, f(X, odd), rtol=1e-13)
        other = (elsewhere.ctypes.data // 8 + odd + 1) % 2
        moved = elsewhere[other : other + N]
        moved[:] = X
        assert (moved.ctypes.data // 8) % 2 != there.ctypes.data // 8 % 2
        dx = np.zeros(N)
        made.half(reverse_name(made.pair.note))(moved, dx, W.copy(), count, tape)
        np.testing.assert_allclose(dx, _complex_step(lambda z, o=odd: f(z, o), X, W), rtol=1e-11)


REFUSED = {
    "cannot be counted before it": """void f(double *x, double *y, long *n) {
        double s = x[0];
        while (s > 0.1) s = s * sin(s);
        y[0] = s; }""",
    "do not follow from integer arguments": """void f(double *x, double *y, long *n) {
        double s = x[0];
        for (long i = 0; i < (long)x[1]; i++) s = sin(s);
        y[0] = s; }""",
    "an address would have to be kept": """NOINLINE static double deep(double a, long k) {
        return k <= 0 ? a : sin(deep(a * a, k - 1)) * deep(a + 1, k - 2); }
      void f(double *x, double *y, long *n) { y[0] = deep(x[0], *n); }""",
    "allocated in a loop": """void f(double *x, double *y, long *n) {
        for (long i = 0; i < *n; i++) {
          double *t = malloc(*n * 8);
          for (long k = 0; k < *n; k++) t[k] = exp(x[k]);
          for (long k = 0; k < *n; k++) y[i] += t[k] * t[*n - 1 - k];
          free(t); } }""",
}


@pytest.mark.parametrize("because", REFUSED)
def test_what_does_not_fit_is_refused_with_its_reason(because: str) -> None:
    made = Halves(REFUSED[because])
    assert made.pair.name == "" and because in made.note["because"]


def test_the_reverse_half_runs_nothing_of_the_primal() -> None:
    made = Halves(SOURCES["recurrence"][0])
    text = to_text(made.module)
    forward, _, reverse = text[text.index(f"@{made.pair.name}") :].partition(f"@{reverse_name(made.pair.note)}")
    assert forward.count("call double @llvm.sin") == 1 and "@llvm.cos" not in forward
    body = reverse[: reverse.index("\n}")]
    assert "@llvm.sin" not in body and body.count("@llvm.cos") == 1


def test_variables_are_read_when_the_primal_runs() -> None:
    """Somebody may have written them before the reverse sweep."""
    made = Halves("""extern double scale;
      void f(double *x, double *y, long *n) { for (long i = 0; i < *n; i++) y[i] = sin(scale * x[i]) * x[i]; }""")
    text = to_text(made.module)
    forward, _, reverse = text[text.index(f"@{made.pair.name}") :].partition(f"@{reverse_name(made.pair.note)}")
    assert "@scale" in forward and "@scale" not in reverse[: reverse.index("\n}")]
