"""Every kernel of the table, forward and reverse, against the interpreter; marked ones forward over reverse.

The cases of one level run in worker processes when the first of them is asked for: a kernel that kills its process
fails its own test and no other.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz.driver import check
from fuzz.verdicts import Verdict, in_workers
from handwritten.cases import HEADER, Case, all_cases
from oracle.build import to_ir
from oracle.differences import Subject
from oracle.memory import Fault

pytestmark = pytest.mark.long

CASES = {c.name: c for c in all_cases()}
LEVELS = (None, "-O0", "-O2", "-O3")  # None: what load() does by itself
_verdicts: dict[Any, dict[str, Verdict]] = {}


def judge(case: Case, level: str | None, second: bool) -> Verdict:
    """One case at one level (the nearest that it allows); every exception becomes a verdict."""
    import irgrad
    from irgrad.engine.ir.text.reader import read

    source = HEADER + case.source
    if level is not None and level not in case.levels:
        level = case.levels[-1 if level == "-O3" else 0]
    try:
        language = {"c": "c", "cc": "c++"}[case.language]
        library = irgrad.load(source, opt=level and level.removeprefix("-"), flags=case.flags, language=language)
        kernel = library.kernel(case.function, case.signature)
        subject = Subject(read(to_ir(source, case.oracle, case.flags, case.language)), case.function, case.signature)
        inputs = case.inputs()
        if second:
            return check_second(case, kernel, subject, inputs)
        return check(kernel, subject, inputs, case.active, case.tolerance, single=case.tolerance > 1e-8)
    except irgrad.IRGradError as e:
        return Verdict(case.name, "refused", f"{type(e).__name__}: {e}")
    except Fault as e:
        return Verdict(case.name, "rejected", f"the oracle stopped: {e}")
    except Exception:
        return Verdict(case.name, "error", traceback.format_exc(limit=-6))


def check_second(case: Case, kernel: Any, subject: Subject, inputs: dict[str, Any]) -> Verdict:
    """hvp against differences of the oracle's exact gradient."""
    from irgrad import engine

    rng = np.random.default_rng(1)
    name = case.active[0]
    v = rng.uniform(-1, 1, np.shape(inputs[name]))
    order = [p.name for p in subject.signature.arguments]
    got = engine.hvp(kernel, [inputs[n] for n in order], v if np.ndim(v) else float(v), wrt=name)

    def gradient(t: float) -> Any:
        return subject.jacobian({**inputs, name: inputs[name] + t * v}, [name])["return", name][0]

    h = 1e-3
    want = (8 * (gradient(h) - gradient(-h)) - (gradient(2 * h) - gradient(-2 * h))) / (12 * h)
    gap = np.abs(np.reshape(got, -1) - want).max() / max(1.0, np.abs(want).max())
    return Verdict(case.name, "ok" if gap < 1e-8 else "wrong", f"hvp: got {got}, want {want}")


def _verdict(request: pytest.FixtureRequest, case: Case, level: str | None, second: bool = False) -> Verdict:
    key = (level, second)
    if case.name not in _verdicts.get(key, {}):
        wanted = {
            item.callspec.params["name"]
            for item in request.session.items
            if isinstance(item, pytest.Function)
            and item.function is request.function
            and item.callspec.params.get("level") == level
        }

        def work(cases: list[Any], report: Callable[[Any], None]) -> None:
            for c in cases:
                report(c.name)
                report(judge(c, level, second))

        chosen = [c for n, c in CASES.items() if n in wanted]
        _verdicts[key] = {v.name: v for v in in_workers(work, chosen)}
    return _verdicts[key][case.name]


def _levels(*levels: str | None) -> list[Any]:
    """Cases of one level run together, so they belong to one worker of pytest-xdist."""
    return [pytest.param(level, marks=pytest.mark.xdist_group(str(level))) for level in levels]


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("level", _levels(None, "-O3"))
def test_first_derivatives(name: str, level: str | None, request: pytest.FixtureRequest) -> None:
    """Value, forward, reverse and the adjoint identity."""
    case = CASES[name]
    verdict = _verdict(request, case, level)
    assert verdict.kind == "ok", f"{verdict.kind}: {verdict.detail}\n{case.source}"


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("level", _levels("-O0", "-O2"))
def test_first_derivatives_of_other_levels(name: str, level: str, request: pytest.FixtureRequest) -> None:
    """The same from source that the compiler optimised otherwise."""
    case = CASES[name]
    verdict = _verdict(request, case, level)
    assert verdict.kind == "ok", f"{verdict.kind}: {verdict.detail}\n{case.source}"


@pytest.mark.xdist_group("second")
@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.second])
def test_second_derivatives(name: str, request: pytest.FixtureRequest) -> None:
    """Forward over reverse: a Hessian-vector product."""
    verdict = _verdict(request, CASES[name], None, second=True)
    assert verdict.kind == "ok", f"{verdict.kind}: {verdict.detail}\n{CASES[name].source}"
