"""`load`: sources in, `Library` out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from irgrad.engine.kernel.options import Options as KernelOptions
from irgrad.interop.loaders import languages
from irgrad.interop.loaders.compiler import Compilation, Options, at_once
from irgrad.interop.loaders.languages import Language
from irgrad.interop.loaders.library import Library
from irgrad.rules.errors import LoadError

__all__ = ["check_target", "load", "missing", "special"]

Source = str | os.PathLike[str]

_PASSES = frozenset(("-O1", "-O2", "-O3"))
_LEVELS = ("O0", "O1", "O2", "O3", "Os", "Oz")
_STRING_NAME = "<string>"
_TRIPLE = re.compile(r'^target triple = "([^"\n]*)"', re.M)
_LAYOUT = re.compile(r'^target datalayout = "([^"\n]*)"', re.M)
_POINTERS = re.compile(r"(?:^|-)p0?:(\d+)")
_SAME_CODE = {"amd64": "x86_64", "x86_64h": "x86_64", "arm64": "aarch64"}


def load(
    source: Source | Sequence[Source],
    *,
    include: Source | Iterable[Source] = (),
    define: Mapping[str, object] | None = None,
    flags: Sequence[str] = (),
    link: Source | Iterable[Source] = (),
    opt: str | None = None,
    language: str | None = None,
    preopt: bool = True,
    cpu: str = "native",
) -> Library:
    """Load functions from C, C++, Zig, Rust, Fortran, LLVM IR text or bitcode.

    source:   a path (.c .cc .cpp .cxx .zig .rs .f90 .ll .bc), a list of them linked together, or a string of C (it
              contains a newline or `{`)
    include:  a folder for `#include`, or several;  define: macros, `{"N": 8, "DEBUG": True}`, "" for nothing
    flags:    more words for the compiler, last on its command line
    link:     a source (linked in) or a shared library (.so or `-lname`, opened for its symbols), or several
    opt:      "O0" ... "O3": let the compiler optimise; by default irgrad runs the passes itself
    language: "c", "c++", "zig", "rust", "fortran", "ll" or "bc" where the suffix does not say it, or for a string
    preopt:   False to differentiate before any optimisation, and to optimise only the derivative: slower, for measuring
              what optimising first is worth (benchmarks/preopt.py)
    cpu:      "native" for machine code with all that this machine's CPU can do, fused multiply-add among it;
              "baseline" for what every CPU of its architecture can: values are a compiler's without -m options


    Raises IRGradError (another word for `cpu`), LoadError (missing file, unknown kind, IR of a newer LLVM) and
    CompileError (the compiler's diagnostics).

        >>> lib = irgrad.load("double square(double x) { return x * x; }")
        >>> lib.functions()
        ('square',)
        >>> lib.kernel("square")(3.0)
        np.float64(9.0)
    """
    KernelOptions(cpu=cpu)
    if not isinstance(source, (str, os.PathLike, list, tuple)):
        raise LoadError(f"a {type(source).__name__} cannot be loaded",
                        because="a path, a string of C or a list of them is wanted", fix='load("file.c")')
    if opt is not None and opt not in _LEVELS:
        raise LoadError(f"opt={opt!r} is no level", because=f"the levels are {', '.join(_LEVELS)}", fix='opt="O3"')
    sources = [_of_crate(row) for row in ([source] if isinstance(source, (str, os.PathLike)) else source)]
    if not sources or "" in sources:
        what = "a source is an empty string" if sources else "the list of sources is empty"
        raise LoadError("nothing to load", because=what, fix='load("file.c")')
    options = Options(
        include=tuple(os.fspath(folder) for folder in _several(include)),
        define=tuple((name, _macro(value)) for name, value in (define or {}).items()),
        flags=_words(flags),
        opt=opt,
    )
    more = [_library(row) for row in _several(link)]
    for library in (row for row in more if _is_shared(row)):
        _open_shared(Path(library))
    sources += [row for row in more if not _is_shared(row)]
    names, texts, warnings = [], [], []
    for name, compiled in at_once(sources, lambda item: _one(item, options, language)):
        check_target(compiled.text, name)
        names.append(name)
        texts.append(_resolved(compiled.text, cpu))
        if compiled.warnings:
            warnings.append(compiled.warnings)
    # What the compiler has just written needs no check; foreign IR does, before anything else touches it.
    spoken = [_language(item, language) for item in sources]
    trusted = [found.trusted for found in spoken]
    if trusted == [True]:
        text = texts[0]
    else:
        from irgrad.interop.loaders.link import link_inputs

        text = link_inputs(texts, names, trusted)
    for complete in dict.fromkeys(found.complete for found in spoken if found.complete is not None):
        text = complete(text)
    if "_kmpc_" in text or "omp_" in text or "__tgt_" in text:
        from irgrad.interop.loaders.openmp import complete as with_openmp

        text = with_openmp(text)
    text = _without_absent(text)
    strings = [str(row) for row, found in zip(sources, spoken, strict=True) if _is_text(row) and found.name != "ll"]
    code = [(_STRING_NAME, strings[0])] if len(strings) == 1 else []  # of several, nothing tells which is meant

    def described() -> str:
        types = spoken[0].types
        if any(trusted) and types and not set(types) <= set(options.flags):
            words = [*options.flags, *types]
            return load(sources, include=options.include, define=define, flags=words, opt=opt, language=language).text
        return text

    def entire() -> str:
        more = ["-femit-all-decls"]
        if any(found.name in ("c", "c++") for found in spoken) and not set(more) <= set(options.flags):
            words = [*options.flags, *more]
            return load(sources, include=options.include, define=define, flags=words, opt=opt, language=language).text
        return text

    again = partial(load, sources, include=options.include, define=define, language=language)
    plain = partial(_without_passes, again, options.flags, opt, text)
    passes = {f"-{opt}", *options.flags} & _PASSES and all(found.name in ("c", "c++") for found in spoken)
    fails = any(found.fails for found in spoken) or "call void @irgrad.panic(" in text
    return Library(text, names, "\n".join(warnings), preopt=preopt, cpu=cpu, code=code, described=described,
                   entire=entire, plain=plain if passes else None, fails=fails)


def _without_passes(again: Callable[..., Library], flags: Sequence[str], opt: str | None, text: str) -> str:
    """The IR before any pass of what was loaded as `text`; "" where a file has changed since."""
    words = [flag for flag in flags if flag not in _PASSES]
    return again(flags=words).text if again(flags=flags, opt=opt).text == text else ""


def _several(given: Source | Iterable[Source]) -> list[Source]:
    """What is given, one or several, as a list."""
    return [given] if isinstance(given, (str, os.PathLike)) else list(given)


def _library(word: Source) -> Source:
    """The file of a library that is named as linkers name it."""
    text = os.fspath(word)
    return f"lib{text[2:]}.so" if re.fullmatch(r"-l[\w.+-]+", text) else word


def _resolved(text: str, cpu: str) -> str:
    """A module whose indirect functions are chosen as the loader of this machine chooses them."""
    if " ifunc " not in text and "@__cpu_" not in text:
        return text
    from irgrad.engine.codegen.llvm import host_features
    from irgrad.engine.ir.text.load_time import call_resolvers, for_cpu

    def features() -> list[str]:
        return [] if cpu == "baseline" else [word[1:] for word in host_features().split(",") if word[0] == "+"]

    return for_cpu(call_resolvers(text), features, _make_of_cpu)


def _make_of_cpu() -> tuple[int, int, int] | None:
    """Vendor, type and subtype of this CPU as libgcc counts them; None where its library does not tell."""
    import ctypes

    try:
        gcc, find = ctypes.CDLL("libgcc_s.so.1"), ctypes.CDLL(None).dlvsym
    except (OSError, AttributeError):
        return None
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    ask, model = (find(gcc._handle, name, b"GCC_4.8.0") for name in (b"__cpu_indicator_init", b"__cpu_model"))
    if not ask or not model:
        return None
    ctypes.CFUNCTYPE(ctypes.c_int)(ask)()
    vendor, type_, subtype = (ctypes.c_uint32 * 3).from_address(model)
    return vendor, type_, subtype


def _without_absent(text: str) -> str:
    """The module in which weak symbols are null that neither it nor this process defines."""
    if "extern_weak" not in text:
        return text
    from irgrad.engine.codegen.symbols import resolve
    from irgrad.engine.ir.text.load_time import drop_weak, weak_symbols

    return drop_weak(text, [name for name in weak_symbols(text) if not resolve(name)])


def _macro(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "0" if value is False else "1"
    return str(value)


def _words(flags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(flags, str):
        raise LoadError("`flags` is a string", because="one string would be read as single letters",
                        fix=f"flags={flags.split()!r}")
    return tuple(flags)


def _is_text(source: Source) -> bool:
    return isinstance(source, str) and ("\n" in source or "{" in source)


def _language(source: Source, language: str | None) -> Language:
    """What a source is written in. Raises LoadError for a suffix or a name that is no language's."""
    named = language or ("c" if _is_text(source) else None)
    found = languages.by_name(named) if named is not None else languages.by_suffix(Path(source).suffix)
    if found is not None and (found.text or not _is_text(source)):
        return found
    names = [f'"{known.name}"' for known in languages.LANGUAGES if known.text or not _is_text(source)]
    if _is_text(source):
        raise LoadError(f"a string cannot be loaded as `{language}`", fix=f"language={' or '.join(names)}")
    suffixes = " ".join(suffix for known in languages.LANGUAGES for suffix in known.suffixes)
    raise LoadError(
        f"`{source}` is of no known kind",
        because=f"its suffix is `{Path(source).suffix}`, known are {suffixes}"
        if language is None else f"`{language}` is no language of the loader",
        fix=f'load(path, language="c") with one of {", ".join(names)}',
    )  # fmt: skip


def _one(source: Source, options: Options, language: str | None) -> tuple[str, Compilation]:
    if not _is_text(source):
        path = Path(source)
        if not path.is_file():
            raise missing(path)
        return str(source), _language(source, language).compile(path, options, None)
    found, text = _language(source, language), str(source)
    from irgrad.engine.support.scratch import scratch_folder

    with scratch_folder("src") as folder:
        path = Path(folder, f"string{found.suffixes[0]}")
        path.write_text(f"{found.header.format(name=_STRING_NAME)}{text}\n", encoding="utf-8", errors="surrogateescape")
        return _STRING_NAME, found.compile(path, options, _STRING_NAME)


def check_target(text: str, name: str) -> None:
    """Raise LoadError for a module that was compiled for another machine than this one: its types have other sizes."""
    triple, layout = _TRIPLE.search(text), _LAYOUT.search(text)
    own = os.uname().machine.lower()
    made = triple[1].partition("-")[0] if triple and triple[1] else own
    pointers = _POINTERS.search(layout[1]) if layout else None
    bits = int(pointers[1]) if pointers else 64
    if _SAME_CODE.get(made, made) != _SAME_CODE.get(own, own) or bits != 64 or (triple and "x32" in triple[1]):
        target = f"`{triple[1]}`" if triple else f"addresses of {bits} bits"
        raise LoadError(f"`{name}` is compiled for another machine", which=target,
                        because=f"its code would run on this one, `{own}` with addresses of 64 bits",
                        fix="compile it for this machine: leave out -m32, -target, --target")  # fmt: skip


def special(path: Path) -> bool:
    """Whether something is there that is neither a file nor a folder: a pipe, a device, a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def missing(path: Path) -> LoadError:
    """The error for a source that does not exist, with names that are near."""
    import difflib

    if special(path):
        kind = "pipe" if path.is_fifo() else "socket" if path.is_socket() else "device"
        return LoadError(f"`{path}` is a {kind} and no file", because="a source is read more than once",
                         fix='load(text, language="c") with what was read from it')
    if path.is_dir():
        return LoadError(f"`{path}` is a folder", because="a source file is wanted",
                         fix="load a list of its files: load(sorted(folder.glob('*.c')))")
    folder = path.parent
    names = sorted(row.name for row in folder.iterdir()) if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, [name for name in names if _taken(name)], n=3, cutoff=0.5)
    if not folder.is_dir():
        because = f"the folder `{folder}` does not exist"
    elif near:
        because = f"the nearest name{'s' * (len(near) > 1)} in its folder {'are' if len(near) > 1 else 'is'} "
        because += ", ".join(f"`{row}`" for row in near)
    else:
        because = f"the folder `{folder.resolve()}` has no file with a similar name"
    fix = f'load("{folder / near[0]}")' if near else "name an existing file, or pass C source as a string with a body"
    return LoadError(f"there is no file `{path}`", because=because, fix=fix)


def _taken(name: str) -> bool:
    """Whether a file of this name is something that `load` takes."""
    return name.endswith(".so") or languages.by_suffix(Path(name).suffix) is not None


def _of_crate(source: Source) -> Source:
    """A folder with a `Cargo.toml` is that file."""
    if _is_text(source):
        return source
    described = Path(source, "Cargo.toml")
    return described if described.is_file() else source


def _is_shared(source: Source) -> bool:
    name = os.fspath(source)
    return "\n" not in name and (name.endswith(".so") or ".so." in Path(name).name)


def _open_shared(path: Path) -> None:
    """Open a shared library for good, so that its symbols resolve: a file, or what the system's loader finds."""
    import ctypes

    if path.parent != Path() and not path.is_file():
        raise missing(path)
    try:
        # The loader does not look for a bare name in the current folder, and `Path` makes one of `./lib.so`.
        ctypes.CDLL(str(path.resolve() if path.is_file() else path), mode=ctypes.RTLD_GLOBAL)  # never closed
    except OSError as error:
        absent = path.parent == Path() and not path.is_file()
        raise LoadError(f"the shared library `{path}` cannot be opened", because=str(error),
                        fix="install it, or name its file: link=[\"/path/to/lib.so\"]" if absent
                        else "name a library built for this machine") from None  # fmt: skip
