"""Colours of columns, and patterns."""

from __future__ import annotations

import numpy as np

from irgrad.engine.functions.colouring import Pattern, colours, count


def test_greedy_colours() -> None:
    """Columns that share a row differ; empty columns have none."""
    rows, cols = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 3, 0])
    colour = colours(rows, cols, 5)
    assert colour[0] != colour[1] and colour[0] != colour[3] and colour[2] == colour[4] == -1
    assert colour.max() == 1
    assert count(colour) == 2 and count(np.array([], np.int64)) == 0


def test_columns_of_one_colour_share_no_row() -> None:
    rng = np.random.default_rng(0)
    dense = rng.random((30, 40)) < 0.1
    colour = colours(*np.nonzero(dense), 40)
    for c in range(count(colour)):
        assert (dense[:, colour == c].sum(1) <= 1).all()


def test_patterns_are_sorted_sets() -> None:
    pattern = Pattern.of([1, 0, 1], [2, 1, 2], (2, 3))
    assert pattern.rows.tolist() == [0, 1] and pattern.cols.tolist() == [1, 2]
    more = pattern.joined(Pattern.of([0, 0], [0, 2], (2, 3)), (2, 3))
    assert more.beyond(pattern, (2, 3)) == "(0, 0), (0, 2)"
    assert more.beyond(pattern, (2, 3), most=1) == "(0, 0) and 1 more"
