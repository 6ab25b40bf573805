"""Cutting a module into entities, and what of it some functions need."""

from __future__ import annotations

import pytest

from irgrad.engine.codegen.llvm import parse
from irgrad.engine.ir.text.entities import cut, joined, reachable, restrict
from irgrad.engine.ir.text.reader import read
from irgrad.rules.errors import IRSyntaxError

MODULE = """; a comment
source_filename = "a.c"
%pair = type { double, double }
$shared = comdat any
@table = internal constant [1 x ptr] [
  ptr @by_table
]
@unused = global i32 7
@other.name = alias double (double), ptr @"odd name"
@llvm.used = appending global [1 x ptr] [ptr @kept], section "llvm.metadata"

define double @f(double %x) !mine !5 {
  %g = load ptr, ptr @table, !tbaa !7
  %y = call double %g(double %x)
  %z = call double @other.name(double %y)
  ret double %z
}
define double @"odd name"(double %x) comdat($shared) { ret double %x }
define double @by_table(double %x) #0 {
  %y = call double @sin(double %x)
  ret double %y
}
define void @kept() {
  ret void
}
define double @stranger(double %x) {
  %y = call double @cos(double %x), !mine !9
  ret double %y
}
declare !srcloc !7 double @sin(double)
declare double @cos(double)
attributes #0 = { nounwind }
uselistorder ptr @sin, { 1, 0 }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"x", i32 1}
!5 = !{!6}
!6 = !{!"a string"}
!7 = !{!8, !8, i64 0}
!8 = !{!"double", !10, i64 0}
!10 = !{!"root"}
!9 = !{!"only the stranger's"}
"""


def test_every_entity_is_cut_once() -> None:
    """Comments and blank lines are nobody's; entities over several lines are one; the line is where it starts."""
    heads = [MODULE[e.start : e.end].split("(", maxsplit=1)[0].split("=", maxsplit=1)[0].strip() for e in cut(MODULE)]
    assert len(heads) == 24
    assert heads[3] == "@table"
    table, stranger = cut(MODULE)[3], next(e for e in cut(MODULE) if "@stranger(" in MODULE[e.start : e.end])
    assert (table.line, MODULE[table.start : table.end].count("\n")) == (5, 2)
    assert MODULE.splitlines()[stranger.line - 1].startswith("define double @stranger")
    assert stranger.body is not None
    assert MODULE[slice(*stranger.body)].strip().endswith("ret double %y")


def test_one_line_bodies_have_an_extent() -> None:
    odd = next(e for e in cut(MODULE) if '@"odd name"(' in MODULE[e.start : e.end])
    assert odd.body is not None
    assert MODULE[slice(*odd.body)].strip() == "ret double %x"


@pytest.mark.parametrize("text", ["define void @f() {\n  ret void\n", "delete @f\n"])
def test_a_function_without_an_end_is_an_error(text: str) -> None:
    with pytest.raises(IRSyntaxError):
        cut(text)


def test_reachable_follows_names_in_the_text() -> None:
    entities = {"a": cut("declare void @a()\n")[0]}
    assert reachable("declare void @a()\n", entities, ["a", "z"]) == {"a", "z"}


def test_what_a_function_needs_stays_and_nothing_else() -> None:
    """Through calls, tables, aliases, @llvm.used and metadata; LLVM and the reader accept what is left."""
    text = restrict(MODULE, ["f"])
    for needed in ("@f(", "@table", '@"odd name"(', "@by_table(", "@other.name", "@kept(", "@sin(", "!8 =", "%pair",
                   "$shared", "attributes #0", "!0 =", "!llvm.module.flags"):  # fmt: skip
        assert needed in text, needed
    for dropped in ("@unused", "@stranger(", "@cos", "!9", "uselistorder", "; a comment"):
        assert dropped not in text, dropped
    assert list(read(text).functions) == ["f", "odd name", "by_table", "kept", "sin"]
    parse(text).close()


def test_a_restricted_module_is_already_restricted() -> None:
    once = restrict(MODULE, ["stranger"])
    assert restrict(once, ["stranger"]) == once
    assert "@table" not in once
    assert "!9 =" in once


def test_what_the_first_has_is_declared_once() -> None:
    text = 'declare ptr @malloc(i64)\ndefine void @"a b"() {\n  ret void\n}\n'
    fresh = "declare void @free(ptr)\n@x = global i8 0\n"
    more = 'declare ptr @malloc(i64)\ndeclare void @"a b"()\ndeclare void @free(ptr)\n' + fresh
    assert joined(text, more) == text + fresh
