"""The link step: which C++ library objects want, and what a linker's complaint looks like."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from irgrad.engine.codegen import vector_math
from irgrad.interop import linking
from irgrad.interop.cli import main
from irgrad.interop.command_line import read_command
from irgrad.interop.linking import absent, wraps
from irgrad.rules.errors import CompileError

PROGRAM = "int f(void);\nint main(void) { return f(); }\n"


def _object(folder: Path, name: str, source: str) -> str:
    (folder / name).write_text(source)
    image = folder / f"{name}.o"
    assert main(["cc", "-c", str(folder / name), "-o", str(image)]) == 0
    return str(image)


@pytest.mark.parametrize(("source", "library", "cpp"), [
    ("int f(void) { return 1; }", False, False),
    ("void *operator new(unsigned long);\nint *f() { return new int(3); }", False, True),
    ("namespace std { inline namespace __1 { struct V {}; } }\nint g(std::V &);\nint f(std::V &v) { return g(v); }",
     False, True),
    ("namespace std { inline namespace __1 { struct V { int get() const; }; } }\nint f(std::V &v) { return v.get(); }",
     True, True),
    ("namespace std { struct exception_ptr { ~exception_ptr(); }; }\nvoid f(std::exception_ptr &p) { p = {}; }",
     True, True),
])  # fmt: skip
def test_the_library_is_linked_that_the_objects_want(source: str, library: bool, cpp: bool, tmp_path: Path) -> None:
    wanted = linking.undefined([_object(tmp_path, "a.cpp" if cpp else "a.c", source)])
    assert linking.wants_libcxx(wanted) is library
    assert linking.wants_cpp(wanted) is cpp


def test_what_one_object_defines_the_others_need_not(tmp_path: Path) -> None:
    source = "namespace std { inline namespace __1 { struct V { int get() const; }; } }\n"
    user = _object(tmp_path, "user.cpp", source + "int f(std::V &v) { return v.get(); }")
    giver = _object(tmp_path, "giver.cpp", source + "int std::V::get() const { return 3; }")
    assert linking.wants_libcxx(linking.undefined([user]))
    assert not linking.wants_libcxx(linking.undefined([user, giver]))


def test_without_nm_the_names_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = _object(tmp_path, "a.cpp", "int *f() { return new int(3); }")
    monkeypatch.setattr(linking, "which", lambda _: None)
    assert linking.wants_cpp(linking.undefined([image]))


def test_the_linkers_complaint_is_shown(tmp_path: Path) -> None:
    image = _object(tmp_path, "main.c", PROGRAM)
    with pytest.raises(CompileError, match="does not link") as caught:
        linking.link(read_command([image]), [], tmp_path / "prog", shared=False)
    assert "undefined" in caught.value.because


@pytest.mark.parametrize("runtime", [True, False])
def test_a_program_of_cpp_links_with_the_systems_runtime(runtime: bool, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    if linking.which("cc") is None:
        pytest.skip("this system has no compiler driver to link with")
    image = _object(tmp_path, "a.cpp", "int main() { try { throw 3; } catch (int i) { return *new int(i); } }")
    if runtime:  # as where there is a C compiler only: the libraries are files
        found = linking.which
        monkeypatch.setattr(linking, "which", lambda name: None if name == "c++" else found(name))
        linking._system.cache_clear()
    linking.link(read_command([image]), [], tmp_path / "prog", shared=False)
    linking._system.cache_clear()
    assert subprocess.run([str(tmp_path / "prog")], check=False).returncode == 3


@pytest.mark.skipif(not vector_math.available(), reason="no libmvec (not x86-64 glibc)")
def test_vector_functions_are_found_without_a_driver_of_the_system(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    text = "double exp2(double); typedef double two __attribute__((vector_size(16))); two _ZGVbN2v_exp2(two);\n" \
           "int main(int n, char **words) { return (int)_ZGVbN2v_exp2((two){n, n + 1})[1]; }"
    image = _object(tmp_path, "main.c", text)
    monkeypatch.setattr(linking, "_system", lambda cpp: None)
    linking.link(read_command([image]), [], tmp_path / "prog", shared=False)
    assert subprocess.run([str(tmp_path / "prog")], check=False).returncode == 4


def test_wrap_words() -> None:
    words = ["-Wl,--wrap=a", "-Wl,--wrap,b,-O1", "-Xlinker", "--wrap", "-Xlinker", "c", "-lm", "-Wl,-wrap=a"]
    assert wraps(words) == ["a", "b", "c"]
    assert wraps([]) == wraps(["-lm"]) == []


WRAPPED = """#include <stdio.h>
double __enzyme_autodiff(void *, ...);
double sq(double), __real_sq(double), own(double);
double __wrap_sq(double x) { return x * __real_sq(x); }
double __wrap_own(double x) { return 0; }
double own(double x) { return sq(x); }
int main(void) { printf("%g %g %g\\n", sq(3), own(3), __enzyme_autodiff((void *)own, 3.0)); return 0; }
"""


@pytest.mark.parametrize("words", [["-Wl,--wrap=sq", "-Wl,--wrap=own"], ["-Xlinker", "--wrap", "-Xlinker", "sq"]])
def test_wrap_of_several_sources(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a source defines itself is not wrapped in it; derivatives follow."""
    monkeypatch.chdir(tmp_path)
    Path("p.c").write_text(WRAPPED)
    Path("q.c").write_text("double sq(double x) { return x * x; }\n")
    assert main(["cc", *words, "p.c", "q.c", "-o", "a"]) == 0
    assert subprocess.run(["./a"], check=True, capture_output=True, text=True).stdout == "27 27 27\n"


def test_what_nothing_defines(tmp_path: Path) -> None:
    """Objects, archives and shared libraries are asked; of a library that is not found nothing is known."""
    source = tmp_path / "part.c"
    source.write_text("double hook(double x) { return x; }\n")
    image, shared = tmp_path / "part.o", tmp_path / "libpart.so"
    for form, output in (("-c", image), ("-shared", shared)):
        assert main(["cc", form, str(source), "-o", str(output)]) == 0
    assert absent(["hook", "none", "cos"], ["-lm"]) == ["hook", "none"]
    assert absent(["hook", "none"], [str(image)]) == absent(["hook", "none"], [str(shared)]) == ["none"]
    assert absent(["hook", "none"], [f"-L{tmp_path}", "-lpart"]) == ["none"]
    assert absent(["hook", "none"], ["-lwhere_is_it"]) == []
