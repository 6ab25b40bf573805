"""The concrete classes have every member that the protocols of the sweeps name."""

from __future__ import annotations

import pytest
from handwritten.made import asked, module_of
from handwritten.protocols import lacks, members

from irgrad.engine.differentiate.forward.forward import Forward
from irgrad.engine.differentiate.forward.replay import Tangents, plan_of
from irgrad.engine.differentiate.reverse.reverse import Reverse
from irgrad.engine.differentiate.roots import root_function
from irgrad.engine.differentiate.shared import sweeps
from irgrad.engine.differentiate.shared.sweeps import (
    AdjointSweep,
    PrimalCopy,
    PrimalSweep,
    Recalled,
    TangentSweep,
)
from irgrad.engine.pipeline.derivatives import checked

SOURCE = "void f(double *x, double *o) { *o = x[0] * x[0]; }"


def _forward() -> tuple[Forward, Tangents]:
    unit, abi = checked(module_of(SOURCE, "f"), asked("f", "forward", ["dup", "dup"]))
    target = root_function(unit.module, "g", [])
    return Forward(unit, unit.root, target, abi), Tangents(unit, unit.root, target, abi, plan_of(unit))


def _reverse() -> Reverse:
    unit, abi = checked(module_of(SOURCE, "f"), asked("f", "reverse", ["dup", "dup"]))
    target = root_function(unit.module, "g", [])
    return Reverse(unit, unit.root, abi, target, target)


@pytest.mark.parametrize("protocol", [PrimalCopy, TangentSweep])
def test_sweeps_of_forward_mode(protocol: type) -> None:
    for sweep in _forward():
        assert not lacks(sweep, protocol)
        assert sweep.tangents


@pytest.mark.parametrize("protocol", [PrimalCopy, PrimalSweep])
def test_the_primal_sweep_of_reverse_mode(protocol: type) -> None:
    sweep = _reverse().sweep
    assert not lacks(sweep, protocol)
    assert not sweep.tangents


def test_the_reverse_sweep() -> None:
    reverse = _reverse()
    assert not lacks(reverse, AdjointSweep)
    assert not lacks(reverse.recall, Recalled)


def test_every_protocol_is_looked_at() -> None:
    named = {name for name, item in vars(sweeps).items() if getattr(item, "__module__", "") == sweeps.__name__}
    assert named == {"PrimalCopy", "PrimalSweep", "TangentSweep", "Recalled", "AdjointSweep"}
    assert members(PrimalSweep) > members(PrimalCopy) > {"b", "shadow", "zero_memory"}
    assert "caller_tape" in members(AdjointSweep)


def test_what_is_missing_or_takes_something_else_is_seen() -> None:
    class Almost:
        def value(self, value: object, more: object) -> None: ...
        def tape(self, call: object, more: object = None) -> None: ...

    assert lacks(Almost(), Recalled) == ["shadow", "value('value', 'more')"]
