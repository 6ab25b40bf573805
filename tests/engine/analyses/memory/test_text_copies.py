"""Strings of C++ beside numbers: in an `any`, in optionals, in structs that are sorted."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad.engine import grad, jvp
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.analyses.memory.text_copies import beside_text, copies_text, hashes_text, only_beside
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.text.reader import read

HEADERS = "".join(f"#include <{name}>\n" for name in "algorithm any cstring optional string vector".split())
BODIES = {
    "any": """std::any a = x[0] * x[1];
  double s = std::any_cast<double>(a);
  a = std::string("text of some length that is long");
  s += std::any_cast<std::string>(a).size() * x[2];
  a = x[3] * s;
  return s + std::any_cast<double>(a);""",
    "optional": """struct part { std::optional<std::string> name; std::optional<double> v; };
  std::vector<part> parts(n);
  for (long i = 0; i < n; i++) { if (i % 2) parts[i].name = "a"; else parts[i].v = x[i] * x[i]; }
  auto copies = parts;
  double s = 0;
  for (auto &p : copies) s += p.v.value_or(x[0]) * (p.name ? p.name->size() + 1 : 2);
  return s;""",
    "sorted": """struct part { std::string name; double v; };
  std::vector<part> parts;
  for (long i = 0; i < n; i++) parts.push_back(part{"p" + std::to_string(7 * i % 5), x[i] * x[i]});
  std::sort(parts.begin(), parts.end(), [](const part &a, const part &b) { return a.name < b.name; });
  double s = 0;
  for (auto &p : parts) s = s * 0.5 + p.v;
  return s;""",
    "floats as text": """std::string text;
  for (long i = 0; i < n; i++) { double v = x[i] * x[i]; text.append((const char *)&v, sizeof v); }
  std::string other = text.substr(8);
  double s = 0;
  for (long i = 0; i + 1 < n; i++) {
    double v;
    std::memcpy(&v, other.data() + 8 * i, sizeof v);
    s = 0.5 * s + v * x[0];
  }
  return s;""",
    "short floats as text": """double v = x[0] * x[1];
  std::string text((const char *)&v, sizeof v);
  text += "and some more that does not fit into a short string";
  std::string other = text.substr(0, 8);
  double w;
  std::memcpy(&w, other.data(), sizeof w);
  return w * x[2];""",
}
X = np.array([0.5, 0.3, 1.2, 0.7])
LONG = ("optional", "sorted")


def test_members_are_beside_text_that_begins_between_words() -> None:
    start, rows = Offsets(1), ((32, None),)
    assert beside_text(start, Offsets(16), 8) and beside_text(Offsets(1, rows), Offsets(24, rows), 8)
    assert not beside_text(start, Offsets(9), 8)
    assert not beside_text(Offsets(0), Offsets(16), 8)
    assert not beside_text(start, Offsets(0, ((1, None),)), 8)
    assert only_beside(start, [(Offsets(16), ty.PTR, 8, 3), (Offsets(24), ty.F64, 8, 3)])
    assert not only_beside(start, [(Offsets(16), ty.PTR, 8, 3), (Offsets(1), ty.F64, 8, 3)])
    assert not only_beside(Offsets(0), [(Offsets(16), ty.PTR, 8, 3)])


HASHED = """
define i64 @f(ptr %s) !dbg !3 {
  %word = load i64, ptr %s, align 1, !dbg !4
  %other = load i64, ptr %s, align 1, !dbg !5
  %sum = add i64 %word, %other
  ret i64 %sum
}
define void @_ZNSt3__1plIcNS_11char_traitsIcEEEvPKc(ptr %t, ptr %s, i64 %n) {
  call void @llvm.memmove.p0.p0.i64(ptr %t, ptr %s, i64 %n, i1 false)
  ret void
}
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !2, emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "lib/include/__string/char_traits.h", directory: "/")
!3 = distinct !DISubprogram(name: "f", file: !2, line: 1, unit: !1, type: !7)
!4 = !DILocation(line: 2, scope: !6, inlinedAt: !5)
!5 = !DILocation(line: 3, scope: !3)
!6 = distinct !DISubprogram(name: "__do_string_hash<const char *>", file: !2, line: 1, unit: !1, type: !7)
!7 = !DISubroutineType(types: !8)
!8 = !{null}
"""


def test_hashes_and_sums_of_texts() -> None:
    module = read(HASHED, roots=["f", "_ZNSt3__1plIcNS_11char_traitsIcEEEvPKc"])
    word, other, *_ = module.functions["f"].instructions()
    assert hashes_text(module, word) and not hashes_text(module, other)
    move = next(module.functions["_ZNSt3__1plIcNS_11char_traitsIcEEEvPKc"].instructions())
    assert copies_text(module, move, 2)


def _loss(name: str, level: str) -> irgrad.Kernel:
    source = f'{HEADERS}extern "C" double loss(const double *x, long n) {{\n  {BODIES[name]}\n}}\n'
    return irgrad.load(source, language="c++", flags=[level]).kernel("loss", "f64(f64[n] x, i64 n)")


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", ["any", *(pytest.param(name, marks=pytest.mark.long) for name in LONG)])
def test_numbers_beside_text(name: str, level: str) -> None:
    loss, h = _loss(name, level), 1e-6
    want = [(loss(X + h * e) - loss(X - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(grad(loss)(X), want, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(jvp(loss, (X,), (X,))[1], np.dot(want, X), rtol=1e-6)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", ["floats as text", "short floats as text"])
def test_floats_kept_as_text_are_refused(name: str, level: str) -> None:
    loss = _loss(name, level)
    with pytest.raises(irgrad.Unsupported, match=r"part of an active float|bytes that are moved"):
        grad(loss)(X)
    with pytest.raises(irgrad.Unsupported, match=r"part of an active float|bytes that are moved"):
        jvp(loss, (X,), (X,))
