"""One function, stage by stage: `python docs/stages.py` writes that section of how-it-works.md anew.

The section stands between two comments. A test makes it again and compares (tests/test_docs.py).
"""

from __future__ import annotations

import re
from pathlib import Path

import irgrad as ig
from irgrad.engine.codegen.passes import Code, Settings, run_passes
from irgrad.engine.ir.printer import to_text
from irgrad.engine.pipeline.stages import NORMALISE

PAGE = Path(__file__).resolve().parent / "how-it-works.md"
BEGIN = "<!-- made by docs/stages.py -->"
END = "<!-- end of what docs/stages.py makes -->"

SOURCE = """\
#include <math.h>
double f(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++)
        s += sin(s) * x[i];
    return s;
}
"""
SEVERAL = """\
define void @both(double %t, ptr %s, ptr %c) {
  call void @sincos(double %t, ptr %s, ptr %c)
  ret void
}
declare void @sincos(double, ptr, ptr)
"""

TEXT = """\
Debug locations, most attributes and what depends on the machine are left out.

**The source:**

```c
{source}```

**After `prepare`.** The function is in normal form: `%a0` is `x`, `%a1` points to `n`, and the result is stored through
`%ret`. LLVM has inlined and optimised it, and vectorised nothing. The loop has one block in front of it, one block that
jumps back, and one behind it; `s` and `i` are phis.

```text
{prepared}```

**After `normalise`.** {changes}
Elsewhere the stage takes apart calls that do several things. Before:

```text
{before}```

And after:

```text
{after}```

**The plan of the tape**, before an instruction of the derivative exists. The reverse of `s + sin(s) * x[i]` reads
`x[i]` and `sin(s)`, that of `sin(s)` reads `s`. `x[i]` is read again, since nothing overwrites it, and its address is
computed again. `s` and its sine are kept, each in an array over the iterations; two variables hold the addresses of the
arrays.

```text
{plan}```

**The derivative `pullback`**, as it is made, before LLVM optimises it. `%v0` is the shadow of `x`, `%v2` that of the
result. Blocks `p.` are the primal sweep, which fills the tape and does not store the result. Blocks `r.` are the
reverse sweep: it takes the adjoint of the result, gives the operands of each instruction their part, and counts the
loop down. Adjoints are stack variables that start from zero, of which LLVM makes registers, and their arithmetic may be
reassociated. Functions `irgrad.tape` are the runtime, which is linked in later.

```text
{derivative}```
"""

NOTHING = """\
Nothing of this function changes: it has one return, and LLVM has given its loop this shape."""
SOMETHING = """\
It is now:

```text
{normalised}```
"""

_LEFT_OUT = [  # what a function is shown without
    (r", !\w+(?:\.\w+)* !\d+", ""),  # metadata
    (r"(?m)^ *(?:tail )?call void @llvm\.experimental\.noalias\.scope\.decl\(metadata !\d+\)\n", ""),
    (r"[ \t]*; preds = .*", ""),
    (r' "irgrad-[\w-]+"', ""),
    (r" #\d+", ""),
    (r" (?:noundef|nonnull|readonly|writeonly|local_unnamed_addr|nounwind|align 8|captures\(none\))(?= )", ""),
    (r"\btail call\b", "call"),
    (r"@irgrad\.text\.[0-9a-f]+", "@irgrad.text"),
    (r"\n{2,}", "\n"),
]


def function(text: str, name: str) -> str:
    """The definition of a function in IR, without what depends on the machine and what only optimises."""
    found = re.search(rf"^define [^\n]*@{re.escape(name)}\(.*?^\}}\n", text, re.M | re.S)
    assert found is not None
    shown = found[0]
    for pattern, instead in _LEFT_OUT:
        shown = re.sub(pattern, instead, shown)
    return shown


def as_read(text: str) -> str:
    """The module as the passes of the engine print it when they have changed nothing."""
    return to_text(Code(text).model)


def normalised(text: str, name: str) -> str:
    """The module after the stage `normalise`."""
    return run_passes(NORMALISE, Code(text, roots=[name]), Settings((name,))).text


def section() -> str:
    """The section, from what the engine does now."""
    kernel = ig.load(SOURCE).kernel("f", "f64(f64[n] x, i64 n)")
    stage, derivative = kernel.primal.stage, kernel.primal.pullback([0, 2]).stage
    after = function(normalised(stage.text, stage.name), stage.name)
    return TEXT.format(
        source=SOURCE,
        prepared=function(stage.text, stage.name),
        changes=NOTHING if after == function(as_read(stage.text), stage.name) else SOMETHING.format(normalised=after),
        before=function(SEVERAL, "both"),
        after=function(normalised(SEVERAL, "both"), "both"),
        plan=f"{ig.engine.explain_plan(kernel)}\n",
        derivative=function(derivative.text, derivative.name),
    )


def main() -> None:
    """Write the section into the page."""
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{section()}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
