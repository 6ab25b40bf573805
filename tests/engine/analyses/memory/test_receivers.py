"""Methods are called with the objects that lead to them, through a table or not; where that is not known, with all."""

from __future__ import annotations

import pytest
from analysed import facts_of_c

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.receivers import led_to
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstZero, Instruction

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
