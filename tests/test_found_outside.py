"""What was once found wrong, dying or refused from outside, a test each: right now, or refused with reason and repair.

The sources in C stand in `tests/found_outside`: `main` checks itself, or `loss(x, n)` is compared with differences."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blas_cases import library as blas_library
from headers import EIGEN, header_folder
from shares import fast

import irgrad as ig
from irgrad.engine.codegen.llvm import host_features
from irgrad.interop.cli import main
from irgrad.rules.errors import LoadError, RuleError, SignatureError, Unsupported

FOLDER = Path(__file__).with_name("found_outside")
VECTOR = "f64(f64[n] x, i64 n)"
X = np.array([0.5, -0.3, 1.2, 0.7])
LEVELS: list[str | None] = [None, "O0", "O1", "O2", "O3"]
PROGRAMS = ["fnptr_libm.c", "lambda_nan.cpp", "lu_row_pointers.c", "slp_poison.c", "slp_poison_everyday.cpp",
            "slp_poison_min.c", "struct_int_float.c", "struct_spill.c", "struct_three_doubles.c"]  # fmt: skip
LOSSES = ["global_arrays_by_constructors.cpp", "header_and_arrays.c", "struct_array_in_middle.c", "xor_sign.c"]
SQUARES = "double f(const double*x,int n){double s=0;for(int i=0;i<n;i++)s+=x[i]*x[i];return s;}"


def _differences(f: Callable[[Any], Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


def _agrees(kernel: Any, x: np.ndarray = X, tolerance: float = 1e-6) -> None:
    """Value, reverse and forward of a kernel at x."""
    want = _differences(kernel, x)
    found = ig.engine.grad(kernel)(x)
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(ig.engine.jvp(kernel, (x,), (x,))[1], found @ x, rtol=1e-10, atol=1e-12)


def _cxx(body: str, headers: str = "", opt: str | None = None, before: str = "") -> Any:
    included = "".join(f"#include <{name}>\n" for name in headers.split())
    source = f'{included}{before}extern "C" double f(const double*x,long n){{{body}}}'
    return ig.load(source, language="c++", opt=opt).kernel("f", VECTOR)


def _cc(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "irgrad.interop.cli", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("level", ["-O2", pytest.param("-O0", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, level: str, capfd: pytest.CaptureFixture[str]) -> None:
    status = main(["run", level, str(FOLDER / name)])
    output = capfd.readouterr()
    assert status == 0, output.out + output.err


@pytest.mark.long
@pytest.mark.parametrize("width", [2, 3, 4, 8])
def test_interleaved_lanes(width: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-O3", "-march=native", f"-DW={width}", str(FOLDER / "interleaved_lanes.c")]) == 0
    assert f"W={width}: 0 of " in capfd.readouterr().out


@pytest.mark.parametrize("level", fast(1, LEVELS))
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str, level: str | None) -> None:
    kernel = ig.load(FOLDER / name, opt=level).kernel("loss", VECTOR)
    _agrees(kernel, np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4, 0.8]))


@pytest.mark.long
@pytest.mark.parametrize("name", ["filter_chain.cpp", "kalman_filter.cpp", "octree.cpp", "sparse_map.cpp"])
def test_cpp_losses(name: str) -> None:
    """Methods found through std::function and virtual tables, exceptions beside them; a loop over an array of links."""
    _agrees(ig.load(FOLDER / name).kernel("loss", VECTOR), np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4]))


@pytest.mark.parametrize("level", fast(1, LEVELS))
def test_struct_copied_as_i64(level: str | None) -> None:
    x = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4])

    def loss(flat: np.ndarray) -> float:
        rows = flat.reshape(3, 2)
        k = np.arange(3)
        real = rows[0, 0] + sum(rows[q, 0] * (k + q) for q in (1, 2))
        imaginary = rows[0, 1] + sum(rows[q, 1] * (k - q) for q in (1, 2))
        return float((real**2 + k * imaginary**2).sum())

    kernel = ig.load(FOLDER / "struct_copied_as_i64.c", opt=level).kernel("loss", "f32(f32[n] x, i64 n)")
    found = ig.engine.grad(kernel)(x.astype(np.float32))
    np.testing.assert_allclose(found, _differences(loss, x), rtol=1e-5, atol=1e-5)


@pytest.mark.long
def test_eigen_quaternion() -> None:
    kernel = ig.load(FOLDER / "eigen_quaternion.cpp", include=[header_folder(*EIGEN)]).kernel("loss", VECTOR)
    _agrees(kernel, np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4, 0.8]))


def test_slp_poison_ll() -> None:
    kernel = ig.load(FOLDER / "slp_poison.ll").kernel("c2", "f64(f64 a, f64 x)")
    assert ig.engine.grad(kernel, argnums=0)(3.0, 2.0) == 24
    assert ig.engine.jvp(kernel, (3.0, 2.0), (1.0, 0.0))[1] == 24


def test_check_false_alarm() -> None:
    kernel = ig.load(FOLDER / "check_false_alarm.c").kernel("loss", VECTOR)
    assert ig.engine.check(kernel, np.array([300.0, 1e-5])).ok


def test_batch_long_double() -> None:
    kernel = ig.load("""double f(const double *x, long n) { long double t[3] = {1, 2, 3}, s = 0;
      for (long i = 0; i < n; i++) { s += t[i % 3] * x[i]; t[i % 3] = s * x[i]; } return (double)s; }""",
                     language="c").kernel("f", VECTOR)
    rows = np.random.default_rng(0).uniform(-1, 1, (9, 6))
    np.testing.assert_array_equal(ig.engine.batch_grad(kernel)(rows), [ig.engine.grad(kernel)(x) for x in rows])
    np.testing.assert_array_equal(ig.engine.batch(kernel)(rows), [kernel(x) for x in rows])


@pytest.mark.parametrize("body", [
    "double (Q::*fn[2])(double)={&Q::p,&Q::q}; for(long i=0;i<n;i++) s=0.5*(o.*fn[i&1])(s)+x[i];",
    "for(long i=0;i<n;i++){ double (Q::*fn)(double)= (i*n)%3 ? &Q::p : &Q::q; s=0.5*(o.*fn)(s)+x[i]; }",
    "for(long i=0;i<n;i++) s=0.5*apply(o,i%2?&Q::p:&Q::q,s)+x[i];",
])  # fmt: skip
def test_cpp_member_pointers(body: str) -> None:
    before = "struct Q{double u,v; double p(double z){return u*z;} double q(double z){return v+z*u;} };\n" \
             "__attribute__((noinline)) static double apply(Q&o,double (Q::*fn)(double),double s)" \
             "{ return (o.*fn)(s); }\n"
    _agrees(_cxx("Q o{x[0],1}; double s=1; " + body + " return s;", before=before))


@pytest.mark.parametrize("body", fast(1, [
    "std::list<double> l; double s=0; for(long i=0;i<n;i++){ if(x[i]>0) l.push_back(x[i]); "
    "else l.push_front(x[i]*x[i]); s+=l.front(); } return s;",
    "std::vector<std::function<double(double)>> fs; double acc=1; for(long i=0;i<n;i++){ double c=x[i]; "
    "if(i%2) fs.push_back([c,&acc](double v){ acc+=0.1*v; return c*v; }); else { double d=c*c,e=d*c,g=e*c; "
    "fs.push_back([c,d,e,g](double v){ return c*std::sin(v)+d*e*g; }); } } "
    "double s=1; for(auto&g:fs) s=g(s); return s*acc;",
    "std::list<double> l; double s=0; for(long i=0;i<n;i++){ if(x[i]>0) l.push_back(x[i]); "
    "else l.push_front(x[i]*x[i]); if(i%2) l.back()+=x[0]; } for(double v:l) s=0.5*s+v; return s;",
    "std::vector<std::function<double(double)>> fs; double acc=1; for(long i=0;i<n;i++){ double c=x[i]; "
    "fs.push_back([c,&acc](double v){ acc+=0.1*v; return c*v; }); } double s=1; for(auto&g:fs) s=g(s); return s*acc;",
]))  # fmt: skip
def test_cpp_refused(body: str) -> None:
    _agrees(_cxx(body, "list functional vector cmath"))


@pytest.mark.parametrize(("language", "source"), fast(1, [
    ("c++", '#include <vector>\nextern "C" double f(const double*x,long n){ static std::vector<double> b; '
            "b.assign(x,x+n); for(long i=0;i<n;i++) b.push_back(b[i]*x[0]); double s=0; for(double v:b) s=0.9*s+v; "
            "return s; }"),
    ("c++", '#include <vector>\nextern "C" double f(const double*x,long n){ static std::vector<double> b; '
            "b.resize(n); for(long i=0;i<n;i++) b[i]=x[i]*x[0]; double s=0; for(double v:b) s=0.9*s+v; return s; }"),
    ("c", "#include <stdlib.h>\nstatic double*b; static long c; double f(const double*x,long n){ if(c<n){ free(b); "
          "b=malloc(n*8); c=n; } for(long i=0;i<n;i++) b[i]=x[i]*x[0]; double s=0; "
          "for(long i=0;i<n;i++) s=0.9*s+b[i]; return s; }"),
    ("c++", 'static thread_local double t[4];\nextern "C" double f(const double*x,long n){ for(auto&v:t) v=0; '
            "for(long i=0;i<n;i++) t[i&3]+=x[i]*x[0]*(1+t[(i+1)&3]); return t[0]*t[1]+t[2]+t[3]; }"),
]))  # fmt: skip
def test_cpp_static_vector(language: str, source: str) -> None:
    kernel = ig.load(source, language=language).kernel("f", VECTOR)
    assert len({kernel(X) for _ in range(3)}) == 1
    for _ in range(3):
        _agrees(kernel)


@pytest.mark.parametrize("level", fast(1, [None, "O2"]))
@pytest.mark.parametrize("body", fast(1, [
    "std::vector<double> v; double s=0; for(long i=0;i<n;i++){ v.push_back(x[i]*s+x[i]); if(v.size()>2){ "
    "s+=v.back()*v[0]; v.pop_back(); } } for(double e:v) s=0.5*s+std::sin(e); return s;",
    "std::vector<double> v; for(long i=0;i<n;i++) v.push_back(x[i]*x[i]); double s=0; "
    "for(double e:v) s=0.5*s+std::sin(e); return s;",
    "std::vector<double> u(x,x+n); for(int t=0;t<3;t++){ std::vector<double> w=std::move(u); w.push_back(w[0]*w[1]); "
    "u=std::move(w); u.erase(u.begin()); } double s=0; for(double e:u) s=0.5*s+std::sin(e); return s;",
    "struct P{double a; int k; double b;}; std::vector<P> v; "
    "for(long i=0;i<n;i++) v.push_back(P{x[i]*x[i],(int)i,x[i]}); double s=0; "
    "for(auto&e:v) s=0.5*s+e.a*e.b*e.k; return s;",
    "std::vector<std::vector<double>> v; for(long i=0;i<n;i++){ v.emplace_back(); "
    "for(long j=0;j<=i;j++) v.back().push_back(x[j]*x[i]); } double s=0; for(auto&r:v) for(double e:r) "
    "s=0.5*s+std::sin(e); return s;",
    "std::vector<double> v; for(long i=0;i<n;i++) v.insert(std::upper_bound(v.begin(),v.end(),x[i]),x[i]); double s=0; "
    "for(double e:v) s=0.5*s+std::sin(e*s); return s;",
]))  # fmt: skip
def test_cpp_vector_hvp(body: str, level: str | None) -> None:
    kernel, v = _cxx(body, "vector cmath algorithm", level), np.arange(1.0, 5.0)
    gradient = ig.engine.grad(kernel)
    want = (gradient(X + 1e-5 * v) - gradient(X - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(ig.engine.hvp(kernel, (X,), v), want, atol=1e-6)


def test_dcopy_self() -> None:
    source = "void cblas_dcopy(int,const double*,int,double*,int); double f(const double*x,long n){double w[8],s=0;" \
             "for(long i=0;i<n;i++)w[i]=x[i]*x[i];cblas_dcopy((int)n,w,1,w,1);for(long i=0;i<n;i++)s+=w[i];return s;}"
    kernel = ig.load(source, link=[blas_library()]).kernel("f", VECTOR)
    with pytest.raises(Unsupported, match="`x` and `y` are the same memory"):
        ig.engine.grad(kernel)(X)


def test_define_empty() -> None:
    library = ig.load("#include <stdlib.h>\nstatic double f(double x){return x*x;}\n", define={"static": ""})
    assert ig.engine.grad(library.kernel("f"))(3.0) == 6


def test_draft_signature() -> None:
    source = "struct s{double a;int b;}; int h(const struct s*p,const int*q,int n);" \
             "double f(const struct s*p,const int*q,int n){ return h(p,q,n); }"
    with pytest.raises(SignatureError, match=r"struct s \{ f64 a; i32 b; \}; f64\(s\[\] p, i32\[n\] q, i32 n\)"):
        ig.load(source).kernel("f")


def test_host_rule_dangling() -> None:
    library = ig.load("void solve(const double*A,const double*b,double*o,long n){for(long i=0;i<n;i++)o[i]=b[i]/A[i];}"
                      "double g(const double*A,const double*b,long n){double*o=__builtin_alloca(n*8);solve(A,b,o,n);"
                      "double s=0;for(long i=0;i<n;i++)s+=o[i]*(i+1);return s;}")
    kernel, kept = library.kernel("g", "f64(f64[n] A, f64[n] b, i64 n)"), []

    @ig.rule(library.kernel("solve", "void(f64[n] A, f64[n] b, out f64[n] o, i64 n)"), mode="reverse", host=True)
    def _(ctx: Any, A: Any, b: Any, o: Any, n: Any) -> None:
        kept.append((o.d, np.array(o.d)))
        A.d -= b.saved / A.saved**2 * o.d
        b.d += o.d / A.saved

    a, b = np.array([1.0, 2, 3, 4]), np.array([2.0, 3, 5, 7])
    np.testing.assert_allclose(ig.engine.grad(kernel)(a, b), -b / a**2 * np.arange(1, 5))
    np.testing.assert_array_equal(*kept[0])


@pytest.mark.parametrize(("source", "options"), [
    ('target triple = "i386-pc-linux"\ntarget datalayout = "e-m:e-p:32:32-i128:128-f64:32:64-f80:32-n8:16:32-S128"\n'
     "define double @f(double %x){\n %y = fmul double %x, %x\n ret double %y\n}\n", {"language": "ll"}),
    (SQUARES, {"flags": ["-m32"]}),
    ("#include <stdlib.h>\n" + SQUARES, {"flags": ["-m32"]}),
], ids=["ir_i386_segfault", "m32_wrong", "m32_wrong-headers"])  # fmt: skip
def test_other_machines(source: str, options: dict[str, Any]) -> None:
    with pytest.raises(LoadError, match="is compiled for another machine"):
        ig.load(source, **options)


@pytest.mark.parametrize("level", ["O0", "O2", None])
def test_ir_matrix_abort(level: str | None) -> None:
    source = "typedef double m2 __attribute__((matrix_type(2,2)));double f(const double *x) { m2 a, b;" \
             "for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++) a[i][j] = x[2*i+j]; b = a * a; return b[0][1]; }"
    kernel = ig.load(source, flags=["-fenable-matrix"], opt=level).kernel("f", "f64(f64[4] x)")
    np.testing.assert_allclose(ig.engine.grad(kernel)(np.array([1.0, 2, 3, 5])), [2, 6, 0, 2])


def test_ir_one_line_block() -> None:
    text = "define double @f(double %x) { %y = fmul double %x, %x\n ret double %y }\n"
    assert ig.engine.grad(ig.load(text, language="ll").kernel("f"))(1.5) == 3


@pytest.mark.skipif("+avx512vl" not in host_features(), reason="masks of AVX-512")
@pytest.mark.parametrize("body", [
    "__m256d a=_mm256_maskload_pd(x,_mm256_set_epi64x(0,-1,-1,-1)); a=_mm256_mul_pd(a,a); return _mm256_cvtsd_f64(a);",
    "__m256d a=_mm256_maskz_loadu_pd(7,x); a=_mm256_mul_pd(a,a); return _mm256_cvtsd_f64(a);",
    "double s=0; for(long i=0;i<4;i+=3){ __m256i m=_mm256_cmpgt_epi64(_mm256_set1_epi64x(4-i),"
    "_mm256_set_epi64x(3,2,1,0)); __m256d a=_mm256_maskload_pd(x+i,m); a=_mm256_mul_pd(a,a); "
    "s+=_mm256_cvtsd_f64(a);} return s;",
])  # fmt: skip
def test_masked_load_refused(body: str) -> None:
    source = "#include <immintrin.h>\ndouble f(const double*x,long n){" + body + "}"
    _agrees(ig.load(source, flags=["-march=skylake-avx512"]).kernel("f", VECTOR))


@pytest.mark.skipif("+avx2" not in host_features(), reason="instructions of AVX2")
@pytest.mark.parametrize("body", fast(3, [
    "a=_mm256_hadd_pd(a,a);",
    "a=_mm256_i32gather_pd(x,_mm_set_epi32(0,3,3,1),8); a=_mm256_mul_pd(a,a);",
    "a=_mm256_blendv_pd(a,_mm256_mul_pd(a,a),_mm256_cmp_pd(a,_mm256_setzero_pd(),_CMP_GT_OQ));",
    "a=_mm256_permute_pd(_mm256_addsub_pd(a,a),1);", "a=_mm256_min_pd(a,_mm256_set1_pd(0.6));",
    "a=_mm256_fmadd_pd(a,a,a);", "a=_mm256_sub_pd(a,_mm256_floor_pd(a));",
    "a=_mm256_sqrt_pd(_mm256_mul_pd(a,a));",
    "__m128d b=_mm256_castpd256_pd128(a); return _mm_cvtsd_f64(_mm_dp_pd(b,b,0x31));",
]))  # fmt: skip
def test_simd_intrinsics_refused(body: str) -> None:
    source = "#include <immintrin.h>\ndouble f(const double*x,long n){ __m256d a=_mm256_loadu_pd(x);" + body \
        + "double r[4]; _mm256_storeu_pd(r,a); return r[0]+2*r[1]+3*r[2]+4*r[3]; }"
    _agrees(ig.load(source, flags=["-march=haswell"]).kernel("f", VECTOR))


@pytest.mark.skipif("+avx2" not in host_features(), reason="instructions of AVX2")
def test_simd_reciprocal_root() -> None:
    source = "#include <immintrin.h>\ndouble f(double x){ return _mm_cvtss_f32(_mm_rsqrt_ps(_mm_set1_ps((float)x))); }"
    assert abs(ig.engine.grad(ig.load(source).kernel("f"))(0.5) + 0.5 * 0.5**-1.5) < 2e-3


@pytest.mark.parametrize("preopt", [True, False])
def test_preopt_nan(preopt: bool) -> None:
    source = "#include <math.h>\ndouble f(double x){ double v = sqrt(x); if (isnan(v)) v = -x; return v * v; }"
    kernel = ig.load(source, preopt=preopt).kernel("f")
    assert ig.engine.grad(kernel)(-2.0) == ig.engine.jvp(kernel, (-2.0,), (1.0,))[1] == -4


def test_rule_forgot_return() -> None:
    library = ig.load("double sq(double v){ return v*v; }\ndouble f(double x){ return sq(x); }")

    @ig.rule(library.function("sq"))
    def _(v: Any) -> Any:
        2 * v  # pyright: ignore[reportUnusedExpression]

    with pytest.raises(RuleError, match="returns nothing"):
        ig.engine.grad(library.kernel("f"))(3.0)


@pytest.mark.parametrize(("signature", "message"), [
    ("f64(f32[n] x, f64[n] w, i64 n)", "the elements of `x` are no `f32`"),
    ("f64(i64[n] x, f64[n] w, i64 n)", "the elements of `x` are no `i64`"),
    ("f64(f64[n] x, out f64[n] w, i64 n)", "`w` is declared `out`, and the function only reads it"),
])  # fmt: skip
def test_signature_types(signature: str, message: str) -> None:
    source = "double f(const double *x, const double *w, long n) { double s = 0; for (long i = 0; i < n; i++) " \
             "for (long j = 0; j < i; j++) s += x[i] * x[j] * w[j]; return s; }"
    kernel = ig.load(source).kernel("f", signature)
    n, types = np.ones(5), signature.replace("f64(", "").split("[")
    arguments = [np.ones(5, {"f32": np.float32, "i64": np.int64}.get(types[0], np.float64))]
    with pytest.raises(SignatureError, match=message):
        kernel(*arguments, *([] if "out" in signature else [n]))


def test_sparse_nan() -> None:
    cycle = ig.load("void f(const double*x,double*y,long n){for(long i=0;i<n;i++)y[i]=x[i]*x[(i+1)%n];}")
    kernel = cycle.kernel("f", "void(f64[n] x, out f64[n] y, i64 n)")
    w = np.arange(6.0)
    w[2] = np.nan
    matrix = ig.engine.jac_sparse(kernel)(w).toarray()
    np.testing.assert_array_equal(matrix[3], [0, 0, 0, 4, 3, 0])
    assert np.isnan(matrix[1, 1]) and np.isnan(matrix[2, 2])
    chain = ig.load("double f(const double*x,long n){double s=0;for(long i=0;i+1<n;i++)s+=x[i]*x[i]*x[i+1];return s;}")
    second = ig.engine.hessian_sparse(chain.kernel("f", VECTOR))(w).toarray()
    np.testing.assert_array_equal(second[4], [0, 0, 0, 6, 10, 8])
    assert np.isnan(second[1, 1])


WORKSPACE = "for(long i=0;i<n;i++) b[i]=x[i]*x[0]; double s=0; for(long i=0;i<n;i++) s=0.9*s+b[i]*b[i]; return s; }"


@pytest.mark.parametrize(("language", "source"), fast(1, [
    ("c", "#include <stdlib.h>\nstatic double*b; static long c; double f(const double*x,long n){ "
          "if(c<n){ b=realloc(b,n*8); c=n; } "),
    ("c", "#include <stdlib.h>\nstatic double*b; static long c; double f(const double*x,long n){ "
          "if(c<n){ free(b); b=malloc(n*8); c=n; } "),
    ("c++", '#include <vector>\nstatic std::vector<double> b; extern "C" double f(const double*x,long n){ '
            "if((long)b.size()<n) b.resize(n); "),
]))  # fmt: skip
def test_static_workspace_grows(language: str, source: str) -> None:
    kernel = ig.load(source + WORKSPACE, language=language).kernel("f", VECTOR)
    for n in (4, 4, 9, 3, 40, 2000):
        x = np.linspace(0.5, 1, n)
        kernel(x)
        w = 0.9 ** np.arange(n - 1, -1, -1.0)
        want = 2 * x * x[0] ** 2 * w
        want[0] += (2 * x[0] * x**2 * w).sum()
        np.testing.assert_allclose(ig.engine.grad(kernel)(x), want)
        np.testing.assert_allclose(ig.engine.jvp(kernel, (x,), (x,))[1], want @ x)


@pytest.mark.parametrize("level", fast(1, LEVELS))
def test_vectorised_int_copy(level: str | None) -> None:
    source = """#include <stdlib.h>
double f(const double *x, long n) { float *g = malloc(n*4), *h = malloc(n*4);
  for (long i = 0; i < n; i++) g[i] = (float)x[i];
  int *p = (int*)g, *q = (int*)h; for (long i = 0; i < n; i++) q[n-1-i] = p[i];
  double s = 0; for (long i = 0; i < n; i++) s += h[i] * (double)(i + 1); free(g); free(h); return s; }"""
    kernel = ig.load(source, opt=level).kernel("f", VECTOR)
    for n in (7, 8, 12, 40):
        np.testing.assert_allclose(ig.engine.grad(kernel)(np.linspace(1, 2, n)), np.arange(n, 0, -1.0))


@pytest.mark.long
def test_tape_out_of_memory() -> None:
    """In a process of its own, whose memory is bounded."""
    source = "double f(double x, double p, long n) { double y = x; for (long t = 0; t < n; t++) " \
             "y += 1e-9 * __builtin_sin(y * p) * y; return y; }"
    code = f"""import resource, irgrad as ig
g = ig.engine.grad(ig.load({source!r}).kernel("f", "f64(f64 x, f64 p, i64 n)"), argnums=(0, 1))
g(1.0, 0.5, 1000)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
try: g(1.0, 0.5, 10**9)
except ig.TapeMemoryError as error: print(isinstance(error, MemoryError), "1,000,000,000 iterations" in str(error))"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["True", "True"], ran.stderr


@pytest.mark.long
def test_messages() -> None:
    import jax

    from irgrad.interop import jax as ij

    kernel = ig.load(SQUARES).kernel("f", "f64(f64[n] x, i32 n)")
    with jax.enable_x64(True):
        whole = ij.serialize(ij.export(jax.jit(kernel))(np.ones(3)))

    def edited(change: Callable[[str, bytes], bytes]) -> bytes:
        out = BytesIO()
        with zipfile.ZipFile(BytesIO(whole)) as old, zipfile.ZipFile(out, "w") as new:
            for name in old.namelist():
                new.writestr(name, change(name, old.read(name)))
        return out.getvalue()

    damaged = [bytes([*whole[:200], whole[200] ^ 255, *whole[201:]]),
               edited(lambda name, data: b"{}" if name.endswith("json") else data),
               edited(lambda name, data: b"[1]" if name.endswith("json") else data),
               edited(lambda name, data: b"\xff" * 100 if name == "program" else data)]  # fmt: skip
    for data in damaged:
        with pytest.raises(LoadError, match="these bytes are no exported program"):
            ij.deserialize(data)
    assert ig.engine.check(kernel.tree({"a": "x"}), {"a": np.ones(3)}).ok


@pytest.mark.parametrize(("words", "message"), [
    (["f", "--range", "2", "1"], "--range 1 2"), (["f", "--size", "nonsense=3"], "leave it out"),
    (["g"], "the value of `log` is nan"),
])  # fmt: skip
def test_messages_of_check(words: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.c"
    path.write_text("#include <math.h>\ndouble f(double x){return x*x;}\ndouble g(double x){return log(x-10);}")
    assert main(["check", str(path), *words]) == 1
    output = capfd.readouterr()
    assert message in output.out + output.err


@pytest.mark.long
@pytest.mark.parametrize("name", ["weak", "interpose"])
def test_functions_that_others_replace(name: str, tmp_path: Path) -> None:
    """The derivative of a body that may not run is refused; in one command the link is known."""
    notation = "double __enzyme_autodiff(void *, ...);\n"
    (tmp_path / "p.c").write_text(
        notation + ("__attribute__((weak)) " if name == "weak" else "") + "double scale(double x) { return x; }\n"
        "double f(double x) { return 2 * scale(x); }\n"
        "double df(double x) { return __enzyme_autodiff((void *)f, x); }\n")
    (tmp_path / "q.c").write_text("double df(double); double scale(double x) { return x * x; }\n"
                                  "int main(void) { return (int)df(3.0); }\n")
    flags = ["-c"] if name == "weak" else ["-fPIC", "-shared", "-fsemantic-interposition", "-o", "libp.so"]
    refused = _cc(tmp_path, "cc", *flags, "p.c")
    assert refused.returncode and "which another definition may replace" in refused.stderr
    if name == "weak":
        assert _cc(tmp_path, "run", "p.c", "q.c").returncode == 12


@pytest.mark.long
def test_wrap(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text("double sq(double); double __wrap_sq(double x) { return x * x * x; }\n"
                                  "int main(void) { return (int)sq(3); }\n")
    (tmp_path / "q.c").write_text("double sq(double x) { return x * x; }\n")
    assert _cc(tmp_path, "cc", "-Wl,--wrap=sq", "p.c", "q.c", "-o", "a").returncode == 0
    assert subprocess.run([tmp_path / "a"], check=False).returncode == 27


@pytest.mark.long
def test_driver(tmp_path: Path) -> None:
    program = "double __enzyme_autodiff(void *, ...);\ndouble sq(double x) { return x * x; }\n" \
              "int main(void) { return (int)__enzyme_autodiff((void *)sq, 3.0); }\n"
    for name, text in {"p.c": program, "-p.c": program, "q.c": "int q;\n", "v.S": ".data\n",
                       "h.hpp": "#include <vector>\n"}.items():  # fmt: skip
        (tmp_path / name).write_text(text)

    def works(*words: str) -> None:
        ran = _cc(tmp_path, *words)
        assert ran.returncode == 0, ran.stderr

    def refused(message: str, *words: str) -> None:
        ran = _cc(tmp_path, *words)
        assert ran.returncode and message in ran.stderr and "Traceback" not in ran.stderr

    assert "GNU ld" in _cc(tmp_path, "cc", "-Wl,--version").stdout
    works("cc", "-O2", "-march=x86-64", "-mtune=generic", "p.c", "-o", "a")
    works("cc", "-x", "c++-header", "h.hpp", "-o", "h.hpp.pch")
    works("cc", "-c", "v.S")
    refused("`-fprofile-instr-generate` is not supported", "cc", "-fprofile-instr-generate", "p.c", "-o", "a")
    refused("one output is named for several files", "cc", "-c", "p.c", "q.c", "-o", "x.o")
    refused("is compiled for another machine", "cc", "-target", "aarch64-linux-gnu", "-c", "p.c", "-o", "a.o")
    works("cc", "-c", "p.c", "-MJ", "x.json", "-o", "p.o")
    assert '"file": "p.c"' in (tmp_path / "x.json").read_text()
    assert _cc(tmp_path, "run", "./-p.c").returncode == 6
    shell = f"{sys.executable} -m irgrad.interop.cli run p.c >&-"
    assert subprocess.run(shell, shell=True, cwd=tmp_path, check=False).returncode == 6
    works("cc", "-c", "-flto", "p.c")
    works("ar", "rcs", "libp.a", "p.o")
    works("cc", "-flto", "libp.a", "-o", "m")
    assert subprocess.run([tmp_path / "m"], check=False).returncode == 6
    works("cc", "-flto", "q.c", "-Wl,--whole-archive", "libp.a", "-Wl,--no-whole-archive", "-o", "m2")
    assert subprocess.run([tmp_path / "m2"], check=False).returncode == 6
    assert os.access(tmp_path / "h.hpp.pch", os.R_OK)
