"""The link step of `irgrad cc`: objects and libraries to a program or a shared library."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from shutil import which

from irgrad.interop.command_line import Command
from irgrad.rules.errors import CompileError

__all__ = ["absent", "defined", "link", "undefined", "wants_cpp", "wants_libcxx", "wrapped", "wraps"]

_CPP_SYMBOL = re.compile(r"\bU (_Z|__cxa_|__gxx_|__dynamic_cast)")
_LIBCXX_SYMBOL = re.compile(
    r"\bU _Z(?:(?:GV|T[A-Z])?N?[VKRO]*St3__1|N?K?St(?:13|17rethrow_exceptionSt13)exception_ptr)")  # fmt: skip
"""Of the library, not with one in its parameters; pointers to exceptions are another class in libstdc++."""
_OF_THE_SYSTEM = frozenset("m c pthread dl rt util gcc gcc_s stdc++ atomic".split())
_NO_SYSTEM = re.compile(r"crt[1in]\.o|cannot find -l(c|m|gcc|gcc_s)\b|unable to find library -l(c|m)\b")


def link(command: Command, images: Sequence[Path], output: Path, *, shared: bool) -> None:
    """Link the object files and what the command line names for the linker. Raises CompileError with its messages."""
    from irgrad.engine.codegen.cache import default_root
    from irgrad.interop.loaders.compiler import find_compiler

    compiler = find_compiler()
    environment = dict(os.environ)
    if compiler.zig:  # it keeps what it builds of the C and C++ libraries
        environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(default_root() / "zig"))
        environment.setdefault("ZIG_LOCAL_CACHE_DIR", str(default_root() / "zig"))
    files = [*map(str, images), *(word for word in command.link if not word.startswith("-") and Path(word).is_file())]
    wanted = undefined(files)
    libcxx = wants_libcxx(wanted) and not command.libstdcxx
    cpp = wants_cpp(wanted)
    fortran = _of_fortran() if "U _FortranA" in wanted and not shared else []
    tail = [*map(str, images), "-o", str(output), *command.link, *fortran, *(["-shared"] if shared else [])]
    # zig builds libc++ from source when it is first linked, a minute's work; most numerical programs need none of it.
    system = _system(cpp) if compiler.zig and not libcxx else None
    if system:
        done = _run([*system[0], *tail, *system[1], "-lm"], environment)
        if _told(done, output):
            return
        if not _NO_SYSTEM.search(done.stderr):
            raise _failed(command, output, done)
    vectors = _mapped("libmvec.so.1") if "U _ZGV" in wanted else ""  # zig's libm has none; the system's brings it
    libraries = [*([vectors, "-Wl,--allow-shlib-undefined"] if vectors else []), "-lm"]
    done = _linked(compiler.command["c++" if cpp else "c"], [*tail, *libraries], environment, libcxx)
    if not _told(done, output):
        raise _failed(command, output, done)


def _of_fortran() -> list[str]:
    """The run-time library of flang, where there is one."""
    from irgrad.interop.loaders.fortran_runtime import archive
    from irgrad.interop.loaders.languages import FLANG

    return [str(archive(FLANG.find()[0]))]


def _told(done: subprocess.CompletedProcess[str], output: Path) -> bool:
    """Whether the linker did what it was asked for, an answer (`-Wl,--version`) or a file; hands on what it printed."""
    good = done.returncode == 0 and (output.exists() or bool(done.stdout))
    if good:
        print(done.stdout, end="")
        print(done.stderr, end="", file=sys.stderr)
    return good


def _linked(compiler: Sequence[str], tail: Sequence[str], environment: Mapping[str, str],
            libcxx: bool) -> subprocess.CompletedProcess[str]:
    from irgrad.engine.support.progress import Progress

    with Progress("linking with libc++ (the first time, it is built)" if libcxx else "linking"):
        return _run([*compiler, *tail], environment)


def _failed(command: Command, output: Path, done: subprocess.CompletedProcess[str]) -> CompileError:
    return CompileError(f"`{output.name}` does not link", where=" ".join(source.path for source in command.sources),
                        because=done.stderr.strip() or f"the linker ended with status {done.returncode}",
                        fix="add the libraries and files it needs: -lNAME, -LDIR, more sources")


def wants_libcxx(wanted: str) -> bool:
    """Whether symbols of libc++ are among those of `undefined`."""
    return _LIBCXX_SYMBOL.search(wanted) is not None


def wants_cpp(wanted: str) -> bool:
    """Whether symbols of C++ are among those of `undefined`: some runtime has to be linked."""
    return _CPP_SYMBOL.search(wanted) is not None


def undefined(files: Sequence[str]) -> str:
    """What the objects and archives want from elsewhere, as `nm -u` prints it; shared libraries bring it themselves."""
    files = [file for file in files if file.endswith((".o", ".a", ".obj"))]
    nm = which("nm")
    if not files:
        return ""
    if nm is None:  # the names alone: too many rather than too few
        names = re.findall(rb"_Z\w+|__cxa_\w+|__gxx_\w+", b"".join(Path(file).read_bytes() for file in files))
        return "\n".join(f"U {name.decode()}" for name in names)
    done = _run([nm, "-u", *files], os.environ)
    own = _run([nm, "--defined-only", "-A", *files], os.environ) if len(files) > 1 else None
    defined = {row.split()[-1] for row in own.stdout.splitlines() if row.strip()} if own else set()
    return "\n".join(row for row in done.stdout.splitlines() if row.split()[-1:] and row.split()[-1] not in defined)


def defined(files: Sequence[str], *words: str) -> frozenset[str] | None:
    """The symbols that objects and archives define (shared libraries: `-D`); None where nothing here can tell."""
    nm = which("nm")
    done = _run([nm, "--defined-only", *words, *files], os.environ) if nm else None
    if done is None or done.returncode:
        return None
    return frozenset(row.split()[-1] for row in done.stdout.splitlines() if len(row.split()) >= 2)


def absent(names: Collection[str], words: Sequence[str]) -> list[str]:
    """Those of the names that nothing defines which a linker's words name, nor the C library; empty where that is not
    known."""
    from irgrad.engine.codegen.symbols import resolve

    words = _linkers_own(words)
    folders = [Path(word[2:]) for word in words if word.startswith("-L")]
    static, shared = [], []
    for word in words:
        if word.startswith("-l"):
            found = [path for folder in folders for suffix in (".so", ".a")
                     if (path := folder / f"lib{word[2:]}{suffix}").is_file()]  # fmt: skip
            if not found and word[2:] not in _OF_THE_SYSTEM:
                return []
            shared += [str(path) for path in found[:1] if path.suffix == ".so"]
            static += [str(path) for path in found[:1] if path.suffix == ".a"]
        elif not word.startswith("-") and Path(word).is_file():  # other words belong to the one before
            (shared if ".so" in Path(word).name else static).append(word)
    known = [defined(files, *more) for files, more in ((static, ()), (shared, ("-D",))) if files]
    if None in known:
        return []
    return [name for name in names if not resolve(name) and not any(name in one for one in known if one)]


def _linkers_own(words: Sequence[str]) -> list[str]:
    """The words as the linker gets them."""
    flat: list[str] = []
    for word in words:
        flat += word[4:].split(",") if word.startswith("-Wl,") else [] if word == "-Xlinker" else [word]
    return flat


def wraps(words: Sequence[str]) -> list[str]:
    """The symbols of `--wrap` among the linker's words."""
    flat = _linkers_own(words)
    pairs = zip(flat, [*flat, ""][1:], strict=True)
    found = [after if word in ("--wrap", "-wrap") else word.partition("=")[2] for word, after in pairs
             if re.fullmatch(r"--?wrap(=.+)?", word)]  # fmt: skip
    return [name for name in dict.fromkeys(found) if name]


def wrapped(text: str, names: Sequence[str]) -> str:
    """A module as the linker sees its object under `--wrap`: what it uses of another object as NAME is `__wrap_NAME`,
    and `__real_NAME` is NAME. Modules are linked before the linker runs, which then finds nothing to wrap."""
    for name in names:
        for old, new in ((name, f"__wrap_{name}"), (f"__real_{name}", name)):
            declared = re.compile(rf"^declare [^@\n]*@{re.escape(old)}\([^\n]*\n", re.M)
            if not declared.search(text):
                continue
            if re.search(rf"^(?:declare|define) [^@\n]*@{re.escape(new)}\(", text, re.M):
                text = declared.sub("", text)
            text = re.sub(rf"@{re.escape(old)}(?![-\w$.])", f"@{new}", text)
    return text


@cache
def _system(cpp: bool) -> tuple[list[str], list[str]] | None:
    """The system's compiler for linking, at once: zig builds its start-up code and its C library's stubs first. Words
    before and behind those of the link; None where it has none, or no C++ runtime."""
    driver = which("c++" if cpp else "cc")
    if driver:
        return [driver], []
    driver, runtime = which("cc"), _cpp_runtime()
    return ([driver], runtime) if driver and runtime else None


def _cpp_runtime() -> list[str]:
    """Files of the system's C++ runtime (operator new, exceptions); empty where it has none."""
    found = [_mapped(name) for name in ("libstdc++.so.6", "libgcc_s.so.1")]
    return found if all(found) else []


def _mapped(name: str) -> str:
    """The file of a shared library of the system; empty where it has none."""
    import ctypes

    try:
        ctypes.CDLL(name)
    except OSError:
        return ""
    rows = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    files = (row.split(maxsplit=5)[-1] for row in rows)
    return next((file for file in files if Path(file).name.startswith(name)), name)


def _run(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          errors="replace", env=environment)
