"""Which handler takes which exception, from the type descriptors of a compiled program."""

from __future__ import annotations

from functools import cache

import pytest

import irgrad as ig
from irgrad.engine.ir.model import GlobalVariable, Module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.exceptions.typeinfo import base_offset, is_pointer, symbol

SOURCE = """
#include <new>
#include <stdexcept>
struct A { double a; virtual ~A() {} }; struct B { double b; virtual ~B() {} };
struct C : A, B { double c; }; struct D : C {}; struct E : private A {}; struct V : virtual A {};
extern "C" double f(double x) {
  try {
    if (x > 9) throw D(); if (x > 8) throw E(); if (x > 7) throw V(); if (x > 6) throw (D *)0;
    if (x > 5) throw (char *)0;
    if (x > 4) throw 1; if (x > 3) throw std::out_of_range(""); if (x > 2) throw std::bad_alloc();
  } catch (C &) { return 1; } catch (B &) { return 2; } catch (A &) { return 3; } catch (C *) { return 4; }
  catch (B *) { return 5; } catch (const char *) { return 6; } catch (void *) { return 7; } catch (long) { return 8; }
  catch (std::logic_error &) { return 9; } catch (std::exception &) { return 10; }
  return x;
}
"""


@cache
def _module() -> Module:
    return read(ig.load(SOURCE, language="c++").text, roots=["f"])


def _offset(thrown: str, caught: str) -> int | None:
    module = _module()
    infos = [module.globals.get(f"_ZTI{name}") for name in (thrown, caught)]
    first, second = (info if info is not None else GlobalVariable(f"_ZTI{name}", None, None, True)  # type: ignore[arg-type]
                     for info, name in zip(infos, (thrown, caught), strict=True))  # fmt: skip
    return base_offset(module, first, second)


@pytest.mark.parametrize(("thrown", "caught", "offset"), [
    ("1D", "1D", 0), ("1D", "1C", 0), ("1D", "1A", 0), ("1D", "1B", 16), ("1E", "1A", None), ("1A", "1D", None),
    ("P1D", "P1C", 0), ("Pc", "PKc", 0), ("Pc", "Pv", 0), ("PKc", "Pc", None), ("i", "l", None), ("i", "i", 0),
    ("St12out_of_range", "St11logic_error", 0), ("St12out_of_range", "St9exception", 0),
    ("St12out_of_range", "St13runtime_error", None), ("St20bad_array_new_length", "St9exception", 0),
])  # fmt: skip
def test_bases(thrown: str, caught: str, offset: int | None) -> None:
    assert _offset(thrown, caught) == offset


def test_places_that_only_the_program_knows() -> None:
    with pytest.raises(ValueError, match="`_ZTI1A` is a virtual base of `_ZTI1V`"):
        _offset("1V", "1A")
    with pytest.raises(ValueError, match="points into the middle"):
        _offset("P1D", "P1B")


def test_names() -> None:
    assert symbol(GlobalVariable("_ZTISt9exception.12", None, None, True)) == "_ZTISt9exception"  # type: ignore[arg-type]
    assert is_pointer(_module().globals["_ZTIP1D"])
    assert not is_pointer(_module().globals["_ZTI1D"])
