"""A walk over tokens that reads types, constants and attributes: what functions and globals have in common."""

from __future__ import annotations

from typing import NoReturn

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.floats import parse_float
from irgrad.engine.ir.model import (
    ConstAggregate,
    Constant,
    ConstData,
    ConstExpr,
    ConstFloat,
    ConstInt,
    ConstText,
    ConstUndef,
    ConstZero,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import CASTS, INT_BINARY
from irgrad.engine.ir.quoting import bare_name, unescape
from irgrad.engine.ir.text.lexer import join, syntax_error, tokenise
from irgrad.engine.ir.types import Type
from irgrad.rules.errors import LimitExceeded

MAX_DEPTH = 64
"""Deepest nesting of a type or constant. LLVM's parser recurses and dies at some 20,000; real code stays below 20."""

MAX_LANES = 1 << 16
"""Most elements that a `splat` may stand for."""

SIMPLE_TYPES: dict[str, Type] = {
    "void": ty.VOID,
    "label": ty.LABEL,
    "metadata": ty.METADATA,
    "token": ty.TOKEN,
    **{kind: ty.float_(kind) for kind in ty.FLOAT_BITS},
    **{f"i{n}": ty.int_(n) for n in (1, 8, 16, 32, 64, 128)},
}

CONSTANT_WORDS = frozenset(
    "true false null none undef poison zeroinitializer splat getelementptr blockaddress dso_local_equivalent no_cfi "
    "ptrauth asm extractelement insertelement shufflevector".split()
) | (CASTS | INT_BINARY)
"""Words that begin a constant: where a list of attributes ends."""

_GEP_FLAGS = frozenset(("inbounds", "nuw", "nusw", "inrange"))
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Cursor:
    """`tokens[at]` is the next token; the list ends with empty tokens."""

    __slots__ = ("at", "constants", "depth", "first_line", "module", "text", "tokens")

    def __init__(self, module: Module, text: str, first_line: int = 1) -> None:
        self.module = module
        self.text = text
        self.first_line = first_line
        self.tokens = tokenise(text)
        self.tokens.append("")
        self.tokens.append("")
        self.at = 0
        self.depth = 0
        self.constants: dict[tuple[Type, str], Constant] = {}

    # -- errors and small steps ---------------------------------------------------------------------------------------

    def fail(self, expected: str, back: int = 0) -> NoReturn:
        """Raise IRSyntaxError at the next token (or `back` tokens before it)."""
        syntax_error(self.text, self.at - back, expected, self.first_line)

    def skip(self, count: int = 1) -> None:
        """Step over so many tokens, whatever they are."""
        self.at += count

    def take(self, token: str) -> None:
        """Step over exactly this token."""
        if self.tokens[self.at] != token:
            self.fail(f"`{token}`")
        self.at += 1

    def accept(self, token: str) -> bool:
        """Step over this token if it is next."""
        if self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def integer(self) -> int:
        """An unsigned decimal number."""
        token = self.tokens[self.at]
        if not token.isdecimal() or len(token) > 20:
            self.fail("a number")
        self.at += 1
        return int(token)

    def enter(self) -> None:
        """One level deeper; raises LimitExceeded below MAX_DEPTH."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LimitExceeded(
                "a type or constant is nested too deeply",
                where=f"the entity or body that starts on line {self.first_line}",
                because=f"it has more than {MAX_DEPTH} levels",
                fix="split the constant, or build it at run time",
            )

    def balanced(self) -> list[str]:
        """The tokens from an opening bracket to the one that closes it."""
        tokens, start = self.tokens, self.at
        opening = tokens[start]
        waiting: list[str] = []
        while True:
            token = tokens[self.at]
            if token == "":
                self.fail(f"`{_CLOSING[opening]}`")
            if token in _CLOSING:
                waiting.append(_CLOSING[token])
                self.enter()
            elif waiting[-1] == token:
                waiting.pop()
                self.depth -= 1
            elif token in (")", "]", "}"):
                self.fail(f"`{waiting[-1]}`")
            self.at += 1
            if not waiting:
                return tokens[start : self.at]

    # -- types -----------------------------------------------------------------------------------------------------

    def at_type(self) -> bool:
        """The next token begins a type."""
        token = self.tokens[self.at]
        if token in SIMPLE_TYPES or token in ("ptr", "[", "{", "<", "x86_amx", "target"):
            return True
        return token[:1] == "%" or (token[:1] == "i" and token[1:].isdecimal())

    def type_(self) -> Type:
        """A type; also a function type where a parameter list follows (only calls and aliases have one)."""
        token = self.tokens[self.at]
        simple = SIMPLE_TYPES.get(token)
        if simple is not None:
            self.at += 1
            return simple
        if token == "ptr":
            self.at += 1
            if self.tokens[self.at] != "addrspace":
                return ty.PTR
            self.at += 1
            self.take("(")
            space = self.integer()
            self.take(")")
            return ty.ptr(space)
        first = token[:1]
        if first == "%":
            named = self.module.types.get(token)
            if named is None:
                self.fail("a type that is defined in this module")
            self.at += 1
            return named
        if first == "i" and token[1:].isdecimal() and len(token) <= 9:
            self.at += 1
            if not 0 < int(token[1:]) < 1 << 23:
                self.fail("an integer type of 1 to 8388607 bits", back=1)
            return ty.int_(int(token[1:]))
        if token in ("x86_amx", "target"):
            self.fail("a type that irgrad models")
        return self._composed_type(token)

    def _composed_type(self, token: str) -> Type:
        self.enter()
        self.at += 1
        result: Type
        if token == "[":
            count = self.integer()
            self.take("x")
            result = ty.array(count, self.type_())
            self.take("]")
        elif token == "{":
            result = ty.struct(self._fields())
        elif token == "<" and self.accept("{"):
            result = ty.struct(self._fields(), packed=True)
            self.take(">")
        elif token == "<":
            if self.tokens[self.at] == "vscale":
                self.fail("a vector of fixed length")
            count = self.integer()
            self.take("x")
            elem = self.type_()
            if not 0 < count < 1 << 31 or not isinstance(elem, ty.IntType | ty.FloatType | ty.PtrType):
                self.fail("a vector of at least one integer, float or pointer", back=1)
            result = ty.vector(count, elem)
            self.take(">")
        else:
            self.at -= 1
            self.fail("a type")
        self.depth -= 1
        return result

    def _fields(self) -> tuple[Type, ...]:
        fields: list[Type] = []
        if not self.accept("}"):
            fields.append(self.type_())
            while self.accept(","):
                fields.append(self.type_())
            self.take("}")
        return tuple(fields)

    def function_params(self) -> tuple[tuple[Type, ...], bool]:
        """`(T, T, ...)` of a function type."""
        self.take("(")
        params: list[Type] = []
        while not self.accept(")"):
            if params:
                self.take(",")
            if self.accept("..."):
                self.take(")")
                return tuple(params), True
            params.append(self.type_())
        return tuple(params), False

    def struct_definition(self, target: ty.StructType) -> None:
        """What stands after `%T = type`."""
        if self.accept("opaque"):
            return
        start = self.at
        packed = self.accept("<")
        if not self.accept("{"):
            self.at = start
            self.fail("the fields of a struct")
        target.fields = self._fields()
        target.packed = packed
        if packed:
            self.take(">")

    # -- attributes ------------------------------------------------------------------------------------------------

    def attribute(self) -> list[str]:
        """One attribute as tokens: `noundef`, `align 8`, `range(i32 0, 10)`, `"key"="value"`, `#3`."""
        tokens, start = self.tokens, self.at
        token = tokens[start]
        self.at += 1
        if token[0] == '"':
            if self.accept("="):
                self.at += 1
        elif tokens[self.at] == "(":
            self.balanced()
        elif (token in ("align", "alignstack") and tokens[self.at].isdecimal()) or (
            token in ("align", "alignstack") and self.accept("=")
        ):
            self.at += 1
        return tokens[start : self.at]

    def attributes_before_type(self) -> str:
        """Attributes (and calling conventions) in front of a type."""
        tokens = self.tokens
        out: list[str] = []
        while not self.at_type():
            first = tokens[self.at][:1]
            if not (first.isalpha() or first == '"'):
                self.fail("a type or an attribute")
            out += self.attribute()
            if out[-1] == "cc":
                out.append(str(self.integer()))
        return join(out)

    def attributes_before_value(self) -> str:
        """Parameter attributes in front of an argument."""
        tokens = self.tokens
        token = tokens[self.at]
        if token[:1] in "%@":
            return ""
        out: list[str] = []
        while (token[:1].isalpha() and token not in CONSTANT_WORDS and token[1:2] != '"') or token[:1] == '"':
            out += self.attribute()
            token = tokens[self.at]
        return join(out)

    # -- values ----------------------------------------------------------------------------------------------------

    def local(self, type_: Type, token: str) -> Value:
        """A `%name`. Only functions have some."""
        self.fail("a constant", back=1)

    def symbol(self, token: str) -> Constant:
        """A global, alias or function; the token was stepped over."""
        found = self.module.symbol(bare_name(token))
        if found is None:
            self.fail("a symbol that this module defines or declares", back=1)
        return found

    def value(self, type_: Type) -> Value:
        """A value of a known type."""
        token = self.tokens[self.at]
        self.at += 1
        if token[:1] == "%":
            return self.local(type_, token)
        if token[:1] == "@":
            found = self.symbol(token)
            if found.type is not type_:
                self.fail(f"a value of type `{type_}`", back=1)
            return found
        known = self.constants.get((type_, token))
        if known is not None:
            return known
        return self.constant_at(type_, token)

    def typed_value(self) -> Value:
        """A type, then a value of it."""
        return self.value(self.type_())

    def constant(self, type_: Type) -> Constant:
        """A constant of a known type."""
        found = self.value(type_)
        if not isinstance(found, Constant):
            self.fail("a constant", back=1)
        return found

    def constant_at(self, type_: Type, token: str) -> Constant:
        """A constant that starts with this token, which was stepped over."""
        made = self._simple_constant(type_, token)
        if made is not None:
            self.constants[type_, token] = made
            return made
        self.enter()
        made = self._composed_constant(type_, token)
        self.depth -= 1
        return made

    def _simple_constant(self, type_: Type, token: str) -> Constant | None:
        if isinstance(type_, ty.IntType):
            if token.lstrip("-").isdecimal():
                if len(token) > 4000:
                    self.fail("a shorter number", back=1)
                return ConstInt(type_, int(token))
            if token in ("true", "false") and type_.bits == 1:
                return ConstInt(type_, int(token == "true"))
            if token[:3] in ("u0x", "s0x"):
                return ConstInt(type_, self._hex_integer(token))
        elif isinstance(type_, ty.FloatType) and (token[:1].isdigit() or token[:1] in "-f"):
            bits = parse_float(type_, token)
            if bits is None:
                self.fail(f"a literal of type `{type_}`", back=1)
            return ConstFloat(type_, bits)
        if token == "zeroinitializer" or (token == "null" and type_.is_ptr) or (token == "none" and type_ is ty.TOKEN):
            return ConstZero(type_)
        if token in ("undef", "poison"):
            return ConstUndef(type_, token == "poison")
        return None

    def _hex_integer(self, token: str) -> int:
        digits = token[3:]
        try:
            value = int(digits, 16)
        except ValueError:
            self.fail("a number", back=1)
        if token[0] == "s" and digits[0] in "89abcdefABCDEF":
            value -= 1 << (4 * len(digits))
        return value

    def _composed_constant(self, type_: Type, token: str) -> Constant:  # noqa: RET503 - fail() raises
        first = token[:1]
        if token == "splat":
            if not isinstance(type_, ty.VectorType) or type_.count > MAX_LANES:
                self.fail(f"a constant of type `{type_}`", back=1)
            self.take("(")
            elem = self.constant(self._elem_type(type_.elem))
            self.take(")")
            return ConstAggregate(type_, [elem] * type_.count)
        if first == "c" and token[1:2] == '"':
            data = unescape(token[2:-1])
            if not isinstance(type_, ty.ArrayType) or type_.count != len(data) or type_.elem is not ty.I8:
                self.fail(f"a constant of type `{type_}`", back=1)
            return ConstData(type_, data)
        if first in ("[", "{", "<") and first:
            return self._aggregate(type_, first)
        if token in ("blockaddress", "ptrauth"):
            return ConstText(type_, token + join(self.balanced()))
        if token in ("dso_local_equivalent", "no_cfi"):
            self.at += 1
            self.symbol(self.tokens[self.at - 1])
            return ConstText(type_, f"{token} {self.tokens[self.at - 1]}")
        if token in CONSTANT_WORDS and token != "asm":
            return self._expression(type_, token)
        self.fail(f"a value of type `{type_}`", back=1)

    def _elem_type(self, wanted: Type) -> Type:
        found = self.type_()
        if found is not wanted:
            self.fail(f"type `{wanted}`", back=1)
        return found

    def _aggregate(self, type_: Type, first: str) -> Constant:
        wanted: tuple[Type, ...] | None
        packed = first == "<" and self.accept("{")
        closing = "}" if packed else _CLOSING[first]
        if (first == "[" and isinstance(type_, ty.ArrayType)) or (
            first == "<" and not packed and isinstance(type_, ty.VectorType)
        ):
            elems = self._elements(closing, type_.elem, type_.count)
        elif first in "{<" and isinstance(type_, ty.StructType) and type_.packed == packed and closing == "}":
            wanted = type_.fields
            if wanted is None:
                self.fail(f"a type with known fields instead of `{type_}`", back=1)
            elems = []
            for i, field in enumerate(wanted):
                if i:
                    self.take(",")
                elems.append(self.constant(self._elem_type(field)))
            self.take("}")
            if packed:
                self.take(">")
        else:
            self.fail(f"a constant of type `{type_}`", back=1)
        return ConstAggregate(type_, elems)

    def _elements(self, closing: str, elem: Type, count: int) -> list[Constant]:
        elems: list[Constant] = []
        append = elems.append
        if not self.accept(closing):
            while True:
                append(self.constant(self._elem_type(elem)))
                if not self.accept(","):
                    break
            self.take(closing)
        if len(elems) != count:
            self.fail(f"{count} elements instead of {len(elems)}", back=1)
        return elems

    def _expression(self, type_: Type, opcode: str) -> Constant:
        tokens = self.tokens
        start = self.at
        elem: Type | None = None
        while tokens[self.at] in _GEP_FLAGS or tokens[self.at] in ("nsw", "exact"):
            if self.accept("inrange"):
                self.balanced()
            else:
                self.at += 1
        flags = _flag_list(tokens[start : self.at])
        self.take("(")
        if opcode == "getelementptr":
            elem = self.type_()
            self.take(",")
        operands = [self.typed_value()]
        if opcode in CASTS:
            self.take("to")
            self._elem_type(type_)
        while opcode not in CASTS and self.accept(","):
            operands.append(self.typed_value())
        self.take(")")
        return ConstExpr(opcode, type_, operands, flags, elem)


def _flag_list(tokens: list[str]) -> tuple[str, ...]:
    """Flags as separate texts; `inrange(-8, 8)` is one flag."""
    out: list[str] = []
    i = 0
    while i < len(tokens):
        if tokens[i] == "inrange":
            end = tokens.index(")", i) + 1
            out.append(join(tokens[i:end]))
            i = end
        else:
            out.append(tokens[i])
            i += 1
    return tuple(out)
