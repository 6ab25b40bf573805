"""What a function allocates for its callers is another object in each call: in the analyses, and in its gradients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.own_memory import separate_calls

HEAD = "declare noalias ptr @malloc(i64)\ndeclare void @free(ptr)\n"
MAKE = """define internal ptr @make(i64 %n) {
  %p = call ptr @malloc(i64 %n)
  ret ptr %p
}
"""
TWICE = """define void @f(i64 %n) {
  %a = call ptr @make(i64 %n)
  %b = call ptr @make(i64 %n)
  ret void
}
"""
OUT = "define internal void @make(ptr %out, i64 %n) {\n  %p = call ptr @malloc(i64 %n)\n"
CALLS = "define void @f(ptr %o, ptr %q, i64 %n) {\n" + "  call void @make(ptr %o, i64 %n)\n" * 2 + "  ret void\n}\n"
FILL = OUT + "  store ptr %p, ptr %out\n  ret void\n}\n"
COPIED = {
    "stored behind an argument": (FILL + CALLS, 1),
    "by a function between": (FILL + """define internal void @outer(ptr %o, i64 %n) {
  %q = getelementptr i8, ptr %o, i64 8
  call void @make(ptr %q, i64 %n)
  ret void
}
""" + CALLS.replace("@make", "@outer"), 2),
    "its address is used too": (FILL + CALLS.replace("  ret void", "  store ptr @make, ptr null\n  ret void"), 2),
}  # fmt: skip
LINK = """define internal void @make(ptr %list, i64 %n) {
  %first = load ptr, ptr %list
  %node = getelementptr i8, ptr %list, i64 %n
  store ptr %first, ptr %node
  ret void
}
"""
LEFT = {
    "finds, and links nothing": LINK.replace("store ptr %first", "store ptr null") + CALLS,
    "returned": MAKE + TWICE,
    "one call": FILL + CALLS.replace("  call void @make(ptr %o, i64 %n)\n" * 2, "  call void @make(ptr %o, i64 %n)\n"),
    "freed inside": OUT + "  call void @free(ptr %p)\n  ret void\n}\n" + CALLS,
    "in a variable of its own": OUT + "  %v = alloca ptr\n  store ptr %p, ptr %v\n  ret void\n}\n" + CALLS,
    "nothing allocated": "define internal ptr @make(i64 %n) {\n  ret ptr null\n}\n" + TWICE,
    "calls itself": FILL.replace("  ret", "  call void @make(ptr %p, i64 %n)\n  ret") + CALLS,
    "seen from outside": FILL.replace("internal ", "") + CALLS,
    "called often": FILL + CALLS.replace("  ret", "  call void @make(ptr %q, i64 %n)\n" * 7 + "  ret"),
    "long": FILL.replace("  ret", "".join(f"  %s{i} = add i64 %n, {i}\n" for i in range(500)) + "  ret") + CALLS,
}  # fmt: skip
MATRICES = Path(__file__).with_name("matrices.cpp")
PRODUCT = "f64(f64[n,n] x, f64[n,n] y, i64 n)"


def test_what_links_elements_is_a_function_of_each_call() -> None:
    """Else a tree of one map might hold the nodes of all others."""
    module, made = _separated(LINK + CALLS)
    assert made == 1
    assert len({i.callee_name for i in module.functions["f"].instructions() if i.is_call}) == 2


def _separated(text: str) -> tuple[Module, int]:
    module = read(HEAD + text)
    made = separate_calls(module, module.functions["f"])
    assert not verify_module(module)
    return module, made


@pytest.mark.parametrize("what", COPIED)
def test_each_call_has_its_function(what: str) -> None:
    text, want = COPIED[what]
    module, made = _separated(text)
    callees = [i.callee_name for fn in module.functions.values() for i in fn.instructions() if i.is_call]
    assert made == want
    assert sum(name == "malloc" for name in callees) == 2 + (what == "its address is used too")
    assert all(callees.count(name) == 1 for name in callees if name not in ("malloc", "free"))


@pytest.mark.parametrize("what", LEFT)
def test_others_stay(what: str) -> None:
    assert _separated(LEFT[what])[1] == 0


def test_vectors_of_vectors_of_one_constructor() -> None:
    """A product of matrices keeps what it would keep if they were arrays: no element for each multiplication."""
    gradient = ig.grad(ig.load(str(MATRICES)).kernel("product", PRODUCT), ["x", "y"])
    rng, tapes = np.random.default_rng(1), []
    for n in (7, 28):
        x, y = rng.uniform(-1, 1, (2, n, n))
        by_x, by_y = gradient(x, y)
        c = x @ y
        np.testing.assert_allclose(by_x, 2 * c @ y.T, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(by_y, 2 * x.T @ c, rtol=1e-11, atol=1e-12)
        tapes.append(gradient.tape_bytes)
    assert tapes[1] < 20 * tapes[0]
