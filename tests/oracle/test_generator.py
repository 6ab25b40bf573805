"""Random kernels: deterministic, every feature occurs, any statement can be dropped."""

from __future__ import annotations

import numpy as np
import pytest

from irgrad.engine.ir.text.reader import read
from oracle.build import to_ir
from oracle.differences import Subject
from oracle.generator import FEATURES, HEADER, SHAPED, SHAPES, STRAIGHT, Kernel, generate, shrink, source_file


def test_a_seed_is_a_kernel() -> None:
    """The same seed gives the same text, another seed another text."""
    assert generate(5).source == generate(5).source
    assert generate(5).source.replace("k5", "k6") != generate(6).source


def test_every_feature_occurs() -> None:
    """200 kernels hold each feature at least five times."""
    seen = [f for s in range(200) for f in generate(s).features]
    assert all(seen.count(f) >= 5 for f in FEATURES)


def test_every_shape_occurs() -> None:
    """And only where it was announced, so that older seeds stay the kernels that they were."""
    seen = [f for s in range(100) for f in generate(SHAPED + s).features]
    assert all(seen.count(f) >= 5 for f in SHAPES)
    assert not any(generate(s).features & set(SHAPES) for s in range(20))


def test_every_part_of_straight_kernels_occurs() -> None:
    seen = [f for s in range(100) for f in generate(STRAIGHT + s).features]
    assert all(seen.count(f) >= 5 for f in ("structs", "helpers", "loops", "selects", "complex", "vectors"))
    assert any("[4]" in generate(STRAIGHT + s).source for s in range(20))


@pytest.mark.parametrize("first", [42_000, SHAPED + 500, STRAIGHT + 500])
def test_values_and_derivatives_are_tame(first: int) -> None:
    """Values within 50, derivatives within 10^4 and not all zero: nine kernels in ten at least."""
    kernels = [generate(first + s) for s in range(60)]
    module = read(to_ir(source_file(kernels)))
    moving = 0
    for k in kernels:
        subject = Subject(module, k.name, k.signature)
        inputs = k.sample(np.random.default_rng(k.seed))
        values, tangents = subject.directional(inputs, {n: np.ones(np.shape(inputs[n])) for n in k.wrt})
        assert all(np.abs(v).max() < 50 for v in values.values()), k.source
        assert all(np.abs(t).max() < 1e4 for t in tangents.values()), k.source
        moving += any(np.abs(t).max() > 1e-6 for t in tangents.values())
    assert moving >= 54


def test_shrink_keeps_what_fails() -> None:
    """A kernel that must contain `cosh` shrinks to few statements and still compiles."""
    kernel = next(k for k in map(generate, range(400)) if "memmove(" in k.source and len(k.body) >= 6)

    def fails(k: Kernel) -> bool:
        to_ir(HEADER + k.source)
        return "memmove(" in k.source

    small = shrink(kernel, fails)
    assert "memmove(" in small.source
    assert len(small.body) == 1
