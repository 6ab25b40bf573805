"""The table of calls from PyTorch."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: .ci/doors runs this")


def test_the_table_has_a_row_for_each_way() -> None:
    from benchmarks.torch_calls import table

    rows = table(1)
    assert [name for name, *_ in rows] == ["native entry", "NumPy", "tensor", "recorded", "backward"]
    assert all(mine > 0 for _, mine, _ in rows)
