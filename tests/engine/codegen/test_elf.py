"""Objects placed in memory here compute what they compute under LLVM's linker, and the rest is left to it."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from irgrad.engine.codegen import elf, jit, symbols
from irgrad.engine.codegen.elf import ObjectFile, place
from irgrad.engine.codegen.jit import Compiled, compile_known, compile_module, compile_object

CASES = " ".join(f"i64 {k}, label %case{k}" for k in range(12))
BLOCKS = "".join(f"case{k}:\n  %r{k} = fadd double %x, {k * k + 0.25}\n  ret double %r{k}\n" for k in range(12))
TEXT = f"""
@counter = internal global i64 3
@zeros = internal global [600 x i64] zeroinitializer
@table = internal constant [2 x ptr] [ptr @twice, ptr @lgamma]
@hooks = internal global [2 x ptr] [ptr @twice, ptr getelementptr (i8, ptr @zeros, i64 16)]
@environ = external global ptr
declare double @lgamma(double)
declare double @hypot(double, double)
define internal double @twice(double %x) noinline {{
  %r = fadd double %x, %x
  ret double %r
}}
define double @jumps(double %x, i64 %k) {{
  switch i64 %k, label %none [ {CASES} ]
{BLOCKS}
none:
  ret double -1.0
}}
define double @chosen(double %x, i64 %k) {{
  %p = getelementptr [2 x ptr], ptr @table, i64 0, i64 %k
  %f = load ptr, ptr %p
  %a = call double %f(double %x)
  %r = call double @hypot(double %a, double 3.0)
  ret double %r
}}
define double @memory(double %x, i64 %k) {{
  %c = load i64, ptr @counter
  %d = add i64 %c, %k
  store i64 %d, ptr @counter
  %h = load volatile ptr, ptr getelementptr (i8, ptr @hooks, i64 8)
  store volatile i64 %d, ptr %h
  %z = load volatile i64, ptr getelementptr (i8, ptr @zeros, i64 16)
  %f = sitofp i64 %z to double
  %f0 = load volatile ptr, ptr @hooks
  %t = call double %f0(double %f)
  ret double %t
}}
define double @outer(double %x, i64 %k) {{
  %e = load ptr, ptr @environ
  %n = icmp eq ptr %e, null
  %r = select i1 %n, double 0.0, double 1.0
  ret double %r
}}
"""
NAMES = ("jumps", "chosen", "memory", "outer")


def _functions(unit: Compiled) -> dict[str, Callable[[float, int], float]]:
    return {name: unit.function(name, ctypes.c_double, ctypes.c_double, ctypes.c_int64) for name in NAMES}


@pytest.mark.parametrize("level", [0, 3])
def test_code_data_and_jumps_are_where_they_should_be(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    image, _ = compile_object(TEXT, NAMES, level=level, cache=False)
    kinds = {row[2] for row in ObjectFile(image).relocations()}
    assert {1, 2} <= kinds and kinds & {9, 41, 42}, "absolute addresses, distances, the table of addresses"
    monkeypatch.setattr(jit, "_link_with_llvm", lambda *_, **__: pytest.fail("LLVM's linker is used"))
    f = _functions(jit.link_object(image, NAMES))
    assert [f["jumps"](1.0, k) for k in (0, 3, 11, 12)] == [1.25, 10.25, 122.25, -1.0]
    assert f["chosen"](2.0, 0) == 5.0
    assert f["chosen"](7.0, 1) == pytest.approx(math.hypot(math.lgamma(7.0), 3.0), rel=1e-15)
    assert [f["memory"](0.0, 4), f["memory"](0.0, 5)] == [14.0, 24.0]
    assert f["outer"](0.0, 0) == 1.0


def test_llvm_links_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    image, _ = compile_object(TEXT, NAMES, cache=False)
    own = _functions(jit.link_object(image, NAMES))
    monkeypatch.setattr(jit, "place", lambda *_: None)
    theirs = _functions(jit.link_object(image, NAMES))
    for name in NAMES:
        assert [own[name](1.5, k) for k in (1, 0)] == [theirs[name](1.5, k) for k in (1, 0)], name


def _mapping(address: int) -> str | None:
    """The rights of the mapping that holds an address."""
    for row in Path("/proc/self/maps").read_text().splitlines():
        bounds, rights = row.split(maxsplit=2)[:2]
        low, high = (int(word, 16) for word in bounds.split("-"))
        if low <= address < high:
            return rights
    return None


def test_code_is_not_writable_and_data_not_executable() -> None:
    text = TEXT.replace("internal global i64 3", "global i64 3").replace("internal constant", "constant")
    image, _ = compile_object(text, NAMES, cache=False)
    unit = place(image, symbols.resolve_all(ObjectFile(image).undefined))
    assert unit is not None
    assert _mapping(unit["jumps"]) == "r-xp"
    unit.close()


def test_closing_gives_the_memory_back() -> None:
    unit = compile_module(TEXT, ["chosen"], cache=False)
    address = unit.address("chosen")
    assert _mapping(address) == "r-xp"
    unit.close()
    assert _mapping(address) is None


@pytest.mark.parametrize(
    "text",
    [
        "@t = thread_local global i64 5\ndefine i64 @f() {\n  %a = load i64, ptr @t\n  ret i64 %a\n}",
        "@n = internal global i64 0\n@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
        "[{ i32, ptr, ptr } { i32 1, ptr @init, ptr null }]\ndefine internal void @init() {\n  store i64 5, ptr @n\n"
        "  ret void\n}\ndefine i64 @f() {\n  %a = load volatile i64, ptr @n\n  ret i64 %a\n}",
    ],
    ids=["thread-local", "constructor"],
)
def test_what_is_not_known_is_left_to_llvm(text: str) -> None:
    image, _ = compile_object(text, ["f"], level=0, cache=False)
    assert place(image, dict.fromkeys(ObjectFile(image).undefined, 1)) is None


def test_large_objects_are_left_to_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    image, _ = compile_object(TEXT, NAMES, cache=False)
    monkeypatch.setattr(elf, "_MOST_BYTES", len(image) - 1)
    assert place(image, symbols.resolve_all(ObjectFile(image).undefined)) is None


def test_names_of_an_object() -> None:
    image, _ = compile_object(TEXT, NAMES, cache=False)
    unit = ObjectFile(image)
    assert unit.defined == set(NAMES)
    assert unit.undefined == ("environ", "hypot", "lgamma")
    with pytest.raises(ValueError, match="not a 64-bit"):
        ObjectFile(b"nothing")


def test_known_machine_code_needs_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    first = compile_known("key", lambda: TEXT, ["chosen"], ["jumps", "nothing"])
    second = compile_known("key", lambda: pytest.fail("the text is made again"), ["chosen"], ["jumps", "nothing"])
    assert (first.cached, second.cached) == (False, True)
    assert [(u.has("chosen"), u.has("jumps"), u.has("nothing")) for u in (first, second)] == [(True, True, False)] * 2
    assert not compile_known("another", lambda: TEXT, ["chosen"]).cached
    call = second.function("chosen", ctypes.c_double, ctypes.c_double, ctypes.c_int64)
    assert call(2.0, 0) == 5.0
