"""Every limit is refused with the way to raise it, and raising it helps."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import irgrad
from irgrad import engine
from irgrad.engine.support import limits
from irgrad.engine.support.limits import DEFAULTS, limit, within_time
from irgrad.rules.errors import IRGradError, LimitExceeded

SQUARE = "define double @f(double %x) {\n  %r = fmul double %x, %x\n  ret double %r\n}\n"
FOUR_PARTS = r".*\n(  in +.*\n)?  because .*limit is \d.*\n  to fix +.*IRGRAD_MAX_"


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))


def _gradient() -> float:
    return float(engine.grad(irgrad.load(SQUARE, language="ll").kernel("f", "f64(f64 x)"))(3.0))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("TEXT", len(SQUARE) - 1, "the IR text is too long"),
        ("INSTRUCTIONS", 1, "the module has too many instructions"),
        ("INSTRUCTIONS", 8, "the derivative of `f` has too many instructions"),
    ],
)
def test_too_much_is_refused(name: str, value: int, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"IRGRAD_MAX_{name}", str(value))
    with pytest.raises(LimitExceeded, match=says + FOUR_PARTS + name):
        _gradient()
    monkeypatch.setenv(f"IRGRAD_MAX_{name}", "100000")
    assert _gradient() == 6.0


def test_deriving_for_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    from irgrad.engine.pipeline import derivatives

    def endless(*_: object, **__: object) -> None:
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # what the work itself catches does not save it
                continue

    monkeypatch.setenv("IRGRAD_MAX_SECONDS", "0.1")
    with monkeypatch.context() as patched, pytest.raises(
        LimitExceeded, match="differentiating `f` takes too long" + FOUR_PARTS + "SECONDS"
    ):
        patched.setattr(derivatives, "derive", endless)
        _gradient()
    monkeypatch.setenv("IRGRAD_MAX_SECONDS", "100")
    assert _gradient() == 6.0


def test_a_compiler_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_MAX_SECONDS", "1e-3")
    with pytest.raises(LimitExceeded, match=r"the compiler takes too long\n.*0.001 s\n.*IRGRAD_MAX_SECONDS"):
        irgrad.load("double f(double x) { return x; }")


def test_work_in_time_is_left_alone() -> None:
    assert within_time(lambda: 5, "this") == 5
    with pytest.raises(KeyError):
        within_time(lambda: {}["nothing"], "this")


def test_only_the_thread_at_work_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_MAX_SECONDS", "0.05")
    caught: list[BaseException] = []

    def endless() -> None:
        while True:
            time.sleep(0.005)

    def run() -> None:
        try:
            within_time(endless, "this")
        except LimitExceeded as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert not thread.is_alive() and len(caught) == 1


def test_an_expiry_that_something_swallowed_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_MAX_SECONDS", "0.05")
    swallowed: list[int] = []

    def work() -> None:
        while True:
            try:
                time.sleep(0.005)
            except limits._Expired:
                if swallowed:
                    raise
                swallowed.append(1)

    with pytest.raises(LimitExceeded):
        within_time(work, "this")
    assert swallowed


def test_nothing_is_sent_once_the_work_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the time is up in the very moment in which the work is done."""
    original, calls = limits._Guard.leave, []

    def late(guard: limits._Guard) -> None:
        calls.append(guard)
        if len(calls) == 1:
            raise limits._Expired
        original(guard)

    monkeypatch.setattr(limits._Guard, "leave", late)
    with pytest.raises(LimitExceeded):
        within_time(lambda: 5, "this")
    assert calls[0].over.is_set()
    calls[0].join(30)
    assert not calls[0].is_alive()


def test_the_interpreter_is_as_before() -> None:
    """CPython 3.11 runs in circles under a tracer when an asynchronous exception was announced and taken back."""
    code = (
        "import sys, re\nfrom irgrad.engine.support.limits import within_time\nwithin_time(lambda: 5, 'this')\n"
        "count = 0\n"
        "def trace(frame, event, arg):\n    global count\n    count += 1\n    return trace\n"
        "def work():\n    total = 0\n    for k in range(100):\n        total += len([x for x in range(k)])\n"
        "    return total\n"
        "sys.settrace(trace)\nwork()\nsys.settrace(None)\nprint(count > 100)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.parametrize("text", ["many", "-3", "0", "nan"])
def test_what_is_no_limit_is_said(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_MAX_TEXT", text)
    with pytest.raises(IRGradError, match=rf"`IRGRAD_MAX_TEXT={text}` is no limit\n.*positive number.*\n.*unset"):
        limit("TEXT")
    monkeypatch.setenv("IRGRAD_MAX_TEXT", "")
    assert limit("TEXT") == DEFAULTS["TEXT"]
