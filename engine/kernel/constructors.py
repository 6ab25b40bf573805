"""Constructors of variables, as part of the function that is differentiated.

    static double *work = (double *)malloc(800);       static std::vector<double> table(100);

They run when a unit is loaded, and nothing is known of the pointers that they leave in variables. Where that matters,
the function runs them itself, in its first call: then what they allocate is memory like any other that a variable keeps
from call to call (see `differentiate/shadow/persistent_memory.py`), and gets its shadow at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from irgrad.engine.codegen.cxx import CONSTRUCTORS, constructors
from irgrad.engine.signature.prototype import quoted
from irgrad.rules.errors import Unsupported

__all__ = ["constructed", "perhaps_inside"]

_Found = TypeVar("_Found")
_LABEL = r'(?:(?:[-\w$.]+|"[^"\n]*"):[^\n]*\n)?'
_RUN = "irgrad.constructors"
_TEXT = f"""
@{_RUN}.done = internal global i8 0
define internal void @{_RUN}() {{
  %done = load i8, ptr @{_RUN}.done, align 1
  %first = icmp eq i8 %done, 0
  br i1 %first, label %run, label %end
run:
  store i8 1, ptr @{_RUN}.done, align 1
@calls@
  br label %end
end:
  ret void
}}
"""


def constructed(text: str, name: str) -> str:
    """The module in which the function `name` begins with the constructors, in its first call."""
    calls = "\n".join(f"  call void {function}()" for function in constructors(text))
    text = CONSTRUCTORS.sub("", text, count=1)
    head = re.compile(rf"^define [^@\n]*@{re.escape(quoted(name))}\([^\n]*\{{\n{_LABEL}", re.M)
    text, places = head.subn(lambda found: f"{found[0]}  call void @{_RUN}()\n", text, count=1)
    assert places == 1, f"`{name}` is not defined in the module"
    return text + _TEXT.replace("@calls@", calls)


def perhaps_inside(text: str, ask: Callable[[bool], _Found]) -> _Found:
    """What `ask` makes of a module; where that is refused, what it makes of it with the constructors inside."""
    try:
        return ask(False)
    except Unsupported as error:
        if not constructors(text):
            raise
        try:
            return ask(True)
        except Unsupported:
            raise error from None
