"""Tokens, names and escapes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from irgrad.engine.ir.text.lexer import join, syntax_error, tokenise
from irgrad.rules.errors import IRSyntaxError


def test_tokens_of_an_instruction() -> None:
    text = '  %x.1 = call double @"a b"(double noundef -1.5e+00, ptr %2) #3, !dbg !12 ; comment\n'
    assert [t for t in tokenise(text) if t] == [
        "%x.1",
        "=",
        "call",
        "double",
        '@"a b"',
        "(",
        "double",
        "noundef",
        "-1.5e+00",
        ",",
        "ptr",
        "%2",
        ")",
        "#3",
        ",",
        "!dbg",
        "!12",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "range(i32 -8, 10)",
        '"key"="value with ; in it"',
        "[2 x i8]",
        "captures(address, provenance)",
        "initializes((0, 8))",
        "byval(%struct.S) align 8",
        "memory(argmem: read, errnomem: write)",
        "dereferenceable(16)",
        "#4",
    ],
)
def test_joined_as_llvm_prints(text: str) -> None:
    assert join([t for t in tokenise(text) if t]) == text


def test_a_long_tail_of_blanks_is_linear() -> None:
    # Scanned again from each blank it would take hours: this can only hang, it cannot be late.
    code = "from irgrad.engine.ir.text.lexer import tokenise; print(tokenise(' \\n' * 1_000_000)[-1:])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "['']"


def test_error_shows_the_place() -> None:
    with pytest.raises(IRSyntaxError) as caught:
        syntax_error("a b\n  c d", 3, "`e`", 10)
    assert (caught.value.where, caught.value.which) == ("line 11", "c d")
    assert caught.value.because == "got `d` where `e` was expected"
