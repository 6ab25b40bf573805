"""Of what each byte of a value is part."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.model import Argument, Instruction
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.reinterpret.value_bytes import ValueBytes, place

ARGUMENTS = "ptr %p, i64 %w, double %d, <2 x double> %v, i8 %b"


def _bytes(body: str) -> list[tuple[str | None, int] | None]:
    """Those of %r, by the names of arguments."""
    fn = read(f"define void @f({ARGUMENTS}) {{\n{body}\nret void\n}}\n", roots=["f"]).functions["f"]
    result = next(i for i in fn.instructions() if i.name == "r")
    found: list[tuple[str | None, int] | None] = []
    for byte in ValueBytes().of(result):
        found.append(byte and (getattr(byte[0], "name", None), byte[1]))
    return found


@pytest.mark.parametrize(("body", "want"), [
    ("%r = ptrtoint ptr %p to i64", [("p", i) for i in range(8)]),
    ("%r = ptrtoint ptr %p to i128", [*[("p", i) for i in range(8)], *[(None, 0)] * 8]),
    ("%a = ptrtoint ptr %p to i64\n%s = lshr i64 %a, 40\n%r = trunc i64 %s to i8", [("p", 5)]),
    ("%r = bitcast double %d to <4 x i16>", [("d", i) for i in range(8)]),
    ("%e = extractelement <2 x double> %v, i64 1\n%i = bitcast double %e to i64\n%r = trunc i64 %i to i16",
     [("v", 8), ("v", 9)]),
    ("%z = zext i8 %b to i32\n%s = shl i32 %z, 8\n%r = or i32 %s, 7", [(None, 7), ("b", 0), (None, 0), (None, 0)]),
    ("%r = add i64 %w, 1", [("r", i) for i in range(8)]),
])  # fmt: skip
def test_bytes(body: str, want: list[tuple[str | None, int] | None]) -> None:
    assert _bytes(body) == want


def test_place() -> None:
    module = read("""@g = global [4 x i64] zeroinitializer
    define void @f(ptr %p, i64 %i) {
      %a = getelementptr i8, ptr %p, i64 3
      %b = getelementptr { i32, [4 x double] }, ptr %a, i64 1, i32 1, i64 2
      %c = getelementptr i8, ptr %b, i64 %i
      %d = getelementptr i16, ptr %c, i64 -1
      %e = getelementptr i8, ptr getelementptr inbounds nuw (i8, ptr @g, i64 8), i64 2
      ret void
}
    """, roots=["f"])  # fmt: skip
    fn = module.functions["f"]
    named: dict[str | None, Argument | Instruction] = {v.name: v for v in (*fn.args, *fn.instructions())}
    assert place(named["b"]) == (named["p"], 3 + 40 + 8 + 16)
    assert place(named["d"]) == (named["c"], -2)
    assert place(named["e"]) == (module.globals["g"], 10)
