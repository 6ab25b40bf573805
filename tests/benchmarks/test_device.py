"""The table of kernels for GPUs: a case of the table is accepted for every architecture, what is refused says why."""

from __future__ import annotations

import dataclasses
import re

import pytest

from benchmarks import device
from benchmarks.cases import CASES
from irgrad.engine.codegen import nvptx


@pytest.mark.long
@pytest.mark.skipif(nvptx.ptxas() is None, reason="ptxas is not installed")
def test_a_row() -> None:
    case = next(case for case in CASES if case.name.startswith("lstm"))
    row = device.row(case)
    assert len(re.findall(r"\d+ +\d+ +\d+(?=   |$)", row)) == len(device.ARCHITECTURES), row


def test_what_is_refused() -> None:
    case = next(case for case in CASES if case.operation == "grad")
    row = device.row(dataclasses.replace(case, wrt=("absent",)))
    assert row.startswith("refused: ")
