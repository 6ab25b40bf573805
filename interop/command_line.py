"""The command line of `irgrad run` and `irgrad cc`, taken apart as a compiler driver takes it: options in any order.

What this driver does not need to understand goes on to the compiler or to the linker as it stands, so that build
systems may set CC and CXX to `irgrad cc`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from irgrad.interop.loaders import languages
from irgrad.rules.errors import LoadError

__all__ = ["Command", "Source", "read_command"]

LANGUAGES = {suffix: language.name for language in languages.LANGUAGES for suffix in language.suffixes} | {
    ".i": "c", ".cp": "c++", ".CPP": "c++", ".ii": "c++",
}  # fmt: skip
_HEADERS = {".h": "c", ".hh": "c++", ".hpp": "c++", ".hxx": "c++", ".H": "c++"}
_SPOKEN = {"c": "c", "c++": "c++", "cpp-output": "c", "c++-cpp-output": "c++", "ir": "ll", "none": ""}
_QUESTIONS = frozenset(("--version", "-dumpversion", "-dumpmachine", "-###", "-E", "-M", "-MM"))
_ASSEMBLY = (".s", ".S", ".sx")
# Options whose value is the next word, by who reads them.
_COMPILED_VALUES = frozenset(
    """-I -D -U -include -imacros -isystem -iquote -idirafter -iprefix -iwithprefix -iwithprefixbefore -isysroot -Xclang
    -Xpreprocessor -mllvm --param -working-directory -ivfsoverlay -include-pch""".split()
)
_LINKED_VALUES = frozenset(("-L", "-l", "-Xlinker", "-z", "-u", "-T", "-e", "-rpath", "-soname"))
_BOTH_VALUES = frozenset(("-target", "-arch", "--sysroot", "-B"))
_IGNORED_VALUES = frozenset(("-MF", "-MT", "-MQ", "-Xassembler"))
_LINKED = re.compile(
    r"-Wl,|-L|-l|-static(-pie|-libgcc|-libstdc\+\+)?$|-rdynamic$|-s$|-no-?pie$|-pie$|-nostdlib$|-nodefaultlibs$"
    r"|-nostartfiles$|-fuse-ld=|-Bstatic$|-Bdynamic$|-r$|--sysroot=|-B."
)
_IGNORED = re.compile(r"-g[-\w=]*$|-Wa,|-pipe$|-save-temps")  # lines are kept without -g, more than them never
_C_ONLY = re.compile(r"-std=(c|gnu|iso9899:)\d|-ansi$")
_CPP_ONLY = re.compile(r"-std=(c|gnu)\+\+|-stdlib=|-nostdinc\+\+$|-fno-rtti$|-frtti$")
_INSTRUMENTS = re.compile(
    r"-fsanitize|-f(cs-)?profile-(instr-)?generate|-fprofile-arcs$|-ftest-coverage$|--coverage$|-fcoverage-mapping$"
    r"|-fxray-instrument$|-finstrument-functions|-pg?$|-mfentry$"
)
_FEATURE = re.compile(r"-m(no-)?([a-z][a-z0-9.-]*)")
_MOST_NESTED = 16


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is compiled: `path` ("-": standard input) and the name of its language."""

    path: str
    language: str


@dataclass(slots=True)
class Command:
    """A command line, taken apart. `link` goes to the linker, in its order.

    form:     what is written, as a suffix: ".o" (-c), ".s" (-S), ".so" (-shared), ".ll" or ".bc" (-emit-llvm);
              "" is a program
    assembly: files of assembly, which are among `link` as well
    question: the compiler answers itself (`--version`, `-E`, `-M`, ...); `words` is the whole command line
    header:   the sources are headers, to be precompiled
    contents: what was read from standard input, pipes and devices
    rules:    Python modules and files that define rules
    cpu:      "native" where options ask for it, else "": the compiler's IR says which, without options the baseline
    features: "+avx2", "-fma", ...: what options add to this CPU or take away
    preopt:   what is differentiated is optimised first
    tape_memory: bytes for the tapes and states of loops, as text; checkpoint: choices for loops, by their places
    depends:  the file of make's rule that -MD and -MMD ask for, by the words that asked
    """

    words: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    link: list[str] = field(default_factory=list)
    assembly: list[str] = field(default_factory=list)
    opt: str | None = None
    output: str = ""
    form: str = ""
    cpu: str = ""
    features: list[str] = field(default_factory=list)
    question: bool = False
    check_only: bool = False
    header: bool = False
    lazy: bool = False
    preopt: bool = True
    tape_memory: str = ""
    checkpoint: list[tuple[str, str]] = field(default_factory=list)
    verbose: bool = False
    depends: dict[str, str] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    args: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def read_once(self, path: str, shown: str, read: Callable[[], bytes]) -> bytes:
        """The source on standard input (`-`), in a pipe or a device, which can be read once only."""
        if path not in self.contents:
            self.contents[path] = f'#line 1 "{shown}"\n'.encode() + read()
        return self.contents[path]

    def take_object(self, file: str, made: str) -> None:
        """Link the object that was made of a file of assembly in its place."""
        self.link = [made if word == file else word for word in self.link]

    def link_to(self, words: list[str]) -> None:
        """The linker gets these words."""
        self.link = words

    def make_program(self) -> None:
        """A program is written, under a name that the driver chooses."""
        self.form = self.output = ""

    @property
    def cpp(self) -> bool:
        """Some source is C++."""
        return any(source.language == "c++" for source in self.sources)

    @property
    def libstdcxx(self) -> bool:
        """C++ is compiled with the system's libstdc++ in place of the compiler's libc++."""
        named = [flag for flag in self.flags if flag.startswith("-stdlib=")]
        return named[-1:] == ["-stdlib=libstdc++"]

    def flags_for(self, language: str) -> list[str]:
        """The compiler's flags, without those that only the other language has."""
        other = _CPP_ONLY if language == "c" else _C_ONLY
        return [flag for flag in self.flags if not other.match(flag)]


def read_command(words: Sequence[str], *, run: bool = False) -> Command:
    """Take a command line apart. `run`: what follows `--` are the program's arguments, otherwise files.

    Raises LoadError for what irgrad cannot do (-fsanitize, ...), and where there is nothing to compile or to link.
    """
    rest = _expanded(words)
    command = Command()
    files: list[str] = []
    if "--" in rest:
        at = rest.index("--")
        rest, tail = rest[:at], rest[at + 1 :]
        command.args, files = (tail, []) if run else ([], tail)
    command.words = [*rest, *files]
    reader = _Reader(command, rest)
    while rest:
        reader.word(rest.pop(0))
    for file in files:
        reader.file(file)
    if reader.llvm:
        command.form = ".ll" if command.form == ".s" else ".bc"
    alone = not command.sources and not command.link
    if alone and (command.verbose or any(word.startswith("-print-") for word in command.words)):
        command.question = True
    if alone and not command.question:
        raise LoadError("there is no source file", because=f"known suffixes are {' '.join(LANGUAGES)}",
                        fix="irgrad run prog.c -lm -- args")
    return command


def _expanded(words: Sequence[str], depth: int = 0) -> list[str]:
    """The words, those of response files (`@FILE`) in their place."""
    found: list[str] = []
    for number, word in enumerate(words):
        if word == "--":
            return [*found, *words[number:]]
        path = Path(word[1:])
        if word[:1] == "@" and len(word) > 1 and depth < _MOST_NESTED and path.is_file():
            found += _expanded(shlex.split(path.read_text(encoding="utf-8")), depth + 1)
        else:
            found.append(word)
    return found


class _Reader:
    """Reads one command line, word by word; `rest` is what stands behind the word."""

    def __init__(self, command: Command, rest: list[str]) -> None:
        self.command = command
        self.rest = rest
        self.language = ""
        self.llvm = False

    def word(self, word: str) -> None:
        """One option or file, with its value."""
        command = self.command
        if word == "-" or not word.startswith("-"):
            self.file(word)
        elif word in _QUESTIONS:
            command.question = True
        elif word == "-v":
            command.verbose = True
        elif self._form(word) or self._depends(word) or self._value(word):
            pass
        elif _INSTRUMENTS.match(word) and word != "-fsanitize=":
            what = "checks" if word.startswith("-fsanitize") else "counters"
            raise LoadError(f"`{word}` is not supported",
                            because=f"its {what} would be differentiated with the program, or be left out in silence",
                            fix="build without it, or with another compiler")
        elif word == "-fopenmp" or word.startswith("-fopenmp="):
            command.flags.append("-fopenmp")
        elif word.startswith("-O"):
            command.opt = {"-O": "O1", "-Og": "O1"}.get(word, word[1:])
        elif word == "-pthread":
            command.link.append(word)
            command.flags.append(word)
        elif _LINKED.match(word):
            command.link.append(word)
        elif not _IGNORED.match(word):
            if word.startswith(("-march=", "-mcpu=")):
                command.cpu = "native" if word.endswith("=native") else ""
            elif feature := _FEATURE.fullmatch(word):
                command.features.append(f"{'-' if feature[1] else '+'}{feature[2]}")
            command.flags.append(word)

    def file(self, word: str) -> None:
        """A source, or what the linker takes: objects, archives, libraries, scripts, assembly."""
        command, suffix = self.command, Path(word).suffix
        language = self.language or LANGUAGES.get(suffix, "")
        if word == "-" and not language:
            raise LoadError("the language of standard input is not known", fix="irgrad cc -x c -   or   -x c++ -")
        if language:
            command.sources.append(Source(word, language))
        elif suffix in _HEADERS:
            command.sources.append(Source(word, _HEADERS[suffix]))
            command.header = True
        elif suffix in (".o", ".obj") and _is_bitcode(word):
            command.sources.append(Source(word, "bc"))
        else:
            command.link.append(word)
            if suffix in _ASSEMBLY:
                command.assembly.append(word)

    def _form(self, word: str) -> bool:
        """Options that say what is written."""
        command = self.command
        if word == "-c":
            command.form = command.form or ".o"
        elif word == "-S":
            command.form = ".s"
        elif word == "-emit-llvm":
            self.llvm = True
        elif word == "-shared":
            command.form = ".so"
        elif word == "-fsyntax-only":
            command.check_only = True
        elif word == "-flto" or word.startswith("-flto="):
            command.lazy = True
        elif word == "--no-preopt":
            command.preopt = False
        elif word.startswith(("--tape-memory=", "--checkpoint=")):
            self._states(word)
        elif word == "--rules" and self.rest:
            command.rules.append(self.rest.pop(0))
        elif word == "-o" and self.rest:
            command.output = self.rest.pop(0)
        elif word.startswith("-o") and len(word) > 2 and not word.startswith("-objc"):
            command.output = word[2:]
        else:
            return False
        return True

    def _states(self, word: str) -> None:
        """`--tape-memory=512MB`, `--checkpoint=solve.c:41=32`."""
        option, _, value = word.partition("=")
        place, _, choice = value.rpartition("=")
        if option == "--tape-memory":
            self.command.tape_memory = value
        else:
            self.command.checkpoint.append((place, choice))

    def _depends(self, word: str) -> bool:
        """Options for make's rules beside the object file."""
        command = self.command
        if word.startswith("-Wp,-M"):
            kind, _, file = word.removeprefix("-Wp,").partition(",")
            command.depends[kind] = ""
            if file:
                command.depends["-MF"] = file
        elif word in ("-MD", "-MMD", "-MP"):
            command.depends[word] = ""
        elif word in ("-MF", "-MT", "-MQ", "-MJ") and self.rest:
            value = self.rest.pop(0)
            command.depends[word] = value
            if word in ("-MT", "-MQ"):
                command.targets.append(value if word == "-MT" else value.replace("$", "$$"))
        elif word.startswith("-MF"):
            command.depends["-MF"] = word[3:]
        else:
            return False
        return True

    def _value(self, word: str) -> bool:
        """Options whose value is the next word."""
        command = self.command
        if word == "-x" or (word.startswith("-x") and word[2:].removesuffix("-header") in _SPOKEN):
            spoken = word[2:] or (self.rest.pop(0) if self.rest else "")
            plain = spoken.removesuffix("-header")
            if plain not in (_SPOKEN if plain == spoken else ("c", "c++")):
                raise LoadError(f"`-x {spoken}` is not supported", because=f"languages are {' '.join(_SPOKEN)}",
                                fix="-x c or -x c++")
            self.language = _SPOKEN[plain]
            command.header = plain != spoken
            return True
        if not self.rest:
            return False
        if word in ("-L", "-l"):
            command.link.append(word + self.rest.pop(0))
        elif word in _COMPILED_VALUES:
            command.flags += [word, self.rest.pop(0)]
        elif word in _LINKED_VALUES:
            command.link += [word, self.rest.pop(0)]
        elif word in _BOTH_VALUES:
            pair = [word, self.rest.pop(0)]
            command.flags += pair
            command.link += pair
        elif word in _IGNORED_VALUES:
            self.rest.pop(0)
        else:
            return False
        return True


def _is_bitcode(path: str) -> bool:
    """An object file of -flto: LLVM's bitcode, which is differentiated when the program is linked."""
    try:
        with Path(path).open("rb") as file:
            return file.read(4) in (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
    except OSError:
        return False
