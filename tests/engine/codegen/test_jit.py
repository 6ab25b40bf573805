"""Compiled units: right results, freed with the last reference, served from the disk cache."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from irgrad.engine.codegen import jit
from irgrad.engine.codegen.cache import CacheWarning
from irgrad.engine.codegen.jit import compile_module
from irgrad.rules.errors import IRInvalid, IRSyntaxError, LoadError, Unsupported

SQUARE = """
@offset = internal global double 0.5
define double @square(double %x) {
  %o = load double, ptr @offset
  %s = fmul double %x, %x
  %r = fadd double %s, %o
  ret double %r
}
define double @twice(double %x) {
  %r = fadd double %x, %x
  ret double %r
}
"""
LIBM = """
declare double @lgamma(double)
define double @f(double %x) {
  %r = call double @lgamma(double %x)
  ret double %r
}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _call(unit: jit.Compiled, name: str, x: float) -> float:
    return float(unit.function(name, ctypes.c_double, ctypes.c_double)(x))


def test_entries_are_called() -> None:
    unit = compile_module(SQUARE, ["square", "twice"])
    assert _call(unit, "square", 3.0) == 9.5
    assert _call(unit, "twice", 3.0) == 6.0
    assert _call(compile_module(LIBM, ["f"]), "f", 3.0) == pytest.approx(0.6931471805599453)


def test_constants_and_switch_tables_are_relocated() -> None:
    cases = " ".join(f"i32 {index}, label %case{index}" for index in range(12))
    blocks = "".join(f"case{index}:\n  ret double {index * index + 0.25}\n" for index in range(12))
    text = f"define double @f(i32 %k) {{\n  switch i32 %k, label %none [ {cases} ]\n{blocks}"
    text += "none:\n  ret double -1.0\n}"
    unit = compile_module(text, ["f"])
    function = unit.function("f", ctypes.c_double, ctypes.c_int)
    assert [function(index) for index in (0, 3, 11, 12)] == [0.25, 9.25, 121.25, -1.0]


def test_an_unknown_entry_is_named() -> None:
    unit = compile_module(SQUARE, ["square"])
    with pytest.raises(LoadError, match=r"`twice` is not an entry.*\n.*`square`"):
        unit.address("twice")
    with pytest.raises(LoadError, match="`cube` has no body"):
        compile_module(SQUARE, ["cube"])


def test_an_unresolved_symbol_is_refused_before_it_runs() -> None:
    text = LIBM.replace("lgamma", "not_anywhere")
    with pytest.raises(LoadError, match="`not_anywhere` is not resolved"):
        compile_module(text, ["f"])


def test_bad_text_is_refused() -> None:
    with pytest.raises(IRSyntaxError):
        compile_module("define double @f( {", ["f"])


def test_a_function_keeps_its_unit_alive() -> None:
    unit = compile_module(SQUARE, ["square"])
    function = unit.function("square", ctypes.c_double, ctypes.c_double)
    alive = weakref.ref(unit)
    del unit
    gc.collect()
    assert alive() is not None
    assert function(2.0) == 4.5
    del function
    gc.collect()
    assert alive() is None


def test_close_is_final() -> None:
    unit = compile_module(SQUARE, ["square"])
    unit.close()
    unit.close()
    with pytest.raises(LoadError, match="it is closed"):
        unit.address("square")


def test_the_last_reference_never_waits_for_a_compilation() -> None:
    """The garbage collector may drop it in a thread with locks that the compilation waits for."""
    unit = compile_module(SQUARE, ["square"])
    number = unit._number
    held, over = threading.Event(), threading.Event()

    def compilation() -> None:
        with jit.LLVM_LOCK:
            held.set()
            over.wait(60)

    other = threading.Thread(target=compilation)
    other.start()
    assert held.wait(60)
    del unit
    gc.collect()
    assert not over.is_set()
    assert number in jit._OPEN, "it is freed when the compilation is over"
    over.set()
    other.join()
    del other
    compile_module(SQUARE, ["twice"])
    assert number not in jit._OPEN


def test_the_second_compilation_comes_from_the_cache(store: Path) -> None:
    first = compile_module(SQUARE, ["square"])
    second = compile_module(SQUARE, ["square"])
    assert (first.cached, second.cached) == (False, True)
    assert first.image == second.image
    assert _call(second, "square", 3.0) == 9.5
    assert not compile_module(SQUARE, ["square"], strict_fp=True).cached, "options are part of the key"
    assert not compile_module(SQUARE, ["twice"]).cached
    assert not compile_module(SQUARE.replace("0.5", "0.75"), ["square"]).cached


def test_a_damaged_entry_is_compiled_again(store: Path) -> None:
    compile_module(SQUARE, ["square"])
    (entry,) = [path for path in store.rglob("*") if path.is_file()]
    data = entry.read_bytes()
    entry.write_bytes(data[: len(data) // 2])
    with pytest.warns(CacheWarning, match="damaged"):
        unit = compile_module(SQUARE, ["square"])
    assert not unit.cached
    assert _call(unit, "square", 3.0) == 9.5
    assert compile_module(SQUARE, ["square"]).cached


def test_a_second_process_runs_no_pass(store: Path) -> None:
    code = (
        "import irgrad.engine.codegen.jit as jit, irgrad.engine.codegen.optimise as optimise, ctypes, sys\n"
        "def never(*a, **k): raise SystemExit('a pass ran')\n"
        "if len(sys.argv) > 1: optimise.optimised_module = never\n"
        f"unit = jit.compile_module({SQUARE!r}, ['square'])\n"
        "print(unit.function('square', ctypes.c_double, ctypes.c_double)(3.0), unit.cached)\n"
    )
    environment = {**os.environ, "IRGRAD_CACHE_DIR": str(store)}
    for extra, want in (((), "9.5 False"), (("cached",), "9.5 True")):
        done = subprocess.run([sys.executable, "-c", code, *extra], env=environment, capture_output=True, text=True,
                              timeout=120, check=False)
        assert done.stdout.strip() == want, done.stderr


def test_threads_compile_at_once() -> None:
    barrier = threading.Barrier(8)
    results: list[float] = []

    def work(index: int) -> None:
        barrier.wait()
        for turn in range(5):
            text = SQUARE.replace("0.5", f"{index + turn}.0")
            results.append(_call(compile_module(text, ["square"], cache=False), "square", 2.0) - index - turn)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [4.0] * 40


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_compiling_does_not_leak() -> None:
    for _ in range(300):  # pools and arenas reach their size
        compile_module(SQUARE, ["square"])
    gc.collect()
    before = _resident()
    for _ in range(1000):
        compile_module(SQUARE, ["square"])
    gc.collect()
    assert _resident() - before < 1 << 20


def test_thread_local_variables_of_others_are_refused() -> None:
    body = "define double @f() {\n  %a = load double, ptr @t\n  store double 3.0, ptr @t\n  ret double %a\n}\n"
    with pytest.raises((Unsupported, LoadError), match="`t`"):
        compile_module("@t = external thread_local global double\n" + body, ["f"])
    assert compile_module("@t = internal thread_local global double 2.0\n" + body, ["f"]).function(
        "f", ctypes.c_double)() == 2  # fmt: skip


def test_a_function_without_defined_behaviour_is_refused() -> None:
    """LLVM leaves no code of it, and linking an empty unit would end the process."""
    with pytest.raises(IRInvalid, match=r"`f` has no defined behaviour\n +in +@f\n +because .*\n +to fix"):
        compile_module("define double @f(double %x) {\n  unreachable\n}\n", ["f"])
