"""Where the system gives no memory for a tape the call raises, the process goes on, and nothing is lost."""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import irgrad
from irgrad.engine.runtime.tape_memory import out_of_tape
from irgrad.interop.cli import main

HEAD = r"""
import resource, sys, threading
import numpy as np
import irgrad as ig
from irgrad import engine
SOURCE = '''
#include <math.h>
#include <stdlib.h>
double counted(double x, double p, long n) {
  double y = x;
  for (long t = 0; t < n; t++) y += 1e-9 * sin(y * p) * y;
  return y;
}
double left(double x, double p, long n) {
  double y = x; long t = 0;
  while (y < 1e300 && t++ < n) y += 1e-9 * sin(y * p) * y;
  return y;
}
__attribute__((noinline)) static double part(double y, double p, long n) {
  double *w = malloc(800); double s = 0;
  for (int i = 0; i < 100; i++) w[i] = sin(y * p + i);
  for (int i = 0; i < 100; i++) s += w[i] * w[99 - i];
  free(w);
  return n > 0 && s > 1e9 ? part(s, p, n - 1) : s;
}
double called(double x, double p, long n) {
  double y = x;
  for (long t = 0; t < n; t++) y += 1e-9 * part(y, p, 3);
  return y;
}
'''
library = ig.load(SOURCE)
signature = "f64(f64 x, f64 p, i64 n)"
kernels = {name: library.kernel(name, signature, tape_memory=None) for name in ("counted", "left", "called")}
def limit(room):
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
def refused(call):
    try:
        call()
    except ig.TapeMemoryError as error:
        assert isinstance(error, MemoryError) and isinstance(error, ig.IRGradError)
        return str(error)
    raise SystemExit("no error was raised")
FEW, MANY = 1000, 10**9
"""


def _run(body: str) -> None:
    done = subprocess.run([sys.executable, "-c", HEAD + body], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_single_calls() -> None:
    _run("""
gradients = {name: engine.grad(k, argnums=(0, 1)) for name, k in kernels.items()}
before = {name: g(1.0, 0.5, FEW) for name, g in gradients.items()}
limit(200 << 20)
for turn in range(3):
    text = refused(lambda: gradients["counted"](1.0, 0.5, MANY))
    for words in ("tape of `counted`", "8,000,000,000 bytes for 1,000,000,000 iterations of the loop at <string>:6:"):
        assert words in text, text
    text = refused(lambda: gradients["left"](1.0, 0.5, MANY))
    assert "for an iteration of the loop at <string>:11:" in text, text
    refused(lambda: gradients["called"](1.0, 0.5, MANY // 100))
    refused(lambda: engine.value_and_grad(kernels["counted"])(1.0, 0.5, MANY))
    refused(lambda: engine.vjp(kernels["counted"], 1.0, 0.5, MANY // 20)[1](1.0))
    for name, g in gradients.items():
        assert g(1.0, 0.5, FEW) == before[name]
""")


@pytest.mark.long
def test_second_derivatives_give_all_their_arenas_back() -> None:
    _run("""
k = kernels["left"]
def hvp(n):
    return engine.hvp(k, (1.0, 0.5, n), (1.0, 2.0), argnums=(0, 1))
before = hvp(FEW)
limit(200 << 20)
held = []
for turn in range(12):
    text = refused(lambda: hvp(MANY))
    held.append(int(text.split("beside the ")[1].split(" bytes")[0].replace(",", "")))
    assert hvp(FEW) == before
assert min(held[1:]) > max(held) / 2, held  # what one call held is there again for the next
""")


def test_threads_fail_alone() -> None:
    _run("""
g = engine.grad(kernels["counted"], argnums=(0, 1))
right = g(1.0, 0.5, FEW)
wrong, limited = [], threading.Event()
def work(n):
    limited.wait()
    for _ in range(30):
        try:
            if g(1.0, 0.5, n) != right: wrong.append("another number")
            if n == MANY: wrong.append("no error")
        except ig.TapeMemoryError:
            if n != MANY: wrong.append("an error of another thread")
threads = [threading.Thread(target=work, args=(n,)) for n in (FEW, MANY) * 4]
for t in threads: t.start()
limit(300 << 20)  # once the threads have their stacks: starting one may fail where another's tape has all there is
limited.set()
for t in threads: t.join()
assert not wrong, wrong
""")


@pytest.mark.parametrize("width", ["auto", 1])
def test_batches(width: object) -> None:
    _run(f"""
k = kernels["counted"]
g = engine.batch_grad(k, argnums=(0, 1), width={width!r})
def call(n, threads):
    g = engine.batch_grad(k, argnums=(0, 1), width={width!r}, threads=threads)
    return g(np.linspace(1, 2, 40), np.full(40, 0.5), np.full(40, n))
before = call(FEW, 1)
call(FEW, 2)
limit(200 << 20)
for threads in (1, 2, 1, 2):
    assert "tape of `counted`" in refused(lambda: call(MANY, threads))
    assert np.array_equal(call(FEW, threads), before)
""")


def test_a_program_of_c_says_so_and_ends(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "long.c"
    path.write_text(r"""#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
double __enzyme_autodiff(void *, ...);
extern int enzyme_const;
double f(double x, long n) { for (long t = 0; t < n; t++) x += 1e-9 * sin(x) * x; return x; }
int main(void) {
  struct rlimit room = {1 << 30, 1 << 30}; setrlimit(RLIMIT_AS, &room);
  printf("%d\n", __enzyme_autodiff((void *)f, 1.0, enzyme_const, 1000L) > 1); fflush(stdout);
  return __enzyme_autodiff((void *)f, 1.0, enzyme_const, 1000000000L) > 0;
}
""")
    assert main(["run", str(path)]) == 128 + 6
    told = capfd.readouterr()
    assert told.out == "1\n"
    assert "irgrad: no memory for the tape: 8000000000 bytes besides the" in told.err
    assert f"in {path}:6:" in told.err or "long.c:6:" in told.err


def test_the_error_keeps_its_parts() -> None:
    place = ctypes.create_string_buffer(b"model.c:7:3")
    record = (ctypes.c_int64 * 5)(4096, 100, 12, ctypes.addressof(place), 0)
    error = out_of_tape("f", ctypes.addressof(record))
    assert error.which == "4,096 bytes for 12 iterations of the loop at model.c:7:3"
    record[2] = record[3] = 0
    plain = out_of_tape("f", ctypes.addressof(record))
    assert plain.which == "4,096 bytes" and "forward mode" in plain.fix
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, irgrad.TapeMemoryError) and str(again) == str(error)
