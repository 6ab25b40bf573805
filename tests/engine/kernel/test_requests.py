"""Requests follow from slots and options."""

from __future__ import annotations

from samples import sample

from irgrad.engine.kernel.options import Options
from irgrad.engine.kernel.requests import request_of
from irgrad.engine.signature.slots import Step


def test_slots_and_options_become_a_request() -> None:
    slots = sample("product").primal.slots
    outputs = tuple(n for n, slot in enumerate(slots) if slot.role != "in")
    step = Step("pullback", (0, 2), 4)
    request = request_of("f", step, slots, outputs[0], Options(strict_fp=True), followed=True)
    assert (request.function, request.derivative, request.width) == ("f", "pullback", 4)
    assert [n for n, kind in enumerate(request.activity) if kind == "dup"] == [0, 2]
    assert request.outputs == outputs and request.discard == outputs[1:], "the status stays"
    assert request.strict_fp and request.followed and not request.checkpoint
    assert request.fuse and len(request.bytes_of) == len(slots)
    for options in (Options(bounded=False), Options(threads=2), Options(device=True)):
        plain = request_of("f", step, slots, outputs[0], options, followed=True)
        assert not plain.fuse and not plain.bytes_of
    assert request_of("f", Step("jvp", (0,), 1), slots, None, Options(), followed=False).discard == ()
