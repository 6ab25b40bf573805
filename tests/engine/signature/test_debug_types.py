"""Types of parameters from full debug information, as clang writes it for C and C++."""

from __future__ import annotations

import pytest
from oracle.build import to_ir

from irgrad.engine.signature.debug_types import Described, described_parameters

_DEBUG = ("-Xclang", "-debug-info-kind=constructor")
_ARRAYS = [
    ("const int *", Described("i32", pointer=True, constant=True)), ("double *", Described("f64", pointer=True)),
    ("unsigned long", Described("u64")), ("float", Described("f32")), ("_Bool *", Described("bool", pointer=True)),
    ("const volatile unsigned char *restrict", Described("u8", pointer=True, constant=True)),
    ("short *", Described("i16", pointer=True)), ("_Float16 *", Described("f16", pointer=True)),
    ("__bf16 *", Described("bf16", pointer=True)), ("number *", Described("f64", pointer=True)),
    ("row *", Described("f64", (3,), pointer=True)), ("_Complex float *", Described("f32", (2,), pointer=True)),
    ("enum kind *", Described("u32", pointer=True)),
]  # fmt: skip
_HEAD = "typedef double number; typedef number row[3]; enum kind { A, B };\n"


@pytest.mark.parametrize(("spelled", "expected"), _ARRAYS, ids=[spelled for spelled, _ in _ARRAYS])
def test_elements(spelled: str, expected: Described) -> None:
    text = to_ir(f"{_HEAD}void f({spelled} x) {{ (void)x; }}\n", "-O1", _DEBUG)
    assert described_parameters(text, "f") == ([expected], [])


@pytest.mark.parametrize("spelled", [
    "void *", "double **", "long double *", "union u *", "struct bits *", "struct at *", "struct packed *",
    "struct unknown *", "void (*)(void)", "struct nest *",
])  # fmt: skip
def test_what_no_signature_has(spelled: str) -> None:
    head = """union u { int i; float f; }; struct bits { int a : 3; }; struct at { double *p; };
struct __attribute__((packed)) packed { char c; double d; };
struct in { int k; }; struct nest { struct in i; void *p; };
"""
    head += "typedef void (*g)(void);\n"
    text = to_ir(f"{head}void f({'g' if '(' in spelled else spelled} x) {{ (void)x; }}\n", "-O1", _DEBUG)
    assert described_parameters(text, "f") == ([Described("?")], [])


def test_structs_are_declared_before_they_are_used() -> None:
    source = """typedef struct { float f[2][3]; short k; } inner;
struct s { double a; int b; inner i[2]; };
void f(const struct s *p, struct s *q, inner *r) { (void)p; (void)q; (void)r; }
"""
    parameters, structs = described_parameters(to_ir(source, "-O1", _DEBUG), "f") or ([], [])
    assert [p.element for p in parameters] == ["s", "s", "inner"]
    assert [p.constant for p in parameters] == [True, False, False]
    assert all(p.one for p in parameters)
    assert structs == ["struct inner { f32[2,3] f; i16 k; };", "struct s { f64 a; i32 b; inner[2] i; };"]


def test_references_and_classes_of_cxx() -> None:
    source = """template <int N> struct vec { double x[N]; double norm() const { return x[0]; } };
extern "C" void f(const vec<3> &v, double &d) { d = v.norm(); }
"""
    parameters, structs = described_parameters(to_ir(source, "-O1", _DEBUG, "cpp"), "f") or ([], [])
    assert parameters == [Described("vec_3_", pointer=True, one=True, constant=True),
                          Described("f64", pointer=True, one=True)]  # fmt: skip
    assert structs == ["struct vec_3_ { f64[3] x; };"]


def test_line_tables_have_no_types() -> None:
    text = to_ir("void f(int *x) { (void)x; }\n", "-O1", ("-gline-tables-only",))
    assert described_parameters(text, "f") is None
    assert described_parameters("define void @f() {\n  ret void\n}\n", "f") is None
