"""Finding and running the C and C++ compiler: source file in, LLVM IR text out, through the disk cache.

The compiler is clang of LLVM <= 22: `IRGRAD_CC` if set, else the `ziglang` wheel's (clang 22.1), else a clang on PATH.
It emits IR for the O2 pipeline with no pass run yet (`-O2 -Xclang -disable-llvm-passes`): the passes are run by
`engine/codegen/prepare.py`, which knows what differentiation wants. The compiled IR does not depend on the CPU; the
CPU is chosen when machine code is made.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.engine.support.limits import limit
from irgrad.rules.errors import CompileError, LimitExceeded, LoadError

if TYPE_CHECKING:
    import subprocess

__all__ = [
    "NEWEST_LLVM", "TYPES", "Compilation", "Compiler", "Options", "Tool", "at_once", "cached_compilation",
    "compile_source", "find_compiler", "libstdcxx_headers", "own_headers", "packed", "precompile", "run_compiler",
    "standard_library", "wheel", "zig_words",
]  # fmt: skip

NEWEST_LLVM = 22
_HEADER_LINE = re.compile(r"^\.+ (.+)$")

_FLAGS = (
    "-gline-tables-only",        # messages name source lines; costs under 5 % of compile time
    "-fno-math-errno",           # sin, exp, ... become intrinsics without side effects
    "-fomit-frame-pointer",
    "-fno-discard-value-names",  # messages name %sum rather than %17
    "-fdebug-compilation-dir=.",  # IR is the same wherever it is compiled
    "-Wno-unused-command-line-argument",
    "-Xclang", "-H",             # lists the headers read (zig loses the IR under -MD)
)
TYPES = ("-Xclang", "-debug-info-kind=constructor")
"""Words for the compiler: debug information with the types of the source."""
_SUFFIXES = {"c": (".c",), "c++": (".cc", ".cpp", ".cxx")}
_LIBSTDCXX = Path("/usr/include/c++")
_ZIG_FLAGS = ("-fno-sanitize=undefined", "-mcpu=baseline")
_MISSING = re.compile(r"error: no (?:member|type|template) named '\w+' in namespace 'std'")
_BY_WAY = tuple(f"-include{name}" for name in ("algorithm", "cmath", "functional", "memory", "string", "utility"))
"""Headers that libstdc++ includes by way of others, and libc++ does not: a program that names too few of them is
compiled with these."""
_OWN_HEADERS = Path(__file__).with_name("include")


@dataclass(frozen=True, slots=True)
class Tool:
    """A compiler that does not come with irgrad.

    language: what it compiles, as messages say it;  variable: of the environment, that names it
    programs: its names on the PATH, the best first;  home: a folder to look in besides, after a variable that moves it
    asks, says: the words that it answers with its version, the pattern of the number there;  kind: what it should be
    install, older: how one is had, and one of another version
    """

    language: str
    variable: str
    programs: tuple[str, ...]
    asks: str
    says: str
    kind: str
    install: str
    older: str
    home: tuple[str, str] | None = None

    def find(self) -> tuple[str, str]:
        """The program, and what it says of its version: that of the variable, else the first that there is.

        Raises LoadError where there is none, and for one whose LLVM is newer than ours.
        """
        import shutil

        named = os.environ.get(self.variable)
        found = next((path for path in map(shutil.which, [named] if named else self.programs) if path), None)
        folder = Path(os.environ.get(self.home[0]) or self.home[1], "bin").expanduser() if self.home else None
        if found is None and not named and folder is not None:
            other = folder / self.programs[0]
            found = str(other) if os.access(other, os.X_OK) else None
        if found is None:
            names = " and ".join(f"`{name}`" for name in self.programs)
            where = f" and in {folder}" if folder is not None else ""
            because = f"{names} was looked for on the PATH{where}, and {self.variable} is not set"
            missing = f"the compiler `{named}` was not found" if named else f"no {self.language} compiler was found"
            raise LoadError(missing, because=f"it is named by {self.variable}" if named else because,
                            fix=f"{self.install}   or   export {self.variable}=/path/to/{self.programs[-1]}")
        return found, _answer(self, found)


@cache
def _answer(tool: Tool, program: str) -> str:
    said = run_compiler([program, tool.asks]).stdout
    number = re.search(tool.says, said, re.M)
    if number is None or int(number[1]) > NEWEST_LLVM:
        first = said.strip().splitlines()[0] if said.strip() else "nothing"
        raise LoadError(f"`{program}` is not a {tool.kind} of LLVM <= {NEWEST_LLVM}",
                        because=f"it says: {number[0] if number else first}",
                        fix=f"export {tool.variable}=/path/to/an/older/{tool.programs[-1]}   or   {tool.older}")
    return said


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler: the command for each language, and a text that identifies its version.

    `bitcode`: IR comes as bitcode, which LLVM upgrades when it reads it; the text of an older LLVM it might not read.
    """

    name: str
    command: Mapping[str, tuple[str, ...]]
    identity: str
    flags: tuple[str, ...]
    bitcode: bool = False

    @property
    def zig(self) -> bool:
        """It is `zig cc`, which brings libc++ as source."""
        return self.flags == _ZIG_FLAGS


_Row = TypeVar("_Row")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chose for compilation; `flags` come last on the command line and win. `opt`: the level, O2 where
    it is None. `passes`: whether the compiler runs the passes of that level. `digests`: of the headers that have been
    read for the same user (sources of one library share them)."""

    include: tuple[str, ...] = ()
    define: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()
    opt: str | None = None
    passes: bool = True
    digests: dict[str, str] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compilation:
    """LLVM IR of one source, the compiler's warnings, and the files it read."""

    text: str
    warnings: str
    dependencies: tuple[str, ...]
    cached: bool


def find_compiler() -> Compiler:
    """The compiler that the environment gives. Raises LoadError when there is none or it is too new."""
    named = os.environ.get("IRGRAD_CC")
    if named:
        return _named_compiler(named)
    zig = wheel()
    if zig is not None:
        status = zig.stat()
        command = {"c": (str(zig), "cc"), "c++": (str(zig), "c++")}
        return Compiler("ziglang", command, f"zig {status.st_size} {status.st_mtime_ns}", _ZIG_FLAGS)
    import shutil

    clang = shutil.which("clang")
    if clang:
        return _named_compiler(clang)
    raise LoadError(
        "no C compiler was found",
        because="neither the `ziglang` wheel nor a `clang` on PATH is installed, and IRGRAD_CC is not set",
        fix="pip install 'ziglang>=0.17,<0.18'   or   export IRGRAD_CC=/path/to/clang",
    )


def wheel() -> Path | None:
    """The program of the `ziglang` wheel, None where it is not installed."""
    spec = util.find_spec("ziglang")
    programs = (Path(folder, "zig") for folder in (spec.submodule_search_locations if spec else None) or ())
    return next((zig for zig in programs if os.access(zig, os.X_OK)), None)


@cache
def _named_compiler(named: str) -> Compiler:
    import shlex
    import shutil

    words = shlex.split(named)
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise LoadError(
            f"the compiler `{named}` was not found",
            because="it is named by IRGRAD_CC",
            fix="unset IRGRAD_CC   or   set it to a clang of LLVM <= 22",
        )
    command = (program, *words[1:])
    version = run_compiler([*command, "--version"]).stdout
    found = re.search(r"clang version (\d+)", version)
    if not found or int(found[1]) > NEWEST_LLVM:
        raise LoadError(
            f"`{named}` is not a clang of LLVM <= {NEWEST_LLVM}",
            because=f"it says: {version.splitlines()[0] if version else 'nothing'}",
            fix="unset IRGRAD_CC to use the bundled compiler   or   set it to an older clang",
        )
    zig = "zig" in Path(program).name and len(words) > 1
    by_language = {"c": command, "c++": (program, "c++", *words[2:]) if zig else command}
    return Compiler(named, by_language, version, _ZIG_FLAGS if zig else (), bitcode=not zig)


def at_once(rows: Sequence[_Row], make: Callable[[_Row], _Made]) -> list[_Made]:
    """`make` of each row, in order, as many at a time as this process has cores: compilers are processes of their own.
    Raises what the first of the rows raises that fails."""
    if len(rows) < 2:
        return [make(row) for row in rows]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(rows), len(os.sched_getaffinity(0)))) as pool:
        waiting = [pool.submit(make, row) for row in rows]
        try:
            return [made.result() for made in waiting]
        finally:
            for made in waiting:
                made.cancel()


def compile_source(path: Path, language: str, options: Options, *, display: str | None = None) -> Compilation:
    """Compile one file of `language` ("c" or "c++") to LLVM IR text.

    `display` names the source in messages (a string of C has no file of its own). Raises CompileError with the
    compiler's own diagnostics.
    """
    compiler = find_compiler()
    command = _command(compiler, language, options)
    store = default_cache()
    key = fingerprint("ir-6", compiler.identity, display or str(path.resolve()), str(Path.cwd()), path.read_bytes(),
                      language, *command, *_environment())
    hit = cached_compilation(store.get("ir", key), options.digests)
    if hit is not None:
        return hit
    from irgrad.engine.support.progress import Progress
    from irgrad.engine.support.scratch import scratch_folder
    from irgrad.interop.loaders.link import read_bitcode

    with scratch_folder("cc") as scratch, Progress(f"compiling `{display or path}`"):
        output = Path(scratch, "out.bc" if compiler.bitcode else "out.ll")
        unit = str(_with_suffix(path, language, Path(scratch)))
        unit = f"./{unit}" if unit.startswith("-") else unit
        words = [unit, "-c" if compiler.bitcode else "-S", "-emit-llvm", "-o", str(output)]
        done = run_compiler([*command, *words], scratch)
        if done.returncode != 0 and language == "c++" and _MISSING.search(done.stderr):
            again = run_compiler([*command, *_BY_WAY, *words], scratch)
            done = again if again.returncode == 0 else done
        needs, messages = _split_report(done.stderr, {unit, str(path), str(path.resolve())})
        needs = tuple(sorted({*needs, *_precompiled(options.flags)}))
        if done.returncode != 0 or not output.exists():
            narrow = next((flag for flag in options.flags if flag in _NARROW), None)
            if narrow is not None:
                raise LoadError(f"`{display or path}` is compiled for another machine", which=f"`{narrow}`",
                                because="addresses of kernels and programs have 64 bits; this machine's headers are "
                                "for those", fix=f"leave out {narrow}")  # fmt: skip
            raise CompileError(
                f"`{display or path}` does not compile",
                because=f"{compiler.name} says:\n{messages or f'exit status {done.returncode}'}",
                fix="mend the source   or   pass include=[...], define={...}, flags=[...] to load()",
            )
        text = read_bitcode(output) if compiler.bitcode else output.read_text("utf-8", "surrogateescape")
        if "@llvm.coro." in text and run_compiler([*_with_passes(command), *words], scratch).returncode == 0:
            text = read_bitcode(output) if compiler.bitcode else output.read_text("utf-8", "surrogateescape")
        text = text.replace(unit, display or str(path))
        text = weak_types(text) if _unoptimised(options) else text
    result = Compilation(text, messages, needs, cached=False)
    store.put("ir", key, packed(result))
    return result


_LEVEL = re.compile(r"-O(|[0-3]|s|z|fast|g)")
_NARROW = frozenset(("-m16", "-m32", "-mx32"))


def precompile(path: Path, language: str, options: Options, output: Path) -> Compilation:
    """Write a precompiled header, for sources that are compiled with the same options: its `text` is empty.

    Raises CompileError with the compiler's diagnostics.
    """
    from irgrad.engine.support.scratch import scratch_folder

    compiler = find_compiler()
    with scratch_folder("pch") as scratch:
        made = Path(scratch, "header.pch")
        words = ["-x", f"{language}-header", str(path), "-o", str(made)]
        done = run_compiler([*_command(compiler, language, options), *words], scratch)
        needs, messages = _split_report(done.stderr, {str(path), str(path.resolve())})
        if done.returncode != 0 or not made.exists():
            raise CompileError(f"`{path}` does not compile",
                               because=f"{compiler.name} says:\n{messages or f'exit status {done.returncode}'}",
                               fix="mend the header   or   pass the options of its sources")
        output.write_bytes(made.read_bytes())
    return Compilation("", messages, needs, cached=False)


def _precompiled(flags: Sequence[str]) -> set[str]:
    """The precompiled headers that a command reads: those it names, and those beside the headers it names."""
    words = [word for word in flags if word != "-Xclang"]
    named = {after for word, after in itertools.pairwise(words) if word == "-include-pch"}
    headers = {after for word, after in itertools.pairwise(words) if word == "-include"}
    headers |= {word[len("-include") :] for word in words if word.startswith("-include") and word != "-include-pch"}
    beside = {f"{header}{suffix}" for header in headers - {""} for suffix in (".pch", ".gch")}
    return {name for name in named | beside if Path(name).is_file()}


def _command(compiler: Compiler, language: str, options: Options) -> list[str]:
    command = [*compiler.command[language], *_FLAGS, *compiler.flags]
    command += _optimisation(options)
    command += [f"-I{folder}" for folder in options.include]
    command += [f"-D{name}={value}" for name, value in options.define]
    flags = [flag for flag in options.flags if not _LEVEL.fullmatch(flag)] if _unoptimised(options) else options.flags
    command += zig_words(flags, language) if compiler.zig else flags
    return command + own_headers(language)


def own_headers(language: str) -> list[str]:
    """Where the headers are that come with irgrad: `<omp.h>` and `<enzyme/enzyme>` behind all others, a user's own come
    first; those that complete headers of libc++ before it (`-isystem` would come behind it)."""
    behind = [_OWN_HEADERS / "openmp", *([_OWN_HEADERS] if language == "c++" else [])]
    before = [f"-I{_OWN_HEADERS / 'libcxx'}"] if language == "c++" else []
    return before + [word for folder in behind for word in ("-idirafter", str(folder))]


_CPU_ALIASES = {"core_avx2": "haswell", "core_avx_i": "ivybridge", "corei7_avx": "sandybridge"}


def zig_words(words: Sequence[str], language: str) -> list[str]:
    """Words of a compiler's command line as zig spells them: it takes hyphens in the name of a CPU for features that
    are left out, and knows no -mtune."""
    found = []
    for word in standard_library(words, language):
        option, _, value = word.partition("=")
        if option in ("-march", "-mcpu"):
            name = value.replace("-", "_")
            found.append(f"{option}={_CPU_ALIASES.get(name, name)}")
        elif option != "-mtune":
            found.append(word)
    return found


def standard_library(flags: Sequence[str], language: str) -> list[str]:
    """The flags, `-stdlib=libstdc++` as the folders of its headers: zig knows libc++ only."""
    kept = [flag for flag in flags if not flag.startswith("-stdlib=")]
    named = [flag for flag in flags if flag.startswith("-stdlib=")]
    if language != "c++" or named[-1:] != ["-stdlib=libstdc++"]:
        return kept
    folders = libstdcxx_headers()
    if not folders:
        raise LoadError("libstdc++ is not installed",
                        because=f"`{named[-1]}` is given, and {_LIBSTDCXX} has no headers",
                        fix="install the system's C++ compiler   or   leave it out, for libc++")
    return [*kept, "-nostdinc++", *(f"-I{folder}" for folder in folders)]  # -isystem would come behind those of C


def libstdcxx_headers() -> list[str]:
    """Folders of the newest libstdc++ whose headers the system has; empty where it has none."""
    versions = [row for row in _LIBSTDCXX.glob("*") if row.name.isdigit() and (row / "vector").is_file()]
    if not versions:
        return []
    newest = max(versions, key=lambda row: int(row.name))
    machine = sorted(row.parent.parent for row in _LIBSTDCXX.parent.glob(f"*/c++/{newest.name}/bits/c++config.h"))
    inside = sorted(row.parent.parent for row in newest.glob("*/bits/c++config.h"))
    return [str(newest), *(str(row) for row in (machine + inside)[:1]), str(newest / "backward")]


def _unoptimised(options: Options) -> bool:
    """Whether the level is O0: the last one among the flags, which come behind `opt`."""
    levels = [*([options.opt] if options.opt is not None else []), *filter(_LEVEL.fullmatch, options.flags)]
    return bool(levels) and levels[-1].lstrip("-") in ("O0", "0")


_NODE = re.compile(r'^!(\d+) = !\{(?:!(\d+), !(\d+), i64|!"(p\d+ )?_ZTS(?:NK?St|St))', re.M)
_TAG = re.compile(r", !tbaa !(\d+)")


def weak_types(text: str) -> str:
    """A module compiled without optimisation, in which types of accesses are hints (`tbaa.TYPE_TAG`): its source may
    break the rules of aliasing. Those of members of the standard library's own structures, and of pointers to these,
    are kept: no other code takes them for something else, and the end of a tree lies in its head (libc++), where the
    types alone tell a link from the size."""
    from irgrad.engine.analyses.memory.tbaa import TYPE_TAG

    nodes = _NODE.findall(text)
    library = {node for node, base, _, pointer in nodes if not base and not pointer}
    pointers = {node for node, *_, pointer in nodes if pointer}
    kept = {node for node, base, access, _ in nodes if (base in library and base != access) or access in pointers}
    return _TAG.sub(lambda tag: tag[0] if tag[1] in kept else f", !{TYPE_TAG} !{tag[1]}", text)


def _optimisation(options: Options) -> list[str]:
    """`-O2` without its passes, unless the user asks for a level: then that level's passes run, if they are wanted.

    O0 has none. It is asked for as O1 without passes, because only then the compiler says what type an access has.
    Nor has OpenMP: clang promises of arrays that a thread has for itself what does not hold, and would make vectors of
    it (native programs of clang 22 are wrong there) before the promise is taken off (`grids/worksharing.py`).
    """
    none = ["-Xclang", "-disable-llvm-passes"]
    if _unoptimised(options):
        return ["-O1", "-U__OPTIMIZE__", *none]
    passes = options.passes and not any(flag.startswith("-fopenmp") for flag in options.flags)
    if options.opt is not None:
        level = options.opt.lstrip("-").removeprefix("O")
        return [f"-O{level}", *([] if passes else none)]
    if any(_LEVEL.fullmatch(flag) for flag in options.flags):
        return [] if passes else none
    return ["-O2", *none]


def _with_passes(command: Sequence[str]) -> list[str]:
    """The command with which the compiler makes functions of coroutines, which takes its passes."""
    at = command.index("-disable-llvm-passes") if "-disable-llvm-passes" in command else 0
    words = [*command[: at - 1], *command[at + 1 :]] if at else list(command)
    return [*words, "-fno-vectorize", "-fno-slp-vectorize"]


def _with_suffix(path: Path, language: str, scratch: Path) -> Path:
    """`path`, or a file of the language's suffix that includes it: zig writes no IR when told the language by -x."""
    if path.suffix in _SUFFIXES[language]:
        return path
    wrapper = scratch / f"source{_SUFFIXES[language][0]}"
    wrapper.write_text(f'#include "{path.resolve()}"\n', encoding="utf-8")
    return wrapper


def _environment() -> list[str]:
    """Variables by which clang finds headers."""
    names = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "SDKROOT")
    return [f"{name}={os.environ[name]}" for name in names if name in os.environ]


def run_compiler(
    command: Sequence[str], zig_cache: str | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    import subprocess

    seconds = limit("SECONDS")
    environment = {**os.environ, "LC_ALL": "C", **(environment or {})}
    if zig_cache is not None:
        # zig answers from its own cache without repeating the messages, and wants a folder it may write to.
        environment["ZIG_GLOBAL_CACHE_DIR"] = environment["ZIG_LOCAL_CACHE_DIR"] = zig_cache
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              errors="replace", timeout=min(seconds, 1e6), env=environment)
    except subprocess.TimeoutExpired:
        raise LimitExceeded("the compiler takes too long", because=f"it has run for more than {seconds:g} s",
                            fix="compile to .ll yourself and load that, or set IRGRAD_MAX_SECONDS to more") from None
    except OSError as error:
        raise LoadError(f"the compiler `{command[0]}` cannot be started", because=str(error),
                        fix="set IRGRAD_CC to a clang of LLVM <= 22") from None


def _split_report(report: str, own: set[str]) -> tuple[tuple[str, ...], str]:
    """Part clang's standard error under `-H` into the headers it read (`.. path` lines) and its messages."""
    headers = {found[1] for line in report.splitlines() if (found := _HEADER_LINE.match(line))}
    messages = [line for line in report.splitlines() if not _HEADER_LINE.match(line)]
    return tuple(sorted(headers - own)), "\n".join(messages).strip()


def _content_hash(path: str) -> str:
    try:
        return fingerprint(Path(path).read_bytes())
    except OSError:
        return "missing"


def packed(made: Compilation) -> bytes:
    """A compilation as bytes: a line for each header with its digest, warnings, text. (`json` is slow to import.)"""
    head = "\n".join(f"{_content_hash(need)} {need}" for need in made.dependencies)
    return "\0".join((head, made.warnings, made.text)).encode("utf-8", "surrogateescape")


def cached_compilation(data: bytes | None, digests: dict[str, str] | None = None) -> Compilation | None:
    """A cached compilation whose headers are all unchanged; digests: of headers, those that are read are added."""
    if data is None:
        return None
    head, warnings, text = data.decode("utf-8", "surrogateescape").split("\0", 2)
    needs = [row.partition(" ")[::2] for row in head.splitlines()]
    known = {} if digests is None else digests
    for digest, path in needs:
        if path not in known:
            known[path] = _content_hash(path)
        if known[path] != digest:
            return None
    return Compilation(text, warnings, tuple(path for _, path in needs), cached=True)
