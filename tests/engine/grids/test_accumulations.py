"""Additions that iterations share: which become atomic, which are an iteration's own, and what is refused."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.grids.accumulations import make_atomic, make_plain, only_added_to, thread_local
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.threads.ownership import UNKNOWN, root_of
from irgrad.rules.errors import Unsupported


def _module(body: str) -> tuple[Module, Function]:
    module = read(f"""
declare void @other(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @a.rev.f.iteration.0(i64 %k, ptr %x, ptr %d, i64 %m, double %v) {{
entry:
{body}
  ret void
}}
""")
    return module, module.functions["a.rev.f.iteration.0"]


ADD = """  %p = getelementptr double, ptr %d, i64 %k
  %o = load double, ptr %p, align 8
  %s = fadd double %o, %v
  store double %s, ptr %p, align 8"""


def _opcodes(fn: Function) -> list[str]:
    return [i.opcode for i in fn.instructions()]


def test_an_addition_becomes_atomic() -> None:
    module, fn = _module(ADD)
    make_atomic(module)
    assert _opcodes(fn) == ["getelementptr", "atomicrmw", "ret"]


def test_an_addition_behind_a_store_elsewhere_becomes_atomic() -> None:
    """As forward mode over a reverse derivative leaves it: two additions, each with its load before both stores."""
    module, fn = _module("""  %o = load double, ptr %d, align 8
  %q = load double, ptr %x, align 8
  %s = fadd double %v, %o
  %t = fadd double %v, %q
  store double %s, ptr %d, align 8
  store double %t, ptr %x, align 8""")
    make_atomic(module)
    assert _opcodes(fn) == ["atomicrmw", "atomicrmw", "ret"]


@pytest.mark.parametrize("row", ["fsub double %o, %v", "fadd double %w, %o", "fadd double %o, 1.0"])
def test_sums_of_several_terms(row: str) -> None:
    """What is added is put together before: `*d = (*d - v) + w`, in any order."""
    module, fn = _module(f"""  %o = load double, ptr %d, align 8
  %w = fmul double %v, 3.0
  %a = {row}
  %b = fadd double %a, %v
  store double %b, ptr %d, align 8""")
    make_atomic(module)
    assert [op for op in _opcodes(fn) if op in ("load", "store", "atomicrmw")] == ["atomicrmw"]
    kinds = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_double]
    name = fn.name or ""
    function = compile_module(to_text(module), [name], strict_fp=True).function(name, None, *kinds)
    d = np.array([10.0])
    function(0, None, d.ctypes.data, 0, 2.0)
    assert d[0] == {"%v": 10.0, "%o": 18.0, "1.0": 13.0}[row.rsplit(maxsplit=1)[-1]]


def test_what_was_there_may_stand_once() -> None:
    body = """  %o = load double, ptr %d, align 8
  %a = fadd double %o, %o
  store double %a, ptr %d, align 8"""
    with pytest.raises(Unsupported, match="writes what is no sum"):
        make_atomic(_module(body)[0])


def test_a_vector_is_added_lane_by_lane() -> None:
    module, fn = _module("""  %o = load <2 x double>, ptr %d, align 8
  %w = insertelement <2 x double> <double 1.0, double 2.0>, double %v, i64 0
  %a = fadd <2 x double> %o, %w
  store <2 x double> %a, ptr %d, align 8""")
    make_atomic(module)
    assert _opcodes(fn).count("atomicrmw") == 2 and verify_module(module) == []


def test_memory_of_its_own_stays_as_it_is() -> None:
    module, fn = _module("  %w = alloca double, align 8\n" + ADD.replace("%d, i64 %k", "%w, i64 0"))
    make_atomic(module)
    assert "atomicrmw" not in _opcodes(fn)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("  store double %v, ptr %d, align 8", "writes what is no sum"),
        (ADD.replace("  %s = ", "  store double 0.0, ptr %d, align 8\n  %s = "), "writes what is no sum"),
        (ADD.replace("fadd", "fmul"), "writes what is no sum"),
        ("  call void @other(ptr %d)", "calls `other`"),
        ("  call void @llvm.memset.p0.i64(ptr %d, i8 1, i64 8, i1 false)", "calls `llvm.memset"),
    ],
)
def test_what_is_no_addition_is_refused(body: str, what: str) -> None:
    with pytest.raises(Unsupported, match=f"a loop cannot run on many threads: an iteration's derivative {what}"):
        make_atomic(_module(body)[0])


def test_zeros_may_be_written() -> None:
    clear = "  call void @llvm.memset.p0.i64(ptr %d, i8 0, i64 8, i1 false)"
    make_atomic(_module(f"  store double 0.0, ptr %d, align 8\n{clear}")[0])


@pytest.mark.parametrize(
    ("body", "own"),
    [
        (ADD, True),
        (ADD.replace("%d, i64 %k", "%d, i64 3"), False),  # the same place for all
        (ADD + ADD.replace("%p", "%p2").replace("%o", "%o2").replace("%s", "%s2").replace("i64 %k", "i64 %k2")
         .replace("  %p2", "\n  %k2 = add nsw i64 %k, 1\n  %p2"), False),  # that of the next iteration as well
        ("  %j = mul i64 %k, 3\n" + ADD.replace("i64 %k", "i64 %j"), True),
        ("  %j = mul i64 %k, %m\n" + ADD.replace("i64 %k", "i64 %j"), False),  # the step may be 0
        ("  %g = getelementptr i64, ptr %x, i64 %k\n  %j = load i64, ptr %g, align 8\n"
         + ADD.replace("i64 %k", "i64 %j"), False),
    ],
)  # fmt: skip
def test_places_of_one_iteration_alone(body: str, own: bool) -> None:
    module, fn = _module(body)
    make_atomic(module)
    count = _opcodes(fn).count("atomicrmw")
    make_plain(fn, [fn.args[2]], fn.args[0])
    assert _opcodes(fn).count("atomicrmw") == (0 if own else count)
    assert count


def test_an_array_that_another_argument_may_lead_to_stays_atomic() -> None:
    module, fn = _module(ADD)
    make_atomic(module)
    make_plain(fn, [], fn.args[0])
    assert "atomicrmw" in _opcodes(fn)


def test_memory_that_is_only_added_to() -> None:
    module, fn = _module(ADD.replace("%d, i64 %k", "%d, i64 1"))
    make_atomic(module)
    assert only_added_to(fn, fn.args[2]) and only_added_to(fn, fn.args[1])
    thread_local(fn, fn.args[2])
    assert "atomicrmw" not in _opcodes(fn) and not only_added_to(fn, fn.args[2])


def test_roots() -> None:
    _, fn = _module("""  %w = alloca double, align 8
  %c = icmp eq i64 %k, 0
  %s = select i1 %c, ptr %w, ptr %d
  %p = getelementptr i8, ptr %d, i64 8
  %q = getelementptr i8, ptr %w, i64 0""")
    w, _, s, p, q, _ = fn.entry.instructions
    assert [root_of(v) for v in (w, s, p, q)] == [w, UNKNOWN, fn.args[2], w]
