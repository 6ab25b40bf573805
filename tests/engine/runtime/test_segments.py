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


def test_pieces_behind_addresses() -> None:
    """Those of a nest of addresses, in any order and some of them twice, are joined where they meet."""
    one, other = ctypes.c_int64, ctypes.c_void_p
    note = function("note", None, [other, one, other, *([one] * 12)])
    join = function("join", None, [other])
    memory, draw = np.zeros(6000, np.uint8), np.random.default_rng(3)
    begin = memory.ctypes.data
    for _ in range(40):
        table = begin + 10 * draw.permutation(590)[:128]
        pieces, wanted = np.zeros((3000, 2), np.int64), np.zeros(6000, bool)
        for _ in range(draw.integers(1, 4)):
            runs, low, far = (int(draw.integers(0, top)) for top in (3, 8, 30))
            counts = [int(draw.integers(0, 4)) for _ in range(3)]
            steps = [8 * int(draw.integers(0, 10)) for _ in range(3)]
            levels = [v for c, s in zip(counts, steps, strict=True) for v in (c, s, 0, 0)][:-2]
            note(pieces.ctypes.data, runs, table.ctypes.data, *levels, low, low + far)  # type: ignore[operator]
            for at in np.ndindex(*(c + 1 for c in counts)) if runs else ():
                row = int(table[sum(i * s for i, s in zip(at, steps, strict=True)) // 8]) - begin + low
                wanted[row : row + far] = True
        join(pieces.ctypes.data)  # type: ignore[operator]
        kept, total = pieces[0]
        found = np.zeros(6000, bool)
        for address, size in pieces[1 : kept + 1]:
            found[address - begin : address - begin + size] = True
        assert np.array_equal(found, wanted)
        assert total == wanted.sum()
        assert (pieces[1:kept].sum(1) < pieces[2 : kept + 1, 0]).all()


def test_pieces_behind_tables_of_tables() -> None:
    """Rows 1 and 2 of each of two tables, which a third one leads to."""
    one, other = ctypes.c_int64, ctypes.c_void_p
    note = function("note", None, [other, one, other, *([one] * 12)])
    rows = np.arange(6, dtype=np.int64).reshape(2, 3) * 100 + 1000
    outer, pieces = np.array([rows[k].ctypes.data for k in (1, 0)]), np.zeros((9, 2), np.int64)
    note(pieces.ctypes.data, 1, outer.ctypes.data, 1, 8, 1, 8, 1, 8, 0, 0, 0, 0, 16, 24)  # type: ignore[operator]
    assert pieces[0, 0] == 4
    assert pieces[1:5].tolist() == [[row + 16, 8] for k in (1, 0) for row in rows[k, 1:].tolist()]
