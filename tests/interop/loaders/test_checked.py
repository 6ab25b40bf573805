"""Functions that may fail: a status in place of the result, lengths from shapes, what contradicts the function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.codegen.cache import fingerprint
from irgrad.engine.kernel.options import Options
from irgrad.engine.signature.prototype import prototype_of
from irgrad.engine.signature.signature import Signature
from irgrad.interop.loaders.checked import checked, checked_kernel

TEXT = r"""
@irgrad.panic.1 = private constant { i32, [10 x i8] } { i32 1, [10 x i8] c"too small\00" }
@irgrad.panic.2 = private constant { i32, [6 x i8] } { i32 1, [6 x i8] c"empty\00" }
declare void @irgrad.panic(ptr) noreturn nounwind cold
define double @root(double %x) nounwind {
  %bad = fcmp olt double %x, 0.0
  br i1 %bad, label %no, label %yes
no:
  call void @irgrad.panic(ptr @irgrad.panic.1) noreturn nounwind
  unreachable
yes:
  %r = call double @llvm.sqrt.f64(double %x)
  ret double %r
}
declare double @llvm.sqrt.f64(double)
define internal double @first(ptr %x, i64 %n) nounwind noinline {
  %none = icmp eq i64 %n, 0
  br i1 %none, label %no, label %yes
no:
  call void @irgrad.panic(ptr @irgrad.panic.2) noreturn nounwind
  unreachable
yes:
  %r = load double, ptr %x
  %s = call double @root(double %r)
  ret double %s
}
define double @slice(ptr noalias %x.0, i64 range(i64 0, 1152921504606846976) %x.1) nounwind {
  %r = call double @first(ptr %x.0, i64 %x.1)
  ret double %r
}
define i64 @rows(ptr noalias %x.0, i64 range(i64 0, 384307168202282326) %x.1) nounwind {
  ret i64 %x.1
}
define i32 @stated(ptr noalias dereferenceable(24) %x) nounwind {
  %v = load double, ptr %x
  %bad = fcmp olt double %v, 0.0
  br i1 %bad, label %no, label %yes
no:
  call void @irgrad.panic(ptr @irgrad.panic.1) noreturn nounwind
  unreachable
yes:
  ret i32 7
}
"""


def _kernel(name: str, signature: str | None = None, errors: Any = None) -> Any:
    return checked_kernel(TEXT, name, signature, Options(), errors, (), None, fingerprint(TEXT))


def test_what_returns_a_number_writes_it() -> None:
    kernel = _kernel("root")
    assert kernel(4.0) == 2.0 and engine.grad(kernel)(4.0) == 0.25
    assert engine.check(kernel, 2.0).ok


@pytest.mark.parametrize("derived", ["value", "jvp", "vjp", "hessian"])
def test_failures_leave_values_and_derivatives(derived: str) -> None:
    kernel = _kernel("root")
    call = {
        "value": lambda: kernel(-1.0),
        "jvp": lambda: engine.jvp(kernel, (-1.0,), (1.0,)),
        "vjp": lambda: engine.vjp(kernel, -1.0)[1](1.0),
        "hessian": lambda: engine.hvp(kernel, (-1.0,), 1.0),
    }[derived]
    with pytest.raises(irgrad.KernelError, match="`root` failed with status 1: too small"):
        call()


def test_failures_cross_functions_that_stay_apart() -> None:
    kernel = _kernel("slice", "f64(f64[n] x)")
    np.testing.assert_allclose(engine.grad(kernel)(np.array([4.0, 1.0])), [0.25, 0])
    with pytest.raises(irgrad.KernelError, match="status 2: empty"):
        kernel(np.zeros(0))
    with pytest.raises(irgrad.KernelError, match="status 1: too small"):
        engine.grad(kernel)(np.array([-4.0]))


def test_lengths_count_elements_of_the_slice() -> None:
    assert _kernel("rows", "i64(f64[n,3] x)")(np.zeros((5, 3))) == 5
    assert _kernel("rows", "i64(f64[n,m,3] x)")(np.zeros((5, 2, 3))) == 10
    assert _kernel("rows", "i64(f64[n,3] x, i64 n)")(np.zeros((4, 3))) == 4
    for shape in ("n", "n,2"):
        with pytest.raises(irgrad.SignatureError, match=r"(?s)another size.*24 bytes.*inside of an element"):
            _kernel("rows", f"i64(f64[{shape}] x)")


def test_statuses_of_ones_own_do_not_meet_those_of_failures() -> None:
    kernel = _kernel("stated", "i32(f64[3] x)", {7: "seven"})
    with pytest.raises(irgrad.KernelError, match="status 7: seven"):
        kernel(np.ones(3))
    with pytest.raises(irgrad.KernelError, match="too small"):
        kernel(-np.ones(3))


@pytest.mark.parametrize(("name", "signature", "said"), [
    ("root", "f32(f64 x)", "returns `double`.*says `float`"),
    ("root", "f64(f32 x)", "takes `double`.*says `float`"),
    ("root", "f64(f64 x, f64 y)", "2 parameters, the function 1"),
    ("stated", "i32(f64[2] x)", "16 bytes.*takes 24"),
    ("slice", "f64(f64[n] x, status i32 s)", "written through a pointer"),
])  # fmt: skip
def test_what_contradicts_the_function(name: str, signature: str, said: str) -> None:
    with pytest.raises(irgrad.SignatureError, match=f"(?s){said}"):
        _kernel(name, signature)


def test_numbers_are_those_of_this_module() -> None:
    made = checked(TEXT, "root", Signature("f64(f64 x)"), prototype_of(TEXT, "root"))
    assert dict(made.errors) == {1: "too small", 2: "empty"}
    assert str(made.signature) == "status i32(out f64[] result, f64 x)" and made.name == "root.checked"
