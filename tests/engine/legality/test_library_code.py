"""Code of libraries that the analyses do not come to an end in."""

from __future__ import annotations

import numpy as np
import pytest
from toolchains import needs_rustc

import irgrad
from irgrad import engine
from irgrad.engine.codegen.passes import Code
from irgrad.engine.legality.library_code import refuse_libraries

TEXT = """
define double @f(double %x) !dbg !4 {{
  %y = fmul double %x, %x, !dbg !6
  ret double %y
}}
!llvm.module.flags = !{{!0}}
!llvm.dbg.cu = !{{!1}}
!0 = !{{i32 2, !"Debug Info Version", i32 3}}
!1 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !2, producer: "rustc")
!2 = !DIFile(filename: "library/alloc/src/collections/{}", directory: "/rustc/1")
!3 = !DISubroutineType(types: !5)
!4 = distinct !DISubprogram(name: "f", file: !2, type: !3, unit: !1)
!5 = !{{null}}
!6 = !DILocation(line: 7, column: 3, scope: !4)
"""


def test_only_code_from_there() -> None:
    with pytest.raises(irgrad.Unsupported, match=r"(?s)a BTreeMap.*@f \(.*map\.rs:7:3.*sort a Vec"):
        refuse_libraries(Code(TEXT.format("btree/map.rs"), roots=["f"]).model)
    refuse_libraries(Code(TEXT.format("vec_deque/mod.rs"), roots=["f"]).model)


@needs_rustc
def test_values_are_computed() -> None:
    source = """
pub fn f(x: &[f64], keys: &[i32]) -> f64 {
    let mut m = std::collections::BTreeMap::new();
    for (k, v) in keys.iter().zip(x) { *m.entry(*k).or_insert(0.0) += v * v; }
    m.values().map(|v| v * v).sum()
}
"""
    kernel = irgrad.load(source, language="rust").kernel("f", "f64(f64[n] x, i32[n] keys)")
    x, keys = np.array([1.0, 2, 3]), np.array([2, 1, 2], np.int32)
    assert kernel(x, keys) == 116
    with pytest.raises(irgrad.Unsupported, match=r"(?s)a BTreeMap or BTreeSet is not followed.*sort a Vec"):
        engine.grad(kernel)(x, keys)
