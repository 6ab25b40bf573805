"""Signals while XLA runs a kernel, in processes of their own: the call ends and KeyboardInterrupt is raised."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

_HEAD = """
import os, signal, threading, time
import irgrad as ig, jax, jax.numpy as jnp, numpy as np

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background

jax.config.update("jax_enable_x64", True)
lib = ig.load('''
#include <math.h>
static double kept;
double scan(const double *x, long n, long m) {
    double s = 0;
    for (long t = 0; t < m; t++)
        for (long i = 0; i < n; i++) s = sin(s + x[i]);
    return s;
}
double turns(double x, long m) {
    kept = x;
    for (long t = 0; t < m; t++) kept = sin(kept + x);
    return kept;
}
''')
scan, turns = lib.kernel("scan", "f64(f64[n] x, i64 n, i64 m)"), lib.kernel("turns", "f64(f64 x, i64 m)")
x, many, wide = jnp.ones(20), jnp.ones((4000, 20)), jnp.ones((300, 300))
work = lambda: (wide @ wide @ wide).sum()  # XLA runs what is large on a thread of its own

def after(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    return time.monotonic() + seconds

def stopped(call, *args):
    due = after(0.4)
    try:
        try:
            call(*args)
        except Exception as error:
            text = str(error)
            for _ in range(100): pass
            raise SystemExit(f"no KeyboardInterrupt behind {error}")
        raise SystemExit("not stopped")
    except KeyboardInterrupt:
        pass
    assert time.monotonic() - due < 1, time.monotonic() - due
"""


def _run(code: str, **variables: str) -> str:
    got = subprocess.run([sys.executable, "-c", _HEAD + code], capture_output=True, text=True, timeout=120,
                         check=False, env={**os.environ, **variables})  # fmt: skip
    assert got.returncode == 0, got.stderr
    return got.stderr


@pytest.mark.parametrize(("function", "long"), [
    ("jax.jit(lambda m: scan(x, m))", 10**10),
    ("lambda m: scan(x, m)", 10**10),
    ("jax.jit(lambda m: scan(x, m) + work())", 10**10),
    ("jax.jit(lambda m: jax.grad(lambda x: scan(x, m) + work())(x))", 3 * 10**6),
    ("jax.jit(lambda m: turns(x[0], m) + work())", 10**10),
    ("jax.jit(lambda m: jax.vmap(scan, in_axes=(0, None))(many, m))", 10**5),
    ("jax.jit(lambda m: jax.vmap(jax.grad(scan), in_axes=(0, None))(many, m) + work())", 10**4),
])  # fmt: skip
def test_an_interrupt_ends_the_call_and_the_next_is_right(function: str, long: int) -> None:
    _run(f"""
call = {function}
wanted = call(10)
stopped(lambda: jax.block_until_ready(call({long})))
assert np.array_equal(call(10), wanted)
""")


def test_a_call_in_the_background_ends_too() -> None:
    said = _run("""
call = jax.jit(lambda m: scan(x, m) + work())
call(10).block_until_ready()
result = call(10**10)
def wait():
    while True: time.sleep(0.001)
stopped(wait)
try:
    result.block_until_ready()
except jax.errors.JaxRuntimeError as error:
    assert "CANCELLED: KeyboardInterrupt: a call of `scan` was stopped by a signal" in str(error)
else:
    raise SystemExit("it ran on")
""")
    assert "native code" not in said


def test_a_handler_of_the_users_own_lets_it_run() -> None:
    said = _run("""
call = jax.jit(lambda m: scan(x, m) + work())
call(10).block_until_ready()
begin = time.monotonic(); call(10**6).block_until_ready(); steps = int(1.5e6 / (time.monotonic() - begin))
seen = []
signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
after(0.3)
assert np.isfinite(call(steps))
time.sleep(0.01)
assert seen == [signal.SIGINT]
signal.signal(signal.SIGINT, signal.default_int_handler)
time.sleep(0.7)  # the thread looks again
stopped(lambda: call(10**10).block_until_ready())
""", IRGRAD_PROGRESS="1")  # fmt: skip
    assert "irgrad: native code has run for 1 s, now in the loop at " in said
