"""What a user gets for each kind of bad input: an irgrad error that says what, why and how to mend it."""

from __future__ import annotations

import tempfile
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
BY_VALUE = "typedef struct {{ double a, b, c; }} S;\n{}"
WRITES = "double f(double *x, long n) {\n  x[0] = 2;\n  return x[0] * x[1];\n}"
SQUARED = """#include <string.h>
double f(double x) {
    long bits; memcpy(&bits, &x, 8);
    bits *= bits;
    double y; memcpy(&y, &bits, 8); return y;
}
"""
JUMPS = """#include <setjmp.h>
static jmp_buf place;
double f(double x) { if (setjmp(place)) return x; if (x > 2) longjmp(place, 1); return x * x; }
"""
SINE = "%y = call double @llvm.sine.f64(double %x)\nret double %y"
ASM = 'double f(double x) { double y; __asm__("sqrtsd %1,%0" : "=x"(y) : "x"(x)); return y; }'


def _lib() -> Any:
    return irgrad.load(SOURCE)


def _energy() -> Any:
    return _lib().kernel("energy", SIG)


def _twice() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.c")
        path.write_text(SOURCE)
        return irgrad.load([path, path])


def _near() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nbody.c").write_text(SOURCE)
        return irgrad.load(Path(folder, "nbdy.c"))


def _damaged() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.bc").write_bytes(b"BC\xc0\xde" + bytes(range(256)))
        return irgrad.load(Path(folder, "a.bc"))


def _kernel(source: str, signature: str | None = None) -> Any:
    return irgrad.load(source).kernel("f", signature)


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
        irgrad.MissingRuleError, [
            "@f (<string>:2:", "depends on argument `x` and reaches the result", "neither a body nor a rule", "link=[",
        ],
    ),
    "no such file, a near one": (_near, irgrad.LoadError, ["nbdy.c", "nearest name ", "`nbody.c`"]),
    "loaded twice": (_twice, irgrad.LoadError, ["a.c` is loaded twice", "'energy': symbol", "name each source once"]),
    "bitcode": (_damaged, irgrad.LoadError, ["a.bc", "because", "to fix"]),
    "NUL": (lambda: _ll("ret double %x\n;\0"), irgrad.LoadError, ["NUL"]),
    "an operand of another type": (
        lambda: _ll("%y = fadd float %x, 1.0\nret float %y"), irgrad.LoadError, ["cannot be read", "line 3", "to fix"],
    ),
    "a value before its definition": (
        lambda: _ll("%y = fadd double %z, 1.0\n%z = fadd double %y, 1.0\nret double %z"), irgrad.LoadError,
        ["not valid LLVM IR", "%z is used before its definition"],
    ),
    "struct by value": (
        lambda: _kernel(BY_VALUE.format("double f(S s) { return s.a; }")), irgrad.SignatureError,
        ["`f` takes `s` by value", "wrap it in C"],
    ),
    "struct returned": (
        lambda: _kernel(BY_VALUE.format("S f(double x) { S s = {x, x, x}; return s; }")), irgrad.SignatureError,
        ["`f` returns a struct", "double *fields"],
    ),
    "struct by value, signature": (
        lambda: _kernel(BY_VALUE.format("double f(S s) { return s.a; }"), "f64(f64[3] s)"), irgrad.SignatureError,
        ["contradicts the function", "passed by value"],
    ),
    "variadic": (
        lambda: _kernel("double f(int n, ...) { return n; }"), irgrad.SignatureError,
        ["a variable number of arguments", "const double *values"],
    ),
    "variadic, signature": (
        lambda: _kernel("double f(int n, ...) { return n; }", "f64(i32 n)"), irgrad.SignatureError,
        ["a variable number of arguments", "fixed prototype"],
    ),
    "extent": (
        lambda: _lib().kernel("energy", "f64(f64[2*n] x, i64 n)")(np.ones(3)), irgrad.ShapeError, ["`x`", "2*n", "3"],
    ),
    "extents that differ": (
        lambda: _kernel("double f(double *x, double *y, long n) { return x[0] * y[0]; }",
                        "f64(f64[n] x, f64[n] y, i64 n)")(np.ones(2), np.ones(3)),
        irgrad.ShapeError, ["`y`", "`n`"],
    ),
    "an integer that is not one": (
        lambda: _kernel("double f(double x, int k) { return k * x; }")(1.0, 2.5), irgrad.DTypeError, ["`k`"],
    ),
    "written, but declared in": (
        lambda: _kernel(WRITES, "f64(f64[n] x, i64 n)")(np.ones(2)), irgrad.SignatureError,
        ["`x` is declared `in`", "@f (<string>:2:8)", "inout f64[n] x"],
    ),
    "opcode": (
        lambda: engine.grad(_kernel(SQUARED))(1.5), irgrad.Unsupported,
        ["`mul`", "@f (<string>:4:10)", "which", "depends on argument `x`", "reaches the result", "to fix"],
    ),
    "callee that jumps": (
        lambda: engine.grad(_kernel(JUMPS))(1.5), irgrad.Unsupported, ["setjmp", "<string>:3", "long jump", "to fix"],
    ),
    "no defined behaviour": (
        lambda: _kernel("double f(double x) { __builtin_unreachable(); }")(1.0), irgrad.IRInvalid,
        ["`f` has no defined behaviour", "to fix"],
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
    assert ".normal" not in str(caught.value), "names of the user, not of the machinery"
    _check_cache(tmp_path)


def _check_cache(folder: Path) -> None:
    """Nothing half-written: no file under way, and every entry there is whole."""
    from irgrad.engine.codegen.cache import DiskCache

    cache = DiskCache(folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if path.name.startswith(".new-")]
    for path in files:
        kind, first, rest = path.relative_to(folder).parts
        assert cache.get(kind, first + rest) is not None, path
