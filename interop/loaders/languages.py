"""The languages that `load` takes: one entry each. Another one is another entry of `LANGUAGES`, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from irgrad.engine.signature.prototype import quoted
from irgrad.interop.loaders.compiler import NEWEST_LLVM, TYPES, Compilation, Options, Tool, compile_source

__all__ = ["FLANG", "LANGUAGES", "RUSTC", "Language", "by_name", "by_suffix", "linked_names"]

RUSTC = Tool(
    "Rust", "IRGRAD_RUSTC", ("rustc",), "-vV", r"^LLVM version: (\d+)", "rustc", "install Rust (https://rustup.rs)",
    "rustup install 1.95.0", home=("CARGO_HOME", "~/.cargo"),
)  # fmt: skip
FLANG = Tool(
    "Fortran", "IRGRAD_FC", (f"flang-{NEWEST_LLVM}", "flang"), "--version", r"flang version (\d+)", "flang",
    "apt install flang-22", "apt install flang-22",
)  # fmt: skip

_LINKAGE = re.compile(r'^(!\d+) = distinct !DISubprogram\([^\n]*?linkageName: "([^"]+)"', re.M)
_SHOWN = re.compile(r'^define (?!internal|private)[^@\n]*@("?)([^"\n(]+)\1\([^\n]*!dbg (!\d+)', re.M)
Compile = Callable[[Path, Options, "str | None"], Compilation]


@dataclass(frozen=True, slots=True)
class Language:
    """A language of sources.

    name:     what `load(..., language=)` calls it
    suffixes: of its files; the first is that of a file made of a string
    compile:  a file, options and the name to show in messages -> LLVM IR as text. Raises CompileError or LoadError
    trusted:  whether a compiler that irgrad runs wrote the IR: other IR is validated before LLVM sees it
    text:     whether a string may be a source; header: what stands in front of such a string in its file
    complete: what is linked behind a program of this language (a runtime library), or None
    types:    words for the compiler: debug information with the types of the source
    tool:     its compiler, where that does not come with irgrad
    fails:    its functions may fail as a whole (`irgrad.panic`): kernels of them have a status (`checked.py`)
    """

    name: str
    suffixes: tuple[str, ...]
    compile: Compile
    trusted: bool = True
    text: bool = True
    header: str = ""
    complete: Callable[[str], str] | None = None
    types: tuple[str, ...] = ()
    tool: Tool | None = None
    fails: bool = False


def _compiled(name: str) -> Compile:
    """With clang."""
    return lambda path, options, display: compile_source(path, name, options, display=display)


def _zig(path: Path, options: Options, display: str | None) -> Compilation:
    from irgrad.interop.loaders.zig import compile_zig

    return compile_zig(path, options, display)


def _rust(path: Path, options: Options, display: str | None) -> Compilation:
    from irgrad.interop.loaders.rust import compile_rust

    return compile_rust(path, options, RUSTC.find(), display)


def _crate(path: Path, options: Options, display: str | None) -> Compilation:
    from irgrad.interop.loaders.cargo import compile_crate

    return compile_crate(path, options, RUSTC.find(), display)


def _fortran(path: Path, options: Options, display: str | None) -> Compilation:
    from irgrad.interop.loaders.fortran import compile_fortran

    return compile_fortran(path, options, FLANG.find(), display)


def linked_names(text: str) -> str:
    """The module in which functions have the names that compilers of their language give them, not those of the source:
    objects of other compilers are linked with it."""
    names = dict(_LINKAGE.findall(text))
    for quote, shown, node in _SHOWN.findall(text):
        name = names.get(node, shown)
        if name != shown and not re.search(rf'^(?:define|declare) [^@\n]*@"?{re.escape(name)}"?\(', text, re.M):
            end = "" if quote else r"(?![\w.$])"
            text = re.sub(rf"@{quote}{re.escape(shown)}{quote}{end}", f"@{quoted(name)}".replace("\\", r"\\"), text)
    return text


def _text(path: Path, options: Options, display: str | None) -> Compilation:
    from irgrad.interop.loaders.link import read_text
    from irgrad.interop.loaders.runtimes import adapted

    return Compilation(adapted(read_text(path)), "", (), cached=False)


def _bitcode(path: Path, options: Options, display: str | None) -> Compilation:
    from irgrad.interop.loaders.link import read_bitcode
    from irgrad.interop.loaders.runtimes import adapted

    return Compilation(adapted(read_bitcode(path)), "", (), cached=False)


def _with_libcxx(text: str) -> str:
    from irgrad.interop.loaders.libcxx import complete

    return complete(text)


def _with_libstd(text: str) -> str:
    from irgrad.interop.loaders.rust import open_library

    return open_library(text, RUSTC.find)


def _with_flang(text: str) -> str:
    from irgrad.interop.loaders.fortran_runtime import open_library

    return open_library(text, FLANG.find)


_LINE = '#line 1 "{name}"\n'

LANGUAGES: tuple[Language, ...] = (
    Language("c", (".c",), _compiled("c"), header=_LINE, types=TYPES),
    Language("c++", (".cc", ".cpp", ".cxx", ".C", ".c++"), _compiled("c++"), header=_LINE, complete=_with_libcxx,
             types=TYPES),
    Language("zig", (".zig",), _zig),
    Language("rust", (".rs",), _rust, complete=_with_libstd, types=("-Cdebuginfo=2",), tool=RUSTC,
             fails=True),
    Language("cargo", (".toml",), _crate, text=False, complete=_with_libstd, types=("-Cdebuginfo=2",), tool=RUSTC,
             fails=True),
    Language("fortran", (".f90", ".f95", ".f03", ".f08", ".F90"), _fortran, complete=_with_flang, tool=FLANG,
             fails=True),
    Language("ll", (".ll",), _text, trusted=False),
    Language("bc", (".bc",), _bitcode, trusted=False, text=False),
)


def by_name(name: str) -> Language | None:
    """The language of that name."""
    return next((language for language in LANGUAGES if language.name == name), None)


def by_suffix(suffix: str) -> Language | None:
    """The language of files with that suffix."""
    return next((language for language in LANGUAGES if suffix in language.suffixes), None)
