"""Reads LLVM 22's textual IR, as LLVM prints it, into the model.

    module ::= source_filename | target | module asm | type | comdat | global | alias | ifunc | declare | define
               | attributes | metadata | uselistorder

Three passes, each linear: cut the text into entities (lines, except for function bodies) and create every symbol with
its type; read the initialisers; read the bodies. With `roots`, only the bodies reachable from them are read, the others
stay text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import NoReturn

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Constant, Function, GlobalAlias, GlobalVariable, Module
from irgrad.engine.ir.quoting import bare_name, unescape
from irgrad.engine.ir.text.body import BodyReader
from irgrad.engine.ir.text.cursor import Cursor
from irgrad.engine.ir.text.entities import Entity, cut, reachable
from irgrad.engine.ir.text.lexer import join, syntax_error
from irgrad.engine.ir.types import Type
from irgrad.engine.support.limits import check_length
from irgrad.rules.errors import IRGradError, IRSyntaxError, LoadError

"""Longest text that is read, in characters."""

_HEAD_WORDS = frozenset(
    """private internal available_externally linkonce weak common appending extern_weak linkonce_odr weak_odr external
    dso_local dso_preemptable default hidden protected dllimport dllexport""".split()
)
_GLOBAL_KINDS = ("global", "constant", "alias", "ifunc")


def read(text: str, roots: Sequence[str] | None = None, *, reach: bool = True) -> Module:
    """Read a module. Raises IRSyntaxError, LimitExceeded, or LoadError for a root that the text does not define.

    `roots` names functions (without `@`): bodies that no chain of references from them reaches are kept as text in
    `Function.lazy`; `materialise` reads one of them later. reach: False to keep all bodies but theirs as text.
    """
    _check_text(text)
    module = Module()
    try:
        _Reader(module, text).read(roots, reach=reach)
    except IRGradError:
        raise
    except (IndexError, KeyError, ValueError, AssertionError, TypeError, AttributeError, RecursionError) as error:
        raise _unexpected(error) from error
    return module


def materialise(function: Function, module: Module) -> None:
    """Read the body of a function that was kept as text; nothing for one that was read already."""
    if function.lazy is None:
        return
    text, function.lazy = function.lazy, None
    try:
        BodyReader(module, function, text, 1).read()
    except IRGradError:
        raise
    except (IndexError, KeyError, ValueError, AssertionError, TypeError, AttributeError, RecursionError) as error:
        raise _unexpected(error) from error


def _check_text(text: str) -> None:
    check_length(text)
    nul = text.find("\0")
    if nul >= 0:
        raise IRSyntaxError(
            "this text is not LLVM IR that irgrad can read",
            where=f"line {text.count(chr(10), 0, nul) + 1}",
            because="it holds a NUL byte, behind which LLVM would ignore everything without a word",
            fix="pass a text file; for bitcode use irgrad.load",
        )


def _unexpected(error: Exception) -> IRSyntaxError:
    return IRSyntaxError(
        "this text is not LLVM IR that irgrad can read",
        because=f"the reader met something that the grammar does not have ({type(error).__name__}: {error})",
        fix="check the module with LLVM (`opt -passes=verify`); if LLVM accepts it, this is a defect of irgrad",
    )


class _Reader:
    """The passes over one text."""

    def __init__(self, module: Module, text: str) -> None:
        self.module = module
        self.text = text
        self.pending: list[tuple[GlobalVariable, Cursor, Entity]] = []
        self.aliases: list[tuple[GlobalAlias, Cursor, Entity]] = []
        self.entities: dict[str, Entity] = {}

    def read(self, roots: Sequence[str] | None, *, reach: bool) -> None:
        """All passes."""
        symbols = self._cut()
        for entity in symbols:
            if self.text.startswith("@", entity.start):
                self._global(entity)
            else:
                self._function(entity)
        for variable, cursor, _ in self.pending:
            self._initialiser(variable, cursor)
        for alias, cursor, _ in self.aliases:
            self._alias_target(alias, cursor)
        wanted = None if roots is None else self._reachable(roots) if reach else set(roots)
        for name, function in self.module.functions.items():
            entity = self.entities[name]
            if entity.body is None:
                continue
            body = self.text[entity.body[0] : entity.body[1]]
            if wanted is not None and name not in wanted:
                function.lazy = body
                continue
            line = entity.line + self.text.count("\n", entity.start, entity.body[0])
            BodyReader(self.module, function, body, line).read()

    # -- cutting ---------------------------------------------------------------------------------------------------

    def _cut(self) -> list[Entity]:
        """Cut the text; read everything that needs no symbols; return globals and functions."""
        symbols, types = list[Entity](), list[Entity]()
        for entity in cut(self.text):
            if entity.first in "d@":
                symbols.append(entity)
            elif entity.first == "%":
                types.append(entity)
            elif entity.first == "!":
                self._metadata(entity)
            else:
                self._other(entity)
        self._types(types)
        return symbols

    def _bad(self, entity: Entity, expected: str) -> NoReturn:
        syntax_error(self.text[entity.start : entity.end], 0, expected, entity.line)

    def _cursor(self, entity: Entity, end: int | None = None) -> Cursor:
        return Cursor(self.module, self.text[entity.start : end if end is not None else entity.end], entity.line)

    # -- entities without symbols ----------------------------------------------------------------------------------

    def _types(self, entities: list[Entity]) -> None:
        cursors: list[tuple[ty.StructType, Cursor]] = []
        for entity in entities:
            cursor = self._cursor(entity)
            name = cursor.tokens[0]
            if name in self.module.types:
                cursor.fail("a name that is not defined already")
            cursor.skip()
            cursor.take("=")
            cursor.take("type")
            self.module.types[name] = ty.named_struct(name)
            cursors.append((self.module.types[name], cursor))
        for target, cursor in cursors:
            cursor.struct_definition(target)
            if cursor.tokens[cursor.at]:
                cursor.fail("the end of the line")

    def _metadata(self, entity: Entity) -> None:
        line = self.text[entity.start : entity.end].rstrip()
        name, equals, body = line.partition(" = ")
        if not equals:
            name, equals, body = line.partition("=")
        if not equals or not body.strip():
            self._bad(entity, "metadata such as `!0 = !{...}`")
        self.module.metadata[name.strip()] = body.strip()

    def _other(self, entity: Entity) -> None:
        """source_filename, target, module asm, comdats, attribute groups, use-list orders, summaries."""
        text, module = self.text, self.module
        line = text[entity.start : entity.end].rstrip()
        word = line.split(" ", 1)[0]
        if word == "attributes" and "=" in line:
            name, _, body = text[entity.start : entity.end].partition("=")
            module.attribute_groups[name.split()[1]] = body.strip()
        elif line.startswith("$"):
            name, _, body = line.partition(" = ")
            module.comdats[name] = body
        elif word in ("source_filename", "target", "module"):
            match = re.search(r'"([^"]*)"', line)
            if match is None:
                self._bad(entity, "a string")
            if word == "source_filename":
                module.source_filename = unescape(match[1]).decode("utf-8", "surrogateescape")
            elif word == "module":
                module.module_asm.append(match[1])
            elif line.split()[1] == "datalayout":
                module.datalayout = match[1]
            else:
                module.triple = match[1]
        elif word in ("uselistorder", "uselistorder_bb"):
            module.use_list_orders.append(line)
        elif not line.startswith("^"):
            self._bad(entity, "a top-level entity")

    # -- symbols ---------------------------------------------------------------------------------------------------

    def _new_symbol(self, cursor: Cursor, token: str) -> str:
        name = bare_name(token)
        if token[:1] != "@" or len(token) < 2:
            cursor.fail("a symbol such as `@f`", back=1)
        if self.module.symbol(name) is not None:
            cursor.fail(f"a symbol other than `@{name}`, which is defined already", back=1)
        return name

    def _global(self, entity: Entity) -> None:
        cursor = self._cursor(entity)
        tokens = cursor.tokens
        cursor.skip()
        name = self._new_symbol(cursor, tokens[0])
        cursor.take("=")
        head: list[str] = []
        while tokens[cursor.at] not in _GLOBAL_KINDS:
            if not tokens[cursor.at][:1].isalpha():
                cursor.fail("`global`, `constant`, `alias` or `ifunc`")
            head += cursor.attribute()
        kind = tokens[cursor.at]
        cursor.skip()
        type_ = cursor.type_()
        space = ty.PTR if "addrspace" not in head else ty.ptr(int(head[head.index("addrspace") + 2]))
        if kind in ("alias", "ifunc"):
            if tokens[cursor.at] == "(":
                params, vararg = cursor.function_params()
                type_ = ty.function(type_, params, vararg)
            alias = GlobalAlias(name, type_, _NOTHING, join(head), kind)
            self.module.aliases[name] = alias
            self.aliases.append((alias, cursor, entity))
        else:
            variable = GlobalVariable(name, type_, None, kind == "constant", join(head))
            variable.type = space
            self.module.globals[name] = variable
            self.pending.append((variable, cursor, entity))
        self.entities[name] = entity

    def _initialiser(self, variable: GlobalVariable, cursor: Cursor) -> None:
        if cursor.tokens[cursor.at] not in (",", ""):
            variable.init = cursor.constant(variable.value_type)
        variable.tail = self._tail(cursor)

    def _alias_target(self, alias: GlobalAlias, cursor: Cursor) -> None:
        cursor.take(",")
        target = cursor.typed_value()
        if not isinstance(target, Constant):
            cursor.fail("a constant", back=1)
        alias.target = target
        alias.type = target.type
        tail = self._tail(cursor)
        if tail:
            alias.head = f"{alias.head}\n{tail}"

    @staticmethod
    def _tail(cursor: Cursor) -> str:
        start = cursor.at
        if cursor.tokens[start] not in (",", ""):
            cursor.fail("`,` or the end of the line")
        while cursor.tokens[cursor.at]:
            cursor.skip()
        return join(cursor.tokens[start : cursor.at])

    def _function(self, entity: Entity) -> None:
        end = entity.end if entity.body is None else entity.body[0]
        cursor = self._cursor(entity, end)
        tokens = cursor.tokens
        cursor.skip()
        metadata: dict[str, str] = {}
        while tokens[cursor.at][:1] == "!":
            metadata[tokens[cursor.at][1:]] = tokens[cursor.at + 1]
            cursor.skip(2)
        head: list[str] = []
        while tokens[cursor.at] in _HEAD_WORDS or tokens[cursor.at].endswith("cc"):
            head += [tokens[cursor.at]]
            cursor.skip()
            if head[-1] == "cc":
                head.append(str(cursor.integer()))
        ret_attrs = cursor.attributes_before_type()
        ret = cursor.type_()
        cursor.skip()
        name = self._new_symbol(cursor, tokens[cursor.at - 1])
        types, names, attrs, vararg = self._parameters(cursor)
        function = Function(name, ty.function(ret, tuple(types), vararg), names)
        for arg, text in zip(function.args, attrs, strict=True):
            arg.attrs = text
        function.head, function.ret_attrs, function.metadata = join(head), ret_attrs, metadata
        self._function_tail(function, cursor, entity.body is not None)
        self.module.functions[name] = function
        self.entities[name] = entity

    @staticmethod
    def _parameters(cursor: Cursor) -> tuple[list[Type], list[str | None], list[str], bool]:
        cursor.take("(")
        types: list[Type] = []
        names: list[str | None] = []
        attrs: list[str] = []
        while not cursor.accept(")"):
            if types:
                cursor.take(",")
            if cursor.accept("..."):
                cursor.take(")")
                return types, names, attrs, True
            types.append(cursor.type_())
            attrs.append(cursor.attributes_before_value())
            token = cursor.tokens[cursor.at]
            names.append(bare_name(token) if token[:1] == "%" else None)
            if token[:1] == "%":
                cursor.skip()
        return types, names, attrs, False

    @staticmethod
    def _function_tail(function: Function, cursor: Cursor, has_body: bool) -> None:
        tokens, tail = cursor.tokens, list[str]()
        while tokens[cursor.at] and not (tokens[cursor.at] == "{" and has_body and tokens[cursor.at + 1] == ""):
            token = tokens[cursor.at]
            if token[:1] == "!":
                function.metadata[token[1:]] = tokens[cursor.at + 1]
                cursor.skip(2)
            elif token in ("{", "[", "<", "("):
                tail += cursor.balanced()
            else:
                tail.append(token)
                cursor.skip()
        function.tail = join(tail)

    # -- reachability ----------------------------------------------------------------------------------------------

    def _reachable(self, roots: Sequence[str]) -> set[str]:
        """Symbols that some chain of references from the roots reaches (names in the text, so never too few)."""
        for root in roots:
            if root not in self.module.functions:
                close = difflib.get_close_matches(root, self.module.functions, 3)
                raise LoadError(
                    f"no function `{root}` in this module",
                    because=f"it has {len(self.module.functions)} functions",
                    fix=f"did you mean {' or '.join(f'`{c}`' for c in close)}?" if close else "check the name",
                )
        return reachable(self.text, self.entities, roots)


_NOTHING: Constant = Constant(ty.PTR)
