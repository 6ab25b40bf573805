"""Signatures with structs: layouts against those of the C compiler, flat parameters, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad.engine.signature.structs import Struct, has_structs, parse_structs

DECLARED = """
struct small { i8 a; f64 b; bool c; };
struct odd { f32[3] a; u16 b; i64 c; f32 d; };
struct outer { i8 tag; small[2] s; odd o; f32 z; };
"""
C = r"""
#include <stddef.h>
struct small { signed char a; double b; _Bool c; };
struct odd { float a[3]; unsigned short b; long c; float d; };
struct outer { signed char tag; struct small s[2]; struct odd o; float z; };
void layout(long *out) {
    long values[] = { sizeof(struct small), offsetof(struct small, b), offsetof(struct small, c),
        sizeof(struct odd), offsetof(struct odd, b), offsetof(struct odd, c), offsetof(struct odd, d),
        sizeof(struct outer), offsetof(struct outer, s), offsetof(struct outer, o), offsetof(struct outer, z),
        offsetof(struct outer, s[1].b), offsetof(struct outer, o.d) };
    for (int i = 0; i < 13; i++) out[i] = values[i];
}
"""


def test_layouts_are_those_of_c() -> None:
    wanted = irgrad.load(C).kernel("layout", "void(out i64[13] out)")().tolist()
    small, odd, outer = parse_structs(DECLARED + "void(small[] s, odd[] o, outer[] p)").structs
    leaves = {".".join(leaf.path): leaf for leaf in outer.leaves()}
    second = leaves["s.b"].offset + leaves["s.b"].strides[0]
    got = [small.size, *(f.offset for f in small.fields[1:]), odd.size, *(f.offset for f in odd.fields[1:]), outer.size,
           *(f.offset for f in outer.fields[1:]), second, leaves["o.d"].offset]
    assert got == wanted
    assert outer.numpy.itemsize == outer.size and outer.numpy.fields["o"][1] == outer.fields[2].offset
    aligned = np.dtype([("a", "i1"), ("b", "f8"), ("c", "?")], align=True)
    assert small.numpy == aligned


def test_every_field_is_a_parameter_of_its_own() -> None:
    declared = "struct p { f64[2] x; }; struct q { p[3] ps; i32 n; };"
    parsed = parse_structs(declared + "f64(struct q[m] a, inout p[] b, i64 m)")
    assert str(parsed.flat) == "f64(f64[m,3,2] a_ps_x, i32[m] a_n, inout f64[2] b_x, i64 m)"
    assert parsed.flat.sizes == {"m"} and isinstance(parsed.of["a"], Struct)
    assert str(parsed).startswith(declared)
    assert str(parse_structs(str(parsed)).flat) == str(parsed.flat)
    assert has_structs(str(parsed)) and not has_structs("f64(f64 structure)") and not has_structs(None)


@pytest.mark.parametrize(("text", "message"), [
    ("struct p { f64 x; }; f64(p a)", "`a` is a struct by value"),
    ("struct p { f64 *x; }; f64(p[] a)", "a pointer in a struct"),
    ("struct p { f64 x; f32 x; }; f64(p[] a)", "`x` names two fields"),
    ("struct p { f64[n] x; }; f64(p[] a, i64 n)", "extent `n` of a field is no number"),
    ("struct p { f64 x[3]; }; f64(p[] a)", "the shape stands after the name `x`"),
    ("struct p { double x; }; f64(p[] a)", "`double` is no element type"),
    ("struct p { f64 x; }; f64(q[] a)", "`q` is no element type"),
    ("struct p { f64 x; }; struct p { f32 x; }; f64(p[] a)", "`p` is declared twice"),
    ("struct p { }; f64(p[] a)", "struct `p` has no fields"),
    ("struct p { f64 x; }; f64(p[] a, f64 a_x)", "`a_x` names two parameters"),
    ("struct p { f64 3; }; f64(p[] a)", "expected the name of a field"),
])  # fmt: skip
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(irgrad.SignatureError, match=message):
        parse_structs(text)


def test_errors_point_into_the_whole_text() -> None:
    with pytest.raises(irgrad.SignatureError) as caught:
        parse_structs("struct p { f64 x; }; f64(p[] a, int n)")
    line, caret = caught.value.where.split("\n")
    assert line[caret.index("^") :].startswith("int n") and "i32" in caught.value.fix
