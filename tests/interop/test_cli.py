"""The command line: files it writes, codes it returns, errors without a traceback."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from irgrad.engine.codegen import nvptx
from irgrad.interop.cli import main

SOURCE = """double f(const double *x, double a, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += a * x[i] * x[i];
    return s;
}
"""
SIG = "f64(f64[n] x, f64 a, i64 n)"


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "f.c"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


def test_grad_writes_a_library_and_its_header(source: str, tmp_path: Path) -> None:
    output = tmp_path / "g.so"
    assert main(["grad", source, "f", "--sig", SIG, "--wrt", "x,a", "-o", str(output)]) == 0
    header = output.with_suffix(".h").read_text(encoding="utf-8")
    assert "double f_grad(const double *x, double *x_grad, double a, double *a_grad, int64_t n);" in header
    function = ctypes.CDLL(str(output)).f_grad
    function.restype = ctypes.c_double
    x, dx, da = np.array([1.0, 2.0]), np.zeros(2), np.zeros(1)
    address = ctypes.c_void_p
    value = function(address(x.ctypes.data), address(dx.ctypes.data), ctypes.c_double(3.0), address(da.ctypes.data), 2)
    assert value == 15.0 and dx.tolist() == [6, 12] and da.tolist() == [5]


@pytest.mark.skipif(nvptx.ptxas() is None, reason="ptxas is not installed")
def test_grad_writes_a_kernel_of_a_gpu(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["grad", source, "f", "--sig", SIG, "--wrt", "x", "--shared", "a", "--target", "sm_90", "-o"]
    for suffix, start in ((".ptx", b"//"), (".cubin", b"\x7fELF")):
        output = tmp_path / f"g{suffix}"
        assert main([*words, str(output)]) == 0
        assert output.read_bytes().strip().startswith(start)
        said = capsys.readouterr().out
        assert "kernel `f_grad` for sm_90" in said and "registers:" in said and "spilled: 0" in said
    header = output.with_suffix(".h").read_text(encoding="utf-8")
    assert "__global__ void f_grad(const double *x, double *x_grad, double a, int64_t n, double *value," in header
    assert ".visible .entry f_grad(" in (tmp_path / "g.ptx").read_text(encoding="utf-8")


@pytest.mark.parametrize(("target", "suffix", "message"), [
    ("gfx90a", ".ptx", "`gfx90a` is no architecture of a GPU"), ("sm_90", ".so", "`.so` is no form of device code")])
def test_what_is_no_device(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, suffix: str, message: str
) -> None:
    words = ["grad", source, "f", "--sig", SIG, "--wrt", "x", "--target", target, "-o", str(tmp_path / f"g{suffix}")]
    assert main(words) == 1
    assert message in capsys.readouterr().err


def test_functions_with_structs_take_their_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "p.c", tmp_path / "p.so"
    path.write_text("struct p { double a; int k; }; double f(const struct p *q) { return q->k * q->a * q->a; }")
    signature = "struct p { f64 a; i32 k; }; f64(p[] q)"
    assert main(["check", str(path), "f", "--sig", signature]) == 0
    assert "q_a" in capsys.readouterr().out
    assert main(["grad", str(path), "f", "--sig", signature, "--wrt", "q_a", "-o", str(output)]) == 0
    header = output.with_suffix(".h").read_text(encoding="utf-8")
    assert "double f_grad(const double *q_a, double *q_a_grad, const int32_t *q_k);" in header
    function = ctypes.CDLL(str(output)).f_grad
    function.restype = ctypes.c_double
    a, gradient, k = np.array([3.0]), np.zeros(1), np.array([2], np.int32)
    assert function(*(ctypes.c_void_p(x.ctypes.data) for x in (a, gradient, k))) == 18 and gradient[0] == 12


@pytest.mark.parametrize("suffix", [".ll", ".s", ".o"])
def test_grad_writes_other_forms(source: str, tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"g{suffix}"
    assert main(["grad", source, "f", "--sig", SIG, "--wrt", "x", "-o", str(output)]) == 0
    assert b"f_grad" in output.read_bytes()


def test_check(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", source, "f", "--sig", SIG, "--size", "n=7"]) == 0
    assert "the derivatives agree" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.c", "f"], "irgrad.LoadError: there is no file `missing.c`"),
        (["SOURCE", "g"], "irgrad.LoadError: there is no function `g`"),
        (["SOURCE", "f"], "irgrad.SignatureError: `f` needs a signature"),
        (["SOURCE", "f", "--sig", "f64(f64[n x)"], "irgrad.SignatureError: expected `]`"),
        (["SOURCE", "f", "--sig", SIG, "--range", "2", "1"], "irgrad.SignatureError: `--range 2 1` is no range"),
        (["SOURCE", "f", "--sig", SIG, "--range", "0", "inf"], "irgrad.SignatureError: `--range 0 inf` is no range"),
        (["SOURCE", "f", "--sig", SIG, "--size", "k=3"], "irgrad.SignatureError: `--size k=3` names nothing"),
        (["SOURCE", "f", "--sig", SIG, "--size", "n=²"], "irgrad.SignatureError: `--size n=²` cannot be read"),
        (["SOURCE", "f", "--sig", SIG, "--size", "n=" + "9" * 15], "irgrad.LimitExceeded: the arguments do not fit"),
    ],
)
def test_errors(source: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *[source if a == "SOURCE" else a for a in arguments]]) == 1
    err = capsys.readouterr().err
    assert err.startswith(message) and "to fix" in err and "Traceback" not in err


def test_cache_and_usage(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["cache", "info"]) == 0
    assert main(["cache", "clear"]) == 0
    assert "removed 0 entries" in capsys.readouterr().out
    assert main([]) == 2
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    with pytest.raises(SystemExit) as caught:
        main(["check", "f.c", "f", "--seed", "-1"])
    assert caught.value.code == 2
    with pytest.raises(SystemExit) as caught:
        main(["nonsense"])
    assert caught.value.code == 2


def test_explain(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    words = ["explain", source, "f", "--sig", SIG, "--wrt", "x", "--size", "n=7", "--html", str(page), "--passes"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"vjp of {SIG}\n")
    assert "n iterations" in told
    assert "tape of a call for n=7: 0 bytes" in told
    assert "generate-code" in told
    assert f"{page}: the page" in told
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(["explain", source, "f", "--sig", SIG, "--derivative", "jvp", "--no-lanes"]) == 0
    assert "vector lanes" not in capsys.readouterr().out
    assert main(["explain", source, "f", "--sig", SIG, "--size", "k=7"]) == 1
    assert "`--size k=7` names nothing" in capsys.readouterr().err
    assert main(["explain", source, "f", "--sig", SIG, "--wrt", "nothing"]) == 1


def test_explain_needs_the_sizes_that_matter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.c"
    path.write_text("double sin(double); double g(double x, long n, long m) {"
                    " for (long i = 0; i < n * m; i++) x = sin(x); return x; }")  # fmt: skip
    words = ["explain", str(path), "g", "--sig", "f64(f64 x, i64 n, i64 m)", "--no-lanes", "--derivative", "grad"]
    assert main([*words, "--size", "n=7"]) == 1
    assert "--size m=1000" in capsys.readouterr().err
    assert main([*words, "--size", "n=7", "--size", "m=2"]) == 0
    assert "for n=7, m=2: 112 bytes" in capsys.readouterr().out
