"""The run-time library of Fortran: what flang's modules call, linked into them from `fortran_runtime.c`.

flang's own library is compiled C++, into which no derivative can look. Output statements, the time and other functions
that need no derivative go to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from math import prod
from pathlib import Path

from irgrad.interop.loaders.compiler import Options, compile_source, run_compiler
from irgrad.interop.loaders.library_parts import declared, with_parts
from irgrad.rules.errors import LoadError

__all__ = ["archive", "complete", "library_digest", "open_library"]

_SOURCE = Path(__file__).with_name("fortran_runtime.c")
_FLAGS = ("-std=gnu11", "-w", "-g0", "-O2", "-Xclang", "-disable-llvm-passes", "-ffp-contract=off")
_TYPE = re.compile(
    r"^@(\w+EXdtX\w+) = [^\n]*?\}, i64 \d+, [^\n]*? \{ ptr (?:@(\w+EXcX\w+)|null), i64 256,[^\n]*?"
    r", i32 \d+, i8 \d+, i8 (\d+), i8 (\d+), i8 (\d+), i8 (\d+), \[3 x i8\] undef \}", re.M,
)  # fmt: skip
"""A table of a type: its symbol, that of its components, whether a value needs nothing when it begins, when it ends, no
final procedure, and no assignment of its own."""
_LISTED = r"^@{symbol} = ([^\n]*)"
_COMPONENT = re.compile(
    r"%_QM__fortran_type_infoTcomponent \{ \{[^}]*\} \{[^}]*\}, i8 (?P<genre>\d+), i8 (?P<category>\d+),"
    r" i8 (?P<kind>\d+), i8 (?P<rank>\d+), \[4 x i8\] undef, i64 (?P<offset>\d+), %\w+ \{ i8 \d+, \[7 x i8\] undef,"
    r" i64 (?P<length>-?\d+) \}, \{[^}]*\} \{ ptr (?:null|@(?P<type>\w+)),[^}]*\}, \{[^}]*\} \{[^}]*\},"
    r" \{[^}]*\} \{ ptr (?:null|@(?P<bounds>\w+)),"
    r"[^}]*\}, %\w+ (?:zeroinitializer|\{ i64 ptrtoint \(ptr @(?P<initial>\w+) to i64\) \})",
)
_BOUND = re.compile(r"i8 \d+, \[7 x i8\] undef, i64 (-?\d+) \}")
_SIZE = r"^@{symbol} = [^\n]*?\}}, i64 (\d+), \{{"
_COMPLEX, _CHARACTER, _DERIVED = 3, 4, 6
_POINTER = "2"
_CODES = {(2, 4): 27, (2, 8): 28, (_COMPLEX, 4): 34, (_COMPLEX, 8): 35, (_CHARACTER, 1): 40, (_DERIVED, 0): 42}
"""Codes of types in descriptors, by category and kind; those of others are by their bytes."""
_BY_BYTES = {1: 7, 2: 8, 4: 9, 8: 10, 16: 31}
_DEFINED = re.compile(r"^define [^@\n]*@(_FortranA\w+)\(", re.M)
_FUNCTION = re.compile(r"^define [^\n]*\{\n.*?^\}\n", re.M | re.S)
_DESCRIPTOR = re.compile(r"^  (%[\w.]+) = alloca (\{ ptr, i64, i32, i8, i8, i8, i8[^\n]*? \}), align 8", re.M)
_COPIED = re.compile(
    r"^  (?:tail )?call void @llvm\.memcpy\.p0\.p0\.i32\(ptr (?:[^,%\n]*)(?P<to>%[\w.]+),"
    r" ptr (?:[^,%\n]*)(?P<of>%[\w.]+), i32 \d+, i1 false\)(?P<rest>[^\n]*)$", re.M,
)  # fmt: skip


def complete(text: str) -> str:
    """The module with the functions of Fortran's run-time library that it calls; unchanged when it calls none of ours.

    Raises IRSyntaxError or IRInvalid when LLVM refuses `text`.
    """
    known = _known() if "@_FortranA" in text else frozenset()
    if known.isdisjoint(declared(text)):
        return text
    types = tuple(_types(text))
    text = _FUNCTION.sub(lambda body: _by_member(body[0]), text)
    return with_parts(text, lambda name: str(_SOURCE) if name in known else None, lambda source: _runtime(types))


@cache
def library_digest() -> str:
    """What changes with the source of the library that is linked into modules."""
    from irgrad.engine.codegen.cache import fingerprint

    return fingerprint(_SOURCE.read_bytes())


def _by_member(body: str) -> str:
    """A function in which descriptors are copied as values, which LLVM looks into: what type an array has is known then
    where the run-time library asks for it."""
    types = dict(_DESCRIPTOR.findall(body))

    def moved(copy: re.Match[str]) -> str:
        type_ = types.get(copy["of"])
        if type_ is None or types.get(copy["to"], type_) != type_:
            return copy[0]
        value, rest = f"%irgrad.copied.{copy.start()}", copy["rest"]
        rest = rest[rest.find(", !") :] if ", !" in rest else ""
        return (f"  {value} = load {type_}, ptr {copy['of']}, align 8{rest}\n"
                f"  store {type_} {value}, ptr {copy['to']}, align 8{rest}")  # fmt: skip

    return _COPIED.sub(moved, body)


def open_library(text: str, flang: Callable[[], tuple[str, str]]) -> str:
    """The text; flang's own library is opened where the module calls what irgrad's has none of: input and output, the
    time, and what only has a value then. `flang` finds the compiler.

    Raises LoadError where flang comes without it.
    """
    if "@_FortranA" in text and any(name.startswith("_FortranA") for name in declared(text)):
        _open(flang()[0])
    return text


def archive(flang: str) -> Path:
    """The library that flang links into programs. Raises LoadError where there is none."""
    folder = Path(run_compiler([flang, "-print-resource-dir"]).stdout.strip())
    found = next(iter(sorted(folder.glob("lib/**/libflang_rt.runtime.a"))), None)
    if found is None:
        raise LoadError("the run-time library of Fortran was not found", which="libflang_rt.runtime.a",
                        because=f"the program calls it, and it is not below {folder}",
                        fix="install the library that belongs to flang   or   leave output statements out")  # fmt: skip
    return found


@cache
def _open(flang: str) -> None:
    """A shared library of what flang links into programs, opened for good."""
    import ctypes

    from irgrad.engine.codegen.cache import default_cache, fingerprint
    from irgrad.engine.support.scratch import scratch_folder

    found = archive(flang)
    store, key = default_cache(), fingerprint("fortran-io", str(found), str(found.stat().st_mtime_ns))
    with scratch_folder("fortran") as scratch:
        library = Path(scratch, "io.so")
        kept = store.get("so", key)
        if kept is None:
            done = run_compiler([flang, "-shared", "-Wl,-s", "-o", str(library), "-Wl,--whole-archive", str(found),
                                 "-Wl,--no-whole-archive"])  # fmt: skip
            if done.returncode != 0 or not library.exists():
                raise LoadError("the run-time library of Fortran cannot be linked", which=str(found),
                                because=done.stderr.strip() or f"exit status {done.returncode}",
                                fix="install a linker (binutils)   or   leave output statements out")  # fmt: skip
            store.put("so", key, library.read_bytes())
        else:
            library.write_bytes(kept)
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)  # never closed


def _runtime(types: tuple[str, ...] = ()) -> str:
    """types: macros that describe those of the module."""
    return compile_source(_SOURCE, "c", Options(flags=(*_FLAGS, *types))).text


def _types(text: str) -> Iterator[str]:
    """Macros that describe the derived types whose elements are more than their bytes: see `fortran_runtime.c`."""
    found = _TYPE.findall(text)
    finals = [symbol for symbol, *_, final, assigned in found if "0" in (final, assigned)]
    if finals:
        yield "-DFINALS(T)=" + " ".join(f"T({symbol})" for symbol in finals)
    begun = [(symbol, parts, ends) for symbol, parts, plain, ends, *_ in found
             if parts and "0" in (plain, ends) and symbol not in finals]  # fmt: skip
    if begun:
        yield "-DTYPES(T)=" + " ".join(f"T({n},{symbol})" for n, (symbol, _, _) in enumerate(begun))
    owners = {symbol: n for n, (symbol, _, ends) in enumerate(begun) if ends == "0"}
    if owners:
        yield "-DOWNERS(T)=" + " ".join(f"T({n},{symbol})" for symbol, n in owners.items())
    for n, (_, parts, _) in enumerate(begun):
        yield f"-DPARTS_{n}(P)=" + " ".join(_part(text, part, owners) for part in _components(text, parts))


def _components(text: str, symbol: str) -> Iterator[re.Match[str]]:
    found = re.search(_LISTED.format(symbol=symbol), text, re.M)
    return _COMPONENT.finditer(found[1] if found else "")


def _part(text: str, part: re.Match[str], owners: Mapping[str, int]) -> str:
    """One component: genre, offset, bytes of all its elements (of one that is a pointer or allocatable, of an element),
    elements, rank, code of its type, its type, its initial value, the number of its type among the owners."""
    category, kind, type_ = int(part["category"]), int(part["kind"]), part["type"]
    size = {_COMPLEX: 2 * kind, _CHARACTER: kind * int(part["length"])}.get(category, kind)
    if category == _DERIVED:
        found = re.search(_SIZE.format(symbol=type_), text, re.M)
        size = int(found[1]) if found else 0
    listed = re.search(_LISTED.format(symbol=part["bounds"]), text, re.M) if part["bounds"] else None
    bounds = list(map(int, _BOUND.findall(listed[1]))) if listed else []
    many = prod(max(0, high - low + 1) for low, high in zip(bounds[::2], bounds[1::2], strict=True))
    code = _CODES.get((category, kind), _BY_BYTES.get(kind, 0))
    initial = part["initial"]
    if initial and part["genre"] == _POINTER and re.search(rf"^@{initial} = [^\n]*?\}} \{{ ptr null,", text, re.M):
        initial = None
    described = (f"({{extern const Derived {type_}; &{type_};}})" if type_ else 0,
                 f"({{extern const char {initial}[]; (const void *){initial};}})" if initial else 0)  # fmt: skip
    numbers = part["genre"], part["offset"], size * many, many, part["rank"], code
    return f"P({','.join(map(str, (*numbers, *described, owners.get(type_ or '', 'none'))))})"


@cache
def _known() -> frozenset[str]:
    return frozenset(_DEFINED.findall(_runtime()))
