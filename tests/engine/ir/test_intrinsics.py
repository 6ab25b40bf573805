"""Names of intrinsics: what LLVM knows is known, what it does not know is not."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from irgrad.engine.ir.intrinsics import is_known, target_names

KNOWN = """llvm.sin.f64 llvm.memcpy.p0.p0.i64 llvm.powi.f64.i32 llvm.sincos.f64 llvm.vector.reduce.fadd.v4f64
llvm.assume
llvm.lifetime.start.p0 llvm.umul.with.overflow.i64 llvm.masked.load.v4f64.p0 llvm.fptosi.sat.i32.f64
llvm.eh.typeid.for.p0
llvm.dbg.declare llvm.x86.sse2.pause llvm.tan.f32 llvm.atan2.v8f64 llvm.experimental.constrained.fadd.f64
llvm.is.fpclass.f80
llvm.va_start.p0 llvm.stacksave.p0 llvm.ctlz.i32 llvm.fmuladd.v2f64 llvm.frexp.f64.i32""".split()
UNKNOWN = """llvm.sine.f64 llvm.sinx llvm.f64 llvm. llvm.memcpyy.p0.p0.i64 llvm.sin.double llvm.x86.nope llvm.coro.begin
llvm.read_register.i64 llvm.gcroot llvm.vscale.i64 llvm.sin.f64.extra""".split()


@pytest.mark.parametrize("name", KNOWN)
def test_known(name: str) -> None:
    assert is_known(name)


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(name: str) -> None:
    assert not is_known(name)


def test_target_intrinsics_belong_to_their_target() -> None:
    assert is_known("llvm.x86.sse2.pause", "x86_64-unknown-linux-gnu")
    assert not is_known("llvm.x86.sse2.pause", "aarch64-linux-gnu")
    assert is_known("llvm.nvvm.read.ptx.sreg.tid.x", "nvptx64-nvidia-cuda")
    assert len(target_names()) > 3000


@pytest.mark.long
def test_every_intrinsic_of_the_corpus_is_known(corpus: dict[str, str]) -> None:
    names = {n for text in corpus.values() for n in re.findall(r"@(llvm\.[\w.]+)\(", text)}
    assert len(names) > 20
    assert [n for n in names if not is_known(n)] == []
    for name in sorted(names):
        shown = str(llvm.parse_assembly(f"declare void @{name}()", llvm.create_context()))
        assert "Unknown intrinsic" not in shown
