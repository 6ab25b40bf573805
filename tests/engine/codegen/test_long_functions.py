"""Long functions in pieces compute bit for bit what they compute whole; short ones are left alone."""

from __future__ import annotations

import ctypes
import random
import re
from collections.abc import Iterator

import pytest
from counting_work import growth

from irgrad.engine.codegen import jit, long_functions
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.long_functions import SlowCompilation, shorten

N = 8


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Limits at which functions of a few dozen instructions are long."""
    monkeypatch.setattr(long_functions, "LIMIT", 30)
    monkeypatch.setattr(long_functions, "PIECE", 7)
    monkeypatch.setattr(long_functions, "REACH", 5)
    yield


def random_program(seed: int) -> str:
    """Straight pieces, branches, a loop, phis, vectors, structs, stack memory, i1 and i32 values used far away."""
    rng = random.Random(seed)
    out = ["define double @f(ptr %p, double %x, i32 %k) {", "entry:", "  %cell = alloca [8 x double], align 8"]
    floats, ints, flags, vectors = ["%x"], ["%k"], ["true"], ["<double 1.0, double 2.0>"]
    count = 0

    def straight(number: int) -> None:
        nonlocal count
        for _ in range(number):
            count += 1
            a, b, name = rng.choice(floats), rng.choice(floats), f"%v{count}"
            kind = rng.randrange(9)
            if kind < 2:
                out.append(f"  {name} = {rng.choice(('fadd', 'fsub', 'fmul'))} double {a}, {b}")
            elif kind == 2:
                out.append(f"  {name} = select i1 {rng.choice(flags)}, double {a}, double {b}")
            elif kind == 3:
                out.append(f"  {name}.c = fcmp olt double {a}, {b}")
                flags.append(f"{name}.c")
                continue
            elif kind == 4:
                out.append(f"  {name}.i = add i32 {rng.choice(ints)}, {count}")
                ints.append(f"{name}.i")
                out.append(f"  {name} = sitofp i32 {name}.i to double")
            elif kind == 5:
                base = rng.choice(("%p", "%cell"))
                out.append(f"  {name}.a = getelementptr double, ptr {base}, i64 {rng.randrange(N)}")
                out.append(f"  store double {a}, ptr {name}.a, align 8")
                out.append(f"  {name} = load double, ptr {name}.a, align 8")
            elif kind == 6:
                out.append(f"  {name}.w = insertelement <2 x double> {rng.choice(vectors)}, double {a}, i64 1")
                vectors.append(f"{name}.w")
                out.append(f"  {name} = extractelement <2 x double> {rng.choice(vectors)}, i64 1")
            elif kind == 7:
                out.append(f"  {name}.s = insertvalue {{ double, i1 }} {{ double 3.0, i1 true }}, double {a}, 0")
                out.append(f"  {name}.t = fsub double {b}, 1.5")
                out.append(f"  {name} = extractvalue {{ double, i1 }} {name}.s, 0")
            else:
                out.append(f"  {name} = call double @llvm.fabs.f64(double {a})")
            floats.append(name)

    straight(rng.randrange(5, 60))
    for number in range(3):
        known = [list(row) for row in (floats, ints, flags, vectors)]
        out.append(f"  br i1 {rng.choice(flags)}, label %a{number}, label %b{number}")
        results = []
        for side in "ab":
            out.append(f"{side}{number}:")
            straight(rng.randrange(40))
            results.append(floats[-1])
            out.append(f"  br label %join{number}")
            floats[:], ints[:], flags[:], vectors[:] = (list(row) for row in known)
        out += [f"join{number}:",
                f"  %j{number} = phi double [ {results[0]}, %a{number} ], [ {results[1]}, %b{number} ]"]
        floats.append(f"%j{number}")
        straight(rng.randrange(40))
        last = f"%join{number}"
        out += [f"  br label %loop{number}", f"loop{number}:",
                f"  %n{number} = phi i32 [ 0, {last} ], [ %m{number}, %loop{number} ]",
                f"  %s{number} = phi double [ {rng.choice(floats)}, {last} ], [ %t{number}, %loop{number} ]"]
        known = [list(row) for row in (floats, ints, flags, vectors)]
        floats.append(f"%s{number}")
        straight(rng.randrange(30))
        out += [f"  %t{number} = fmul double {floats[-1]}, 0.5", f"  %m{number} = add i32 %n{number}, 1",
                f"  %d{number} = icmp slt i32 %m{number}, 3",
                f"  br i1 %d{number}, label %loop{number}, label %x{number}",
                f"x{number}:"]
        floats[:], ints[:], flags[:], vectors[:] = known
        floats += [f"%t{number}", f"%s{number}"]
    straight(30)
    return "\n".join([*out, f"  ret double {floats[-1]}", "}", "declare double @llvm.fabs.f64(double)", ""])


def results(text: str) -> list[bytes]:
    unit = compile_module(text, ["f"], level=0, cache=False)
    function = unit.function("f", ctypes.c_double, ctypes.c_void_p, ctypes.c_double, ctypes.c_int32)
    rows = []
    for x, k in ((0.5, 1), (-2.25, 40), (3.0, -7)):
        memory = (ctypes.c_double * N)(*[0.5 * i - 1 for i in range(N)])
        value = function(ctypes.addressof(memory), x, k)
        rows.append(bytes(ctypes.c_double(value)) + bytes(memory))
    return rows


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("stack", [1 << 16, 0])
def test_same_bits(seed: int, stack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_program(seed)
    whole = results(text)
    with monkeypatch.context() as limits:
        for name, value in (("LIMIT", 30), ("PIECE", 7), ("REACH", 5), ("STACK", stack)):
            limits.setattr(long_functions, name, value)
        short = shorten(text)
        assert results(short) == whole, "cut again"
    assert ".piece." in short and ("@malloc(" in short) == (stack == 0)
    assert short.count("call void @free(") == (stack == 0)
    assert results(short) == whole


def test_no_block_and_no_live_range_stays_long(small: None) -> None:
    lines = ["define double @f(double %x) {", "  %v0 = fadd double %x, 1.0"]
    lines += [f"  %v{i} = fmul double %v{i - 1}, %v{max(0, i - 20)}" for i in range(1, 100)]
    short = shorten("\n".join([*lines, "  ret double %v99", "}", ""]))
    parse(short).close()
    for body in re.findall(r"^define[^\n]*\{\n(.*?)^\}", short, re.M | re.S):
        own = [line for line in body.splitlines() if "fmul" in line or "fadd" in line]
        assert len(own) <= 2 * 7


def test_attributes_of_the_whole_do_not_pass_to_the_pieces(small: None) -> None:
    """A piece writes to its frame: taken over, `memory(none)` would let LLVM drop its call."""
    lines = ["define double @f(double %x) #0 {", "  %v0 = fadd double %x, 1.0"]
    lines += [f"  %v{i} = fmul double %v{i - 1}, %x" for i in range(1, 60)]
    text = "\n".join([*lines, "  ret double %v59", "}",
                      'attributes #0 = { nounwind memory(none) "denormal-fp-math"="preserve-sign" }', ""])
    pieces = re.findall(r"^define internal void @f\.piece[^\n]*", shorten(text), re.M)
    assert pieces and all('"denormal-fp-math"="preserve-sign"' in row and "memory" not in row for row in pieces)


@pytest.mark.parametrize("line", [
    "  %r = musttail call double @g(double %v50)", "  %s = call ptr @llvm.stacksave.p0()",
    "  %s = call ptr @llvm.frameaddress.p0(i32 0)",
])  # fmt: skip
def test_what_belongs_to_its_function_stays_there(small: None, line: str) -> None:
    lines = ["declare double @g(double)", "declare ptr @llvm.stacksave.p0()", "declare ptr @llvm.frameaddress.p0(i32)",
             "define double @f(double %x) {", "  %v0 = fadd double %x, 1.0"]
    lines += [f"  %v{i} = fmul double %v{i - 1}, %x" for i in range(1, 60)]
    text = "\n".join([*lines, line, f"  ret double {'%r' if '%r' in line else '%v59'}", "}", ""])
    what = "musttail" if "musttail" in line else line.partition("@")[2].partition(".p0")[0]
    with pytest.warns(SlowCompilation, match=f"`f` is long and stays whole.*{what}"):
        assert shorten(text) is text


def test_one_function_that_stays_whole_leaves_the_others_to_be_cut(small: None) -> None:
    lines = ["  %v0 = fadd double %x, 1.0", *(f"  %v{i} = fmul double %v{i - 1}, %x" for i in range(1, 60))]
    whole = ["define double @whole(double %x) {", *lines, "  %r = musttail call double @g(double %v50)"]
    cut = ["define double @cut(double %x) {", *lines, "  ret double %v59", "}"]
    with pytest.warns(SlowCompilation, match="`whole` .* musttail") as told:
        short = shorten("\n".join(["declare double @g(double)", *whole, "  ret double %r", "}", *cut, ""]))
    parse(short).close()
    assert len(told) == 1 and "@cut.piece." in short and "@whole.piece." not in short


@pytest.mark.parametrize("call", ["@twice(ptr null) #7", "@declared(ptr null)", "@plain(ptr null) returns_twice"])
def test_functions_whose_calls_return_twice_stay_whole(small: None, call: str) -> None:
    lines = ["  %v0 = fadd double %x, 1.0", *(f"  %v{i} = fmul double %v{i - 1}, %x" for i in range(1, 60))]
    whole = ["define double @whole(double %x) {", *lines, f"  %r = call i32 {call}", "  ret double %v59", "}"]
    cut = ["define double @cut(double %x) #77 {", *lines, "  ret double %v59", "}"]
    ends = ["declare i32 @twice(ptr)", "declare i32 @declared(ptr) #7", "declare i32 @plain(ptr)",
            "attributes #7 = { nounwind returns_twice }", "attributes #77 = { nounwind }", ""]  # fmt: skip
    with pytest.warns(SlowCompilation, match="`whole` .* it holds") as told:
        short = shorten("\n".join([*whole, *cut, *ends]))
    parse(short).close()
    assert len(told) == 1 and "@cut.piece." in short and "@whole.piece." not in short


def test_short_functions_are_left_alone() -> None:
    text = random_program(3)
    assert shorten(text) is text
    module = parse(text)
    assert long_functions.shorten_module(module) is module


def test_machine_code_is_made_of_the_pieces(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    original = long_functions.shorten
    monkeypatch.setattr(long_functions, "shorten", lambda text: seen.append(original(text)) or seen[-1])
    monkeypatch.setattr(jit, "_UNIT", "irgrad")
    results(random_program(5))
    assert len(seen) == 1 and ".piece." in seen[0]


@pytest.mark.long
def test_work_is_linear() -> None:
    def cutting(count: int) -> object:
        lines = ["define double @f(double %x) {", "  %v0 = fadd double %x, 1.0"]
        lines += [f"  %v{i} = fmul double %v{i - 1}, %v{i // 2}" for i in range(1, count)]
        text = "\n".join([*lines, f"  ret double %v{count - 1}", "}", ""])
        return lambda: shorten(text, limit=100)

    assert growth(cutting, 2_000, 20_000) < 1.2  # type: ignore[arg-type]
