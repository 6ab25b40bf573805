"""Messages name the user's functions and arguments, not those of the normal form."""

from __future__ import annotations

import pytest

import irgrad
from irgrad import engine
from irgrad.engine.kernel.messages import in_users_words
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import Unsupported


def test_names() -> None:
    error = Unsupported("a thing in `@f.normal.jvp.10`", where="@f.normal (f.c:1:2), block %a0", which="fadd %a0, %v1",
                        because="`%v1` is active: it depends on argument `%a0`, `%a0.i` and reaches argument `%ret`",
                        fix="leave %a7 alone")  # fmt: skip
    told = in_users_words(error, "f", Signature("f64(f64[n] pos, f64 mass, i64 n)"))
    assert told is error and told.args == ("a thing in `@f`",)
    assert told.where == "@f (f.c:1:2), block `pos`"
    assert told.which == "fadd %a0, %v1"
    assert told.because == "`mass` is active: it depends on argument `pos`, `%a0.i` and reaches the result"
    assert told.fix == "leave %a7 alone"


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_in_both_modes(mode: str) -> None:
    source = "double bk(double);\ndouble g(double y) { return bk(y); }\ndouble f(double speed) { return g(speed) * 2; }"
    kernel = irgrad.load(source).kernel("f")
    with pytest.raises(irgrad.MissingRuleError) as caught:
        engine.grad(kernel)(1.0) if mode == "reverse" else engine.jvp(kernel, (1.0,), (1.0,))
    text = str(caught.value)
    assert "@f (<string>:2:" in text and "depends on argument `speed`" in text and "reaches the result" in text
    assert ".normal" not in text
