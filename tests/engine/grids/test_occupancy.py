"""Threads of a multiprocessor by registers, and blocks that fill it."""

from __future__ import annotations

import pytest

from irgrad.engine.grids.occupancy import WARP, block_of, resident_threads


def test_threads_of_a_multiprocessor() -> None:
    """As CUDA's occupancy calculator says."""
    known = {1: 2048, 16: 2048, 32: 2048, 33: 1632, 64: 1024, 128: 512, 168: 384, 200: 320, 255: 256}
    assert {n: resident_threads(n) for n in known} == known


@pytest.mark.parametrize(("registers", "block"), [(32, 128), (64, 128), (128, 128), (255, 128), (200, 64), (184, 32)])
def test_blocks_fill_it(registers: int, block: int) -> None:
    """200 registers leave room for 10 warps: two blocks of 4 would use 8; 184 for 11, which only single warps fill."""
    assert block_of(registers) == block


def test_no_smaller_block_holds_more() -> None:
    for registers in range(1, 256):
        most, block = resident_threads(registers), block_of(registers)
        held = {size: min(most // size, 32) * size for size in (128, 64, 32)}
        assert held[block] == max(held.values()) and block % WARP == 0
