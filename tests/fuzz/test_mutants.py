"""Bad modules never kill Python: the hostile set and 2,000 damaged modules through load, derivation and compilation."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fuzz.mutants import mutant, work
from fuzz.verdicts import Verdict, in_workers

pytestmark = pytest.mark.long

COUNT, PARTS = 2000, 4


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_modules(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE", "0")
    size = COUNT // PARTS
    verdicts = in_workers(work, [mutant(seed) for seed in range(part * size, (part + 1) * size)])
    assert len(verdicts) == size
    bad = [f"{v.name}: {v.kind}\n{v.detail}" for v in verdicts if v.kind != "ok"]
    assert not bad, "\n\n".join(bad)
    kinds = {v.detail for v in verdicts}
    assert {"compiled", "LoadError"} <= kinds, kinds


def _hostile() -> dict[str, str]:
    path = Path(__file__).parents[1] / "engine" / "ir" / "text" / "test_validate.py"
    spec = importlib.util.spec_from_file_location("hostile_set", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: text for name, (text, _) in module.HOSTILE.items()}


def _all_the_way(items: list[Any], report: Callable[[Any], None]) -> None:
    """Every function of a module: loaded, made a kernel, called, derived."""
    import irgrad
    from irgrad import engine

    for item in items:
        report(item.name)
        text, errors, library = item.detail, [], None
        try:
            library = irgrad.load(text, language="ll")
        except irgrad.IRGradError as error:
            errors.append(str(error))
        for name in library.functions() if library is not None else ():
            for step in ("call", "gradient"):
                try:
                    kernel = library.kernel(name)
                    arguments = [1.0] * len(kernel.signature.arguments)
                    kernel(*arguments) if step == "call" else engine.grad(kernel)(*arguments)
                except irgrad.IRGradError as error:
                    errors.append(str(error))
        four = all("because" in error and "to fix" in error for error in errors)
        report(Verdict(item.name, "ok" if four else "shapeless", "\n".join(errors)))


def test_the_hostile_set_all_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE", "0")
    texts = _hostile()
    verdicts = {v.name: v for v in in_workers(_all_the_way, [Verdict(n, "", t) for n, t in texts.items()])}
    assert verdicts.keys() == texts.keys()
    bad = [f"{v.name}: {v.kind}\n{v.detail}" for v in verdicts.values() if v.kind != "ok"]
    assert not bad, "\n\n".join(bad)
    harmless = {"module asm", "deep constant", "deep metadata", "deep structs", "huge global", "recursive type"}
    harmless.add("unresolved variable")  # the first have no function that could run, this one's load is never used
    silent = {v.name for v in verdicts.values() if not v.detail} - harmless
    assert not silent, f"no error: {silent}"
