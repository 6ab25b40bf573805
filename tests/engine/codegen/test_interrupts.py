"""Signals during native calls, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

_HEAD = """
import os, signal, threading, time
import irgrad as ig, numpy as np

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background

lib = ig.load('''
#include <math.h>
double scan(const double *x, long n, long m) {
    double s = 0;
    for (long t = 0; t < m; t++)
        for (long i = 0; i < n; i++) s = sin(s + x[i]);
    return s;
}
double logistic(double r, long m) {
    double x = 0.3;
    for (long t = 0; t < m; t++) x = r * x * (1 - x);
    return x;
}
''')
scan, logistic = lib.kernel("scan", "f64(f64[n] x, i64 n, i64 m)"), lib.kernel("logistic", "f64(f64 r, i64 m)")
x = np.ones(20)
LONG = 10**10
scan(x, 1), logistic(3.5, 1)  # compiled: a signal meets native code

def after(seconds, number=signal.SIGINT):
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()
    return time.monotonic() + seconds
"""


def _run(code: str, **variables: str) -> str:
    got = subprocess.run([sys.executable, "-c", _HEAD + code], capture_output=True, text=True, timeout=120,
                         check=False, env={**os.environ, **variables})  # fmt: skip
    assert got.returncode == 0, got.stderr
    return got.stderr


def test_an_interrupt_is_answered_within_a_second_and_the_next_call_works() -> None:
    _run("""
first = [scan(x, 10), ig.grad(scan)(x, 10).tolist(), logistic(3.5, 100), ig.grad(logistic)(3.5, 10)]
calls = [lambda: scan(x, LONG), lambda: logistic(3.5, LONG), lambda: ig.grad(scan)(x, 10**6 * 3),
         lambda: ig.grad(logistic)(3.5, 2 * 10**8)]
for call in calls:
    due = after(0.3)
    try:
        call()
    except KeyboardInterrupt:
        assert time.monotonic() - due < 1, time.monotonic() - due
    else:
        raise SystemExit("not stopped")
    assert threading.current_thread() is threading.main_thread()
again = [scan(x, 10), ig.grad(scan)(x, 10).tolist(), logistic(3.5, 100), ig.grad(logistic)(3.5, 10)]
assert first == again
assert ig.release() > 0 and ig.release() == 0  # nothing of the tape is lost
""")


def test_what_a_handler_raises_is_raised_and_one_that_does_not_lets_it_run() -> None:
    _run("""
class Due(Exception): pass
def raise_due(number, frame): raise Due("now")
signal.signal(signal.SIGALRM, raise_due)
after(0.3, signal.SIGALRM)
try:
    scan(x, LONG)
except Due as error:
    assert str(error) == "now"
else:
    raise SystemExit("not stopped")
seen = []
signal.signal(signal.SIGINT, lambda number, frame: seen.append(time.monotonic()))
begin = time.monotonic(); logistic(3.5, 10**7); second = time.monotonic() - begin
steps = int(10**7 * 1.5 / second)
after(0.3)
begin = time.monotonic()
assert 0 < logistic(3.5, steps) < 1
assert len(seen) == 1 and seen[0] < time.monotonic() - 0.3, "seen while it ran, and it ran to its end"
""")


def test_calls_of_other_threads_run_on_and_the_main_thread_answers() -> None:
    _run("""
steps, given = 10**8, []
worker = threading.Thread(target=lambda: given.append(logistic(3.5, steps)), daemon=True)
after(0.2)
worker.start()
try:
    scan(x, LONG)
except KeyboardInterrupt:
    pass
worker.join()
assert given == [logistic(3.5, steps)]
""")


def test_functions_of_python_and_child_processes() -> None:
    _run("""
def inner():
    return logistic(3.5, LONG)
after(0.3)
try:
    inner()
except KeyboardInterrupt as error:
    assert error.__traceback__ is not None
else:
    raise SystemExit("not stopped")
if os.fork() == 0:  # in a child the flag is set again
    after(0.3)
    try:
        scan(x, LONG)
    except KeyboardInterrupt:
        os._exit(0)
    os._exit(1)
assert os.wait()[1] == 0
""")


def test_a_long_call_tells_where_it_is() -> None:
    said = _run("""
after(3.0)
try:
    scan(x, LONG)
except KeyboardInterrupt:
    pass
""", IRGRAD_PROGRESS="1")  # fmt: skip
    assert "irgrad: native code has run for 1 s, now in the loop at " in said
    assert said.count("native code has run") == 2  # at one second, and at twice that
    quiet = _run("after(1.6)\ntry: scan(x, LONG)\nexcept KeyboardInterrupt: pass\n", IRGRAD_PROGRESS="0")
    assert "native code" not in quiet


def test_the_place_outlives_the_code_that_was_there() -> None:
    said = _run("""
import gc
from irgrad.engine.codegen import interrupts
after(0.5)
try:
    scan(x, LONG)
except KeyboardInterrupt:
    pass
del scan, logistic, lib
gc.collect()
assert interrupts._tell(1.2) == 2.4
""", IRGRAD_PROGRESS="1")  # fmt: skip
    assert "native code has run for 1 s, now in the loop at " in said


@pytest.mark.parametrize("threads", ["None", "1", "2"])
def test_batches_answer_between_chunks(threads: str) -> None:
    """Without helpers, with them; the next batch is right."""
    _run(f"""
many = np.random.default_rng(0).normal(size=(2000, 20))
made = ig.batch_grad(scan, in_axes=(0, None), threads={threads}, width=1)
wanted = made(many[:300], 3)
due = after(0.3)
try:
    made(many, 6_000)
except KeyboardInterrupt:
    assert time.monotonic() - due < 1, time.monotonic() - due
else:
    raise SystemExit("not interrupted")
assert np.array_equal(made(many[:300], 3), wanted)
""")
