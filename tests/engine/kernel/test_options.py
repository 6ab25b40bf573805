"""Options of kernels."""

from __future__ import annotations

import pytest

from irgrad.engine.kernel.options import TAPE_CHOICES, Options
from irgrad.rules.errors import IRGradError


def test_only_what_changes_the_code_is_in_the_text() -> None:
    assert {str(Options(tape=choice)) for choice in TAPE_CHOICES} == {"strict_fp=False"}
    assert str(Options(strict_fp=True)) == "strict_fp=True"


def test_words_that_tape_does_not_know() -> None:
    with pytest.raises(IRGradError) as info:
        Options(tape="always")
    assert info.value.because == "the choices are auto, store, recompute"


def test_strong_zero_is_another_derivative() -> None:
    assert "strong_zero" in str(Options(strong_zero=True)) != str(Options())


def test_the_memory_of_a_sample_on_a_device_is_no_negative_number() -> None:
    assert Options(device_tape=4096).device_tape == 4096
    assert str(Options(device_tape=4096)) == str(Options()), "the derivative itself is the same"
    with pytest.raises(IRGradError, match="device_tape=-1 is no number of bytes"):
        Options(device_tape=-1)


@pytest.mark.parametrize("block", [-32, 100, 2048])
def test_a_block_of_a_device_has_whole_warps(block: int) -> None:
    assert str(Options(device_block=64)) == str(Options()), "the derivative itself is the same"
    with pytest.raises(IRGradError, match=f"device_block={block} is no block of threads"):
        Options(device_block=block)


def test_iterations_make_another_derivative() -> None:
    assert "device" in str(Options(device=True)) != str(Options())
