"""What a GPU makes of a derivative: counted in PTX, against kernels of which it is known."""

from __future__ import annotations

from typing import Any

import pytest

import irgrad
from irgrad.engine.codegen import nvptx
from irgrad.engine.report.derivation import question_of
from irgrad.engine.report.device_facts import device_facts, traffic
from irgrad.engine.report.explain import explain
from irgrad.rules.errors import LoadError, Unsupported

SOURCE = """
#include <math.h>
#include <stdio.h>
double product(const double *x, double a) { return a * x[0] * x[1]; }
double branches(const double *x, double a, long n, long m) {
    double s = 0;
    for (long i = 0; i < n; i++) {
        if (m > 3) s += x[i];
        if (x[i] > a) s += x[i] * x[i];
    }
    while (s > 1) s *= a * .5;
    return s;
}
double each(const double *x, long n) {
    double s = 0;
    _Pragma("clang loop vectorize(assume_safety)")
    for (long i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}
double prints(const double *x) { printf("%g", x[0]); return x[0]; }
"""
LIBRARY = irgrad.load(SOURCE)


def _facts(name: str, signature: str, derivative: str = "grad", wrt: Any = "x") -> Any:
    return device_facts(question_of(LIBRARY.kernel(name, signature), derivative, wrt), "sm_90")


def test_traffic_of_a_known_kernel() -> None:
    """The gradient by x reads x and a, and reads and writes both places of x's gradient; so a value adds one store."""
    found = _facts("product", "f64(f64[2] x, f64 a)")
    assert (found.loads, found.stores, found.atomics, found.stack_accesses) == (5, 2, 0, 0)
    assert found.bytes_once == 7 * 8
    more = _facts("product", "f64(f64[2] x, f64 a)", "value_and_grad")
    assert more.stores == 3


def test_accesses_are_told_apart() -> None:
    code = """
	ld.param.b64 	%rd1, [k_param_0];
	ld.global.nc.b64 	%rd2, [%rd1];
	@%p1 ld.b32 	%r1, [%rd1];
	st.global.v2.b64 	[%rd1], {%rd2, %rd3};
	ld.local.b64 	%rd4, [%SP+8];
	ld.shared.b64 	%rd4, [%rd1];
	atom.global.add.f64 	%rd5, [%rd1], %rd4;
	red.global.add.f64 	[%rd1], %rd4;
"""
    found = {"loads": 2, "stores": 1, "atomics": 2, "stack_accesses": 1, "bytes_once": 28}
    assert traffic(code) == found


def test_where_samples_part() -> None:
    """Not where an integer decides, which is the same for all samples."""
    found = _facts("branches", "f64(f64[n] x, f64 a, i64 n, i64 m)")
    lines = {place.split(":")[1] for place in found.divergent}
    assert lines == {"11"}


def test_loops_without_a_batch() -> None:
    assert [place.split(":")[1] for place in _facts("each", "f64(f64[n] x, i64 n)").shared_loops] == ["17"]
    found = _facts("branches", "f64(f64[n] x, f64 a, i64 n, i64 m)")
    assert found.shared_loops == () and len(found.other_loops) == 2


@pytest.mark.skipif(nvptx.ptxas() is None, reason="ptxas is not installed")
def test_registers_by_ptxas() -> None:
    found = _facts("product", "f64(f64[2] x, f64 a)")
    assert 8 <= found.registers <= 64 and found.stack == found.spilled == 0 and found.resident >= 1024


def test_without_ptxas_the_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvptx, "ptxas", lambda: None)
    found = explain(LIBRARY.kernel("product", "f64(f64[2] x, f64 a)"), "grad", "x", lanes=False, target="sm_80")
    text = str(found)
    assert "on sm_80, one sample a thread\n  registers are not known: ptxas is not installed" in text
    assert "the kernel has 5 loads and 2 stores of device memory (56 bytes\n    where each runs once)" in text
    page = found.to_html()
    assert "<h2>On sm_80, one sample a thread</h2>" in page and "registers of a thread" not in page
    assert "<td>loads of device memory</td><td>5</td>" in page and "<td>stores</td><td>2</td>" in page


def test_refusals() -> None:
    with pytest.raises(LoadError, match="`hal9000` is no architecture of a GPU"):
        explain(LIBRARY.kernel("product", "f64(f64[2] x, f64 a)"), target="hal9000", lanes=False)
    report = explain(LIBRARY.kernel("prints", "f64(f64[1] x)"), lanes=False, target="sm_90")
    assert "a GPU cannot run this: a call of `printf`" in report.refusal and report.device is None
    with pytest.raises(Unsupported, match="a call of `printf`"):
        _facts("prints", "f64(f64[1] x)")
