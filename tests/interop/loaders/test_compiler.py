"""The compiler: which one is taken, and that it is started once per content."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import irgrad
from irgrad.engine.codegen.cache import fingerprint
from irgrad.interop.loaders import compiler, load
from irgrad.interop.loaders.compiler import Options, at_once, compile_source, find_compiler
from irgrad.rules.errors import CompileError, LoadError

SOURCE = '#include "h.h"\ndouble f(double x) { return x * H; }\n'


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "h.h").write_text("#define H 2.0\n")
    (tmp_path / "f.c").write_text(SOURCE)
    return tmp_path / "f.c"


def _fake(tmp_path: Path, says: str) -> Path:
    path = tmp_path / "fakecc"
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_the_wheels_clang_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IRGRAD_CC", raising=False)
    assert find_compiler().name == "ziglang"


def test_headers_are_dependencies(source: Path) -> None:
    done = compile_source(source, "c", Options())
    assert not done.cached
    assert any(Path(path).name == "h.h" for path in done.dependencies)
    assert all(Path(path).name != "f.c" for path in done.dependencies)
    assert "target-cpu" not in done.text or '"target-cpu"="x86-64"' in done.text, "IR does not depend on this CPU"


def test_the_second_time_no_compiler_is_started(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_source(source, "c", Options())

    def never(*_: object, **__: object) -> object:
        raise AssertionError("the compiler was started")

    monkeypatch.setattr(subprocess, "run", never)
    second = compile_source(source, "c", Options())
    assert second.cached
    assert second.text == first.text
    with pytest.raises(AssertionError, match="was started"):
        compile_source(source, "c", Options(flags=("-DX",)))
    (source.parent / "h.h").write_text("#define H 3.0\n")
    with pytest.raises(AssertionError, match="was started"):
        compile_source(source, "c", Options())


def test_irgrad_cc(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zig = find_compiler().command["c"][0]
    monkeypatch.setenv("IRGRAD_CC", f"{zig} cc")
    assert find_compiler().command["c++"] == (zig, "c++")
    assert "define double @f" in compile_source(source, "c", Options()).text


def test_bitcode_of_an_older_clang_is_upgraded(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = find_compiler()
    monkeypatch.setattr(compiler, "find_compiler", lambda: replace(bundled, bitcode=True, identity="another"))
    done = compile_source(source, "c", Options())
    assert "define double @f" in done.text
    assert not done.cached


@pytest.mark.parametrize("says", ["clang version 99.0.0", "gcc (GCC) 13.2.0"])
def test_a_compiler_that_is_too_new_or_no_clang(says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CC", str(_fake(tmp_path, says)))
    with pytest.raises(LoadError, match=rf"not a clang of LLVM <= 22(.*\n)+.*{says.split(maxsplit=1)[0]}"):
        find_compiler()


def test_a_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CC", "/nowhere/clang")
    with pytest.raises(LoadError, match="`/nowhere/clang` was not found"):
        find_compiler()
    monkeypatch.delenv("IRGRAD_CC")
    monkeypatch.setattr(compiler.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(LoadError, match="pip install 'ziglang"):
        find_compiler()


def test_headers_that_come_with_irgrad_stand_behind_a_users_own(tmp_path: Path) -> None:
    source = tmp_path / "f.cpp"
    source.write_text("#include <enzyme/enzyme>\ndouble f(double x) { return x; }\n")
    found = compile_source(source, "c++", Options()).dependencies
    assert any(path.endswith("loaders/include/enzyme/enzyme") for path in found)
    own = tmp_path / "own" / "enzyme"
    own.mkdir(parents=True)
    (own / "enzyme").write_text("// a user's own\n")
    found = compile_source(source, "c++", Options(include=(str(own.parent),))).dependencies
    assert str(own / "enzyme") in found
    assert not any(path.endswith("loaders/include/enzyme/enzyme") for path in found)


def test_names_of_std_by_way_of_other_headers(tmp_path: Path) -> None:
    source = tmp_path / "f.cpp"
    source.write_text("#include <cmath>\ndouble f(double x) { return std::max(x, 1.0); }\n")
    assert "define" in compile_source(source, "c++", Options()).text
    source.write_text("#include <cmath>\ndouble f(double x) { return std::maximum(x, 1.0); }\n")
    with pytest.raises(CompileError) as caught:
        compile_source(source, "c++", Options())
    assert "no member named 'maximum'" in caught.value.because


COROUTINE = """
#include <coroutine>
struct products {
  struct promise_type {
    double value;
    products get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(double v) { value = v; return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};
static products of(const double *x, long n) {
  double a = 1;
  for (long i = 0; i < n; i++) { a *= x[i]; co_yield a; }
}
extern "C" double f(const double *x, long n) {
  auto row = of(x, n);
  double s = 0;
  for (row.handle.resume(); !row.handle.done(); row.handle.resume()) s += row.handle.promise().value;
  row.handle.destroy();
  return s;
}
"""


@pytest.mark.parametrize("level", [None, "O0", "O2"])
def test_coroutines(level: str | None) -> None:
    """The compiler makes functions of them; what it leaves to its passes is nothing to differentiate."""
    library = irgrad.load(COROUTINE, language="c++", opt=level, flags=["-std=c++20"])
    x = np.array([0.5, 2.0, 3.0])
    kernel = library.kernel("f", "f64(f64[n] x, i64 n)")
    assert kernel(x) == 4.5
    np.testing.assert_allclose(irgrad.grad(kernel)(x), [9.0, 2.0, 1.0])
    np.testing.assert_allclose(irgrad.jvp(kernel, (x,), (x,))[1], 0.5 + 2 * 1 + 3 * 3)


BROKEN_RULES = """
static __attribute__((noinline)) double number(double *q, long *p) { *q = 3.5; *p ^= 1L << 63; return *q; }
static __attribute__((noinline)) double address(double **q, float **p, double *a, double *b) {
  *q = a; *p = (float *)b; return **q;
}
#ifdef __cplusplus
extern "C"
#endif
double f(const double *x) {
  double y = x[0], a = x[1], b = x[2], *w;
  return x[1] * number(&y, (long *)&y) + address(&w, (float **)&w, &a, &b);
}
"""


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("how", [{"opt": "O0"}, {"flags": ["-O0"]}], ids=["opt", "flags"])
def test_without_optimisation_memory_may_be_two_types(how: dict[str, object], language: str) -> None:
    kernel = irgrad.load(BROKEN_RULES, language=language, **how).kernel("f", "f64(f64[3] x)")  # type: ignore[arg-type]
    x = np.array([0.5, 0.3, 1.2])
    np.testing.assert_allclose(kernel(x), 0.3 * -3.5 + 1.2, rtol=1e-14, err_msg="as clang's -O0 has it")
    np.testing.assert_array_equal(irgrad.grad(kernel)(x), [0, -3.5, 1])
    np.testing.assert_array_equal(irgrad.jvp(kernel, (x,), (np.ones(3),))[1], -2.5)


def test_types_of_the_librarys_own_members_are_kept() -> None:
    text = "\n".join([
        "  load ptr, ptr %a, !tbaa !1, !dbg !9", "  load i64, ptr %b, !tbaa !2", "  load i64, ptr %c, !tbaa !3",
        "  load ptr, ptr %d, !tbaa !8", '!8 = !{!10, !10, i64 0}', '!10 = !{!"p1 _ZTSNSt3__16__nodeE", !5, i64 0}',
        '!1 = !{!4, !5, i64 8}', '!2 = !{!5, !5, i64 0}', '!3 = !{!6, !5, i64 0}',
        '!4 = !{!"_ZTSNSt3__16__treeI1AEE", !5, i64 0, !5, i64 8}', '!5 = !{!"long", !7, i64 0}',
        '!6 = !{!"_ZTS4Mine", !5, i64 0}',
    ])  # fmt: skip
    found = compiler.weak_types(text).split("\n")
    assert found[:3] == ["  load ptr, ptr %a, !tbaa !1, !dbg !9", "  load i64, ptr %b, !irgrad.type !2",
                         "  load i64, ptr %c, !irgrad.type !3"]  # fmt: skip
    assert found[3:] == text.split("\n")[3:]


def test_several_sources_are_compiled_at_once() -> None:
    """Two of them meet; results stand in the order of the sources, and the first error is raised."""
    both = threading.Barrier(2, timeout=60)

    def make(number: int) -> int:
        if len(os.sched_getaffinity(0)) > 1:
            both.wait()
        return number * number

    assert at_once([1, 2, 3, 4], make) == [1, 4, 9, 16]
    with pytest.raises(CompileError, match=r"`first\.c`") as caught:
        at_once(["first.c", "second.c"], _fail)
    assert "second" not in str(caught.value)


def _fail(name: str) -> None:
    raise CompileError(f"`{name}` does not compile")


def test_a_header_is_read_once_for_all_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.h").write_text("#define ONE 1.0\n")
    for name in "abc":
        (tmp_path / f"{name}.c").write_text(f'#include "one.h"\ndouble {name}(void) {{ return ONE; }}\n')
    paths = [tmp_path / f"{name}.c" for name in "abc"]
    load(paths)
    read: list[str] = []

    def digest(path: str) -> str:
        read.append(path)
        return fingerprint(Path(path).read_bytes())

    monkeypatch.setattr(compiler, "_content_hash", digest)
    load(paths)
    assert len(read) == len(set(read)) == 1
    (tmp_path / "one.h").write_text("#define ONE 2.0\n")
    assert load(paths).kernel("b", "f64()")() == 2.0
