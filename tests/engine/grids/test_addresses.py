"""Where addresses of a program lead to, across the iterations of a grid."""

from __future__ import annotations

from irgrad.engine.grids.addresses import WORLD, Addresses, step_of
from irgrad.engine.ir.model import Instruction
from irgrad.engine.ir.text.reader import read

HEAD = "declare ptr @irgrad.tape.alloc(ptr, i64)\ndeclare void @other(ptr)\ndeclare void @region(i64, ptr)\n"


def _solved(body: str, iteration: str = "ret void") -> tuple[Addresses, dict[str, Instruction]]:
    module = read(f"{HEAD}define void @f(ptr %x, ptr %arena) {{\n{body}\nret void\n}}\n"
                  f"define void @region.one(i64 %i, ptr %rows, ptr %arena) {{\n{iteration}\n}}\n")  # fmt: skip
    known = Addresses(module.functions["f"], {"region": module.functions["region.one"]})
    return known, {i.name: i for i in known.instructions() if i.name}


def test_what_is_stored_at_one_place_is_not_read_at_another() -> None:
    known, at = _solved("""
%a = call ptr @irgrad.tape.alloc(ptr %arena, i64 8)
%b = call ptr @irgrad.tape.alloc(ptr %arena, i64 8)
%record = call ptr @irgrad.tape.alloc(ptr %arena, i64 16)
%second = getelementptr i8, ptr %record, i64 8
store ptr %a, ptr %record
store ptr %b, ptr %second
%again = getelementptr ptr, ptr %record, i64 1
%got = load ptr, ptr %again""")
    assert known.places(at["got"]) == {(at["b"], 0)} and known.places(at["again"]) == {(at["record"], 8)}
    assert known.kept() == {at["a"], at["b"]} and not known.lost


def test_a_variable_index_reads_all() -> None:
    known, at = _solved("""
%a = call ptr @irgrad.tape.alloc(ptr %arena, i64 8)
%rows = call ptr @irgrad.tape.alloc(ptr %arena, i64 80)
%n = load i64, ptr %x
%place = getelementptr ptr, ptr %rows, i64 %n
store ptr %a, ptr %place
%got = load ptr, ptr %rows
%inside = getelementptr double, ptr %got, i64 %n""")
    assert known.places(at["got"]) == {(at["a"], 0)} and known.places(at["inside"]) == {(at["a"], None)}
    assert step_of(at["place"]) is None


def test_iterations_get_what_the_program_hands_them() -> None:
    known, at = _solved("""
%rows = call ptr @irgrad.tape.alloc(ptr %arena, i64 80)
call void @region(i64 9, ptr %rows)
%got = load ptr, ptr %rows""", """
%own = call ptr @irgrad.tape.alloc(ptr %arena, i64 8)
%place = getelementptr ptr, ptr %rows, i64 %i
store ptr %own, ptr %place
ret void""")
    assert known.memories(at["got"]) == {at["own"]} and known.memories(at["place"]) == {at["rows"]}
    assert [f.name for f in known.sites.values()] == ["f", "region.one"]


def test_what_the_world_may_know_is_lost_with_all_that_it_leads_to() -> None:
    for line in ("call void @other(ptr %record)", "store ptr %record, ptr %x", "%n = ptrtoint ptr %record to i64"):
        known, at = _solved(f"""
%a = call ptr @irgrad.tape.alloc(ptr %arena, i64 8)
%record = call ptr @irgrad.tape.alloc(ptr %arena, i64 8)
store ptr %a, ptr %record
%safe = call ptr @irgrad.tape.alloc(ptr %arena, i64 8)
{line}
%got = load ptr, ptr %record
%far = load ptr, ptr %x""")
        assert known.lost == {at["a"], at["record"]}
        assert known.memories(at["got"]) == {at["a"], WORLD} and known.memories(at["far"]) == {WORLD}


def test_an_address_that_is_read_as_a_number_is_lost() -> None:
    known, at = _solved("""
%a = call ptr @irgrad.tape.alloc(ptr %arena, i64 8)
%record = call ptr @irgrad.tape.alloc(ptr %arena, i64 16)
store ptr %a, ptr %record
%half = getelementptr i8, ptr %record, i64 4
%n = load i32, ptr %half
%rest = getelementptr i8, ptr %record, i64 8
%d = load double, ptr %rest""")
    assert known.lost == {at["a"]}


def test_a_pointer_that_goes_on_for_ever_comes_to_rest() -> None:
    known, at = _solved("""
%a = call ptr @irgrad.tape.alloc(ptr %arena, i64 800)
br label %turn
turn:
%p = phi ptr [ %a, %0 ], [ %q, %turn ]
%q = getelementptr i8, ptr %p, i64 8
%more = icmp ne ptr %q, null
br i1 %more, label %turn, label %done
done:""")
    assert known.places(at["p"]) == {(at["a"], None)}
