"""Methods are called with the objects that lead to them, through a table or not; where that is not known, with all."""

from __future__ import annotations

import pytest
from analysed import facts_of, facts_of_c

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.receivers import RECORD, led_to, name_record, taken_record
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, ConstZero, Instruction, Module

KINDS = """
#include <stdlib.h>
struct shape;
struct table { const char *name; double (*area)(struct shape *); };
struct shape { TABLE; struct shape *next; };
struct disc { struct shape base; double radius; };
struct box { struct shape base; int sides; float hue; double size; };
__attribute__((noinline)) double disc_area(struct shape *s) { return ((struct disc *)s)->radius * 3; }
__attribute__((noinline)) double box_area(struct shape *s) {
  struct box *b = (struct box *)s;
  return b->size * b->sides;
}
const struct table disc_table = {"disc", disc_area};
const struct table box_table = {"box", box_area};
MORE
void f(const double *x, double *out, int *n) {
  struct shape *all = 0;
  for (int i = 0; i < *n; i++) {
    if (i % 2) {
      struct disc *d = malloc(sizeof *d);
      d->base.HOLDS disc_HELD; d->base.next = all; d->radius = x[i]; all = &d->base;
    } else {
      struct box *b = malloc(sizeof *b);
      b->base.HOLDS box_HELD; b->base.next = all; b->size = x[i]; b->sides = 4; b->hue = 1; all = &b->base;
    }
  }
  double s = 0;
  for (struct shape *p = all; p; p = p->next) s += p->CALL(p);
  *out = s;
}
"""
TABLE = {"TABLE": "const struct table *m", "HOLDS": "m = &", "HELD": "table", "CALL": "m->area", "MORE": ""}
OWN = {"TABLE": "double (*area)(struct shape *)", "HOLDS": "area =", "HELD": "area", "CALL": "area", "MORE": ""}


def _facts(words: dict[str, str]) -> Facts:
    source = KINDS
    for word, text in words.items():
        source = source.replace(word, text)
    return facts_of_c(source, "f", {0, 1})


def _receivers(facts: Facts, name: str) -> list[int]:
    (fn,) = [fn for fn in facts.pointers.functions if fn.name == name]
    mask = facts.pointers.of(fn.args[0])
    return sorted(obj.size or 0 for obj in facts.pointers.objects if mask >> obj.index & 1)


@pytest.mark.parametrize("words", [TABLE, OWN], ids=["table", "own"])
def test_a_method_is_called_with_the_objects_that_hold_it(words: dict[str, str]) -> None:
    facts = _facts(words)
    assert _receivers(facts, "disc_area") == [24]
    assert _receivers(facts, "box_area") == [32]


def test_a_method_sees_the_objects_of_every_table_that_holds_it() -> None:
    facts = _facts({**TABLE, "HOLDS": "m = i % 3 ? &box_table : &"})
    assert _receivers(facts, "disc_area") == [24]
    assert _receivers(facts, "box_area") == [24, 32]


def test_a_table_that_others_fill_admits_every_object() -> None:
    facts = _facts({**TABLE, "HOLDS": "m = *n > 9 ? elsewhere : &", "MORE": "extern const struct table *elsewhere;"})
    assert {24, 32} <= set(_receivers(facts, "disc_area")) & set(_receivers(facts, "box_area"))


def test_what_loads_lead_to() -> None:
    """Bit 0 leads to 1 and 2, those to 3 and to 4; of 5 it is not known what it holds."""
    holds = {0: 0b110, 1: 0b1000, 2: 0b10000, 5: -1, 6: 0b100010}
    asked: list[int] = []

    def held(bit: int, address: object) -> int:
        asked.append(bit)
        return holds[bit]

    load = Instruction("load", ty.PTR, [ConstZero(ty.PTR)])
    known: dict[tuple[int, int], int] = {}
    assert led_to(0, (), held, known) == 1
    assert led_to(0, (load,), held, known) == 0b110
    assert led_to(0, (load, load), held, known) == 0b11000
    assert led_to(6, (load, load), held, known) == -1
    assert led_to(0, (load, load), held, known) == 0b11000 and sorted(asked) == [0, 0, 1, 2, 5, 6]


HALVES = """
%halves = type { ptr, ptr }
@one = internal constant %halves { ptr @one_first, ptr @one_second }
@two = internal constant %halves { ptr @two_first, ptr @two_second }
declare noalias ptr @malloc(i64)
define internal ptr @one_first(ptr %x) {
  %record = call ptr @malloc(i64 8), !irgrad.record !0
  store ptr %x, ptr %record
  ret ptr %record
}
define internal void @one_second(ptr "irgrad.record"="one" %record) {
  %p = load ptr, ptr %record
  store double 1.0, ptr %p
  ret void
}
define internal ptr @two_first(ptr %x) {
  %record = call ptr @malloc(i64 16)TWO
  store double 2.0, ptr %record
  ret ptr %record
}
define internal void @two_second(ptr "irgrad.record"="two" %record) {
  store double 3.0, ptr %record
  ret void
}
define void @f(ptr noalias %x, i1 %which) {
  %table = select i1 %which, ptr @one, ptr @two
  %first = load ptr, ptr %table
  %record = call ptr %first(ptr %x)
  %at = getelementptr i8, ptr %table, i64 8
  %second = load ptr, ptr %at
  call void %second(ptr %record)
  ret void
}
!0 = !{!"one"}
!1 = !{!"two"}
"""


@pytest.mark.parametrize(("two", "sizes"), [(", !irgrad.record !1", [8]), ("", [8, 16])], ids=["named", "open"])
def test_the_second_half_of_a_derivative_gets_the_record_of_the_first(two: str, sizes: list[int]) -> None:
    facts = facts_of(HALVES.replace("TWO", two), "f", {0})
    assert _receivers(facts, "one_second") == sizes, "memory without a name may be any"
    assert _receivers(facts, "two_second") == [16]


def test_records_are_named_in_both_halves() -> None:
    module = Module()
    argument, other = Argument(ty.PTR, "t", 0, "readonly"), Argument(ty.PTR, "t", 0)
    first, second = (Instruction("call", ty.PTR, []) for _ in range(2))
    name_record(module, first, argument, "f")
    name_record(module, second, other, "g")
    assert taken_record(argument) != taken_record(other) != "" == taken_record(Argument(ty.PTR, "t", 0, "readonly"))
    assert argument.attrs.startswith('readonly "irgrad.record"=')
    for record, owner in ((first, argument), (second, other)):
        assert module.metadata[record.metadata[RECORD]] == f'!{{!"{taken_record(owner)}"}}'
