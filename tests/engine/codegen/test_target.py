"""A second target is one object: nothing else is edited, and its code computes the same."""

from __future__ import annotations

import ctypes
import dataclasses

import numpy as np
import pytest

from irgrad.engine.codegen import jit
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.optimise import optimised_module
from irgrad.engine.codegen.target import HOST, Target, check_instructions
from irgrad.rules.errors import CompileError

TEXT = """
declare double @llvm.exp.f64(double)
define void @f(ptr noalias %x, ptr noalias %o, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr inbounds double, ptr %x, i64 %i
  %v = load double, ptr %p, align 8
  %r = call double @llvm.exp.f64(double %v)
  %q = getelementptr inbounds double, ptr %o, i64 %i
  store double %r, ptr %q, align 8
  %next = add nuw nsw i64 %i, 1
  %go = icmp ult i64 %next, %n
  br i1 %go, label %loop, label %done
done:
  ret void
}
"""
OLD = Target("an old processor", HOST.triple, lambda: "nocona" if "x86" in HOST.triple() else "", lambda: "",
             vector_math=False)  # fmt: skip


def _code(target: Target) -> str:
    module = optimised_module(TEXT, ["f"], target=target)
    assembly = str(target.machine().emit_assembly(module))
    module.close()
    return assembly


def test_a_second_target_makes_code_of_its_own() -> None:
    if "x86_64" not in HOST.triple():
        pytest.skip("the registers looked for are those of x86-64")
    old, host = _code(OLD), _code(HOST)
    assert "ymm" not in old and "_ZGV" not in old
    assert ("ymm" in host or "zmm" in host) == ("+avx" in HOST.features())


def test_it_computes_the_same_and_shares_no_cache_entry() -> None:
    x = np.linspace(-1, 1, 37)
    found = []
    for target in (HOST, OLD):
        compiled = jit.compile_module(TEXT, ["f"], target=target)
        out = np.zeros_like(x)
        call = compiled.function("f", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        call(x.ctypes.data, out.ctypes.data, len(x))
        found.append((compiled.image, out))
    np.testing.assert_allclose(found[0][1], np.exp(x), rtol=1e-14)
    np.testing.assert_allclose(found[1][1], np.exp(x), rtol=1e-15)
    assert found[0][0] != found[1][0]


def test_it_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        HOST.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(("name", "type_", "features"), [
    ("sse.rcp.ps", "<4 x float>", ""), ("sse3.hadd.pd", "<2 x double>", "+sse3"),
    ("avx.hadd.ps.256", "<8 x float>", "+avx"), ("avx2.phadd.d", "<8 x i32>", "+avx,+avx2"),
    ("ssse3.pshuf.b.128", "<16 x i8>", "+ssse3"),
])  # fmt: skip
def test_instructions_of_other_cpus_are_refused(name: str, type_: str, features: str) -> None:
    """Code generation would end the process."""
    two = ", ".join([type_] * (1 if "rcp" in name else 2))
    values = ", ".join(f"{part} zeroinitializer" for part in two.split(", "))
    module = parse(f"""declare {type_} @llvm.x86.{name}({two})
define void @f(ptr %r) {{
  %y = call {type_} @llvm.x86.{name}({values})
  store {type_} %y, ptr %r
  ret void
}}""")
    check_instructions(module, features)
    last = features.rpartition(",")[2]
    if last:
        with pytest.raises(CompileError, match="an instruction that the CPU has not") as caught:
            check_instructions(module, features.replace(last, last.replace("+", "-")))
        assert last[1:] in caught.value.because
    module.close()
