"""`irgrad run` and `irgrad cc`: programs that check themselves, exit codes, arguments, forms of output."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from blas_cases import library as blas_library
from shares import fast

import irgrad
from irgrad.interop.cli import main
from irgrad.interop.driver import _signals, main_cc
from irgrad.interop.loaders.compiler import libstdcxx_headers
from irgrad.rules.errors import IRGradError
from irgrad.rules.layers import layer

PROGRAMS = Path(__file__).parent / "notation_programs"
PROJECT = Path(__file__).parent / "project"
IRGRAD = f"{sys.executable} -m irgrad.interop.cli cc"
SMALL = """#include <stdio.h>
#include <stdlib.h>
double __enzyme_autodiff(void *, double);
static double f(double x) { return x * x * x; }
double slope(double x) { return __enzyme_autodiff((void *)f, x); }
int main(int argc, char **argv) { return argc == 2 ? (int)slope(atof(argv[1])) : 99; }
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.c"
    path.write_text(SMALL)
    return str(path)


@pytest.mark.parametrize(("name", "level"), fast(8, [
    ("basics.c", ""), *((path.name, level) for level in ("-O2", "-O0") for path in sorted(PROGRAMS.iterdir())
                       if path.suffix != ".h")
]))  # fmt: skip
def test_programs_check_themselves(name: str, level: str, capfd: pytest.CaptureFixture[str]) -> None:
    status = main(["run", *([level] if level else []), str(PROGRAMS / name)])
    output = capfd.readouterr()
    assert status == 0, output.out + output.err
    assert output.out == "all right\n"


def test_arguments_and_exit_status_are_the_programs(small: str) -> None:
    assert main(["run", small, "-lm", "--", "4"]) == 48
    assert main(["run", "-O1", small]) == 99


def test_a_function_that_is_handed_on(tmp_path: Path) -> None:
    path = tmp_path / "given.c"
    path.write_text("double __enzyme_autodiff(void *, double);\nstatic double f(double x) { return x * x; }\n"
                    "double slope(double (*g)(double), double x) { return __enzyme_autodiff((void *)g, x); }\n"
                    "int main(void) { return (int)slope(f, 4.0); }\n")
    assert main(["run", str(path)]) == 8


def test_cc_writes_each_form(small: str, tmp_path: Path) -> None:
    program, shared, ir, image = (tmp_path / name for name in ("prog", "lib.so", "out.ll", "out.o"))
    for output in (program, shared, ir, image):
        assert main(["cc", small, "-o", str(output)]) == 0
    assert subprocess.run([str(program), "2"], check=False).returncode == 12
    slope = ctypes.CDLL(str(shared)).slope
    slope.argtypes, slope.restype = [ctypes.c_double], ctypes.c_double
    assert slope(3.0) == 27.0
    assert "define double @slope" in ir.read_text() or "@slope(" in ir.read_text()
    assert "__enzyme_autodiff(" not in ir.read_text()
    assert image.read_bytes()[:4] == b"\x7fELF"


def test_errors_are_printed_with_their_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.c"
    path.write_text("double __enzyme_autodiff(void *, ...);\ndouble f(double *x) { return *x; }\n"
                    "int main(void) { double x; return (int)__enzyme_autodiff((void *)f, &x); }\n")
    assert main(["run", str(path)]) == 1
    told = capsys.readouterr().err
    assert "irgrad.Unsupported: too few arguments" in told
    assert "wrong.c:3:" in told


def test_objects_archives_and_languages_are_mixed(small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("twice.cpp").write_text('extern "C" double slope(double);\ntemplate <class T> T two(T a) { return 2 * a; }\n'
                                 'extern "C" double twice(double x) { return two(slope(x)); }\n')
    Path("lib.c").write_text("double __enzyme_autodiff(void *, double);\n"
                             "static double f(double x) { return x * x * x; }\n"
                             "double slope(double x) { return __enzyme_autodiff((void *)f, x); }\n")
    Path("main.c").write_text("double twice(double);\nint main(void) { return (int)twice(2.0); }\n")
    assert main(["cc", "-c", "-std=c++17", "-std=c11", "lib.c", "twice.cpp", "-O2", "-g"]) == 0
    assert main(["run", "main.c", "lib.o", "twice.o"]) == 24
    assert main(["cc", "lib.o", "twice.o", "-shared", "-o", "libtwice.so"]) == 0
    assert main(["cc", "-o", "prog", "main.c", "-L.", "-ltwice", "-Wl,-rpath,."]) == 0
    assert subprocess.run(["./prog"], check=False).returncode == 24


def test_objects_of_flto_are_differentiated_across_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.c").write_text("double f(double x) { return x * x * x; }\n")
    Path("main.c").write_text("double f(double);\ndouble __enzyme_autodiff(void *, double);\n"
                              "int main(void) { return (int)__enzyme_autodiff((void *)f, 3.0); }\n")
    with pytest.raises(IRGradError, match=r"`f` has no body"):
        main_cc(["-c", "main.c"])
    assert main(["cc", "-c", "-flto", "main.c", "f.c"]) == 0
    assert main(["run", "main.o", "f.o"]) == 27


@pytest.mark.parametrize("body", ["raise(SIGTERM)", "abort()"])
def test_a_signal_is_told_as_a_shell_tells_it(body: str, tmp_path: Path) -> None:
    path = tmp_path / "dies.c"
    path.write_text(f"#include <signal.h>\n#include <stdlib.h>\nint main(void) {{ {body}; }}\n")
    assert main(["run", str(path)]) == 128 + (signal.SIGTERM if "raise" in body else signal.SIGABRT)


def test_signals_and_streams_are_the_programs(tmp_path: Path) -> None:
    path = tmp_path / "waits.c"
    path.write_text("""#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void stop(int n) { (void)n; _Exit(write(1, "stopped\\n", 8) - 3); }
int main(void) { char line[9]; signal(SIGTERM, stop); fputs(fgets(line, 9, stdin), stdout); fputs("err", stderr);
                 fflush(stdout); for (;;) ; }
""")
    command = [sys.executable, "-m", "irgrad.interop.cli", "run", str(path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert process.stdout.readline() == "hello\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "stopped\n"
        assert process.wait() == 5
        assert process.stderr.read().endswith("err")


def test_standard_input_is_a_source(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "irgrad.interop.cli", "run", "-x", "c", "-", "-DSTATUS=9", "--", "a"]
    source = "int main(int n, char **v) { return STATUS + n + (v[1][0] == 'a'); }"
    done = subprocess.run(command, input=source, text=True, check=False)
    assert done.returncode == 12


def test_pipes_and_devices_are_sources(small: str, tmp_path: Path) -> None:
    """As build systems and shells hand them over; a precise name where they cannot be."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(f"cat {small} > {pipe}", shell=True):
        assert main(["run", "-x", "c", str(pipe), "--", "4"]) == 48
    assert main(["cc", "-c", "-x", "c", "/dev/null", "-o", str(tmp_path / "null.o")]) == 0
    with pytest.raises(IRGradError, match="is a pipe"):
        irgrad.load(pipe, language="c")
    with pytest.raises(IRGradError, match="is a device"):
        irgrad.load("/dev/null", language="c")


@pytest.mark.parametrize(("words", "told"), [
    (["-S", "-emit-llvm"], b"define"), (["-S"], b".file"), (["-c"], b"ELF"), (["-c", "-emit-llvm"], b"BC"),
])  # fmt: skip
def test_a_dash_is_standard_output(words: list[str], told: bytes, small: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "irgrad.interop.cli", "cc", *words, "-o", "-", small]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert told in done.stdout
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize(("words", "told"), [
    (["-dumpmachine"], "linux"), (["-print-resource-dir"], "clang"), (["-print-target-triple"], "linux"),
    (["-print-multiarch"], "linux"),
    (["--version"], "clang version"), (["-dumpversion"], "."), (["-E", "-DX=31", "small.c"], "slope"),
    (["-M", "small.c"], "stdio.h"), (["-E", "-dM", "small.c"], "__clang__"), (["-print-search-dirs"], "libraries:"),
])  # fmt: skip
def test_questions_of_build_systems(words: list[str], told: str, small: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["cc", *(small if word == "small.c" else word for word in words)]) == 0
    assert told in capfd.readouterr().out


def test_rules_for_make(small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.h").write_text("#define N 3\n")
    Path("user.c").write_text('#include <math.h>\n#include "a b.h"\nint f(void) { return N; }\n')
    assert main(["cc", "-c", "user.c", "-MMD", "-MP", "-o", "sub.o"]) == 0
    assert Path("sub.d").read_text() == "sub.o: user.c \\\n  a\\ b.h\n\na\\ b.h:\n"
    assert main(["cc", "-c", "user.c", "-MD", "-MF", "x.dep", "-MT", "one", "-MT", "two", "-o", "sub.o"]) == 0
    assert Path("x.dep").read_text().startswith("one two: user.c \\\n") and "math.h" in Path("x.dep").read_text()


@pytest.mark.long
def test_make_builds_with_it(tmp_path: Path) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    shutil.copytree(PROJECT, tmp_path / "p")
    _built([make, f"CC={IRGRAD}", f"CXX={IRGRAD}"], tmp_path / "p")
    assert subprocess.run([tmp_path / "p/prog"], check=False).returncode == 0
    (tmp_path / "p/vec.h").write_text((PROJECT / "vec.h").read_text() + "/* changed */\n")
    told = _built([make, f"CC={IRGRAD}", f"CXX={IRGRAD}"], tmp_path / "p")
    assert "grad.c" in told and "norm.cpp" not in told  # by the rules that -MMD wrote


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Unix Makefiles", "Ninja"])
def test_cmake_builds_with_it(kind: str, tmp_path: Path) -> None:
    """Feature tests, a static and a shared library, C and C++."""
    cmake = shutil.which("cmake")
    if cmake is None or (kind == "Ninja" and shutil.which("ninja") is None):
        pytest.skip(f"cmake or {kind} is not installed")
    _built([cmake, "-G", kind, "-S", str(PROJECT), "-B", str(tmp_path)], tmp_path)
    _built([cmake, "--build", str(tmp_path)], tmp_path)
    assert subprocess.run([tmp_path / "prog"], check=False).returncode == 0


def _built(words: list[str], folder: Path) -> str:
    environment = {**os.environ, "CC": IRGRAD, "CXX": IRGRAD}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_static_program(small: str, tmp_path: Path) -> None:
    if not list(Path("/usr/lib").glob("**/libc.a")):
        pytest.skip("this system has no static C library")
    assert main(["cc", small, "-static", "-o", str(tmp_path / "prog")]) == 0
    image = (tmp_path / "prog").read_bytes()
    at, size, count = *struct.unpack_from("<Q", image, 32), *struct.unpack_from("<HH", image, 54)
    kinds = {struct.unpack_from("<I", image, at + size * number)[0] for number in range(count)}
    assert 3 not in kinds  # PT_INTERP: no dynamic linker
    assert subprocess.run([str(tmp_path / "prog"), "2"], check=False).returncode == 12


def test_sanitizers_are_refused(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-fopenmp", small, "--", "2"]) == 12
    assert main(["run", "-fsanitize=undefined", small]) == 1
    assert "`-fsanitize=undefined` is not supported" in capsys.readouterr().err


def test_syntax_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.c").write_text("int main(void) { return }\n")
    assert main(["cc", "-fsyntax-only", str(tmp_path / "bad.c")]) == 1
    assert "bad.c:1:25: error" in capsys.readouterr().err


def test_a_program_is_compiled_once(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["run", small, "--", "2"]) == 12
    monkeypatch.setattr("irgrad.interop.driver._lowered", lambda *_, **__: pytest.fail("it is in the cache"))
    assert main(["run", small, "--", "3"]) == 27


def test_libstdcxx_in_place_of_libcxx(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if not libstdcxx_headers():
        pytest.skip("libstdc++ is not installed")
    path = tmp_path / "which.cpp"
    path.write_text("""#include <iostream>
#include <vector>
double __enzyme_autodiff(void *, double);
static double f(double x) { std::vector<double> v(3, x); double s = 0; for (double d : v) s += d * d; return s; }
int main() {
#ifdef __GLIBCXX__
  std::cout << "libstdc++ " << __enzyme_autodiff((void *)f, 2.0) << std::endl;
#endif
}
""")
    assert main(["run", "-stdlib=libstdc++", str(path)]) == 0
    assert capfd.readouterr().out == "libstdc++ 12\n"
    assert main(["cc", "-stdlib=libstdc++", "-E", "-dM", str(path)]) == 0
    assert "__GLIBCXX__" in capfd.readouterr().out


STREAMS = """#include <iostream>
#include <sstream>
#include <vector>
double __enzyme_autodiff(void *, double);
static std::ostream &operator<<(std::ostream &out, const std::vector<double> &v) {
  out << '[';
  for (double d : v) out << d << ", ";
  return out << "]" << std::endl;
}
static double f(double x) {
  std::vector<double> v(3, x);
  double s = 0;
  for (double d : v) s += d * d;
  if (s > 11) std::cout << "s = " << s << std::endl << v;
  std::ostringstream text;
  text << "n=" << v.size();
  return s * text.str().size();
}
int main() { return __enzyme_autodiff((void *)f, 2.0) != 36; }
"""


@pytest.mark.long
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_streams_are_inactive(level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also the virtual functions of their buffers and facets, which the headers of both libraries call."""
    path = tmp_path / "streams.cpp"
    path.write_text(STREAMS)
    assert main(["cc", "-c", level, str(path), "-o", str(tmp_path / "streams.o")]) == 0
    if libstdcxx_headers():
        assert main(["run", "-stdlib=libstdc++", level, str(path)]) == 0
        assert capfd.readouterr().out == "s = 12\n[2, 2, 2, ]\n"


RULES = """
from irgrad import rule, rules

@rule("damp")
def _(x): return 100 * x

rules.foreign("weigh", reverse="weigh_back")

@rule("total", mode="reverse")
def _(ctx, x, n): ctx.foreign("spread", "void(f64*, i32, f64)")(x.d, n, 7 * ctx.result.d)
"""
RULED = """
double __enzyme_autodiff(void *, ...);
static double damp(double x) { return 2 * x; }
static double weigh(const double *x, double w) { return x[0] * w; }
void weigh_back(const double *x, double *dx, double w, double *dw, double dy) {
  dx[0] += 30 * w * dy; *dw += 40 * x[0] * dy;
}
__attribute__((used)) static void spread(double *d, int n, double v) { for (int i = 0; i < n; i++) d[i] += v; }
static double total(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
double f(double x) { return damp(x) * x; }
double g(double x) { return weigh(&x, 2 * x); }
double h(double x) { double t[2] = {x, x * x}; return total(t, 2); }
int main(void) {
  return __enzyme_autodiff((void *)f, 3.0) == 906 && __enzyme_autodiff((void *)g, 3.0) == 420
      && __enzyme_autodiff((void *)h, 3.0) == 49 ? 42 : 1;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_rules_of_the_user(tmp_path: Path, level: str) -> None:
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "ruled.c").write_text(RULED)
    with layer():
        assert main(["run", level, "--rules", str(tmp_path / "rules.py"), str(tmp_path / "ruled.c")]) == 42
    assert main(["run", level, str(tmp_path / "ruled.c")]) == 1


def test_rules_in_python_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules.py").write_text("from irgrad import rule\nfrom irgrad.rules import extern\n"
        '@rule(extern("total", "f64(f64[n] x, i32 n)"), mode="reverse", host=True)\n'
        "def _(ctx, x, n): x.d += 7 * ctx.result.d\n")  # fmt: skip
    (tmp_path / "ruled.c").write_text(RULED)
    with layer():
        assert main(["run", "--rules", str(tmp_path / "rules.py"), str(tmp_path / "ruled.c")]) == 1
    told = capsys.readouterr().err
    assert "a host rule in a program" in told
    assert "its body is Python, and the program runs without it" in told


BLAS = """
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
double scipy_cblas_ddot(int, const double *, int, const double *, int);
void scipy_dgesv_(int *n, int *nrhs, double *a, int *lda, int *ipiv, double *b, int *ldb, int *info);
double solve(const double *a, const double *x, int n) {
  double m[4] = {a[0], a[1], a[2], a[3]}, b[2] = {x[0], x[1]};
  int p[2], one = 1, info;
  scipy_dgesv_(&n, &one, m, &n, p, b, &n, &info);
  return scipy_cblas_ddot(n, b, 1, x, 1);
}
int main(void) {
  double a[4] = {4, 1, 2, 3}, x[2] = {1, 2}, da[4] = {0}, dx[2] = {0};  /* the inverse: [3, -2; -1, 4] / 10 */
  __enzyme_autodiff((void *)solve, enzyme_dup, a, da, enzyme_dup, x, dx, enzyme_const, 2);
  double u = 0.3 * 1 - 0.2 * 2, v = -0.1 * 1 + 0.4 * 2, s = 0.3 * 1 - 0.1 * 2, t = -0.2 * 1 + 0.4 * 2;
  double wrong = 0, got[6] = {da[0] + s * u, da[1] + t * u, da[2] + s * v, da[3] + t * v, dx[0] - u - s, dx[1] - v - t};
  for (int i = 0; i < 6; i++) wrong += got[i] * got[i];
  return wrong < 1e-24 ? 42 : 1;
}
"""


def test_programs_that_call_blas(tmp_path: Path) -> None:
    library = Path(blas_library())
    (tmp_path / "solve.c").write_text(BLAS)
    assert main(["run", "-O2", str(tmp_path / "solve.c"), str(library), f"-Wl,-rpath,{library.parent}"]) == 42


@pytest.mark.parametrize("words", [["--no-preopt"], ["-O2", "--no-preopt"], ["-O0", "--no-preopt"]])
def test_without_optimising_first_the_slope_is_the_same(small: str, words: list[str]) -> None:
    assert main(["run", *words, small, "--", "3"]) == 27


HALVES = """struct taped { void *tape; double value; };
struct taped __enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);
static double f(double *x) { double s = 0; for (int i = 0; i < 3; i++) s = s * x[i] + x[i]; x[0] = 1; return s; }
static double g(double *x) { return x[0] * x[1]; }
#ifdef FIRST
void *first(double *x, double *d) { return __enzyme_augmentfwd((void *)f, x, d).tape; }
#else
void *first(double *, double *);
int main(int argc, char **argv) {
  double x[3] = {1, 2, 3}, d[3] = {0};
  void *tape = argc == 2 ? 0 : first(x, d);
  if (argc == 3) __enzyme_reverse((void *)g, x, d, 1.0, tape);
  else __enzyme_reverse((void *)f, x, d, 1.0, tape);
  return d[0] == 6 && d[1] == 6 && d[2] == 5 ? 0 : 1;
}
#endif
"""


def test_the_halves_of_split_mode_in_files_of_their_own(tmp_path: Path) -> None:
    source, first, second, program = (tmp_path / name for name in ("halves.c", "first.o", "second.o", "halves"))
    source.write_text(HALVES)
    assert main(["cc", "-c", "-DFIRST", str(source), "-o", str(first)]) == 0
    assert main(["cc", "-c", str(source), "-o", str(second)]) == 0
    assert main(["cc", str(first), str(second), "-o", str(program)]) == 0
    assert subprocess.run([str(program)], check=False).returncode == 0
    for arguments in (["no tape"], ["another", "function"]):
        done = subprocess.run([str(program), *arguments], check=False, capture_output=True, text=True)
        assert done.returncode == -signal.SIGABRT
        assert "this tape belongs to another function" in done.stderr


def test_an_exception_is_caught_in_another_file(tmp_path: Path) -> None:
    throws, catches, program = tmp_path / "throws.cpp", tmp_path / "catches.cpp", tmp_path / "program"
    throws.write_text("template <class R, class... A> R __enzyme_autodiff(void *, A...);\n"
                      "static double f(double x) { if (x < 0) throw 3; return x * x; }\n"
                      "double slope(double x) { return __enzyme_autodiff<double>((void *)f, x); }\n")  # fmt: skip
    catches.write_text("double slope(double);\n"
                       "int main() { try { slope(-1); } catch (int n) { return n + (int)slope(2); } return 1; }\n")
    for source in (throws, catches):
        assert main(["cc", "-c", str(source), "-o", str(source.with_suffix(".o"))]) == 0
    assert main(["cc", *(str(source.with_suffix(".o")) for source in (throws, catches)), "-o", str(program)]) == 0
    assert subprocess.run([str(program)], check=False).returncode == 7


def test_warnings_of_the_engine_are_printed_like_a_compilers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "variadic.cpp"
    source.write_text("#include <cstdarg>\ntemplate <class R, class... A> R __enzyme_autodiff(void *, A...);\n"
                      "__attribute__((noinline)) static int pick(int n, ...) {\n"
                      "  if (n < 0) throw 1;\n  va_list list; va_start(list, n); int found = va_arg(list, int);\n"
                      "  va_end(list); return found;\n}\nint (*volatile picks)(int, ...);\n"
                      "static double f(double x, int n) { picks = pick; return x * x * pick(n, 2); }\n"
                      "double slope(double x, int n) { return __enzyme_autodiff<double>((void *)f, x, n); }\n")
    assert main(["cc", "-c", str(source), "-o", str(tmp_path / "variadic.o")]) == 0
    told = capfd.readouterr().err
    assert told.startswith("irgrad: warning: @slope (")
    assert "variadic.cpp:10:" in told
    assert main(["cc", "-c", str(source), "-o", str(tmp_path / "again.o")]) == 0
    assert capfd.readouterr().err == told  # although it comes from the cache


FUSED = """double __enzyme_autodiff(void *, double);
static double f(double x) { return x * x * x + x; }
double slope(double x) { return __enzyme_autodiff((void *)f, x); }
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names of CPUs and instructions of x86-64")
@pytest.mark.parametrize(("words", "fused"), [
    ("-march=haswell", True), ("-march=x86-64-v3 -mtune=generic", True), ("-march=haswell -mno-fma", False),
    ("-mno-fma", False), ("-march=native -mno-fma", False), ("-march=x86-64", False), ("-march=x86-64 -mfma", True),
    ("-march=core-avx2", True), ("-march=nehalem", False), ("", False), ("-mfma", True), ("-mtune=native", False),
])  # fmt: skip
def test_code_is_for_the_cpu_that_is_named(words: str, fused: bool, tmp_path: Path) -> None:
    source, output = tmp_path / "fused.c", tmp_path / "fused.s"
    source.write_text(FUSED)
    assert main(["cc", "-S", "-ffp-contract=fast", *words.split(), str(source), "-o", str(output)]) == 0
    assert ("vfm" in output.read_text()) is fused


@pytest.mark.long
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams(closed: str, small: str) -> None:
    command = f"{sys.executable} -m irgrad.interop.cli run {small} {closed} -- 2"
    assert subprocess.run(command, shell=True, check=False, capture_output=True).returncode == 12
    missing = subprocess.run(command.replace("small.c", "no.c"), shell=True, check=False, capture_output=True)
    assert missing.returncode == 1 and b"Traceback" not in missing.stderr


def test_a_signal_before_the_program_runs_is_not_lost() -> None:
    with _signals() as hand_on, subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        os.kill(os.getpid(), signal.SIGTERM)
        hand_on(process)
        assert process.wait(20) == -signal.SIGTERM


