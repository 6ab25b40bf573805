"""The prototype of a function as its IR text says it, and drafts of signatures inferred from it.

This looks at one `define` line and one function body of the text, without parsing the module: it runs each time a
kernel is made, also when everything else comes from the disk cache.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.signature.dtypes import DTYPES
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import IRGradError, LoadError, SignatureError

if TYPE_CHECKING:
    from irgrad.engine.signature.debug_types import Described

__all__ = ["Prototype", "check_signature", "draft", "infer", "prototype_of", "quoted"]

_PLAIN = re.compile(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*\Z")
_SCALARS = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "i8": "i8", "i16": "i16", "i32": "i32",
            "i64": "i64", "i1": "bool"}  # fmt: skip
_TYPED_PTR = re.compile(r"\b(byval|sret|byref|inalloca|preallocated)\(")


@dataclass(frozen=True, slots=True)
class Prototype:
    """Types of a function as the IR has them.

    returns: LLVM type; params: LLVM types, with `byval(...)`/`sret(...)` kept behind `ptr`; names: source names where
    the IR carries them (None otherwise); body: the text of the function's body; written: the parameters as they stand
    in the IR, with their attributes.
    """

    name: str
    returns: str
    params: tuple[str, ...]
    names: tuple[str | None, ...]
    vararg: bool
    body: str
    symbols: tuple[str, ...] = ()  # %names of the arguments in the body
    written: tuple[str, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join((*self.params, "...") if self.vararg else self.params)
        return f"{self.returns} @{self.name}({inner})"


def quoted(name: str) -> str:
    """A global's name as the IR spells it behind `@`."""
    return name if _PLAIN.match(name) else '"' + name.replace("\\", "\\5C").replace('"', "\\22") + '"'


def prototype_of(text: str, name: str) -> Prototype:
    """The prototype of the function defined as `name` (without `@`). Raises LoadError when it is not defined."""
    pattern = re.compile(r"^define\b[^\n]*?@" + re.escape(quoted(name)) + r"\(", re.M)
    match = pattern.search(text)
    if match is None:
        raise LoadError(f"there is no function `{name}` in the module", because="no `define` has that name",
                        fix="choose one of lib.functions()")
    end = _closing(text, match.end() - 1)
    head = text[match.start() : match.end()]
    returns = _last_type(head[: head.rindex("@")].removeprefix("define").strip())
    raw = _split(text[match.end() : end])
    vararg = bool(raw) and raw[-1] == "..."
    if vararg:
        raw = raw[:-1]
    line_end = text.find("\n", end)
    close = text.find("\n}", end)
    body = text[line_end : close if close >= 0 else len(text)]
    names = _debug_names(text, text[end:line_end], len(raw))
    symbols = tuple(_symbol(parameter, index) for index, parameter in enumerate(raw))
    for index, parameter in enumerate(raw):
        own = re.search(r'%([A-Za-z_][\w.]*)\Z', parameter)
        if names[index] is None and own:
            names[index] = re.sub(r"\W", "_", own[1])
    return Prototype(name, returns, tuple(map(_param_type, raw)), tuple(names), vararg, body, symbols, tuple(raw))


def _symbol(parameter: str, index: int) -> str:
    found = re.search(r'%(?:[-\w.$]+|"[^"]*")\Z', parameter)
    return found[0] if found else f"%{index}"


def _closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`; strings are skipped."""
    depth, at = 0, start
    while at < len(text):
        char = text[at]
        if char == '"':
            at = text.index('"', at + 1)
        elif char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(text)


def _split(text: str) -> list[str]:
    """Parts between top-level commas."""
    parts, at, start = [], 0, 0
    while at < len(text):
        if text[at] in "([{<":
            at = _closing(text, at)
        elif text[at] == ",":
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _last_type(head: str) -> str:
    """The return type: the last type in the text between `define` and `@name`."""
    if head.endswith(("}", "]", ">")):
        depth, at = 0, len(head) - 1
        while at >= 0:
            depth += (head[at] in "}])>") - (head[at] in "{[(<")
            if depth == 0:
                return head[at:]
            at -= 1
    return head.rsplit(maxsplit=1)[-1] if head.split() else "void"


def _param_type(parameter: str) -> str:
    if parameter[0] in "{[<":
        return parameter[: _closing(parameter, 0) + 1]
    kind = parameter.split(maxsplit=1)[0]
    typed = _TYPED_PTR.search(parameter)
    if typed:
        return f"{kind} {parameter[typed.start() : _closing(parameter, typed.end() - 1) + 1]}"
    space = re.match(r"ptr addrspace\(\d+\)", parameter)
    return space[0] if space else kind


def _debug_names(text: str, attributes: str, count: int) -> list[str | None]:
    """Names of arguments from the debug info: DILocalVariable(name: ..., arg: k, scope: the function's)."""
    names: list[str | None] = [None] * count
    scope = re.search(r"!dbg (!\d+)", attributes)
    if scope:
        pattern = re.compile(rf'!DILocalVariable\(name: "([^"]+)", arg: (\d+), scope: {scope[1]}[,)]')
        for match in pattern.finditer(text):
            if 0 < int(match[2]) <= count:
                names[int(match[2]) - 1] = re.sub(r"\W", "_", match[1])
    return names


def check_signature(signature: Signature, prototype: Prototype, text: str = "") -> None:
    """Raise SignatureError, naming both sides, when the signature contradicts the IR's prototype; `text` is the module,
    for the lines of its source."""
    where = f"`{signature}`\nand the IR's `{prototype}`"
    if prototype.vararg:
        raise SignatureError(f"`{prototype.name}` takes a variable number of arguments", where=where,
                             because="such a function has no fixed prototype to differentiate",
                             fix="write a C function with a fixed prototype that calls it")
    if len(signature.parameters) != len(prototype.params):
        raise SignatureError(
            f"the signature has {len(signature.parameters)} parameters, the function {len(prototype.params)}",
            where=where, fix=f"the IR suggests   {draft(prototype)}")
    for p, ir in zip(signature.parameters, prototype.params, strict=True):
        wanted = "ptr" if p.is_array else p.dtype.ir
        if ir == wanted:
            continue
        if ir.startswith(("ptr byval", "ptr sret", "{", "[", "<")):
            because, fix = "it is a struct, vector or array passed by value", "pass a pointer to it from a C wrapper"
        elif ir == "ptr":
            because, fix = "the function takes a pointer", f"give its shape: `{p.dtype}[n] {p.name}`, or `{p.dtype}[]`"
        elif p.is_array:
            because, fix = f"the function takes `{ir}` by value", f"`{_SCALARS.get(ir, ir)} {p.name}`"
        else:
            because, fix = f"the function takes `{ir}`", f"`{_SCALARS.get(ir, ir)} {p.name}`"
        raise SignatureError(f"parameter `{p}` contradicts the function", where=where,
                             because=f"{because}, the signature says `{wanted}`", fix=fix)
    for p, symbol in zip(signature.parameters, prototype.symbols, strict=False):
        if p.is_array and p.intent == "in" and (store := _store_to(prototype.body, symbol)):
            line = _line_of(text, store)
            raise SignatureError(f"`{p.name}` is declared `in`, and the function writes to it",
                                 where=f"@{prototype.name} ({line})" if line else where, which=store.strip(),
                                 because="an `in` argument is the caller's own array, which a call never changes",
                                 fix=f"declare it `inout {p}` (its new contents are returned)")
    returned = "void" if signature.returns is None else signature.returns.ir
    if returned != prototype.returns:
        raise SignatureError(f"the return type `{signature.returns or 'void'}` contradicts the function", where=where,
                             because=f"the function returns `{prototype.returns}`, the signature says `{returned}`",
                             fix=f"start the signature with `{_SCALARS.get(prototype.returns, prototype.returns)}(`")


def infer(prototype: Prototype, described: Callable[[], str] | None = None) -> Signature:
    """The signature of a function of scalars. Raises SignatureError, with a draft, when there are pointers; `described`
    gives the module with types in its debug information, for the draft."""
    if all(t in _SCALARS for t in prototype.params) and not prototype.vararg and (
        prototype.returns in _SCALARS or prototype.returns == "void"
    ):
        pairs = zip(_names(prototype), prototype.params, strict=True)
        parameters = [Parameter(name, DTYPES[_SCALARS[t]]) for name, t in pairs]
        returns = None if prototype.returns == "void" else DTYPES[_SCALARS[prototype.returns]]
        return Signature(tuple(parameters), returns)
    _refuse_values(prototype)
    raise SignatureError(
        f"`{prototype.name}` needs a signature", where=f"`{prototype}`",
        because="the shapes behind its pointers are not in the IR",
        fix=f'start from this draft   lib.kernel("{prototype.name}", "{draft(prototype, described)}")')


def _refuse_values(prototype: Prototype) -> None:
    """Raise SignatureError for what no signature can describe: structs and vectors by value, `...`."""
    name, wrapped = prototype.name, f"{prototype.name}_flat"
    given = [f"`{n}`" for n, t in zip(_names(prototype), prototype.params, strict=True)
             if t.startswith(("ptr byval", "{", "[", "<"))]  # fmt: skip
    what = fix = ""
    if prototype.vararg:
        what, fix = "takes a variable number of arguments", f"double {wrapped}(int n, const double *values)"
    elif given:
        what, fix = f"takes {', '.join(given)} by value, a struct or vector", f"double {wrapped}(const double *fields)"
    elif prototype.returns.startswith(("{", "[", "<")) or any(t.startswith("ptr sret") for t in prototype.params):
        what, fix = "returns a struct, vector or complex number", f"void {wrapped}(..., double *fields)"
    if what:
        raise SignatureError(
            f"`{name}` {what}", where=f"`{prototype}`", because="a signature has numbers and arrays only",
            fix=f"wrap it in C, with numbers and pointers:   {fix} {{ ... {name}(...) ... }}",
        )  # fmt: skip


def draft(prototype: Prototype, described: Callable[[], str] | None = None) -> str:
    """A signature guessed from the IR: element types from the debug types that `described` gives, else from loads and
    stores, "?" where neither knows them; names from the debug info."""
    types, structs = _described(prototype, described)
    parts = []
    names = _names(prototype)
    size = next((n for n, t in zip(names, prototype.params, strict=True) if t in ("i32", "i64")), "n")
    for index, (name, kind) in enumerate(zip(names, prototype.params, strict=True)):
        known = types[index]
        if kind in _SCALARS:
            fits = known is not None and known.element in DTYPES and DTYPES[known.element].ir == kind
            parts.append(f"{known.element if known is not None and fits else _SCALARS[kind]} {name}")
            continue
        element, writes, reads = _accesses(prototype.body, prototype.symbols[index])
        extents = [size]
        if known is not None and known.pointer and known.element != "?":
            element = known.element
            extents = [*([] if known.one else [size]), *map(str, known.extents)]
            handed = not (known.constant or writes) and _handed_on(prototype.body, prototype.symbols[index])
            writes, reads = (writes and not known.constant) or handed, reads or handed
        intent = "" if not writes else "inout " if reads else "out "
        parts.append(f"{intent}{element}[{','.join(extents)}] {name}")
    notes = ["a number or a parameter for `n`"] if size not in names and f"[{size}" in " ".join(parts) else []
    notes += ["the element type for `?`"] if any("?[" in part for part in parts) else []
    returns = "void" if prototype.returns == "void" else _SCALARS.get(prototype.returns, prototype.returns)
    notes += _meanings(prototype, parts, size, returns)
    return " ".join([*structs, f"{returns}({', '.join(parts)})"]) + (f"  (with {', '.join(notes)})" if notes else "")


def _meanings(prototype: Prototype, parts: Sequence[str], size: str, returns: str) -> list[str]:
    """What a draft cannot know, and what would then be written: error codes, matrices."""
    found = []
    if returns in ("i32", "i64") and any(part.startswith(("out ", "inout ")) for part in parts):
        found.append(f"`status {returns}(...)` if the result is 0 on success")
    codes = [part.rpartition(" ")[2] for part in parts if re.match(r"(in)?out (i32|i64)\[", part)]
    found += [f"`status i32 {name}` if `{name}` is 0 on success" for name in codes]
    arrays = [part for part in parts if f"[{size}]" in part]
    if arrays and re.search(r"= (?:mul|shl) [^\n]*\bi(?:32|64)\b", prototype.body):
        name = arrays[0].rpartition(" ")[2]
        found.append(f"`[{size},{size}]` for a matrix, as `{arrays[0].partition('[')[0]}[{size},{size}] {name}`")
    return found


def _described(
    prototype: Prototype, described: Callable[[], str] | None
) -> tuple[Sequence[Described | None], Sequence[str]]:
    """What debug types say of each parameter, None where they say nothing, and the structs among them."""
    from irgrad.engine.signature.debug_types import described_parameters  # cold code

    try:
        found = described_parameters(described(), quoted(prototype.name)) if described is not None else None
    except IRGradError:  # of a compiler that takes no words for its debug information
        found = None
    if found is None or len(found[0]) != len(prototype.params):
        return [None] * len(prototype.params), ()
    return found


def _names(prototype: Prototype) -> list[str]:
    taken = {name for name in prototype.names if name}
    spare = iter(name for name in ("n", "m", "k") if name not in taken)  # what sizes are called
    names = []
    for index, (name, kind) in enumerate(zip(prototype.names, prototype.params, strict=True)):
        size = next(spare, None) if not name and kind in ("i32", "i64") else None
        names.append(name or size or f"a{index}")
    return names


def _accesses(body: str, symbol: str) -> tuple[str, bool, bool]:
    """Most frequent element type of the loads and stores through argument `symbol`, "?" where there are none, and
    whether it writes and reads.

    Follows the argument by name through getelementptr, select, phi and the stack slots of unoptimised code.
    """
    reached = _reached(body, symbol)
    kinds: Counter[str] = Counter()
    writes = reads = False
    for match in re.finditer(r"= load (?:volatile )?(\S+), ptr (%[-\w.$]+)", body):
        if match[2] in reached and match[1] in _SCALARS:
            kinds[_SCALARS[match[1]]] += 1
            reads = True
    for match in re.finditer(r"store (?:volatile )?(\S+) [^,]+, ptr (%[-\w.$]+)", body):
        if match[2] in reached and match[1] in _SCALARS:
            kinds[_SCALARS[match[1]]] += 1
            writes = True
    for match in re.finditer(r"getelementptr [^,]*?(half|bfloat|float|double|i32|i64), ptr (%[-\w.$]+)", body):
        if match[2] in reached:
            kinds[_SCALARS[match[1]]] += 1
    return (kinds.most_common(1)[0][0] if kinds else "?"), writes, reads


def _handed_on(body: str, symbol: str) -> bool:
    """Whether the argument is handed to a function."""
    reached = _reached(body, symbol)
    calls = re.findall(r"\b(?:call|invoke) [^\n]*", body)
    return any(name in reached for call in calls for name in re.findall(r"[(,] *ptr [^,\n]*?(%[-\w.$]+)[,)]", call))


def _store_to(body: str, symbol: str) -> str:
    """A store of the function itself through argument `symbol`, by an address that is that argument's alone; or ""."""
    own, slots = {symbol}, set(re.findall(r"(%[-\w.$]+) = alloca ptr\b", body))
    kept = re.findall(r"store ptr (%[-\w.$]+), ptr (%[-\w.$]+)", body)
    slots = {slot for slot in slots if [s for _, s in kept].count(slot) == 1}  # no other pointer is ever in it
    while True:
        before = len(own)
        held = {slot for value, slot in kept if value in own and slot in slots}
        own |= {made for made, slot in re.findall(r"(%[-\w.$]+) = load ptr, ptr (%[-\w.$]+)", body) if slot in held}
        own |= {made for made, base in re.findall(r"(%[-\w.$]+) = getelementptr [^\n]*?, ptr (%[-\w.$]+)", body)
                if base in own}  # fmt: skip
        if len(own) == before:
            break
    stores = re.finditer(r"\bstore (?:volatile |atomic )?[^\n]*?, ptr (%[-\w.$]+)[^\n]*", body)
    return next((store[0] for store in stores if store[1] in own), "")


def _line_of(text: str, instruction: str) -> str:
    """`file.c:3:5` of an instruction with a debug location; "" without."""
    def node(number: str) -> str:
        found = re.search(rf"^!{number} = ([^\n]*)", text, re.M)
        return found[1] if found else ""

    place = re.search(r"!dbg !(\d+)", instruction)
    location = re.search(r"line: (\d+)(?:, column: (\d+))?, scope: !(\d+)", node(place[1])) if place else None
    file = re.search(r"\bfile: !(\d+)", node(location[3])) if location else None
    name = re.search(r'filename: "([^"]*)"', node(file[1])) if file else None
    if location is None or name is None:
        return ""
    return ":".join(filter(None, (name[1], location[1], location[2])))


def _reached(body: str, symbol: str) -> set[str]:
    reached = {symbol}
    slots: set[str] = set()
    while True:
        before = len(reached) + len(slots)
        for match in re.finditer(r"(%[-\w.$]+) = (getelementptr|phi|select|load ptr|bitcast)\b([^\n]*)", body):
            used = set(re.findall(r"%[-\w.$]+", match[3]))
            if used & (slots if match[2] == "load ptr" else reached):
                reached.add(match[1])
        for match in re.finditer(r"store ptr (%[-\w.$]+), ptr (%[-\w.$]+)", body):
            if match[1] in reached:
                slots.add(match[2])
        if len(reached) + len(slots) == before:
            return reached
