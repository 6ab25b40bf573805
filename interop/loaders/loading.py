"""`load`: sources in, `Library` out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from irgrad.interop.loaders.compiler import Compilation, Options, compile_source
from irgrad.interop.loaders.library import Library
from irgrad.rules.errors import LoadError

__all__ = ["load", "missing"]

Source = str | os.PathLike[str]

_LANGUAGES = {
    ".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".C": "c++", ".c++": "c++",
    ".ll": "ll", ".bc": "bc",
}
_STRING_NAME = "<string>"


def load(
    source: Source | Sequence[Source],
    *,
    include: Iterable[Source] = (),
    define: Mapping[str, object] | None = None,
    flags: Sequence[str] = (),
    link: Iterable[Source] = (),
    opt: str | None = None,
    language: str | None = None,
    preopt: bool = True,
) -> Library:
    """Load functions from C, C++, LLVM IR text or bitcode.

    source:   a path (.c .cc .cpp .cxx .ll .bc), a list of them linked together, or a string of C (it contains a
              newline or `{`)
    include:  folders for `#include`;  define: macros, `{"N": 8, "DEBUG": ""}`
    flags:    more words for the compiler, last on its command line
    link:     more sources (linked in) or shared libraries (.so, opened for their symbols)
    opt:      "O0" ... "O3": let the compiler optimise; by default irgrad runs the passes itself
    language: "c", "c++", "ll" or "bc" where the suffix does not say it, or for a string
    preopt:   False to differentiate before any optimisation, and to optimise only the derivative: slower, for measuring
              what optimising first is worth (benchmarks/preopt.py)

    Raises LoadError (missing file, unknown kind, IR of a newer LLVM) and CompileError (the compiler's diagnostics).
    """
    if not isinstance(source, (str, os.PathLike, list, tuple)):
        raise LoadError(f"a {type(source).__name__} cannot be loaded",
                        because="a path, a string of C or a list of them is wanted", fix='load("file.c")')
    sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    if not sources:
        raise LoadError("nothing to load", because="the list of sources is empty", fix='load("file.c")')
    options = Options(
        include=tuple(os.fspath(folder) for folder in include),
        define=tuple((name, _macro(value)) for name, value in (define or {}).items()),
        flags=_words(flags),
        opt=opt,
    )
    more = list(link)
    for library in (row for row in more if _is_shared(row)):
        _open_shared(Path(library))
    sources += [row for row in more if not _is_shared(row)]
    names, texts, warnings = [], [], []
    for item in sources:
        name, compiled = _one(item, options, language)
        names.append(name)
        texts.append(compiled.text)
        if compiled.warnings:
            warnings.append(compiled.warnings)
    # What the compiler has just written needs no check; foreign IR does, before anything else touches it.
    trusted = [_kind(item, language) in ("c", "c++") for item in sources]
    if trusted == [True]:
        text = texts[0]
    else:
        from irgrad.interop.loaders.link import link_inputs

        text = link_inputs(texts, names, trusted)
    if any(_kind(item, language) == "c++" for item in sources):
        from irgrad.interop.loaders.libcxx import complete

        text = complete(text)
    return Library(text, names, "\n".join(warnings), preopt=preopt)


def _macro(value: object) -> str:
    if value is True:
        return "1"
    return "" if value is None or value is False else str(value)


def _words(flags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(flags, str):
        raise LoadError("`flags` is a string", because="one string would be read as single letters",
                        fix=f"flags={flags.split()!r}")
    return tuple(flags)


def _is_text(source: Source) -> bool:
    return isinstance(source, str) and ("\n" in source or "{" in source)


def _kind(source: Source, language: str | None) -> str | None:
    if _is_text(source):
        return language or "c"
    return language or _LANGUAGES.get(Path(source).suffix)


def _one(source: Source, options: Options, language: str | None) -> tuple[str, Compilation]:
    kind = _kind(source, language)
    if isinstance(source, str) and _is_text(source):
        return _STRING_NAME, _from_string(source, options, kind or "c")
    path = Path(source)
    if not path.is_file():
        raise missing(path)
    if kind in ("ll", "bc"):
        from irgrad.interop.loaders.link import read_bitcode, read_text

        text = read_text(path) if kind == "ll" else read_bitcode(path)
        return str(source), Compilation(text, "", (), cached=False)
    if kind in ("c", "c++"):
        return str(source), compile_source(path, kind, options)
    raise LoadError(
        f"`{path}` is of no known kind",
        because=f"its suffix is `{path.suffix}`, known are {' '.join(_LANGUAGES)}"
        if language is None else f"`{language}` is no language of the loader",
        fix='load(path, language="c") with "c", "c++", "ll" or "bc"',
    )


def _from_string(source: str, options: Options, language: str) -> Compilation:
    if language == "ll":
        return Compilation(source, "", (), cached=False)
    if language not in ("c", "c++"):
        raise LoadError(f"a string cannot be loaded as `{language}`", fix='language="c", "c++" or "ll"')
    import tempfile

    with tempfile.TemporaryDirectory(prefix="irgrad-src-") as folder:
        path = Path(folder, "string.c" if language == "c" else "string.cc")
        path.write_text(f'#line 1 "{_STRING_NAME}"\n{source}\n', encoding="utf-8")
        return compile_source(path, language, options, display=_STRING_NAME)


def missing(path: Path) -> LoadError:
    """The error for a source that does not exist, with names that are near."""
    import difflib

    if path.is_dir():
        return LoadError(f"`{path}` is a folder", because="a source file is wanted",
                         fix="load a list of its files: load(sorted(folder.glob('*.c')))")
    folder = path.parent
    names = sorted(row.name for row in folder.iterdir()) if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    if not folder.is_dir():
        because = f"the folder `{folder}` does not exist"
    elif near:
        because = "the nearest names in its folder are " + ", ".join(f"`{row}`" for row in near)
    else:
        because = f"the folder `{folder.resolve()}` has no file with a similar name"
    fix = f'load("{folder / near[0]}")' if near else "name an existing file, or pass C source as a string with a body"
    return LoadError(f"there is no file `{path}`", because=because, fix=fix)


def _is_shared(source: Source) -> bool:
    name = os.fspath(source)
    return "\n" not in name and (name.endswith(".so") or ".so." in Path(name).name)


def _open_shared(path: Path) -> None:
    """Open a shared library for good, so that its symbols resolve."""
    import ctypes

    if path.parent != Path() and not path.is_file():
        raise missing(path)
    try:
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)  # never closed
    except OSError as error:
        raise LoadError(f"the shared library `{path}` cannot be opened", because=str(error),
                        fix="name a library built for this machine") from None
