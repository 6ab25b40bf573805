"""tesseract_api.py: written, imported, and served by Tesseract's own runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad.interop import tesseract
from irgrad.interop.cli import main

SOURCE = """
#include <math.h>
double model(double a, const double *x, const int *index, double *y, double *z, long n, long m) {
    double s = 0;
    for (long i = 0; i < n; i++) { y[i] = sin(a * x[i]); z[i] *= x[i]; s += z[i] * z[i]; }
    for (long i = 0; i < m; i++) s += x[index[i]];
    return s;
}
"""
SIGNATURE = "f64(f64 a, f64[n] x, i32[m] index, out f64[n] y, inout f64[n] z, i64 n, i64 m)"
INPUTS = {"a": 0.5, "x": np.array([1.0, 2.0]), "index": np.array([1], np.int32), "z": np.array([3.0, -1.0])}


@pytest.fixture
def written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "model.c").write_text(SOURCE)
    api = tmp_path / "served" / "tesseract_api.py"
    api.parent.mkdir()
    assert main(["tesseract", str(tmp_path / "model.c"), "model", "--sig", SIGNATURE, "-o", str(api)]) == 0
    assert "vector_jacobian_product" in capsys.readouterr().out
    return api


def _kernel() -> Any:
    return irgrad.load(SOURCE).kernel("model", SIGNATURE)


def test_the_endpoints_agree() -> None:
    kernel = _kernel()
    out = tesseract.apply(kernel, INPUTS)
    assert list(out) == ["result", "y", "z"]
    np.testing.assert_allclose(out["result"], 9 + 4 + 2)
    jacobian = tesseract.jacobian(kernel, INPUTS, ["x", "z"], ["y", "result"])
    assert jacobian["y"]["x"].shape == (2, 2) and list(jacobian) == ["y", "result"]
    np.testing.assert_allclose(jacobian["y"]["x"], np.diag(0.5 * np.cos(0.5 * INPUTS["x"])))
    np.testing.assert_allclose(jacobian["result"]["z"], 2 * INPUTS["z"] * INPUTS["x"] ** 2)
    move = {"x": np.array([0.3, -1.0]), "z": np.array([1.0, 2.0])}
    tangents = tesseract.jvp(kernel, INPUTS, ["result", "y"], move)
    np.testing.assert_allclose(tangents["y"], jacobian["y"]["x"] @ move["x"])
    gradients = tesseract.vjp(kernel, INPUTS, ["x", "z"], {"result": 1.0})
    np.testing.assert_allclose(tangents["result"], sum(gradients[name] @ move[name] for name in move))


def test_shapes_without_a_run() -> None:
    shapes = {"a": {"shape": (), "dtype": "float64"}, "index": {"shape": (7,), "dtype": "int32"},
              **{name: {"shape": (5,), "dtype": "float64"} for name in ("x", "z")}}  # fmt: skip
    out = tesseract.abstract_eval(_kernel(), shapes)
    assert out["y"] == {"shape": [5], "dtype": "float64"} and out["result"] == {"shape": [], "dtype": "float64"}
    ramp = tesseract.abstract_eval(sample("ramp"), {"n": 4, "k": {"shape": (), "dtype": "int64"}})
    assert ramp == {"y": {"shape": [4], "dtype": "float64"}}


def test_what_tesseract_has_no_types_for() -> None:
    structs = irgrad.load("struct p { double x; };\ndouble f(const struct p *a) { return a->x; }").kernel(
        "f", "struct p { f64 x; }; f64(p[1] a)")  # fmt: skip
    with pytest.raises(irgrad.SignatureError, match="a kernel over trees"):
        tesseract.api_text(structs, "f.c", "f", {})
    with pytest.raises(irgrad.SignatureError, match="Tesseract has no numbers of bool"):
        tesseract.api_text(sample("flip"), "f.c", "flip", {})


def test_the_file_says_where_things_are(written: Path) -> None:
    text = written.read_text()
    assert "'../model.c'" in text and "x: Differentiable[Array[(None,), Float64]]" in text
    assert "index: Array[(None,), Int32]" in text and "result: Differentiable[Float64]" in text
    compile(text, "tesseract_api.py", "exec")


def test_tesseract_serves_it(written: Path) -> None:
    pytest.importorskip("lz4", reason="tesseract-core[runtime] is not installed: .ci/doors runs this")
    core = pytest.importorskip("tesseract_core", reason="tesseract-core is not installed: .ci/doors runs this")
    with core.Tesseract.from_tesseract_api(str(written)) as served:
        out = served.apply(INPUTS)
        np.testing.assert_allclose(out["result"], 15)
        gradients = served.vector_jacobian_product(INPUTS, ["x", "a"], ["y"], {"y": np.ones(2)})
        np.testing.assert_allclose(gradients["x"], 0.5 * np.cos(0.5 * INPUTS["x"]))
        tangents = served.jacobian_vector_product(INPUTS, ["z"], ["result"], {"z": np.ones(2)})
        np.testing.assert_allclose(tangents["result"], (2 * INPUTS["z"] * INPUTS["x"] ** 2).sum())
        jacobian = served.jacobian(INPUTS, ["x"], ["y"])
        assert np.shape(jacobian["y"]["x"]) == (2, 2)
        arrays = {name: np.asarray(value) for name, value in INPUTS.items()}
        shapes = {name: {"shape": x.shape, "dtype": x.dtype.name} for name, x in arrays.items()}
        assert served.abstract_eval(shapes)["y"]["shape"] == (2,)
