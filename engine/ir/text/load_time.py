"""What the loader of a program decides, told to the analyses: which function an ifunc is, that a weak symbol that
nothing defines has the address 0, and which CPU this is.

An ifunc (GNU indirect function, and what `target_clones` and functions of several `target`s become) stands for the
function that its resolver returns. Here it becomes a function that asks the resolver and calls what it says. Where the
CPU is known, the resolver's answer is a constant after optimisation; elsewhere the derivative asks when it runs, as the
loader did.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache

from irgrad.engine.ir.quoting import bare_name, split_list
from irgrad.engine.ir.text.entities import cut

__all__ = ["ABI_WORDS", "FEATURE_BITS", "call_resolvers", "drop_weak", "for_cpu", "indirect_functions",
           "weak_symbols"]

ABI_WORDS = re.compile(r"\b(?:signext|zeroext|inreg|(?:sret|byval)\([^()]*\)|align \d+)")
"""Attributes of a parameter that say how it is passed."""
_NAME = r'@(?:"[^"\n]*"|[-\w$.]+)'
_IFUNC = re.compile(
    rf"^(?P<name>{_NAME}) = (?P<words>[^\n]*?)\bifunc (?P<type>[^\n]*\)), ptr (?P<resolver>{_NAME})[^\n]*\n",
    re.M | re.A,
)
_TOKEN = re.compile(rf'{_NAME}|"[^"\n]*"', re.A)
_HEAD = re.compile(rf"^(?:define|declare) [^@\n]*?(?P<name>{_NAME})\(", re.M | re.A)
_WEAK = re.compile(rf"^(?:declare [^@\n]*?\bextern_weak\b[^@\n]*?({_NAME})\([^\n]*|({_NAME}) = extern_weak [^\n]*)\n",
                   re.M | re.A)  # fmt: skip
_MODEL = re.compile(r"^@__cpu_model = (?:external )[^\n]*\n", re.M)
_MORE = re.compile(r"^@__cpu_features2 = (?:external )[^\n]*\n", re.M)
_ASKED = re.compile(r"^declare [^@\n]*@__cpu_indicator_init\([^\n]*\n", re.M)
_LOCAL = re.compile(r"\b(?:internal|private)\b")

FEATURE_BITS = {name: number for first, names in {
    0: "cmov mmx popcnt sse sse2 sse3 ssse3 sse4.1 sse4.2 avx avx2 sse4a fma4 xop fma avx512f bmi bmi2 aes pclmul "
       "avx512vl avx512bw avx512dq avx512cd - - avx512vbmi avx512ifma - - avx512vpopcntdq avx512vbmi2 gfni vpclmulqdq "
       "avx512vnni avx512bitalg avx512bf16 avx512vp2intersect",
    40: "adx - cldemote clflushopt clwb clzero cx16 - enqcmd f16c fsgsbase - - - sahf 64bit lwp lzcnt movbe movdir64b "
        "movdiri mwaitx - pconfig pku - prfchw ptwrite rdpid rdrnd rdseed rtm serialize sgx sha shstk tbm tsxldtrk "
        "vaes waitpkg wbnoinvd xsave "
        "xsavec xsaveopt xsaves amx-tile amx-int8 amx-bf16 uintr hreset kl - widekl avxvnni "
        "avx512fp16 x86-64 x86-64-v2 x86-64-v3 x86-64-v4 avxifma avxvnniint8 avxneconvert cmpccxadd amx-fp16 prefetchi "
        "raoint amx-complex avxvnniint16 sm3 sha512 sm4 - usermsr - avx10.1 - avx10.2 amx-avx512 amx-tf32 - amx-fp8 "
        "movrs amx-movrs",
}.items() for number, name in enumerate(names.split(), first) if name != "-"}  # fmt: skip
"""The bits of libgcc's and compiler-rt's `__cpu_model` and `__cpu_features2`, counted through."""
_BASELINE = ("64bit", "cmov", "mmx", "sse", "sse2")
_SECOND = (*_BASELINE, "cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2")
_THIRD = (*_SECOND, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_LEVELS = {"x86-64": _BASELINE, "x86-64-v2": _SECOND, "x86-64-v3": _THIRD,
           "x86-64-v4": (*_THIRD, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")}  # fmt: skip


def call_resolvers(text: str) -> str:
    """The module with a function in place of each ifunc. Without any, the same object."""
    if " ifunc " not in text:
        return text
    heads: dict[str, str] | None = None

    def function(found: re.Match[str]) -> str:
        nonlocal heads
        heads = _heads(text) if heads is None else heads
        result, _, rest = found["type"].partition(" (")
        kinds = split_list(rest[:-1])
        vararg = kinds[-1:] == ["..."]
        kinds = kinds[: len(kinds) - vararg]
        kept = _passed(text, found["resolver"], heads, len(kinds))
        typed = [f"{kind} {words} %a{i}" for i, (kind, words) in enumerate(zip(kinds, kept, strict=True))]
        given = [*typed, "..."] if vararg else typed
        shown, keep = ("", "ret void") if result == "void" else ("%r = ", f"ret {result} %r")
        kind = f"{'must' if vararg else ''}tail call {result}{f' ({rest}' if vararg else ''}"
        linkage = "internal " if _LOCAL.search(found["words"]) else ""
        return (f"define {linkage}{result} {found['name']}({', '.join(given)}) {{\n"
                f"  %f = call ptr {found['resolver']}()\n  {shown}{kind} %f({', '.join(given)})\n  {keep}\n}}\n")

    return _IFUNC.sub(function, text)


def indirect_functions(text: str) -> list[str]:
    """The symbols of the module's ifuncs, as the text spells them."""
    return [found["name"] for found in _IFUNC.finditer(text)] if " ifunc " in text else []


def _heads(text: str) -> dict[str, str]:
    """The lines with which functions begin, by name."""
    return {bare_name(found["name"]): text[found.start() : text.find("\n", found.start())]
            for found in _HEAD.finditer(text)}  # fmt: skip


def _passed(text: str, resolver: str, heads: dict[str, str], count: int) -> list[str]:
    """How each parameter is passed, as a function says that the resolver knows of."""
    for entity in cut(text):
        body = text[entity.start : entity.end] if entity.first == "d" else ""
        if f"{resolver}(" not in body.partition("\n")[0]:
            continue
        for name in map(bare_name, _TOKEN.findall(body.partition("\n")[2])):
            line = heads.get(name, "")
            parameters = split_list(line[line.find("(", line.find("@")) + 1 :]) if line else []
            if len(parameters) == count and any(ABI_WORDS.search(one) for one in parameters):
                return [" ".join(ABI_WORDS.findall(one)) for one in parameters]
    return [""] * count


def weak_symbols(text: str) -> list[str]:
    """The weak symbols that the module wants and does not define."""
    if "extern_weak" not in text:
        return []
    return [bare_name(found[1] or found[2]) for found in _WEAK.finditer(text)]


def drop_weak(text: str, absent: Collection[str]) -> str:
    """The module in which weak symbols that nothing defines are null."""
    if not absent:
        return text

    def without(found: re.Match[str]) -> str:
        return "" if bare_name(found[1] or found[2]) in absent else found[0]

    def token(found: re.Match[str]) -> str:
        return "null" if found[0][0] == "@" and bare_name(found[0]) in absent else found[0]

    return _TOKEN.sub(token, _WEAK.sub(without, text))


def for_cpu(
    text: str, features: Callable[[], Sequence[str]], make: Callable[[], tuple[int, int, int] | None] = lambda: None
) -> str:
    """The module with what `__builtin_cpu_supports` and `__builtin_cpu_is` read, for a CPU with these features (LLVM's
    names) and of this make: libgcc's numbers for vendor, type and subtype; what asks for one that is not known is left
    alone."""
    if "@__cpu_model" not in text and "@__cpu_features2" not in text:
        return text
    vendor, type_, subtype = 1, 0, 0  # known, so that nothing asks the CPU again
    if re.search(r"load i32, ptr @__cpu_model\b|@__cpu_model, i(?:32|64) (?:4|8|0, i32 [012])\b", text):
        known = make()
        if known is None:
            return text
        vendor, type_, subtype = known
    words = _words(frozenset(features()))
    text = _MODEL.sub(f"@__cpu_model = internal constant {{ i32, i32, i32, [1 x i32] }} {{ i32 {vendor}, i32 {type_}, "
                      f"i32 {subtype}, [1 x i32] [i32 {words[0]}] }}\n", text)
    text = _MORE.sub(f"@__cpu_features2 = internal constant [3 x i32] [{', '.join(f'i32 {w}' for w in words[1:])}]\n",
                     text)  # fmt: skip
    return _ASKED.sub("define internal void @__cpu_indicator_init() {\n  ret void\n}\n", text)


@cache
def _words(features: frozenset[str]) -> tuple[int, ...]:
    """The words of bits: what the CPU has, and the levels of the architecture that it reaches."""
    known = {*features, *_BASELINE}
    known |= {level for level, wanted in _LEVELS.items() if known >= set(wanted)}
    numbers = [FEATURE_BITS[name] for name in known if name in FEATURE_BITS]
    return tuple(sum(1 << (n - 32 * w) for n in numbers if n // 32 == w) for w in range(4))
