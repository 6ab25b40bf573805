"""Random C++ programs with containers, through `lib.kernel` and through `irgrad run`: against differences, forward
against reverse. The default share is small, since a program compiles for seconds."""

from __future__ import annotations

import os

import numpy as np
import pytest
from shares import fast

from .containers import MAIN, both, level_of, refusal, source, verdict

COUNT = max(3, int(os.environ.get("IRGRAD_FUZZ", "40")) // 200)
FIRST = int(os.environ.get("IRGRAD_FUZZ_SEED", "0")) + 1
REFUSED = ("the bytes that are moved here are used as", "a part of an active float is overwritten with",
           "a pointer moves by the distance of two allocations",
           "the bits of an active float are used as a number")  # fmt: skip
"""Words of the refusals that are known of: strings beside numbers, deques from two iterators, variants."""


@pytest.mark.parametrize("seed", fast(1, range(FIRST, FIRST + COUNT)))
def test_programs(seed: int) -> None:
    kind, why = both(seed)
    assert kind != "wrong", why
    assert kind == "ok" or any(words in why for words in REFUSED), why


def test_programs_are_the_same_for_a_seed_and_broad() -> None:
    assert source(5) == source(5)
    assert {level_of(seed) for seed in range(20)} == {"O0", "O1", "O2", "O3"}
    texts = "".join(source(seed) for seed in range(200))
    for word in ("vector", "deque", "list", "map", "unordered_map", "set", "array", "optional", "variant", "pair",
                 "tuple", "string", "unique_ptr", "shared_ptr", "function", "priority_queue"):  # fmt: skip
        assert f"std::{word}<" in texts or f"std::{word} " in texts, word
    for word in ("virtual", "dynamic_cast", ".push_back(", ".erase(", "std::sort(", "std::swap(", "std::move("):
        assert word in texts, word
    assert "__enzyme_autodiff" in MAIN


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from irgrad import engine

    plain = 'extern "C" double loss(const double *x, long n) { return x[0] * x[1] + n; }'
    assert verdict(plain, "O1") == ("ok", "")
    monkeypatch.setattr(engine, "grad", lambda kernel: lambda x: np.ones(6))
    assert verdict(plain, "O1")[0] == "wrong"


def test_refusals_are_counted_without_names() -> None:
    assert refusal("reverse: a part of %x is 3 bytes (in f)\nmore") == "reverse: a part of # is # bytes #"
