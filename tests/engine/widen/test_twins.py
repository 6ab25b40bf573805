"""Functions for all samples in place of those for one."""

from __future__ import annotations

from irgrad.engine.widen.twins import Twin

# x = A^-1 b by elimination, `s` a number; the functions for all samples add 1 to the derivative by `log` of one sample
# in each block, those for one sample 100


def test_twins_are_read_as_written() -> None:
    twin = Twin("reverse", "ss.a", "w...", (8, 4, 0, 0), True, {"BB.B": "f_all", ".B..": "f_some"})
    assert Twin.of(twin.text) == twin
