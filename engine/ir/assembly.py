"""Inline assembly that is understood becomes ordinary IR.

What templates mean is the programmer's word to the compiler, and for a few of them their operands prove it: an empty
template, or one of comments, that ties its outputs to inputs hands values on (the "optimisation barriers" of Eigen and
of benchmark libraries); one without outputs does nothing; `cpuid` returns integers. Everything else stays as it is, and
is refused later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from irgrad.engine.ir.quoting import split_list, unescape

__all__ = ["link_assembly", "plain_assembly"]

_CALL = re.compile(
    r'^(?P<head> +(?:(?P<name>%(?:"[^"]*"|[-\w$.]+)) = )?)(?:tail |notail )?call (?:(?:nnan|ninf|nsz|arcp|contract|afn'
    r'|reassoc|fast|noundef) )*(?P<type>[^@\n]+?) asm (?:sideeffect )?(?:alignstack )?"(?P<template>[^"\n]*)", ?'
    r'"(?P<constraints>[^"\n]*)"\((?P<args>.*)\)(?P<tail>[^()"\n]*)$', re.M
)  # fmt: skip
_NOTHING = re.compile(r"\s*(?:(?:#|//)[^\n]*|/\*[^\n]*\*/\s*|(?:nop|pause|yield)?\s*)")
_CPUID = re.compile(r"(?:xchg[^\n;]*rbx[^\n;]*[\n;]\s*)?cpuid(?:\s*[\n;]\s*xchg[^\n;]*rbx[^\n;]*)?[\n;\s]*")
_CPUID_OPERANDS = re.compile(r"=\{ax\},=&?(?:\{bx\}|r),=\{cx\},=\{dx\},(?:0|\{ax\})(?:,(?:2|\{cx\}))?(?:,~\{\w+\})*")
_CPUID_TYPE = "{ i32, i32, i32, i32 }"
_FUSED = re.compile(r"vfmadd231[ps][sd] \$1, \$2, \$0")
_FUSED_OPERANDS = re.compile(r"=x,x,x,0(?:,~\{\w+\})*")
_EXTREME = re.compile(r"v?(max|min)p[sd] (?:\$1, \$0|\$1, \$2, \$0)")
_EXTREME_OPERANDS = re.compile(r"=x,x,(?:0|x)(?:,~\{\w+\})*")
_FLOATS = re.compile(r"(?:half|bfloat|float|double|<(\d+) x (half|bfloat|float|double)>)")
_LETTERS = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_FAST = re.compile(r" (?:fast|reassoc) ")
_CPUID_DECLARED = re.compile(r"^declare [^@\n]*@irgrad\.cpuid\([^\n]*\n", re.M)
_CPUID_BODY = (
    f"define internal {_CPUID_TYPE} @irgrad.cpuid(i32 %leaf, i32 %sub) noinline nounwind willreturn {{\n"
    f'  %all = call {_CPUID_TYPE} asm sideeffect "cpuid", "={{ax}},={{bx}},={{cx}},={{dx}},{{ax}},{{cx}}'
    ',~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 %sub)\n'
    f"  ret {_CPUID_TYPE} %all\n}}\n"
)


def plain_assembly(text: str) -> str:
    """The module's text with the assembly that is understood as instructions; without any, the same object."""
    if " asm " not in text:
        return text
    rewriter = _Rewriter(bool(_FAST.search(text)))
    changed = _CALL.sub(rewriter.call, text)
    present = [name for name in rewriter.declared if f"@{name}(" in text]
    lines = [line for name, line in rewriter.declared.items() if name not in present]
    return changed if not lines else changed.rstrip("\n") + "\n\n" + "\n".join(lines) + "\n"


def link_assembly(text: str) -> str:
    """The module with what `plain_assembly` declared."""
    return _CPUID_DECLARED.sub(lambda _: _CPUID_BODY, text) if "@irgrad.cpuid(" in text else text


@dataclass(slots=True)
class _Operand:
    """An operand: what the constraint says, and the argument that belongs to it."""

    constraint: str
    argument: str = ""

    @property
    def indirect(self) -> bool:
        return "*" in self.constraint

    @property
    def tied(self) -> int:
        """The number of the output in whose place this input goes, -1 for none."""
        ways = set(self.constraint.split("|"))
        return int(ways.pop()) if len(ways) == 1 and self.constraint.split("|")[0].isdecimal() else -1

    def of(self, type_: str) -> str | None:
        """The argument's value if it has this type."""
        if not self.argument.startswith(f"{type_} "):
            return None
        return self.argument[len(type_) :].strip().removeprefix("noundef ")

    @property
    def pointer(self) -> str:
        return self.argument.rpartition(" ")[2]


class _Rewriter:
    """Writes calls of assembly anew, and collects the functions that they need."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast  # values may be taken apart by fast arithmetic: a barrier has to stay one
        self.declared: dict[str, str] = {}
        self.count = 0

    def call(self, match: re.Match[str]) -> str:
        """The instructions in place of one call; the call itself where it is not understood."""
        template = unescape(match["template"]).decode("utf-8", "replace")
        bare = re.sub(r"\$\([^|)]*\|?[^)]*\$\)|\$\(|\$\)", "", template.replace("$(q$)", "q").replace("$(%$)", "%"))
        made: str | None = None
        if all(_NOTHING.fullmatch(line) for line in template.split("\n")):
            made = self._handed_on(match)
        elif _CPUID.fullmatch(bare.strip()) and _CPUID_OPERANDS.fullmatch(match["constraints"]):
            made = self._cpuid(match)
        elif _FUSED.fullmatch(template.strip()) and _FUSED_OPERANDS.fullmatch(match["constraints"]):
            made = self._fused(match)
        elif (extreme := _EXTREME.fullmatch(template.strip())) and _EXTREME_OPERANDS.fullmatch(match["constraints"]):
            made = self._extreme(match, "ogt" if extreme[1] == "max" else "olt")
        return match[0] if made is None else made

    def _handed_on(self, match: re.Match[str]) -> str | None:
        """An empty template: each output is the input that is tied to it."""
        operands = _operands(match["constraints"], match["args"])
        if operands is None:
            return None
        outputs, inputs = operands
        values: list[str] = []
        types = _fields(match["type"])
        lines: list[str] = []
        for number, output in enumerate(outputs):
            given = next((one for one in inputs if one.tied == number), None)
            if output.indirect:
                if given is not None:
                    type_, _, value = given.argument.rpartition(" ")
                    lines.append(f"  store {type_.removesuffix(' noundef')} {value}, ptr {output.pointer}, align 1")
                continue  # memory that an empty template "writes" keeps what it held
            handed = given.of(types[len(values)]) if given is not None and len(values) < len(types) else None
            if handed is None:
                return None
            values.append(handed)
        if len(values) != len(types) or (match["name"] is None) != (not values):
            return None
        return "\n".join([*lines, *self._result(match, types, values)]).removesuffix("\n")

    def _result(self, match: re.Match[str], types: list[str], values: list[str]) -> list[str]:
        head, tail = match["head"], _location(match["tail"])
        if not values:
            return []
        if len(values) == 1:
            return [f"{head}{self._kept(types[0], values[0])}{tail}"]
        lines: list[str] = []
        whole = "poison"
        for number, (type_, value) in enumerate(zip(types, values, strict=True)):
            self.count += 1
            one = f"%irgrad.asm.{self.count}"
            lines.append(f"  {one} = {self._kept(type_, value)}{tail}")
            last = number == len(values) - 1
            begin = head if last else f"  {one}.in = "
            lines.append(f"{begin}insertvalue {match['type']} {whole}, {type_} {one}, {number}{tail}")
            whole = f"{one}.in"
        return lines

    def _kept(self, type_: str, value: str) -> str:
        """An instruction that is `value`; one through which fast arithmetic does not look, where there is any."""
        floats = _FLOATS.fullmatch(type_)
        if not self.fast or floats is None:
            return f"select i1 true, {type_} {value}, {type_} {value}"
        return f"call {type_} @{self._intrinsic('arithmetic.fence', type_, 1)}({type_} {value})"

    def _intrinsic(self, base: str, type_: str, count: int) -> str:
        floats = _FLOATS.fullmatch(type_)
        assert floats is not None
        suffix = f"v{floats[1]}{_LETTERS[floats[2]]}" if floats[1] else _LETTERS[type_]
        name = f"llvm.{base}.{suffix}"
        self.declared[name] = f"declare {type_} @{name}({', '.join([type_] * count)})"
        return name

    def _cpuid(self, match: re.Match[str]) -> str | None:
        if match["type"] != _CPUID_TYPE or match["name"] is None:
            return None
        args = split_list(match["args"])
        leaf, sub = args[0], args[1] if len(args) > 1 else "i32 0"
        if not (leaf.startswith("i32 ") and sub.startswith("i32 ")):
            return None
        self.declared["irgrad.cpuid"] = f"declare {_CPUID_TYPE} @irgrad.cpuid(i32, i32)"
        return f"{match['head']}call {_CPUID_TYPE} @irgrad.cpuid({leaf}, {sub}){_location(match['tail'])}"

    def _extreme(self, match: re.Match[str], test: str) -> str | None:
        """maxps and its like: the operand that is written last in the listing, unless the comparison holds."""
        args = _vectors(match, 2)
        if args is None:
            return None
        self.count += 1
        type_, flag = match["type"], f"%irgrad.asm.{self.count}"
        second = args[1].removeprefix(f"{type_} ")
        return (f"  {flag} = fcmp {test} {type_} {second}, {args[0].removeprefix(f'{type_} ')}\n"
                f"{match['head']}select <{type_[1:].split()[0]} x i1> {flag}, {args[1]}, {args[0]}"
                f"{_location(match['tail'])}")  # fmt: skip

    def _fused(self, match: re.Match[str]) -> str | None:
        args, type_ = _vectors(match, 3), match["type"]
        if args is None:
            return None
        name = self._intrinsic("fma", type_, 3)
        return f"{match['head']}call {type_} @{name}({', '.join(args)}){_location(match['tail'])}"


def _vectors(match: re.Match[str], count: int) -> list[str] | None:
    """The arguments of a call whose operands and result are vectors of floats of one type."""
    type_ = match["type"]
    floats = _FLOATS.fullmatch(type_)
    args = [arg.replace(f"{type_} noundef ", f"{type_} ") for arg in split_list(match["args"])]
    if floats is None or floats[1] is None or match["name"] is None or len(args) != count:
        return None
    return args if all(arg.startswith(f"{type_} ") for arg in args) else None


def _operands(constraints: str, args: str) -> tuple[list[_Operand], list[_Operand]] | None:
    """Outputs and inputs with their arguments: those of indirect outputs come first, in order."""
    rest = split_list(args)
    outputs: list[_Operand] = []
    inputs: list[_Operand] = []
    for word in split_list(constraints):
        if word.startswith("~"):
            continue
        operand = _Operand(word.lstrip("=&"))
        if not word.startswith("=") or operand.indirect:
            if not rest:
                return None
            operand.argument = rest.pop(0)
        (outputs if word.startswith("=") else inputs).append(operand)
    return None if rest else (outputs, inputs)


def _fields(type_: str) -> list[str]:
    """The types of the values that a call returns."""
    if type_ == "void":
        return []
    return split_list(type_[1:-1]) if type_.startswith("{") else [type_]


def _location(tail: str) -> str:
    """The part of an instruction's tail that says where it is in the source."""
    found = re.search(r", !dbg ![\w.]+", tail)
    return found[0] if found else ""
