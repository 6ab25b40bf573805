"""Recurrences, invariance, addresses, reports; that forms are right is tested beside `affine`."""

from __future__ import annotations

from collections.abc import Callable

from clang_ir import clang_ir
from counting_work import growth

from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir.text.reader import read

STENCIL = """
struct cell { double v; int tag; double w[3]; };
double f(const double *restrict a, struct cell *c, int n, int lda) {
  double s = 0;
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n; j++) {
      s += a[i * lda + j] + a[(i - 1) * lda + j];
      c[j].w[1] = s;
    }
  return s;
}
"""


def test_addresses_of_a_stencil() -> None:
    fn = read(clang_ir(STENCIL, "-O2")).functions["f"]
    induction = Induction(fn)
    outer, inner = induction.loops.all
    loads = [i for i in fn.instructions() if i.opcode == "load"]
    offsets = []
    for load in loads:
        base, offset = induction.address(load.operands[0])
        assert base is fn.args[0] and offset.coefficient(inner) == 8 and offset.stride(outer).terms, str(offset)
        offsets.append(offset)
    assert len(offsets) == 2 and not offsets[0].same(offsets[1]) and offsets[0].same(offsets[0])
    (store,) = [i for i in fn.instructions() if i.opcode == "store"]
    base, offset = induction.address(store.operands[1])
    assert base is fn.args[1] and offset.const == 24 and offset.terms == {inner: 40} and offset.exact


def test_recurrence_and_invariance() -> None:
    fn = read("""
define void @f(ptr %p, i64 %n, i64 %m) {
entry:
  br label %h
h:
  %i = phi i64 [ %m, %entry ], [ %i2, %h ]
  %q = phi ptr [ %p, %entry ], [ %q1, %h ]
  %z = phi i64 [ 1, %entry ], [ %z1, %h ]
  %i1 = add nsw i64 %i, %n
  %i2 = sub nsw i64 %i1, 4
  %q1 = getelementptr inbounds i32, ptr %q, i64 2
  %z1 = mul i64 %z, 3
  %k = mul i64 %n, %m
  %l = load i64, ptr %p
  %c = icmp slt i64 %i2, %k
  br i1 %c, label %h, label %x
x:
  %e = phi i64 [ %i, %h ]
  ret void
}
""").functions["f"]
    at = {i.name: i for i in fn.instructions() if i.name is not None}
    induction = Induction(fn)
    (loop,) = induction.loops.all
    found = induction.recurrence(at["i"])
    assert found is not None
    start, by = found
    assert start is fn.args[2] and by.terms == {fn.args[1]: 1} and by.const == -4 and by.exact
    found = induction.recurrence(at["q"])
    assert found is not None and found[0] is fn.args[0] and found[1].const == 8 and not found[1].terms
    assert induction.recurrence(at["z"]) is None
    assert induction.invariant(at["k"], loop) and not induction.invariant(at["i1"], loop)
    assert not induction.invariant(at["l"], loop) and induction.invariant(fn.args[0], loop)
    form = induction.affine(at["i1"], loop)
    assert form is not None and loop in form.loops()
    assert induction.affine(at["z1"], loop) is None and induction.affine(at["z1"]) is not None
    after = induction.affine(at["e"], at["e"].block)
    assert after is not None and after.terms == {at["e"]: 1}
    outside = induction.affine(at["i"], at["e"].block)  # the loop is over: a number of its own
    assert outside is not None and outside.terms == {at["i"]: 1}
    assert "back edge" in str(induction) or "trip count unknown" in str(induction)


def test_the_report_reads() -> None:
    text = "double f(const double *a, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }"
    report = str(Induction(read(clang_ir(text, "-O2")).functions["f"])).splitlines()
    assert report[0] == "induction in @f" and "back edge taken (" in report[1] and "= {%" in report[2]


def test_a_chain_in_a_loop_is_linear_work() -> None:
    def loop_of(n: int) -> Callable[[], object]:
        chain = "\n".join(f"  %v{k} = add i64 %v{k - 1}, {'%i' if k % 2 else k}" for k in range(1, n))
        fn = read(f"""
define void @f(i64 %n) {{
entry:
  br label %h
h:
  %i = phi i64 [ 0, %entry ], [ %i1, %h ]
  %v0 = add i64 %i, %n
{chain}
  %i1 = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %h, label %x
x:
  ret void
}}
""").functions["f"]

        def work() -> None:
            induction = Induction(fn)
            (loop,) = induction.loops.all
            last = fn.blocks[1].instructions[n]
            assert induction.form(last).coefficient(loop) == n // 2 + 1
            assert induction.trip_count(loop) is not None and induction.invariant(last, loop) is False

        return work

    assert growth(loop_of, 1_000, 10_000) < 1.2
