"""Critical sections, and loops of compare-and-exchange, as pairs of fences."""

from __future__ import annotations

from irgrad.engine.ir.text.reader import read
from irgrad.engine.parallel.sections import (
    BEGIN,
    END,
    in_sections,
    is_section_fence,
    with_exchanges_as_sections,
    with_fences,
    without_fences,
)

CALLS = """
define void @f.omp_outlined(ptr %p) {
  call void @__kmpc_critical(ptr null, i32 0, ptr @lock), !dbg !7
  store i32 1, ptr %p, align 4
  tail call void @__kmpc_end_critical(ptr null, i32 0, ptr @lock) #3
  call void @__kmpc_critical_with_hint(ptr null, i32 0, ptr @lock, i32 2)
  call void @__kmpc_end_critical(ptr null, i32 0, ptr @lock)
  ret void
}
"""


def test_calls_become_fences() -> None:
    made = with_fences(CALLS)
    assert "__kmpc" not in made
    assert made.count(BEGIN) == made.count(END) == 2
    assert f"  {BEGIN}, !dbg !7\n" in made
    assert without_fences(made).count("\n") == made.count("\n") - 4
    assert with_fences("  call void @__kmpc_ordered(ptr null, i32 0)\n").startswith("  call")


def _function(body: str) -> object:
    return read(f"define void @f(ptr %p, i1 %c) {{\n{body}\n}}\n", ["f"]).functions["f"]


def test_what_is_in_sections() -> None:
    fn = _function(f"""entry:
  store i32 0, ptr %p
  {BEGIN}
  br i1 %c, label %one, label %two
one:
  store i32 1, ptr %p
  br label %two
two:
  store i32 2, ptr %p
  {END}
  store i32 3, ptr %p
  ret void""")
    found = in_sections(fn.blocks)  # type: ignore[attr-defined]
    assert found is not None
    stored = {str(i.operands[0]) for i in found if i.opcode == "store"}
    assert {text.split()[-1] for text in stored} == {"1", "2"} or len(stored) == 2
    assert not any(map(is_section_fence, found))


def test_sections_on_one_way_only_are_not_known() -> None:
    fn = _function(f"""entry:
  br i1 %c, label %one, label %two
one:
  {BEGIN}
  br label %two
two:
  {END}
  ret void""")
    assert in_sections(fn.blocks) is None  # type: ignore[attr-defined]


EXCHANGE = """
define void @f.omp_outlined(ptr %p, double %x) {
entry:
  %t = alloca double, align 8
  %first = load atomic i64, ptr %p monotonic, align 8
  br label %again
again:
  %bits = phi i64 [ %first, %entry ], [ %seen, %again ]
  %old = bitcast i64 %bits to double
  %new = fmul double %old, %x
  store double %new, ptr %t, align 8
  %put = load i64, ptr %t, align 8
  %swap = cmpxchg ptr %p, i64 %bits, i64 %put monotonic monotonic, align 8
  %seen = extractvalue { i64, i1 } %swap, 0
  %ok = extractvalue { i64, i1 } %swap, 1
  br i1 %ok, label %done, label %again
done:
  ret void
}
"""


def test_a_loop_of_exchanges_is_a_section() -> None:
    made = with_exchanges_as_sections(EXCHANGE)
    assert "cmpxchg" not in made
    assert "atomic" not in made
    assert made.index("@__kmpc_critical(") < made.index("load i64, ptr %p") < made.index("@__kmpc_end_critical(")
    assert "store i64 %put, ptr %p" in made


def test_other_exchanges_stay() -> None:
    for old, new in (("f.omp_outlined", "f"), ("fmul double %old, %x", "call double @g(double %old)"),
                     ("i64 %bits, i64 %put", "i64 0, i64 %put")):  # fmt: skip
        text = EXCHANGE.replace(old, new) + ("declare double @g(double)\n" if "@g" in new else "")
        assert with_exchanges_as_sections(text).count("cmpxchg") == 1
