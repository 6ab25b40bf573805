"""Loops that samples leave or enter differently: which are masked, and that a sample computes what it does alone."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.widen.if_conversion import flatten
from irgrad.engine.widen.loop_masks import mask_loop
from irgrad.engine.widen.uniformity import Uniformity

HEAD = "#include <math.h>\n"
BODIES = {
    "exit": "do { y = y * y + x; n++; } while (y * y < 4 && n < 40); return y + n;",
    "entry": "while (y < 2) y += fabs(x) + 0.1; return y;",
    "sides": "if (x > y) { y = " + "sin(y + " * 12 + "x" + ")" * 12 + "; } else { n = 2; y = exp(-y * y); }"
             " return y + n;",
    "nested": """do { double z = x; do { z /= 2; n++; } while (z > 0.1 + y * y); y += 1 + z * z; }
        while (y < 5); return y + n;""",
}
KEPT = {  # what is done again would be done twice, may fault with another sample's numbers, or leaves at several places
    "store": "for (int i = 0; i < 3; i++) a[i] = x; do { a[n % 3] += y; n++; } while (a[n % 3] < y * 9); return a[0];",
    "fault": "long k = (long)x; while (n * n < k) n += 7 / k; return n;",
    "call": "do { y = rand() * x; } while (y < 1); return y;",
    "exits": "for (;;) { y = sin(y); if (y < x) { y = exp(y); break; } y *= x; if (y > 1) return y; } return cos(y);",
}


def _masked(body: str, limit: int = 99) -> tuple[Module, Function, int]:
    """The function with up to `limit` loops masked, and their number."""
    source = f"{HEAD}#include <stdlib.h>\ndouble f(double x, double y) {{ double a[3]; long n = 0; {body} }}"
    stage = irgrad.load(source).kernel("f").primal.stage
    module = read(stage.text, roots=[stage.name])
    fn, count = module.functions[stage.name], 0

    def analyse() -> Uniformity:
        return Uniformity(fn, [0, 1, 2], [8, 8, 8], strict=False)

    flatten(fn, analyse)
    while count < limit and mask_loop(module, fn, analyse()):
        count += 1
        assert not verify_module(module)
        flatten(fn, analyse)
    return module, fn, count


@pytest.mark.parametrize(("name", "loops"), [("exit", 1), ("entry", 2), ("nested", 2), ("sides", 2)])
def test_no_branch_varies_any_more(name: str, loops: int) -> None:
    module, fn, count = _masked(BODIES[name])
    assert count == loops - (name == "sides")
    facts = Uniformity(fn, [0, 1, 2], [8, 8, 8], strict=False)
    ends = [b.terminator for b in fn.blocks if b.terminator.operands and b.terminator.opcode == "br"]
    assert ends and not any(end.operands[0] in facts.varying for end in ends)
    assert to_text(module).count("call i1 @irgrad.any(i1") == loops


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    _, fn, _ = _masked(KEPT[name])
    facts = Uniformity(fn, [0, 1, 2], [8, 8, 8], strict=False)
    assert any(b.terminator.operands and b.terminator.operands[0] in facts.varying for b in fn.blocks)


@pytest.mark.parametrize("name", BODIES)
def test_markers_change_nothing_for_one_sample(name: str) -> None:
    """The masked function of one sample, its markers read as they are meant, is the function itself."""
    from irgrad.engine.codegen.jit import compile_module

    module, fn, _ = _masked(BODIES[name])
    text = to_text(module)
    for row in [row for row in text.splitlines() if row.startswith("declare") and "irgrad." in row]:
        symbol, kind = row[row.index("@") : row.index("(")], row.split()[1]
        more = ", i1 %g" if "borrow" in symbol else ""
        text = text.replace(row, f"define internal {kind} {symbol}({kind} %v{more}) {{\n  ret {kind} %v\n}}")
    import ctypes

    compiled = compile_module(text, [fn.name])
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(compiled.address(fn.name))
    kernel = irgrad.load(f"{HEAD}double f(double x, double y) {{ long n = 0; {BODIES[name]} }}").kernel("f")
    for x, y in np.random.default_rng(2).normal(size=(20, 2)):
        rows = [np.array([v]) for v in (x, y, 0.0)]
        call(*(row.ctypes.data for row in rows))
        assert rows[2][0] == kernel(x, y)


AHEAD = """
declare double @llvm.sin.f64(double)
define void @f(ptr %a, ptr %x, ptr %n, ptr %k, ptr %out) {
entry:
  %x0 = load double, ptr %x
  %n0 = load i64, ptr %n
  %k0 = load i64, ptr %k
  OUTSIDE
  %c = icmp sgt i64 %n0, 0
  br i1 %c, label %pre, label %end
pre:
  INSIDE
  %t = load double, ptr %p
  br label %loop
loop:
  %i = phi i64 [ 0, %pre ], [ %i1, %loop ]
  %s = phi double [ %x0, %pre ], [ %s1, %loop ]
  %m = fmul double %s, %t
  %s1 = call double @llvm.sin.f64(double %m)
  %i1 = add i64 %i, 1
  %l = icmp slt i64 %i1, %n0
  br i1 %l, label %loop, label %after
after:
  br label %end
end:
  %r = phi double [ %x0, %entry ], [ %s1, %after ]
  store double %r, ptr %out
  ret void
}
"""


@pytest.mark.parametrize(("outside", "masked"), [(False, True), (True, False)])
def test_addresses_made_before_a_guard_are_not_read_by_who_stays_out(outside: bool, masked: bool) -> None:
    """What the address is made from is borrowed, the address itself is not: it may be out of bounds."""
    address = "%p = getelementptr double, ptr %a, i64 %k0"
    text = AHEAD.replace("OUTSIDE", address if outside else "").replace("INSIDE", "" if outside else address)
    module = read(text, roots=["f"])
    fn = module.functions["f"]

    def analyse() -> Uniformity:
        return Uniformity(fn, [1, 2, 3, 4], [8] * 5, strict=False)

    while mask_loop(module, fn, analyse()):
        assert not verify_module(module)
    facts = analyse()
    enters = fn.blocks[0].terminator.operands[0]
    assert (enters not in facts.varying) is masked
