"""What a user gets for each kind of bad input: an irgrad error that says what, why and how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad import engine

SOURCE = """double energy(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}
"""
SIG = "f64(f64[n] x, i64 n)"
SINE = "%y = call double @llvm.sine.f64(double %x)\nret double %y"
ASM = 'double f(double x) { double y; __asm__("sqrtsd %1,%0" : "=x"(y) : "x"(x)); return y; }'


def _lib() -> Any:
    return irgrad.load(SOURCE)


def _energy() -> Any:
    return _lib().kernel("energy", SIG)


def _ll(body: str, declared: str = "") -> Any:
    return irgrad.load(f"{declared}\ndefine double @f(double %x) {{\n{body}\n}}\n", language="ll")


BAD: dict[str, tuple[Callable[[], Any], type[irgrad.IRGradError], list[str]]] = {
    "no such file": (lambda: irgrad.load("qqqq.c"), irgrad.LoadError, ["there is no file `qqqq.c`"]),
    "no such symbol": (lambda: _lib().kernel("enrgy"), irgrad.LoadError, ["nearest names are `energy`"]),
    "not a source": (lambda: irgrad.load(3), irgrad.LoadError, ["a int cannot be loaded"]),  # type: ignore[arg-type]
    "does not compile": (
        lambda: irgrad.load("double f(double x) { return y; }"), irgrad.CompileError,
        ["does not compile", "undeclared identifier 'y'"],
    ),
    "newer IR": (lambda: _ll("%y = ffrob double %x\nret double %y"), irgrad.LoadError, ["ffrob", "to fix"]),
    "malformed IR": (lambda: irgrad.load("this is not { IR", language="ll"), irgrad.LoadError, ["LLVM"]),
    "no signature": (lambda: _lib().kernel("energy"), irgrad.SignatureError, ["needs a signature", "draft", SIG]),
    "signature, type": (
        lambda: _lib().kernel("energy", "f64(f64[n] x, i32 n)"), irgrad.SignatureError,
        ["contradicts the function", "the function takes `i64`"],
    ),
    "signature, count": (lambda: _lib().kernel("energy", "f64(f64[n] x)"), irgrad.SignatureError, ["has 1 parameters"]),
    "signature, return": (lambda: _lib().kernel("energy", f"void{SIG[3:]}"), irgrad.SignatureError, ["`double`"]),
    "signature, object": (lambda: _lib().kernel("energy", 3), irgrad.SignatureError, ["a int is no signature"]),
    "rank": (lambda: _energy()(np.ones((2, 2))), irgrad.ShapeError, ["has rank 2, wanted rank 1"]),
    "dtype": (lambda: _energy()(np.ones(2, np.float32)), irgrad.DTypeError, ["float32, wanted float64"]),
    "argument": (lambda: engine.grad(_energy(), wrt="y"), irgrad.SignatureError, ["there is no argument `y`"]),
    "callee without rule": (
        lambda: engine.grad(irgrad.load("double bk(double);\ndouble f(double x) { return bk(x); }").kernel("f"))(1.0),
        irgrad.MissingRuleError, ["<string>:2:", "is active", "neither a body nor a rule", "link=["],
    ),
    "unresolved": (
        lambda: irgrad.load("double bk(double);\ndouble f(double x) { return bk(x); }").kernel("f")(1.0),
        irgrad.LoadError, ["the symbol `bk` is not resolved"],
    ),
    "assembly": (lambda: irgrad.load(ASM).kernel("f")(1.0), irgrad.IRInvalid, ["inline assembly", "which"]),
    "intrinsic": (
        lambda: _ll(SINE, "declare double @llvm.sine.f64(double)").kernel("f")(1.0), irgrad.IRInvalid,
        ["an intrinsic that LLVM does not know", "did you mean"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_the_message(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    call, kind, words = BAD[case]
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert not list(tmp_path.rglob(".new-*")), "nothing half-written in the cache"
