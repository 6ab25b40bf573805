"""Which memory of a caller counts as apart from all else, and that gradients of what overlaps stay right."""

from __future__ import annotations

import pytest
from analysed import ir_of

from irgrad.engine.enzyme.apart import own_memory
from irgrad.engine.enzyme.calls import find, parse
from irgrad.engine.enzyme.lower import lower
from irgrad.engine.ir.text.reader import materialise, read
from irgrad.interop.loaders import load

HEAD = """
#include <stdlib.h>
#include <string.h>
void __enzyme_autodiff(void *, ...);
void other(double *);
double *kept;
void f(const double *x, long n, double *out) { *out = 0; for (long i = 0; i < n; i++) *out += x[i] * x[i]; }
"""
CALL = "__enzyme_autodiff((void *)f, x, dx, n, o, d);"
OWN = {
    "local": f"double out = 0, seed = 1, *o = &out, *d = &seed; {CALL} return out + seed;",
    "array": f"double o[4] = {{0}}, d[4]; d[0] = 1; {CALL} return o[0] + o[3];",
    "allocated": f"double *o = calloc(n, 8), *d = malloc(n * 8); d[0] = 1; memset(d, 0, 8); {CALL} double s = o[0]; "
                 "free(o), free(d); return s;",
}  # fmt: skip
SHARED = {
    "given": f"double *o = dx, *d = dx + 1; {CALL} return 0;",
    "told another": f"double out, seed = 1, *o = &out, *d = &seed; other(o); {CALL} return out;",
    "kept": f"double out, seed = 1, *o = &out, *d = &seed; kept = o; {CALL} return out;",
    "its shadow": f"double out, seed = 1, *o = &out, *d = &seed; other(d); {CALL} return out;",
    "given twice": "double out[9], seed = 1, *d = &seed; "
                   "__enzyme_autodiff((void *)f, out, dx, n, out, d); return out[0];",
    "value and shadow": "double out[9]; __enzyme_autodiff((void *)f, x, dx, n, out, out); return out[0];",
    "within": f"double out[9], seed = 1, *o = out + 1, *d = &seed; {CALL} return out[1];",
    "chosen": f"double a = 0, seed = 1, *o = n ? &a : dx, *d = &seed; {CALL} return a;",
}  # fmt: skip


def _apart(body: str) -> frozenset[int]:
    text = ir_of(f"{HEAD} double g(double *x, double *dx, long n) {{ {body} }}", ("-O1",))
    module = read(text, [])
    caller = module.functions["g"]
    materialise(caller, module)
    (instr,) = find(caller)
    return own_memory(caller, parse(module, caller, instr))


@pytest.mark.parametrize("body", OWN.values(), ids=list(OWN))
def test_memory_of_the_caller(body: str) -> None:
    assert _apart(body) == {2}


@pytest.mark.parametrize("body", SHARED.values(), ids=list(SHARED))
def test_memory_that_others_may_reach(body: str) -> None:
    assert _apart(body) == frozenset()


def test_pointers_in_it_may_lead_anywhere() -> None:
    """Rows in an array of the caller: what they lead to may overlap with what is given besides."""
    text = load(HEAD + """
void h(double **rows, double *y) { *y = rows[0][0] * rows[0][0]; }
void g(double *x, double *dx, double *y, double *dy) {
    double *rows[1] = {x}, *shadows[1] = {dx};
    __enzyme_autodiff((void *)h, rows, shadows, y, dy);
}
""").text  # fmt: skip
    module = read(text, [])
    caller = module.functions["g"]
    materialise(caller, module)
    (instr,) = find(caller)
    assert own_memory(caller, parse(module, caller, instr)) == frozenset()


def test_no_copy_of_what_the_result_cannot_overwrite() -> None:
    """`*out += x[i] * x[i]` keeps each x[i] on the tape where out may lie in x, none where it is local."""
    callers = (f"long n) {{ {OWN['local']} }}", f"long n, double *o, double *d) {{ {CALL} return 0; }}")
    kept = [lower(load(f"{HEAD} double g(double *x, double *dx, {rest}").text) for rest in callers]
    assert ["@irgrad.tape.alloc(" in text.split(".vjp.", 1)[1].split("\n}", 1)[0] for text in kept] == [False, True]
