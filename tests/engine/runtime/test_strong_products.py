"""Bodies of products with a strong zero."""

from __future__ import annotations

from irgrad.engine.runtime.strong_products import link_strong


def test_bodies_of_vectors() -> None:
    text = link_strong("declare <4 x float> @irgrad.strong_mul_both.v4f32(<4 x float>, <4 x float>) #1\n")
    assert text.startswith("define internal <4 x float> @irgrad.strong_mul_both.v4f32(<4 x float> %a")
    assert "<4 x i1> %either" in text and "declare" not in text
    assert link_strong("declare double @f(double)\n") == "declare double @f(double)\n"
