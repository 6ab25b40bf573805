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
