"""`irgrad run` and `irgrad cc`: whole C and C++ programs that call the derivative themselves.

The command line is that of a compiler driver: options and files in any order. The program is compiled to IR, its calls
`__enzyme_autodiff(f, ...)` are lowered, and what comes out is an object file, which the compiler links.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

from irgrad.rules.errors import CompileError, LoadError

__all__ = ["CC_USAGE", "RUN_USAGE", "Command", "build", "compiled", "main_cc", "main_run"]

RUN_USAGE = "usage: irgrad run [-O0..-O3] [-I DIR] [-D NAME[=VALUE]] [-l LIB] [-L DIR] [-std=...] FILE... [-- ARGS]"
CC_USAGE = "usage: irgrad cc [options of `irgrad run`] [-c] [-shared] FILE... -o OUT   (program .o .so .ll .bc .s)"
_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".C", ".c++", ".ll", ".bc")
_LIBRARY_ALIAS = re.compile(r'^(@_ZNK?St[\w$.]+ = )(?:\w+ )*?((?:unnamed_addr )?alias )', re.M)
_NEEDS_LIBCXX = re.compile(r'^(?:declare [^@\n]*|)@"?_Z\w*St3__1\w*"?(?:\(| = external )', re.M)
_REGISTERS = re.compile(rb"__enzyme_(?:re|inactive|function_like|allocation_like)")
_UNTOUCHED = ("-Xclang", "-disable-llvm-passes", "-fkeep-persistent-storage-variables")
# Attributes of functions that clang does not know become annotations, which it hands on.
_ATTRIBUTES = (
    *(f'-D{word}=annotate("{word}")' for word in (
        "enzyme_inactive", "enzyme_inactive_noblock", "enzyme_nofree", "enzyme_shouldrecompute",
        "enzyme_no_escaping_allocation", "enzyme_sparse_accumulate")),
    '-Denzyme_function_like(name)=annotate("enzyme_function_like=" name)',
)
_CPP = (".cc", ".cpp", ".cxx", ".C", ".c++")


@dataclass(slots=True)
class Command:
    """A command line, taken apart: `link` goes to the linker, in its order."""

    sources: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    link: list[str] = field(default_factory=list)
    opt: str | None = None
    output: str = ""
    form: str = ""
    args: list[str] = field(default_factory=list)

    @property
    def cpp(self) -> bool:
        """Some source is C++."""
        return any(source.endswith(_CPP) for source in self.sources)


def read_command(words: Sequence[str]) -> Command:
    """Take a command line apart. Raises LoadError where no source is given."""
    command = Command()
    rest = list(words)
    if "--" in rest:
        at = rest.index("--")
        rest, command.args = rest[:at], rest[at + 1 :]
    while rest:
        word = rest.pop(0)
        if word in ("-I", "-D", "-U", "-include", "-isystem") and rest:
            command.flags += [word, rest.pop(0)]
        elif word in ("-L", "-l") and rest:
            command.link.append(word + rest.pop(0))
        elif word == "-o" and rest:
            command.output = rest.pop(0)
        elif word == "-c":
            command.form = ".o"
        elif word == "-shared":
            command.form = ".so"
        elif word.startswith(("-L", "-l", "-Wl,")) or word in ("-pthread", "-fopenmp"):
            command.link.append(word)
            command.flags += [word] if word[:2] in ("-p", "-f") else []
        elif word.startswith("-O"):
            command.opt = word[1:] if word != "-O" else "O1"
        elif word.startswith("-"):
            command.flags.append(word)
        elif word.endswith(_SOURCES):
            command.sources.append(word)
        else:
            command.link.append(word)
    if not command.sources:
        raise LoadError("there is no source file", because=f"known suffixes are {' '.join(_SOURCES)}",
                        fix="irgrad run prog.c -lm -- args")
    return command


def compiled(command: Command, *, whole: bool = False) -> str:
    """The IR of the program, its calls of the notation lowered; `whole`: it becomes an executable."""
    from irgrad.engine.notation.lower import lower
    from irgrad.engine.notation.registered import speaks
    from irgrad.engine.progress import Progress
    from irgrad.engine.transforms.runtime import link_runtime
    from irgrad.interop.loaders import load

    with Progress(f"compiling {' '.join(command.sources)}"):
        library = load(command.sources, flags=[*_ATTRIBUTES, *command.flags], opt=command.opt)
        if speaks(library.text) or any(map(_registers, command.sources)):
            # What is registered is looked up before anything is inlined or dropped.
            library = load(command.sources, flags=[*_ATTRIBUTES, *_UNTOUCHED, *command.flags], opt=command.opt)
    if library.warnings:
        print(library.warnings, file=sys.stderr)
    with Progress("differentiating"):
        text = link_runtime(lower(library.text, whole=whole))
    # Functions of the C++ library that the loader compiled for the program are the program's own.
    return _LIBRARY_ALIAS.sub(r"\1internal \2", text) if command.cpp else text


def _registers(source: str) -> bool:
    """Whether a source file may register something, perhaps in a static variable that the compiler would leave out."""
    if source.endswith((".ll", ".bc")):
        return False
    try:
        return _REGISTERS.search(Path(source).read_bytes()) is not None
    except OSError:
        return False


def build(command: Command, output: Path) -> None:
    """Write the program in the form of the output's suffix; without a known one, an executable."""
    from irgrad.engine.codegen.objects import FORMATS, emit

    form = command.form or (output.suffix if output.suffix in FORMATS else "")
    text = compiled(command, whole=not form)
    if form and form != ".so":
        output.write_bytes(emit(text, None, form))
        return
    with tempfile.TemporaryDirectory(prefix="irgrad-ld-") as folder:
        image = Path(folder, "program.o")
        image.write_bytes(emit(text, None, ".o"))
        _link(command, image, output, shared=form == ".so", libcxx=bool(_NEEDS_LIBCXX.search(text)))


def _cpp_runtime() -> list[str]:
    """Files of the system's C++ runtime (operator new, exceptions); empty where it has none."""
    import ctypes

    found = []
    for name in ("libstdc++.so.6", "libgcc_s.so.1"):
        try:
            ctypes.CDLL(name)
        except OSError:
            return []
        rows = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        files = (row.split(maxsplit=5)[-1] for row in rows)
        found.append(next((file for file in files if Path(file).name.startswith(name)), name))
    return found


def _link(command: Command, image: Path, output: Path, *, shared: bool, libcxx: bool) -> None:
    from irgrad.engine.codegen.cache import default_root
    from irgrad.interop.loaders.compiler import find_compiler

    compiler = find_compiler()
    environment = dict(os.environ)
    if compiler.zig:  # it keeps what it builds of the C and C++ libraries
        environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(default_root() / "zig"))
        environment.setdefault("ZIG_LOCAL_CACHE_DIR", str(default_root() / "zig"))
    # zig builds libc++ from source when it is first linked, a minute's work; most numerical programs need none of it.
    runtime = [] if libcxx or not compiler.zig or not command.cpp else _cpp_runtime()
    language = "c++" if command.cpp and not runtime else "c"
    tail = [str(image), "-o", str(output), *command.link, *runtime, "-lm", *(["-shared"] if shared else [])]
    system = which("cc") if compiler.zig and language == "c" else None
    if system and _run([system, *tail], environment).returncode == 0 and output.exists():
        return  # at once: zig builds its start-up code and its C library's stubs first
    done = _run([*compiler.command[language], *tail], environment)
    if done.returncode or not output.exists():
        raise CompileError(f"`{output.name}` does not link", where=" ".join(command.sources),
                           because=done.stderr.strip() or f"the linker ended with status {done.returncode}",
                           fix="add the libraries and files it needs: -lNAME, -LDIR, more sources")


def _run(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          errors="replace", env=environment)


def main_run(words: Sequence[str]) -> int:
    """`irgrad run`: build the program in a scratch folder and run it; its exit status is the result."""
    if not words or words[0] in ("-h", "--help"):
        print(RUN_USAGE, file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    command = read_command(words)
    with tempfile.TemporaryDirectory(prefix="irgrad-run-") as folder:
        program = Path(folder, Path(command.sources[0]).stem or "program")
        build(command, program.with_suffix(""))
        sys.stdout.flush()
        done = subprocess.run([str(program), *command.args], check=False)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode  # as a shell tells a signal


def main_cc(words: Sequence[str]) -> int:
    """`irgrad cc`: write the program."""
    if not words or words[0] in ("-h", "--help"):
        print(CC_USAGE, file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    command = read_command(words)
    default = Path(command.sources[0]).stem + command.form if command.form else "a.out"
    build(command, Path(command.output or default))
    return 0
