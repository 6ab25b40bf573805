"""Where the end of a tree or a list lies in a variable, and what may be reached from it: by itself,
and in gradients of classes with maps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.memory.sentinels import end_of_sentinel
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.ir.model import Instruction, Module
from irgrad.engine.ir.text.reader import read

TYPES = """
%"class.std::__1::__tree_end_node" = type { ptr }
%struct.anon.1 = type { %"class.std::__1::__tree_end_node" }
%"class.std::__1::__tree.2" = type { ptr, %struct.anon.1, i64 }
%"class.std::__1::map" = type { %"class.std::__1::__tree.2" }
%struct.Part = type { double, %"class.std::__1::map", i64, double }
%struct.Own = type { double, %struct.end, i64, double }
%struct.end = type { ptr, i64, i64 }
declare ptr @malloc(i64)
"""
WALK = """
define void @f(i1 %c, double %x) {
  %part = alloca TYPE
  %end = getelementptr i8, ptr %part, i64 16
  %node = call ptr @malloc(i64 48)
  %either = select i1 %c, ptr %end, ptr %node
  %value = getelementptr i8, ptr %either, i64 DISTANCE
  store double %x, ptr %value
  %count = getelementptr i8, ptr %end, i64 DISTANCE
  store double %x, ptr %count
  ret void
}
"""


def named(module: Module) -> dict[str, Instruction]:
    """The instructions of `f` by their names."""
    return {str(i.name): i for i in module.functions["f"].instructions()}


@pytest.mark.parametrize(
    ("type_", "place", "end"),
    [('%"class.std::__1::map"', 8, 16), ("%struct.Part", 16, 24), ("%struct.Part", 0, None), ("%struct.Part", 32, None),
     ("%struct.Part", 8, 32), ("[3 x %struct.Part]", 64, 72), ("[3 x %struct.Part]", 960, None),
     ("%struct.Own", 8, None)],
)  # fmt: skip
def test_parts_of_the_librarys_own_types(type_: str, place: int, end: int | None) -> None:
    """A map that begins at a place is a tree of the library; a member that the program has named is none."""
    module = read(TYPES + WALK.replace("TYPE", type_).replace("DISTANCE", "32"), roots=["f"])
    pointers = Pointers(module, module.functions["f"])
    assert end_of_sentinel(pointers.object_of[named(module)["part"]], place) == end


@pytest.mark.parametrize(("type_", "distance", "left"), [
    ("%struct.Part", 32, 1), ("%struct.Part", 8, 1), ("%struct.Own", 16, 2)])  # fmt: skip
def test_nothing_behind_the_end_is_an_elements(type_: str, distance: int, left: int) -> None:
    """Of a pointer that may be a node; what is moved from the place itself is another member of the variable."""
    module = read(TYPES + WALK.replace("TYPE", type_).replace("DISTANCE", str(distance)), roots=["f"])
    pointers = Pointers(module, module.functions["f"])
    ranges, values = Ranges(pointers), named(module)
    assert len(ranges.places(values["value"])) == left
    assert len(ranges.places(values["count"])) == 1
    assert len(ranges.places(values["either"])) == 2


PROGRAMS = Path(__file__).with_name("maps_in_classes.cpp")


@pytest.mark.long
@pytest.mark.parametrize("name", ["of_book", "of_graph", "of_queue", "of_moments"])
def test_gradients_of_classes_with_maps(name: str) -> None:
    """Numbers behind a map in a class are no parts of nodes: all of these were refused."""
    kernel = irgrad.load(PROGRAMS, opt="O2", flags=["-std=c++20"]).kernel(name, "f64(f64[n] x, i64 n)")
    x, h = np.array([0.5, 0.7, 1.1, 0.3, 0.9]), 1e-4
    steps = h * np.eye(5)
    want = [(kernel(x - 2 * e) - 8 * kernel(x - e) + 8 * kernel(x + e) - kernel(x + 2 * e)) / (12 * h) for e in steps]
    found = engine.grad(kernel)(x)
    np.testing.assert_allclose(found, want, rtol=1e-8, atol=1e-9)
    along = [engine.jvp(kernel, (x,), (e,))[1] for e in np.eye(5)]
    np.testing.assert_allclose(along, found, rtol=1e-12, atol=1e-13)
