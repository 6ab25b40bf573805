"""Pointers are told apart by the members of structures that the source names, but not where a program casts."""

from __future__ import annotations

import pytest
from analysed import all_of, facts_of, named

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.access_paths import UNNAMED, AccessPaths
from irgrad.engine.ir.model import Value
from irgrad.engine.ir.text.reader import read

TYPES = """
!0 = !{!"Simple C/C++ TBAA"}
!1 = !{!"omnipotent char", !0, i64 0}
!2 = !{!"any pointer", !1, i64 0}
!3 = !{!"p1 double", !2, i64 0}
!4 = !{!"p1 int", !2, i64 0}
!10 = !{!"inner", !3, i64 0, !2, i64 8, !3, i64 16}
!11 = !{!"outer", !4, i64 0, !10, i64 8, !10, i64 32}
!12 = !{!"other", !3, i64 0, !3, i64 8}
!20 = !{!10, !3, i64 0}
!21 = !{!10, !2, i64 8}
!22 = !{!10, !3, i64 16}
!23 = !{!11, !3, i64 8}
!24 = !{!11, !3, i64 32}
!25 = !{!11, !3, i64 24}
!26 = !{!12, !3, i64 0}
!27 = !{!12, !3, i64 8}
!28 = !{!3, !3, i64 0}
!29 = !{!2, !2, i64 0}
!30 = !{!"other root"}
!31 = !{!"p1 double", !30, i64 0}
!32 = !{!"elsewhere", !31, i64 8}
!33 = !{!32, !31, i64 8}
!34 = !{!11, !4, i64 0}
"""
TAGS = (20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 33, 34)
MEETINGS = [
    (20, 22, False),  # members of one structure
    (20, 23, True), (20, 24, True), (20, 25, False), (22, 25, True),  # of one that lies in another
    (23, 24, False), (23, 25, False),  # of two that lie in one
    (20, 26, True), (22, 26, False), (23, 27, True), (21, 27, True),  # of structures that begin alike
    (20, 28, True), (21, 28, False), (21, 29, True), (22, 29, True),  # and what is no member
    (22, 33, True), (20, 34, False),
]  # fmt: skip


def test_which_accesses_meet() -> None:
    loads = "\n".join(f"  %p{tag} = load ptr, ptr %x, !tbaa !{tag}" for tag in TAGS)
    module = read(f"define void @f(ptr %x) {{\n{loads}\n  %q = load ptr, ptr %x\n  ret void\n}}\n{TYPES}")
    rows = module.functions["f"].entry.instructions
    paths = AccessPaths(module)
    path = {tag: paths.of(row) for tag, row in zip(TAGS, rows, strict=False)}
    assert paths.of(rows[len(TAGS)]) is path[29] is UNNAMED
    for a, b, meet in MEETINGS:
        assert paths.meet(path[a], path[b]) is paths.meet(path[b], path[a]) is meet, (a, b)
    assert paths.member_of(rows[0]).pointee == ""
    assert paths.meet(paths.copied(path[22]), path[20]), "what is copied may lie anywhere"
    assert paths.meet(paths.copied(path[22]), path[21])
    assert not paths.meet(paths.copied(path[34]), path[20]), "and leads where it did"
    paths.tell_members(False)
    assert paths.meet(path[20], path[22])


HEAD = f"""
declare ptr @malloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
{TYPES}
define void @f(ptr noalias %x, ptr noalias %n, ptr noalias %y) {{
  %a = call ptr @malloc(i64 8)
  %b = call ptr @malloc(i64 8)
  %s = call ptr @malloc(i64 960)
  %many = load i64, ptr %n
"""
TAIL = """
  %v = load double, ptr %x
  store double %v, ptr %p
  %w = load double, ptr %p
  store double %w, ptr %y
  ret void
}
"""


def _to(body: str) -> set[str | None]:
    facts: Facts = facts_of(HEAD + body + TAIL, "f", {0, 2})
    value: Value = named(facts.root, "p")
    return {None if o.site is None else o.site.name for o in facts.pointers.objects
            if facts.pointers.of(value) >> o.index & 1}  # fmt: skip


STORES = """
  %sa = getelementptr i8, ptr %s, i64 %many
  store ptr %a, ptr %sa, !tbaa !20
  %sb = getelementptr i8, ptr %sa, i64 AT
  store ptr %b, ptr %sb, !tbaa !22
"""


@pytest.mark.parametrize(("tag", "found"), [(20, {"a"}), (22, {"b"}), (23, {"a"}), (28, {"a", "b"})])
def test_members_at_places_that_are_not_known(tag: int, found: set[str]) -> None:
    assert _to(STORES.replace("AT", "16") + f"  %sp = getelementptr i8, ptr %s, i64 %many\n"
               f"  %p = load ptr, ptr %sp, !tbaa !{tag}\n") == found  # fmt: skip


CAST = """
  %s16 = getelementptr i8, ptr %s, i64 16
  store ptr %a, ptr %s16, !tbaa !22
  %p = load ptr, ptr %s16, !tbaa !26
"""
ASIDE = "  %sc = getelementptr i8, ptr %s, i64 %more\n  store ptr %b, ptr %sc, !tbaa !26\n"


@pytest.mark.parametrize("aside", ["", ASIDE])
def test_a_cast_is_seen_by_offsets(aside: str) -> None:
    """The member at 16 is read as the first of another structure, of which there are some elsewhere in the memory."""
    assert "a" in _to("  %more = mul i64 %many, 8\n" + aside + CAST)


def test_a_cast_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solutions after it, of the module as passes have left it, are not begun without it."""
    asked: list[bool] = []
    punned = AccessPaths.punned
    monkeypatch.setattr(AccessPaths, "punned", lambda *args: asked.append(punned(*args)) or asked[-1])
    facts = facts_of(HEAD + CAST + TAIL, "f", {0, 2})
    assert asked == [True, False]
    Facts(facts.module, facts.root, {0, 2})
    assert asked == [True, False, False]


def test_a_pointer_without_type_is_read_as_one_by_a_cast() -> None:
    body = """
  %s8 = getelementptr i8, ptr %s, i64 8
  %s32 = getelementptr i8, ptr %s, i64 32
  store ptr %a, ptr %s8, !tbaa !21
  store ptr %b, ptr %s32, !tbaa !28
  %p = load ptr, ptr %s8, !tbaa !28
"""
    assert _to(body) == {"a"}


def test_copies_bring_members_to_others() -> None:
    body = STORES.replace("AT", "16") + """
  %t = call ptr @malloc(i64 960)
  call void @llvm.memcpy.p0.p0.i64(ptr %t, ptr %s, i64 960, i1 false)
  %sp = getelementptr i8, ptr %t, i64 %many
  %p = load ptr, ptr %sp, !tbaa !24
"""
    assert _to(body) == {"a", "b"}


def test_variables_are_told_apart_as_other_memory_is() -> None:
    head = HEAD.replace("define", "@g = internal global [960 x i8] zeroinitializer\ndefine")
    text = head + STORES.replace("%s,", "@g,")
    text = text.replace("AT", "16") + "  %sp = getelementptr i8, ptr @g, i64 %many\n  %p = load ptr, ptr %sp, !tbaa !22"
    facts = facts_of(text + TAIL, "f", {0, 2})
    assert facts.pointers.names(facts.pointers.of(named(facts.root, "p"))) == "{heap %b in @f}"
    assert len(all_of(facts, "store")) == 4
