"""Types from the metadata of the front end."""

from __future__ import annotations

from analysed import all_of, facts_of

from irgrad.engine.analyses.memory.byte_kinds import INT, PTR
from irgrad.engine.analyses.memory.tbaa import STRING_WORD, AccessTypes, Tbaa, is_reserved, may_be_read_as
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.types import F64


def test_tbaa_struct_types_a_copy() -> None:
    text = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 24, i1 false), !tbaa.struct !0
  ret void
}
!0 = !{i64 0, i64 8, !1, i64 8, i64 4, !3, i64 16, i64 8, !5}
!1 = !{!2, !2, i64 0}
!2 = !{!"double", !7, i64 0}
!3 = !{!4, !4, i64 0}
!4 = !{!"int", !7, i64 0}
!5 = !{!6, !6, i64 0}
!6 = !{!"p1 double", !7, i64 0}
!7 = !{!"omnipotent char", !8, i64 0}
!8 = !{!"Simple C/C++ TBAA"}
"""
    facts = facts_of(text, "f", {0, 1})
    assert facts.types.access(facts.root.args[0], 24) == ((0, F64), (8, INT), (16, PTR))
    assert facts.activity.call(all_of(facts, "call")[0])


def test_what_the_source_calls_an_integer() -> None:
    text = """
define void @named(ptr noalias %x, ptr noalias %y) {
entry:
  %n = load i64, ptr %x, !tbaa !0
  %b = load i64, ptr %x, !tbaa !2
  store ptr %x, ptr %y
  store i64 %n, ptr %y
  store ptr %x, ptr %y, !tbaa !0
  store ptr %x, ptr %y, !tbaa !4
  call void @silent(ptr %y)
  ret void
}
define void @silent(ptr %y) {
  store ptr %y, ptr %y
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"long", !3, i64 0}
!2 = !{!3, !3, i64 0}
!3 = !{!"omnipotent char", !6, i64 0}
!4 = !{!5, !5, i64 0}
!5 = !{!"p1 double", !3, i64 0}
!6 = !{!"Simple C/C++ TBAA"}
"""
    facts = facts_of(text, "named", {0, 1})
    said = AccessTypes(facts.module)
    assert [said.is_number(load) for load in all_of(facts, "load")] == [True, False]
    assert [said.keeps_number(store) for store in all_of(facts, "store", "named")] == [False, True, True, False]
    assert [said.keeps_number(store) for store in all_of(facts, "store", "silent")] == [True]


def test_members_of_a_language_are_told_from_types_of_a_source() -> None:
    text = """
define void @f(ptr noalias %x) {
entry:
  %n = load i64, ptr %x, !tbaa !0
  %m = load i64, ptr %x, !tbaa !3
  %k = load i64, ptr %x, !tbaa !7
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"long", !2, i64 0}
!2 = !{!"irgrad members of Numba"}
!3 = !{!4, !4, i64 0}
!4 = !{!"long", !5, i64 0}
!5 = !{!"omnipotent char", !6, i64 0}
!6 = !{!"Simple C/C++ TBAA"}
!7 = !{!8, !4, i64 8}
!8 = !{!"list", !4, i64 0, !4, i64 8}
"""
    module = read(text)
    tags = [i.metadata["tbaa"] for i in module.functions["f"].instructions() if i.opcode == "load"]
    found = Tbaa(module)
    assert [found.is_member(tag) for tag in tags] == [True, False, False]
    assert [found.of_member(tag) for tag in tags] == [False, False, True]
    assert [found.kind(tag) for tag in tags] == [INT, INT, INT]
    assert not found.is_member("")


def test_a_store_of_a_float_changes_no_pointer() -> None:
    text = """
define void @f(ptr %x, ptr %y, i64 %n) {
entry:
  %p = load ptr, ptr %x, !tbaa !0
  %q = load ptr, ptr %x
  store double 1.0, ptr %y, !tbaa !2
  store double 1.0, ptr %y
  store i64 %n, ptr %y, !tbaa !4
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"any pointer", !7, i64 0}
!2 = !{!3, !3, i64 0}
!3 = !{!"double", !7, i64 0}
!4 = !{!5, !5, i64 0}
!5 = !{!"long", !7, i64 0}
!7 = !{!"omnipotent char", !8, i64 0}
!8 = !{!"Simple C/C++ TBAA"}
"""
    module = read(text)
    types, rows = AccessTypes(module), module.functions["f"].entry.instructions
    found = [[types.apart(load, store) for store in rows[2:5]] for load in rows[:2]]
    assert found == [[True, False, False], [False, False, False]]


def test_what_is_copied_by_more_than_a_word_stays_what_it_was() -> None:
    """As by memcpy; a word may be copied into a variable of another type, and what is computed is no copy."""
    text = """
define void @f(ptr noalias %x, ptr noalias %y) {
entry:
  %two = load <2 x i64>, ptr %x, !tbaa !0
  store <2 x i64> %two, ptr %y, !tbaa !0
  %one = load i64, ptr %x, !tbaa !0
  store i64 %one, ptr %y, !tbaa !0
  %sum = add <2 x i64> %two, %two
  store <2 x i64> %sum, ptr %y, !tbaa !0
  %long = load <2 x i64>, ptr %x, !tbaa !3
  store <2 x i64> %long, ptr %y, !tbaa !0
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"omnipotent char", !2, i64 0}
!2 = !{!"Simple C++ TBAA"}
!3 = !{!4, !4, i64 0}
!4 = !{!"long", !1, i64 0}
"""
    module = read(text)
    said = AccessTypes(module)
    stores = [i for i in module.functions["f"].instructions() if i.opcode == "store"]
    assert [said.keeps_number(store) for store in stores] == [False, True, True, True]


def test_pointers_of_the_standard_library_are_told_from_all_others() -> None:
    """What only its own code names is read as what it was stored."""
    named = (
        "p1 _ZTSNSt3__115__tree_end_nodeIPvEE", "p1 _ZTSSt18_Rb_tree_node_base", "p2 _ZTSNSt8__detail10_List_nodeIdEE",
    )  # fmt: skip
    others = ("p1 _ZTSNSt3__16vectorIdEE", "p1 _ZTS4node", "p1 double", "p1 omnipotent char", "any pointer", "")
    assert all(map(is_reserved, named))
    assert not any(map(is_reserved, others))
    lines = ['!2 = !{!"any pointer", !3, i64 0}', '!3 = !{!"omnipotent char", !4, i64 0}', '!4 = !{!"Simple C++ TBAA"}']
    for i, name in enumerate((*named[:2], *others[:5]), 9):
        lines += [f'!{i} = !{{!"{name}", !2, i64 0}}', f"!{30 + i} = !{{!{i}, !{i}, i64 0}}"]
    types = Tbaa(read("\n".join(lines)))
    end, base, vector, *rest, anything = (types.pointer_kind(f"!{30 + i}") for i in range(9, 16))
    assert not may_be_read_as(end, base) and not may_be_read_as(end, vector) and not may_be_read_as(vector, end)
    assert may_be_read_as(end, end) and anything is PTR and set(rest) == {vector}
    assert all(may_be_read_as(PTR, one) and may_be_read_as(one, PTR) for one in (end, base, vector, PTR))
    assert not may_be_read_as(INT, end) and not may_be_read_as(PTR, INT)
    assert may_be_read_as(STRING_WORD, vector) and may_be_read_as(INT, STRING_WORD)
    assert not may_be_read_as(STRING_WORD, end) and not may_be_read_as(end, STRING_WORD)
