"""Functions of a library that a module declares, linked into it."""

from __future__ import annotations

from irgrad.interop.loaders.library_parts import declared, with_parts

MODULE = """declare i32 @square(i32)
declare i32 @unknown(i32)
define i32 @f(i32 %x) {
  %a = call i32 @square(i32 %x)
  %b = call i32 @unknown(i32 %a)
  ret i32 %b
}
"""
LIBRARY = """@state = weak global i32 1
declare i32 @twice(i32)
define i32 @square(i32 %x) {
  %s = load i32, ptr @state
  %a = call i32 @helper(i32 %x)
  %b = call i32 @twice(i32 %a)
  ret i32 %b
}
define i32 @helper(i32 %x) {
  %a = mul i32 %x, %x
  ret i32 %a
}
define i32 @unused(i32 %x) {
  ret i32 %x
}
"""
MORE = "define i32 @twice(i32 %x) {\n  %a = mul i32 %x, 2\n  ret i32 %a\n}\n"


def test_parts_bring_what_they_need_and_nothing_else() -> None:
    assert declared(MODULE) == ["square", "unknown"]
    sources = {"square": "library", "twice": "more"}
    made = with_parts(MODULE, sources.get, {"library": LIBRARY, "more": MORE}.__getitem__)
    assert declared(made) == ["unknown"]
    assert all(f"define internal i32 @{name}(" in made for name in ("square", "helper", "twice"))
    assert "@unused" not in made
    assert "@state = linkonce global i32 1" in made
