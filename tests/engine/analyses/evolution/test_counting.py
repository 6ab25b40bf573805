"""Trip counts, checked twice: 8-bit loops in every flavour of comparison, step and flag against a simulation that knows
poison, and loops that clang emits against counters put into the same code and run.
"""

from __future__ import annotations

import ctypes
import itertools
import random

import pytest
from clang_ir import clang_ir

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import TripCount
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Function, GlobalVariable, Instruction, Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.reducible import canonicalise

# -- 8-bit loops, simulated -------------------------------------------------------------------------------------------

PREDS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CORNERS = (0, 1, 2, 3, 5, 7, 100, 126, 127, 128, 129, 200, 253, 254, 255)


def signed8(n: int) -> int:
    return (n & 255) - 256 if n & 128 else n & 255


def holds(pred: str, a: int, b: int) -> bool:
    if pred in ("eq", "ne"):
        return (a == b) == (pred == "eq")
    if pred[0] == "s":
        a, b = signed8(a), signed8(b)
    return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[pred[1:]]


def simulate(start: int, step: int, bound: int, pred: str, nxt: bool, flags: str, stop: bool) -> int | None:
    """Back edges taken; None where the loop is endless or runs into undefined behaviour."""
    i, poison = start, False
    for count in range(300):
        follow = (i + step) & 255
        wraps_signed = not -128 <= signed8(i) + signed8(step) < 128
        wraps_unsigned = i + (step & 255) > 255
        follow_poison = poison or ("nsw" in flags and wraps_signed) or ("nuw" in flags and wraps_unsigned)
        if follow_poison if nxt else poison:
            return None
        if holds(pred, follow if nxt else i, bound) == stop:
            return count
        i, poison = follow, follow_poison
    return None


def eight_bit(pred: str, step: str, nxt: bool, flags: str, stop: bool) -> Function:
    targets = "label %x, label %h" if stop else "label %h, label %x"
    return read(f"""
define void @f(i8 %s, i8 %n, i8 %t) {{
entry:
  br label %h
h:
  %i = phi i8 [ %s, %entry ], [ %next, %h ]
  %next = add {flags} i8 %i, {step}
  %c = icmp {pred} i8 {"%next" if nxt else "%i"}, %n
  br i1 %c, {targets}
x:
  ret void
}}
""").functions["f"]


@pytest.mark.parametrize("pred", PREDS)
def test_eight_bit_loops_against_simulation(pred: str) -> None:
    rng = random.Random(pred)
    solved = 0
    for step, nxt, flags, stop in itertools.product(
        (1, -1, 2, -2, 3, -5, 64, 127, -128, None), (False, True), ("", "nsw", "nuw", "nuw nsw"), (False, True)
    ):
        fn = eight_bit(pred, "%t" if step is None else str(step), nxt, flags, stop)
        induction = Induction(fn)
        (loop,) = induction.loops.all
        count = induction.trip_count(loop)
        if count is None:
            continue
        solved += 1
        for _ in range(60):
            start, bound = (rng.choice(CORNERS) if rng.random() < 0.6 else rng.randrange(256) for _ in range(2))
            by = step if step is not None else rng.choice((0, 1, 2, 3, 100, 127, 128, 255))
            expected = simulate(start, by, bound, pred, nxt, flags, stop)
            if expected is not None:
                got = count.evaluate(dict(zip(fn.args, (start, bound, by), strict=True)))
                assert got == expected, (str(count), start, bound, by, step, nxt, flags, stop)
    assert solved >= {"eq": 24, "ne": 24}.get(pred, 12), solved


@pytest.mark.parametrize("pred", ["ult", "slt", "ne", "ugt", "sge"])
def test_eight_bit_loops_compared_in_sixteen_bits(pred: str) -> None:
    """An extension of the counter is looked through only where it is the same number."""
    rng = random.Random(pred)
    cases = itertools.product(
        ("sext", "zext", "zext nneg"), (1, 3, -1), ("", "nsw", "nuw", "nuw nsw"), ("0", "5", "%s")
    )
    for extend, step, flags, first in cases:
        fn = read(f"""
define void @f(i8 %s, i16 %n) {{
entry:
  br label %h
h:
  %i = phi i8 [ {first}, %entry ], [ %next, %h ]
  %next = add {flags} i8 %i, {step}
  %w = {extend} i8 %i to i16
  %c = icmp {pred} i16 %w, %n
  br i1 %c, label %h, label %x
x:
  ret void
}}
""").functions["f"]
        induction = Induction(fn)
        count = induction.trip_count(induction.loops.all[0])
        if count is None:
            continue
        for _ in range(60):
            start = int(first) if first != "%s" else rng.choice(CORNERS)
            bound = rng.choice((-300, -128, -1, 0, 1, 5, 6, 40, 127, 128, 255, 256, 300))
            expected = simulate_wide(start, step, bound, pred, flags, extend)
            if expected is not None:
                got = count.evaluate({fn.args[0]: start, fn.args[1]: bound})
                assert got == expected, (str(count), start, bound, extend, step, flags)


def simulate_wide(start: int, step: int, bound: int, pred: str, flags: str, extend: str) -> int | None:
    i = start
    for count in range(300):
        if "nneg" in extend and i & 128:
            return None
        wide = signed8(i) if extend == "sext" else i
        left, right = (wide, bound) if pred[0] == "s" else (wide & 65535, bound & 65535)
        if not {"lt": left < right, "ne": left != right, "gt": left > right, "ge": left >= right}[pred[-2:]]:
            return count
        if "nsw" in flags and not -128 <= signed8(i) + step < 128:
            return None
        if "nuw" in flags and i + (step & 255) > 255:
            return None
        i = (i + step) & 255
    return None


def test_several_exits_bound_the_count() -> None:
    """Two exits that can be solved give the count; one that cannot leaves a bound."""
    text = """
define void @f(i32 %n, i32 %m, ptr %p) {{
entry:
  br label %h
h:
  %i = phi i32 [ 0, %entry ], [ %i1, %latch ]
  %c = icmp slt i32 %i, %n
  br i1 %c, label %mid, label %x
mid:
  %v = load i32, ptr %p
  %d = icmp {other}
  br i1 %d, label %latch, label %x
latch:
  %i1 = add nsw i32 %i, 1
  br label %h
x:
  ret void
}}
"""
    fn = read(text.format(other="ult i32 %i, %m")).functions["f"]
    induction = Induction(fn)
    count = induction.trip_count(induction.loops.all[0])
    assert count is not None and count.certain
    for n, m in ((5, 3), (3, 5), (-4, 9), (7, 7)):
        assert count.evaluate({fn.args[0]: n, fn.args[1]: m}) == min(max(n, 0), m)
    fn = read(text.format(other="eq i32 %v, 0")).functions["f"]
    induction = Induction(fn)
    (loop,) = induction.loops.all
    most = induction.max_trip_count(loop)
    assert induction.trip_count(loop) is None and most is not None and most.evaluate({fn.args[0]: 6}) == 6


# -- loops of clang, run ----------------------------------------------------------------------------------------------

LOOPS = {  # body of `double f(const double *a, int n, int m)`: loops whose count is known at -O2, loops in all
    "up": ("for (int i = 0; i < n; i++) s += a[i & 63];", 1),
    "up_equal": ("for (int i = m; i <= n; i++) s += a[i & 63];", 1),
    "down": ("for (int i = n; i > m; i--) s += a[i & 63];", 1),
    "down_to_zero": ("for (int i = n; i >= 0; i--) s += a[i & 63];", 1),
    "by_three": ("for (int i = m; i < n; i += 3) s += a[i & 63];", 1),
    "by_minus_four": ("for (int i = n; i > m; i -= 4) s += a[i & 63];", 1),
    "by_m": ("if (m > 0) for (int i = 0; i < n; i += m) s += a[i & 63];", 1),
    "by_minus_m": ("if (m > 0) for (int i = n; i >= 0; i -= m) s += a[i & 63];", 1),
    "unsigned": ("for (unsigned i = 0; i < (unsigned)(n & 255); i++) s += a[i & 63];", 1),
    "unsigned_by_two": ("for (unsigned i = 0; i < (unsigned)(n & 255); i += 2) s += a[i & 63];", 1),
    "size_t": ("for (unsigned long i = 0; i < (unsigned long)(n & 255); i++) s += a[i & 63];", 1),
    "long_of_int": ("for (long i = 2 * m; i < 3L * n; i += 5) s += a[i & 63];", 1),
    "not_equal": ("if (n > m) for (int i = m; i != n; i++) s += a[i & 63];", 1),
    "pointers": ("const double *e = a + (n & 63); for (const double *p = a; p != e; p++) s += *p;", 1),
    "pointers_by_two": ("const double *e = a + (n & 63); for (const double *p = a; p < e; p += 2) s += *p;", 1),
    "do_while": ("int i = 0; do { s += a[i & 63]; i += 7; } while (i < n);", 1),
    "post_decrement": ("int k = n & 127; while (k--) s += a[k & 63];", 1),
    "constant": ("for (int i = 0; i < 37; i++) s += a[i] * s;", 1),
    "short": ("for (short i = 0; i < (short)(n & 255); i++) s += a[i & 63];", 0),  # may wrap: C defines that
    "signed_char": ("for (signed char i = 0; i < 100; i += 3) s += a[i & 63] * s;", 0),
    "nest": ("for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) s += a[(i * 3 + j) & 63];", 2),
    "triangle": ("for (int i = 0; i < n; i++) for (int j = i + 1; j < n; j++) s += a[(i + j) & 63] * s;", 2),
    "triangle_down": ("for (int i = 0; i < n; i++) for (int j = i; j >= 0; j--) s += a[(i + j) & 63] * s;", 2),
    "band": ("for (int i = 0; i < n; i++) for (int j = i - 2; j <= i + m; j += 2) s += a[(i + j) & 63] * s;", 2),
    "tiles": (
        "for (int i = 0; i < n; i += 8) for (int j = i; j < (i + 8 < n ? i + 8 : n); j++) s += a[j & 63] * s;",
        2,
    ),
    "both_ends": ("int lo = 0, hi = n; while (lo < hi) { s += a[lo & 63] - a[hi & 63]; lo++; hi--; }", 1),
    "leaves_early": ("for (int i = 0; i < n; i++) { s += a[i & 63]; if (s > 9) break; }", 0),
    "leaves_early_nest": (
        "for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) s += a[j & 63]; if (s > 90) break; }",
        1,
    ),
    "halving": ("for (int i = n; i > 0; i /= 2) s += a[i & 63];", 0),
    "continued": ("for (int i = 0; i < n; i++) { if (a[i & 63] > 0.5) continue; s += a[i & 63]; }", 1),
    "two_bounds": ("for (int i = 0; i < n && i < m; i++) s += a[i & 63] * s;", 1),
}
ARGUMENTS = [(n, m) for n in (-7, -1, 0, 1, 2, 3, 6, 17, 40, 64, 101) for m in (-3, 0, 1, 2, 5, 16, 90)]


def counted(module: Module, fn: Function) -> tuple[int, int]:
    """Put counters into every loop with a known (or bounded) count; how many there are of either."""
    canonicalise(fn)
    induction = Induction(fn)
    known = bounded = 0
    wrong = module.globals["wrong"] = GlobalVariable("wrong", ty.I64, ConstInt(ty.I64, 0), False)
    checked = module.globals["checked"] = GlobalVariable("checked", ty.I64, ConstInt(ty.I64, 0), False)
    for loop in induction.loops.all:
        count, most = induction.trip_count(loop), induction.max_trip_count(loop)
        assert count is None or most is not None
        if most is not None and loop.preheader is not None:
            known, bounded = known + (count is not None), bounded + 1
            instrument(fn, loop, count or most, "ne" if count is not None else "ugt", wrong, checked)
    return known, bounded


def instrument(
    fn: Function, loop: Loop, count: TripCount, bad: str, wrong: GlobalVariable, checked: GlobalVariable
) -> None:
    """On leaving the loop: wrong += (runs of the header `bad` count + 1)."""
    top = Builder(fn.entry, 0)
    runs, expected = top.alloca(ty.I64), top.alloca(ty.I64)
    assert loop.preheader is not None
    before = Builder(loop.preheader, len(loop.preheader.instructions) - 1)
    before.store(before.add(count.emit(before), ConstInt(ty.I64, 1), flags=()), expected)
    before.store(ConstInt(ty.I64, 0), runs)
    add(Builder(loop.header, len(loop.header.phis)), runs, ConstInt(ty.I64, 1))
    for target in loop.exits:
        builder = Builder(target, len(target.phis))
        differ = builder.icmp(bad, builder.load(ty.I64, runs), builder.load(ty.I64, expected))
        add(builder, wrong, builder.cast("zext", differ, ty.I64))
        add(builder, checked, ConstInt(ty.I64, 1))


def add(builder: Builder, where: Instruction | GlobalVariable, amount: object) -> None:
    value = builder.load(ty.I64, where)
    builder.store(builder.binary("add", value, amount), where)  # type: ignore[arg-type]


def check(text: str) -> tuple[int, int]:
    module = read(text)
    known, bounded = counted(module, module.functions["f"])
    module.functions["f"].tail = ""  # its attributes say that it writes no memory, and now it does
    getters = "".join(
        f"define i64 @get_{name}() {{\n  %v = load i64, ptr @{name}\n  ret i64 %v\n}}\n"
        for name in ("wrong", "checked")
    )
    unit = compile_module(to_text(module) + getters, ["f", "get_wrong", "get_checked"])
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(unit.address("f"))
    wrong, checked = (ctypes.CFUNCTYPE(ctypes.c_int64)(unit.address(f"get_{name}")) for name in ("wrong", "checked"))
    data = (ctypes.c_double * 64)(*[0.01 * (i % 13) for i in range(64)])
    for n, m in ARGUMENTS:
        call(data, n, m)
        assert wrong() == 0, (n, m)
    assert checked() or not bounded
    return known, bounded


@pytest.mark.parametrize("flags", [("-O2",), ("-O1",), ("-O2", "-fwrapv")], ids="".join)
@pytest.mark.parametrize("name", LOOPS)
def test_counts_of_compiled_loops(name: str, flags: tuple[str, ...]) -> None:
    body, expected = LOOPS[name]
    text = clang_ir(f"double f(const double *a, int n, int m) {{ double s = 0; {body} return s; }}", *flags)
    known, _ = check(text)
    if flags == ("-O2",):
        assert known >= expected


@pytest.mark.parametrize(
    ("step", "pred", "certain"), [("1", "ne", True), ("2", "ne", False), ("2", "slt", True), ("%t", "slt", False)]
)
def test_a_count_that_relies_on_this_exit_says_so(step: str, pred: str, certain: bool) -> None:
    """A step of 2 may miss `!=`, a step known at run time only may be 0: such a loop may have no end."""
    fn = eight_bit(pred, step, True, "nsw", False)
    induction = Induction(fn)
    count = induction.trip_count(induction.loops.all[0])
    assert count is not None and count.certain == certain


@pytest.mark.parametrize(
    ("flags", "more", "certain"),
    [("inbounds", "", True), ("", "", False), ("inbounds", "call void @look(ptr %q)", False),
     ("inbounds", "%u = call double @llvm.fabs.f64(double 1.0)", True)],
)  # fmt: skip
def test_a_pointer_that_stays_in_its_object_meets_its_end(flags: str, more: str, certain: bool) -> None:
    """Unless the loop is left by other means: a call that ends the program."""
    fn = read(f"""declare void @look(ptr)
declare double @llvm.fabs.f64(double)
define void @f(ptr %p, ptr %end) {{
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  store double 0.0, ptr %q
  {more}
  %next = getelementptr {flags} double, ptr %q, i64 1
  %over = icmp eq ptr %next, %end
  br i1 %over, label %out, label %loop
out:
  ret void
}}""", roots=["f"]).functions["f"]
    induction = Induction(fn)
    count = induction.trip_count(induction.loops.all[0])
    assert count is not None and count.certain == certain


CHECKED = """declare void @abort()
define i64 @f(i64 %n, i64 %m, i1 %bad, i1 %worse) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  br i1 %bad, label %look, label %check
look:
  br i1 %worse, label %early, label %check
check:
  %inside = icmp ult i64 %i, %m
  br i1 %inside, label %latch, label %stop
stop:
  call void @abort()
  unreachable
latch:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out
early:
  ret i64 -1
out:
  ret i64 %i
}
"""


@pytest.mark.parametrize(("bad", "worse"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_exits_that_are_decided_before_the_loop_or_never_return(bad: int, worse: int) -> None:
    """The bounds check ends no count; the other early exit is taken at once or never."""
    fn = read(CHECKED).functions["f"]
    induction = Induction(fn)
    count = induction.trip_count(induction.loops.top[0])
    assert count is not None
    values = {fn.args[0]: 9, fn.args[2]: bad, fn.args[3]: worse}
    assert count.evaluate({value: values[value] for value in count.uses}) == (0 if bad and worse else 8)
    emitted = read(CHECKED)
    counted = emitted.functions["f"]
    found = Induction(counted).trip_count(Induction(counted).loops.top[0])
    assert found is not None
    place = Builder(counted.entry, 0)
    total = found.emit(place)
    for block in counted.blocks:
        if block.terminator.opcode == "ret":
            block.terminator.operands = [total]
    call = compile_module(to_text(emitted), ["f"], cache=False).function(
        "f", ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_bool, ctypes.c_bool)  # fmt: skip
    assert call(9, 100, bad, worse) == (0 if bad and worse else 8)


def test_an_exit_decided_before_an_endless_loop_is_no_count() -> None:
    text = CHECKED.replace("br i1 %more, label %loop, label %out", "br label %loop").replace(
        "br i1 %inside, label %latch, label %stop", "br label %latch")  # fmt: skip
    induction = Induction(read(text).functions["f"])
    assert induction.trip_count(induction.loops.top[0]) is None


def test_a_count_that_may_miss_its_end_is_none_beside_a_check() -> None:
    """With a step of two the loop may pass its bound and run until the check stops it."""
    text = CHECKED.replace("add i64 %i, 1", "add i64 %i, 2").replace("icmp slt i64 %next, %n", "icmp ne i64 %next, %n")
    induction = Induction(read(text).functions["f"])
    assert induction.trip_count(induction.loops.top[0]) is None
