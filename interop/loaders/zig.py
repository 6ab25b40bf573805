"""Zig: the compiler of the `ziglang` wheel, source file in, LLVM IR text out, through the disk cache.

The module comes as it is before LLVM's passes (`--verbose-llvm-bc`), as that of clang does: what differentiation wants
is run by `engine/codegen/prepare.py`, and functions of Zig's standard library still go by their names. It is compiled
as ReleaseFast, without the checks that end the process; a level (`opt="O2"`) runs Zig's own pipeline instead.
`std.math` works on the bits of numbers, where LLVM has no intrinsic: its functions become calls of libm, which have
derivatives. `std.mem.swap` exchanges byte by byte, and comes to exchange whole values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.interop.loaders.compiler import Compilation, Options, cached_compilation, packed, run_compiler, wheel
from irgrad.interop.loaders.zig_memory import by_malloc
from irgrad.rules.errors import CompileError, LoadError

__all__ = ["call_libm", "compile_zig", "exported", "imported", "swap_whole"]

_WORDS = (
    "build-obj", "-O", "ReleaseFast", "-mcpu=baseline", "-fomit-frame-pointer", "-fno-stack-check", "-fno-emit-bin",
    "-lc",  # `std.heap.c_allocator`
)  # fmt: skip
_IMPORT = re.compile(r'@(?:import|embedFile)\("([^"\n]+\.\w+)"\)')
_OF_HEADERS = re.compile(r"@cImport\b")

_LIBM = {
    **{name: name for name in (
        "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh exp exp2 expm1 hypot ldexp lgamma log10 log1p"
        " log2 pow sin sinh tan tanh").split()},
    "gamma": "tgamma",
}  # fmt: skip
"""Functions of `std.math`, and those of libm that compute the same."""
_TAKES_INT = frozenset({"ldexp"})
_OF_TWO = frozenset("atan2 copysign hypot pow".split())
_SUFFIX = {"double": "", "float": "f"}
_MATH = re.compile(
    r"^define (?P<head>[^@\n]*\b(?P<type>double|float)) @math\.\w+\.(?P<name>\w+?)__func_\d+"
    r"\((?P<params>[^)\n]*)\)[^\n]*?!dbg !(?P<where>\d+) \{\n(?P<body>.*?)^\}\n", re.M | re.S,
)  # fmt: skip
_SWAP = re.compile(
    r"^(?P<head>define [^@\n]*@mem\.swap__func_\d+\(ptr [^,\n]*%0, ptr [^,\n]*%1\)[^\n]*?!dbg !(?P<where>\d+) \{\n)"
    r"(?P<body>.*?)^\}\n", re.M | re.S,
)  # fmt: skip
_BYTES = re.compile(r"insertvalue \{ ptr, i64 \} %\d+, i64 (\d+), 1")
_NAME = r'[-\w$.]+|"[^"\n]*"'
_ALIAS = re.compile(rf"^@({_NAME}) = (?!private|internal)[^\n]*?\balias [^\n]*, ptr @({_NAME})$", re.M)
_FILE = re.compile(r'^!(\d+) = !DIFile\(filename: "([^"]*)", directory: "([^"]*)"', re.M)
_SUBPROGRAM = re.compile(r"^!(\d+) = distinct !DISubprogram\([^\n]*?\bfile: !(\d+)", re.M)


def compile_zig(path: Path, options: Options, display: str | None = None) -> Compilation:
    """Compile one file of Zig, with what it imports, to LLVM IR text.

    `display` names the source in messages. Raises CompileError with the compiler's own diagnostics, LoadError where
    the `ziglang` wheel is missing or macros are given.
    """
    zig = wheel()
    if zig is None:
        raise LoadError("no Zig compiler was found", because="the `ziglang` wheel is not installed",
                        fix="pip install 'ziglang>=0.17,<0.18'")
    if options.define:
        raise LoadError("Zig has no macros", which=" ".join(name for name, _ in options.define),
                        because="`define` is given", fix="declare constants in the source   or   leave `define` out")
    plain = options.opt is None or options.opt.lstrip("-") in ("O0", "0") or not options.passes
    words = [str(zig), *_WORDS, *(f"-I{folder}" for folder in options.include), *options.flags]
    identity = f"{zig.stat().st_size} {zig.stat().st_mtime_ns}"
    key = fingerprint("zig-ir-7", identity, display or str(path.resolve()), path.read_bytes(), str(plain), *words)
    store = default_cache()
    hit = cached_compilation(store.get("ir", key))
    if hit is not None:
        return hit
    from irgrad.engine.support.progress import Progress
    from irgrad.engine.support.scratch import scratch_folder
    from irgrad.interop.loaders.link import read_bitcode

    with scratch_folder("zig") as scratch, Progress(f"compiling `{display or path}`"):
        output = Path(scratch, "out.bc")
        emit = f"--verbose-llvm-bc={output}" if plain else f"-femit-llvm-bc={output}"
        done = run_compiler([*words, emit, str(path)], scratch)
        messages = done.stderr.replace(str(path), display or str(path)).strip()
        if done.returncode != 0 or not output.exists():
            raise CompileError(f"`{display or path}` does not compile",
                               because=f"zig says:\n{messages or f'exit status {done.returncode}'}",
                               fix="mend the source   or   pass include=[...], flags=[...] to load()")
        text = swap_whole(call_libm(read_bitcode(output)))
        text = exported(by_malloc(text, _of_library(text, "/std/heap/")))
    text = _FILE.sub(lambda found: _shown(found, path.resolve(), display or str(path)), text)
    needs = tuple(sorted({str(row) for row in imported(path)}))
    result = Compilation(text, messages, needs, cached=False)
    if not any(_OF_HEADERS.search(Path(row).read_text(errors="replace")) for row in (str(path), *needs)):
        store.put("ir", key, packed(result))  # of headers nothing says when they change
    return result


def _shown(found: re.Match[str], path: Path, name: str) -> str:
    """The node of a file in debug information, the source's by the name that messages use."""
    number, file, folder = found.groups()
    if Path(folder, file).resolve() != path:
        return found[0]
    return f'!{number} = !DIFile(filename: "{name}", directory: "."'


def imported(path: Path, known: set[Path] | None = None) -> Iterator[Path]:
    """The files that a source imports or embeds, and those that they import; not the source, not the library's."""
    known = {path.resolve()} if known is None else known
    for name in _IMPORT.findall(path.read_text(encoding="utf-8", errors="replace")):
        found = path.parent / name
        if found.is_file() and found.resolve() not in known:
            known.add(found.resolve())
            yield found
            if found.suffix == ".zig":
                yield from imported(found, known)


def exported(text: str) -> str:
    """The module in which an exported function has a body under its own name: Zig writes an alias of a private one.
    Under a second name it has a body that calls the first."""
    first: dict[str, str] = {}
    for alias, own in _ALIAS.findall(text):
        if own in first:
            text = re.sub(rf"^@{re.escape(alias)} = [^\n]*\n", "", text, flags=re.M)
            text += _forwarding(text, alias, first[own])
            continue
        end = r"(?![-\w$.])" if not own.startswith('"') else ""
        defined = re.compile(rf"^define (?:internal|private) ([^@\n]*@{re.escape(own)}{end})", re.M)
        if defined.search(text):
            first[own] = alias
            text = defined.sub(r"define \1", text)
            text = re.sub(rf"^@{re.escape(alias)} = [^\n]*\n", "", text, flags=re.M)
            text = re.sub(rf"@{re.escape(own)}{end}", lambda _, name=alias: f"@{name}", text)  # type: ignore[misc]
    return text


def _forwarding(text: str, name: str, known: str) -> str:
    """A function that is another one."""
    from irgrad.engine.signature.prototype import prototype_of

    prototype = prototype_of(text, known.strip('"'))
    parameters, returns = ", ".join(prototype.written), prototype.returns
    call = f"call {returns} @{known}({parameters})"
    body = f"  {call}\n  ret void\n" if returns == "void" else f"  %value = {call}\n  ret {returns} %value\n"
    return f"\ndefine {returns} @{name}({parameters}) {{\n{body}}}\n"


def call_libm(text: str) -> str:
    """The module with the bodies of `std.math`'s functions replaced by calls of libm. A function whose argument is a
    constant of the source (`comptime`) has fewer parameters, and keeps its body."""
    library = _of_library(text, "/std/math")
    declared: dict[str, str] = {}

    def replaced(match: re.Match[str]) -> str:
        name, type_ = match["name"], match["type"]
        types = [row.split()[0] for row in match["params"].split(",") if row.strip()]
        wanted = [type_, "i32"] if name in _TAKES_INT else [type_] * (2 if name in _OF_TWO else 1)
        if name not in _LIBM or match["where"] not in library or types != wanted:
            return match[0]
        symbol = _LIBM[name] + _SUFFIX[type_]
        declared[symbol] = f"declare {type_} @{symbol}({', '.join(types)}) nounwind willreturn memory(none)\n"
        arguments = ", ".join(f"{row} %{n}" for n, row in enumerate(types))
        head = match[0][: match.start("body") - match.start()]
        return f"{head}  %{len(types) + 1} = call {type_} @{symbol}({arguments})\n  ret {type_} %{len(types) + 1}\n}}\n"

    text = _MATH.sub(replaced, text)
    return text + "".join(row for symbol, row in declared.items() if f"@{symbol}(" not in _declarations(text))


def swap_whole(text: str) -> str:
    """The module in which `std.mem.swap` exchanges values as wholes, where its body goes byte by byte."""
    library = _of_library(text, "/std/mem.zig")

    def replaced(match: re.Match[str]) -> str:
        sizes = set(_BYTES.findall(match["body"]))
        if match["where"] not in library or len(sizes) != 1:
            return match[0]
        size = sizes.pop()
        moves = "".join(f"  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, i64 {size}, i1 false)\n"
                        for to, of in (("%2", "%0"), ("%0", "%1"), ("%1", "%2")))
        return f"{match['head']}Entry:\n  %2 = alloca [{size} x i8], align 16\n{moves}  ret void\n}}\n"

    made = _SWAP.sub(replaced, text)
    known = "@llvm.memcpy.p0.p0.i64(" in _declarations(text)
    return made if made == text or known else made + "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"


def _of_library(text: str, file: str) -> set[str]:
    """The nodes of the functions that stand in files of Zig's library with this in their paths."""
    files = {node for node, name, folder in _FILE.findall(text) if file in f"{folder}/{name}"}
    return {node for node, where in _SUBPROGRAM.findall(text) if where in files}


def _declarations(text: str) -> str:
    return "\n".join(row for row in text.splitlines() if row.startswith(("declare ", "define ")))
