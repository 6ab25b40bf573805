"""Refuses modules that would endanger the process, before LLVM sees them.

LLVM's parser and verifier accept modules that end the process in code generation or at the first call (measured: inline
assembly, unknown intrinsics, unresolved symbols, scalable vectors, huge allocas, deep constants, very wide integers).
The reader refuses what it cannot model; this pass refuses the rest, function by function, each with its own sentence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import NoReturn

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.intrinsics import GENERIC, is_known
from irgrad.engine.ir.model import (
    ConstAggregate,
    ConstExpr,
    ConstInt,
    ConstText,
    Function,
    GlobalAlias,
    GlobalVariable,
    InlineAsm,
    Instruction,
    MetadataValue,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import INT_BINARY
from irgrad.engine.ir.printer import instruction_to_text
from irgrad.engine.ir.text.cursor import MAX_DEPTH
from irgrad.engine.ir.text.reader import materialise
from irgrad.engine.ir.types import Type
from irgrad.engine.ir.verify import verify_function
from irgrad.engine.support.limits import check_count
from irgrad.rules.errors import IRInvalid, LimitExceeded

MAX_INT_BITS = 128
MAX_LANES = 1024
MAX_FRAME = 4 << 20
"""Bytes of fixed-size stack memory of one function: half of the usual stack of 8 MB."""
MAX_ALIGN = 1 << 16
MAX_GLOBALS = 1 << 30
"""Bytes of all global variables together."""

_HARMLESS_ASM = re.compile(r'asm (sideeffect )?"", ?"(~\{[a-z0-9]+\}|=?&?[rmgX]|[0-9]|\*m|,)*"')
_HOST_CONVENTIONS = frozenset(
    "ccc fastcc coldcc tailcc swiftcc preserve_mostcc preserve_allcc x86_64_sysvcc win64cc".split()
)
_GPU_CONVENTIONS = frozenset("ptx_kernel ptx_device spir_func spir_kernel amdgpu_kernel".split())
_CONVENTION = re.compile(r"\b(\w+cc|cc \d+|ptx_\w+|spir_\w+|amdgpu_\w+|graalcc|cheriot_\w+)\b")


def validate(module: Module, known_symbols: Callable[[str], bool] | None = None) -> None:
    """Raise IRInvalid (or LimitExceeded) unless the module is safe to compile.

    `known_symbols` says whether a name is defined outside the module (a library function); without it unresolved
    symbols are not looked for. Bodies that were kept as text are read, since LLVM will see them as well.
    """
    checker = _Checker(module, known_symbols)
    checker.module_level()
    total = 0
    for function in module.functions.values():
        materialise(function, module)
        total += sum(len(b.instructions) for b in function.blocks)
        check_count(total, "the module", f"@{function.name}")
    for function in module.functions.values():
        checker.function(function)


class _Checker:
    def __init__(self, module: Module, known_symbols: Callable[[str], bool] | None) -> None:
        self.module = module
        self.known_symbols = known_symbols
        self.seen: set[int] = set()
        self.good_types: dict[int, int] = {}  # depth of types that are in order
        self.gpu = module.triple.startswith(("nvptx", "amdgcn", "spir"))

    # -- the module ------------------------------------------------------------------------------------------------

    def module_level(self) -> None:
        """Assembly, metadata, types, globals, aliases."""
        module = self.module
        if module.module_asm:
            self._refuse(
                "assembly at module level", "the module", "its text is handed to the assembler unchecked",
                "write it in C, or compile it apart and link the object", which=f'module asm "{module.module_asm[0]}"',
            )  # fmt: skip
        for name, text in module.metadata.items():
            _check_nesting(text, f"metadata {name}")
        for named in module.types.values():
            self._type(named, f"type {named}")
        total = 0
        for variable in module.globals.values():
            where = f"@{variable.name}"
            self._type(variable.value_type, where)
            if variable.init is not None:
                self._constant(variable.init, where)
                self._initialiser(variable.init, where)
                total += self._size(variable.value_type, where)
            if total > MAX_GLOBALS:
                raise LimitExceeded(
                    "the global variables are too large",
                    where=where,
                    because=f"together they have more than {MAX_GLOBALS} bytes",
                    fix="pass large arrays as arguments",
                )
        for alias in module.aliases.values():
            self._alias(alias)

    def _initialiser(self, init: Value, where: str) -> None:
        """What an object file can hold of an address: itself, sums and differences. LLVM ends the process over more."""
        stack = [init]
        while stack:
            value = stack.pop()
            if not isinstance(value, ConstAggregate | ConstExpr):
                continue
            stack += value.elems if isinstance(value, ConstAggregate) else value.operands
            if isinstance(value, ConstExpr) and (
                (value.opcode == "ptrtoint" and isinstance(value.type, ty.IntType) and value.type.bits > 64)
                or (value.opcode in INT_BINARY and value.opcode not in ("add", "sub"))
            ):
                self._refuse("an initial value that no object file can hold", where,
                             f"`{value.opcode}` is computed from an address", "compute it when the program runs")

    def _alias(self, alias: GlobalAlias) -> None:
        where = f"@{alias.name}"
        if alias.kind == "ifunc":
            return  # the linker checks it; a kernel has none (load_time.py)
        seen: set[int] = set()
        target: Value = alias
        while isinstance(target, GlobalAlias):
            if id(target) in seen:
                self._refuse("an alias of itself", where, "its targets form a cycle", "alias a function or a variable")
            seen.add(id(target))
            target = target.target
        self._constant(target, where)

    def _refuse(self, what: str, where: str, because: str, fix: str, which: str = "") -> NoReturn:
        raise IRInvalid(what, where=where, which=which[:300], because=because, fix=fix)

    # -- types and constants ---------------------------------------------------------------------------------------

    def _type(self, type_: Type, where: str) -> None:
        """Walk a type: integer widths, lanes, structs that contain themselves."""
        if id(type_) in self.good_types:
            return
        open_types: set[int] = set()
        stack: list[tuple[Type, bool]] = [(type_, False)]
        while stack:
            t, done = stack.pop()
            if done:
                open_types.discard(id(t))
                # Structs that only name each other nest as deeply as any: the depth counts through types seen before.
                depth = 1 + max((self.good_types[id(part)] for part in self._parts(t, where)), default=0)
                if depth > MAX_DEPTH:
                    raise LimitExceeded(
                        "a type is nested too deeply",
                        where=where,
                        because=f"it has more than {MAX_DEPTH} levels",
                        fix="flatten it",
                    )
                self.good_types[id(t)] = depth
                continue
            if id(t) in self.good_types:
                continue
            if id(t) in open_types:
                because = f"`{t}` would be infinitely large"
                self._refuse("a struct that contains itself", where, because, "use a pointer in it")
            open_types.add(id(t))
            stack.append((t, True))
            stack += [(part, False) for part in self._parts(t, where)]

    def _parts(self, t: Type, where: str) -> Iterable[Type]:
        if isinstance(t, ty.IntType) and t.bits > MAX_INT_BITS:
            self._refuse(
                "an integer type that is too wide", where, f"`{t}` has {t.bits} bits; the limit is {MAX_INT_BITS}",
                "use at most i128: LLVM takes minutes, or forever, over wider arithmetic",
            )  # fmt: skip
        if isinstance(t, ty.VectorType):
            if t.count > MAX_LANES:
                self._refuse(
                    "a vector that is too long", where, f"`{t}` has more than {MAX_LANES} lanes", "use an array"
                )
            return (t.elem,)
        if isinstance(t, ty.ArrayType):
            return (t.elem,)
        if isinstance(t, ty.StructType):
            return t.fields or ()
        if isinstance(t, ty.FunctionType):
            return (t.ret, *t.params)
        return ()

    def _constant(self, value: Value, where: str) -> None:
        """Walk a constant, its types and the symbols in it."""
        stack = [(value, 0)]
        while stack:
            v, depth = stack.pop()
            if id(v) in self.seen:
                continue
            self.seen.add(id(v))
            if depth > MAX_DEPTH:
                raise LimitExceeded(
                    "a constant is nested too deeply",
                    where=where,
                    because=f"it has more than {MAX_DEPTH} levels",
                    fix="split it",
                )
            self._type(v.type, where)
            if isinstance(v, ConstAggregate):
                stack += [(e, depth + 1) for e in v.elems]
            elif isinstance(v, ConstExpr):
                if v.elem is not None:
                    self._type(v.elem, where)
                stack += [(o, depth + 1) for o in v.operands]
            elif isinstance(v, ConstText) and v.text.startswith(("blockaddress", "ptrauth")):
                self._refuse(
                    "the address of a block",
                    where,
                    "a jump to a computed address has no derivative",
                    "use a switch",
                    v.text,
                )
            elif isinstance(v, InlineAsm):
                self._asm(v, where)
            elif isinstance(v, Function | GlobalVariable):
                self._symbol(v, where)

    def _asm(self, value: InlineAsm, where: str) -> None:
        if not _HARMLESS_ASM.fullmatch(value.text):
            self._refuse(
                "inline assembly", where, "irgrad cannot see what it does, and malformed assembly ends the process",
                "write it in C or with a builtin, or put it into a shared library of its own, with a rule",
                value.text,
            )  # fmt: skip

    def _symbol(self, value: Function | GlobalVariable, where: str) -> None:
        """A symbol that is used: is it defined somewhere?"""
        name = value.name or ""
        if name.startswith("llvm."):
            if isinstance(value, Function):
                self._intrinsic(value, where)
            return
        external = value.is_declaration if isinstance(value, Function) else value.init is None
        if external and self.known_symbols is not None and not self.known_symbols(name):
            kind = "function" if isinstance(value, Function) else "variable"
            self._refuse(
                "a symbol that nothing defines", where, f"`{name}` is declared, and no library that is loaded has it",
                f'load(..., link=["the source or library of {name}"])', f"{kind} @{name}",
            )  # fmt: skip

    def _intrinsic(self, function: Function, where: str) -> None:
        name = function.name or ""
        if function.blocks:
            self._refuse(
                "a body for an intrinsic", f"@{name}", "names that start with `llvm.` are LLVM's own", "rename it"
            )
        if not is_known(name, self.module.triple):
            close = difflib.get_close_matches(".".join(name.split(".")[1:-1]) or name[5:], GENERIC, 2)
            self._refuse(
                "an intrinsic that LLVM does not know", where,
                f"`{name}` is not an intrinsic that code for {self.module.triple or 'this target'} may call",
                f"did you mean {' or '.join(f'`llvm.{c}`' for c in close)}?" if close else "call a library function",
                f"@{name}",
            )  # fmt: skip

    # -- functions -------------------------------------------------------------------------------------------------

    def function(self, function: Function) -> None:
        """Everything in one function."""
        where = f"@{function.name}"
        self._type(function.ftype, where)
        self._convention(f"{function.head} {function.ret_attrs}", where)
        if (function.name or "").startswith("llvm.") and not function.is_declaration:
            self._intrinsic(function, where)
        if not function.blocks:
            return
        if re.search(r'\bgc "', function.tail):
            self._refuse(
                "a function with a garbage collector", where, "LLVM ends the process over one it has not", "drop it"
            )
        frame = 0
        for block in function.blocks:
            here = f"{where}, block %{block.name}"
            for instr in block.instructions:
                self._instruction(instr, here)
                if instr.opcode == "alloca":
                    frame += self._alloca(instr, here)
                    if frame > MAX_FRAME:
                        self._refuse(
                            "too much stack memory", here, f"{frame} bytes; the limit is {MAX_FRAME} a function",
                            "use malloc, or a static or global array", instruction_to_text(instr),
                        )  # fmt: skip
        problems = verify_function(function)
        if problems:
            self._refuse(
                "a function that is not well formed",
                where,
                problems[0],
                "check how the IR was made (opt -passes=verify)",
            )

    def _instruction(self, instr: Instruction, where: str) -> None:
        self._type(instr.type, where)
        if instr.elem is not None:
            self._type(instr.elem, where)
        if instr.opcode in ("indirectbr", "callbr"):
            self._refuse(
                "a jump to a computed address", where, f"`{instr.opcode}` has no derivative", "use a switch",
                instruction_to_text(instr),
            )  # fmt: skip
        if instr.align > MAX_ALIGN and instr.opcode == "alloca":
            self._refuse(
                "an alignment that is too large", where, f"{instr.align} bytes; the limit is {MAX_ALIGN}", "align less",
                instruction_to_text(instr),
            )  # fmt: skip
        if instr.call is not None and instr.call.cc:
            self._convention(instr.call.cc, where)
        for record in instr.debug_records:
            _check_nesting(record, where)
        for operand in instr.operands:
            value = operand.value if isinstance(operand, MetadataValue) else operand
            if isinstance(operand, MetadataValue):
                _check_nesting(operand.text, where)
            if value is not None and id(value) not in self.seen:
                self._constant(value, where)

    def _alloca(self, instr: Instruction, where: str) -> int:
        count = instr.operands[0]
        if instr.elem is None or not isinstance(count, ConstInt):
            return 0
        return self._size(instr.elem, where) * (count.value & ((1 << 64) - 1))

    def _size(self, type_: Type, where: str) -> int:
        try:
            return ty.size_of(type_)
        except TypeError as error:
            self._refuse("memory of a type without size", where, str(error), "give the struct its fields")

    def _convention(self, text: str, where: str) -> None:
        for word in _CONVENTION.findall(text):
            if word not in _HOST_CONVENTIONS and not (self.gpu and word in _GPU_CONVENTIONS):
                self._refuse(
                    "a calling convention that is not of this target",
                    where,
                    f"`{word}` ends LLVM's code generation",
                    "use `ccc`",
                )


def _check_nesting(text: str, where: str) -> None:
    """LLVM's parser recurses into metadata: text nested too deeply would overflow its stack."""
    if text.count("{") + text.count("(") <= MAX_DEPTH:
        return
    depth = 0
    for bracket in re.findall(r'[({})]|"[^"]*"', text):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(bracket, 0)
        if depth > MAX_DEPTH:
            raise LimitExceeded(
                "metadata is nested too deeply",
                where=where,
                because=f"it has more than {MAX_DEPTH} levels",
                fix="compile without debug info",
            )
