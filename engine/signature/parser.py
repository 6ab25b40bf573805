"""The parser of signatures (grammar: see `signature` and `extents`). Errors carry a caret."""

from __future__ import annotations

import re

from irgrad.engine.signature.dtypes import DTYPES, HINTS, DType
from irgrad.engine.signature.extents import BinaryExtent, ConstExtent, Extent, NameExtent
from irgrad.engine.signature.parameter import Parameter
from irgrad.rules.errors import SignatureError

__all__ = ["Parser", "parse_signature"]

_TOKEN = re.compile(r"\s*(?:(?P<int>\d+)|(?P<word>[A-Za-z_]\w*)|(?P<sign>[-+*/%()\[\],])|(?P<bad>\S))")
_INTENTS = ("in", "out", "inout", "status")
_EXAMPLE = "f64(f64[n,3] pos, f64[n] mass, i64 n)"


def parse_signature(text: str) -> tuple[DType | None, list[Parameter], bool]:
    """The return type (None: void), the parameters, and whether the return value is a status. Raises SignatureError."""
    if not isinstance(text, str):
        raise SignatureError("a signature is a string", because=f"got {type(text).__name__}", fix=f'"{_EXAMPLE}"')
    return Parser(text).signature()


class Parser:
    """Reads a signature token by token. Methods raise SignatureError with a caret."""

    __slots__ = ("at", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        self.at = 0
        position = 0
        while match := _TOKEN.match(text, position):
            kind = match.lastgroup or ""
            self.tokens.append((kind, match[kind], match.start(kind)))
            position = match.end()
        self.tokens.append(("end", "", len(text.rstrip())))
        for kind, word, start in self.tokens:
            if kind == "bad":
                raise self.error(f"unexpected `{word}`", start, self._bad_hint(word))

    @staticmethod
    def _bad_hint(word: str) -> str:
        if word == ".":
            return "write the shape out: one extent per axis"
        if word == "?":
            return f"a draft leaves an element type open: write one of {' '.join(DTYPES)}, or a struct"
        return f"a signature looks like {_EXAMPLE}"

    def error(self, what: str, start: int, fix: str, because: str = "") -> SignatureError:
        line = self.text.replace("\n", " ")
        return SignatureError(f"{what} in a signature", where=f"{line}\n{' ' * start}^", because=because, fix=fix)

    def peek(self) -> tuple[str, str, int]:
        return self.tokens[self.at]

    def take(self) -> tuple[str, str, int]:
        token = self.tokens[self.at]
        self.at += token[0] != "end"
        return token

    def expect(self, sign: str) -> None:
        _, word, start = self.peek()
        if word != sign:
            raise self.error(f"expected `{sign}`, got {_shown(word)}", start, f"a signature looks like {_EXAMPLE}")
        self.take()

    def signature(self) -> tuple[DType | None, list[Parameter], bool]:
        returns = None
        status, begin = self.peek()[1] == "status", self.peek()[2]
        if status:
            self.take()
        if self.peek()[1] == "void":
            self.take()
        else:
            returns = self.dtype("a return type")
        if status and (returns is None or returns.kind not in "iu"):
            raise self.error("a status that is no integer", begin, "`status i32(...)` for a function that returns int")
        if self.peek()[1] == "[":
            raise self.error("a returned array", self.peek()[2], "make it an `out` parameter: arrays are not returned")
        self.expect("(")
        parameters: list[Parameter] = []
        if self.peek()[1] == "void" and self.tokens[self.at + 1][1] == ")":
            self.take()
        if self.peek()[1] != ")":
            parameters.append(self.parameter(parameters))
            while self.peek()[1] == ",":
                self.take()
                parameters.append(self.parameter(parameters))
        self.expect(")")
        kind, word, start = self.peek()
        if kind != "end":
            raise self.error(f"unexpected `{word}` after the closing `)`", start, "end the signature there")
        marks = status + sum(p.is_status for p in parameters)
        if marks > 1:
            raise self.error("two statuses", begin, "mark the one that is 0 on success")
        return returns, parameters, status

    def dtype(self, wanted: str) -> DType:
        kind, word, start = self.take()
        if kind != "word":
            raise self.error(f"expected {wanted}, got {_shown(word)}", start, f"one of {' '.join(DTYPES)}")
        if word not in DTYPES:
            import difflib

            near = HINTS.get(word) or next(iter(difflib.get_close_matches(word, DTYPES, n=1)), None)
            fix = f"write `{near}`" if near else f"one of {' '.join(DTYPES)}"
            if word in ("c64", "c128", "complex"):
                fix = "pass the real and imaginary parts as one array of floats with a last axis of 2"
            if near is None and self.peek()[1] in DTYPES:  # memory that is only worked in is an `out` nobody looks at
                fix = f"`out {self.peek()[1]}` for memory that is written first, `inout` where it is read before"
            raise self.error(f"`{word}` is no element type", start, fix)
        return DTYPES[word]

    def parameter(self, before: list[Parameter]) -> Parameter:
        intent = "in"
        if self.peek()[1] in _INTENTS and self.tokens[self.at + 1][0] == "word":
            intent = self.take()[1]
        dtype = self.dtype("a parameter such as `f64[n] x`")
        shape = self.shape() if self.peek()[1] == "[" else None
        if self.peek()[1] == "*":
            raise self.error("a bare pointer", self.peek()[2],
                             f"give its shape: `{dtype}[n] name`; one element: `{dtype}[]`",
                             because="extents are needed to check and to allocate arrays")
        kind, word, start = self.take()
        if kind != "word":
            raise self.error(f"expected the name of a parameter, got {_shown(word)}", start, f"`{dtype} name`")
        if self.peek()[1] == "[":
            raise self.error(f"the shape stands after the name `{word}`", self.peek()[2], f"`{dtype}[...] {word}`")
        if any(p.name == word for p in before):
            raise self.error(f"`{word}` names two parameters", start, "give every parameter a name of its own")
        if intent != "in" and shape is None:
            shape = ()  # a C function can only write through a pointer
        if intent == "status":
            if dtype.kind not in "iu" or shape:
                raise self.error("a status that is not one integer", start, f"`status i32 {word}`")
            return Parameter(word, dtype, shape, "out", is_status=True)
        return Parameter(word, dtype, shape, intent)

    def shape(self) -> tuple[Extent, ...]:
        start = self.peek()[2]
        self.expect("[")
        extents: list[Extent] = []
        if self.peek()[1] != "]":
            extents.append(self.sum())
            while self.peek()[1] == ",":
                self.take()
                extents.append(self.sum())
        self.expect("]")
        for extent in extents:
            if not extent.names() and not {"/", "%"} & {*str(extent)} and extent.value({}) < 0:
                raise self.error("an extent below 0", start, "a name for a size that calls give: `f64[n] x`")
        return tuple(extents)

    def sum(self) -> Extent:
        left = self.term()
        while self.peek()[1] in ("+", "-"):
            left = BinaryExtent(self.take()[1], left, self.term())
        return left

    def term(self) -> Extent:
        left = self.factor()
        while self.peek()[1] in ("*", "/", "%"):
            left = BinaryExtent(self.take()[1], left, self.factor())
        return left

    def factor(self) -> Extent:
        kind, word, start = self.take()
        if kind == "int":
            return ConstExtent(int(word))
        if kind == "word":
            return NameExtent(word)
        if word == "(":
            inner = self.sum()
            self.expect(")")
            return inner
        if word == "-":
            return BinaryExtent("-", ConstExtent(0), self.factor())
        raise self.error(f"expected an extent, got {_shown(word)}", start,
                         "an integer expression in names: `n`, `3`, `2*n+1`; a pointer to one element is `[]`")


def _shown(word: str) -> str:
    return f"`{word}`" if word else "the end"
