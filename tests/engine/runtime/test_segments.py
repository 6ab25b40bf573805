"""The arithmetic of binomial checkpointing, and states that are dropped."""

from __future__ import annotations

import ctypes
from math import comb

import numpy as np

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.runtime.segments import PREFIX, SEGMENTS


def function(name: str, result: type[ctypes.c_int64] | None, parameters: list[type]) -> object:
    text = SEGMENTS[PREFIX + name].replace("define internal", "define")
    unit = compile_module(text, [PREFIX + name])
    made = ctypes.CFUNCTYPE(result, *parameters)(unit.address(PREFIX + name))
    made.unit = unit  # type: ignore[attr-defined]
    return made


def test_units_ahead() -> None:
    ahead = function("ahead", ctypes.c_int64, [ctypes.c_int64, ctypes.c_int64])
    for units in range(1, 60):
        for free in range(8):
            found = ahead(units, free)  # type: ignore[operator]
            if free == 0:
                assert found == units  # to the end
            elif free >= units - 1:
                assert found == 1  # a state for each
            else:
                states = free + 1
                runs = next(t for t in range(1, 99) if comb(states + t, states) >= units)
                assert found == comb(states + runs - 1, states)
                assert 1 <= found < units


def test_states_that_are_dropped() -> None:
    thin = function("thin", None, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p])
    states = np.zeros((7, 2), np.int64)  # the last one, place
    for n in range(7):
        states[n] = states[n - 1].ctypes.data if n else 0, 3 * n
    top, spare, free = (np.array([v]) for v in (states[6].ctypes.data, 0, 0))
    thin(top.ctypes.data, 6, spare.ctypes.data, free.ctypes.data)  # type: ignore[operator]
    assert free[0] == 3

    def places(first: int) -> list[int]:
        found = []
        while first:
            row = next(r for r in states if r.ctypes.data == first)
            found.append(int(row[1]))
            first = int(row[0])
        return found

    assert places(int(top[0])) == [18, 12, 6, 0]
    assert sorted(places(int(spare[0]))) == [3, 9, 15]
