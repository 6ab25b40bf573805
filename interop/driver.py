"""`irgrad run` and `irgrad cc`: whole C and C++ programs that call the derivative themselves.

The command line is that of a compiler driver. The program is compiled to IR, its calls `__enzyme_autodiff(f, ...)` are
lowered, and what comes out is an object file, which the system's linker makes a program of. A file without such calls
takes the same way, so that a build system may compile everything with one compiler.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from platform import libc_ver
from typing import TYPE_CHECKING

from irgrad.engine.ir.text.outline import outline
from irgrad.engine.support.scratch import scratch_folder
from irgrad.interop.command_line import Command, Source, read_command
from irgrad.rules.errors import CompileError, LoadError

if TYPE_CHECKING:
    from irgrad.interop.loaders.compiler import Compilation, Options

__all__ = ["CC_USAGE", "RUN_USAGE", "build", "compiled", "main_cc", "main_run", "program_text"]

RUN_USAGE = """usage: irgrad run [-O0..-O3] [-I DIR] [-D NAME[=VALUE]] [-l LIB] [-L DIR] [-std=...] [--rules FILE.py]
                  [--tape-memory=512MB] [--checkpoint=FILE:LINE=CHOICE] [--no-preopt] FILE... [-- ARGS]
--tape-memory bounds the memory of long loops, --checkpoint says how one of them keeps states in place of a tape.
--no-preopt differentiates before the program is optimised: slower, for comparing."""
CC_USAGE = """usage: irgrad cc [options of a C compiler] FILE... [-o OUT]
Writes a program; with -c .o, with -S .s, with -shared .so, with -S -emit-llvm .ll, or what the suffix of OUT says.
Objects of -c -flto are differentiated when they are linked, so that a derivative may cross files."""
_LIBRARY_ALIAS = re.compile(r'^(@_ZNK?St[\w$.]+ = )(?:\w+ )*?((?:unnamed_addr )?alias )', re.M)
_REGISTERS = re.compile(rb"__enzyme_(?:register|inactive|function_like|allocation_like)")
_KEEP_STATICS = "-fkeep-persistent-storage-variables"
# Attributes of functions that clang does not know become annotations, which it hands on.
_ATTRIBUTES = (
    *(f'-D{word}=annotate("{word}")' for word in (
        "enzyme_inactive", "enzyme_inactive_noblock", "enzyme_shouldrecompute",  # enzyme_nofree is a variable too
        "enzyme_no_escaping_allocation", "enzyme_sparse_accumulate")),
    '-Denzyme_function_like(name)=annotate("enzyme_function_like=" name)',
)
_SYSTEM_HEADERS = ("/usr/include/", "/usr/lib/", "/usr/local/include/")
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def compiled(command: Command, sources: Sequence[Source] | None = None, *, whole: bool = False) -> str:
    """The IR of the program, its calls of the notation lowered; `whole`: it becomes an executable."""
    text, own = _module(command, command.sources if sources is None else sources)
    text = _without_absent(command, text, whole=whole)
    return _lowered(text, whole=whole, cpp=own, command=command, settled=_settled(command, text, whole=whole))


def _settled(command: Command, text: str, *, whole: bool) -> frozenset[str]:
    """Functions that might be replaced when the program is linked, and are not: nothing else there defines them."""
    from irgrad.engine.enzyme.interposable import interposable
    from irgrad.interop.archives import archives_of
    from irgrad.interop.linking import defined

    names = interposable(text) if whole else frozenset()
    if not names:
        return names
    objects = [word for word in command.link if word.endswith((".o", ".obj")) and not word.startswith("-")]
    others = [*objects, *map(str, archives_of(command.link))]
    found = defined(others) if others else frozenset()
    return frozenset() if found is None else names - found


def _without_absent(command: Command, text: str, *, whole: bool) -> str:
    """The program in which weak symbols that nothing defines are null; `whole`: all that defines symbols is here."""
    if not whole or command.assembly or "extern_weak" not in text:
        return text
    from irgrad.engine.ir.text.load_time import drop_weak, weak_symbols
    from irgrad.interop.linking import absent

    return drop_weak(text, absent(weak_symbols(text), command.link))


def _lowered(
    text: str, *, whole: bool, cpp: bool, command: Command, settled: frozenset[str], form: str = "",
    said: list[str] | None = None,
) -> str:  # fmt: skip
    from irgrad.engine.enzyme.lower import lower
    from irgrad.engine.kernel.checkpoints import checkpoints, chosen
    from irgrad.engine.pipeline.derivatives import link_runtime
    from irgrad.engine.support.progress import Progress
    from irgrad.engine.threads.programs import linked_team, program_on_threads, worksharing_functions
    from irgrad.interop.loaders import found_memory

    with Progress("differentiating"), _told(said):
        states = chosen(checkpoints(dict(command.checkpoint), command.tape_memory or None))
        team = form not in (".ll", ".bc")  # which may be differentiated elsewhere
        shared = worksharing_functions(text) if team else []
        lowered = lower(text, whole=whole, preopt=command.preopt, settled=settled, checkpoint=states, team=team)
        lowered = found_memory.complete(program_on_threads(lowered, shared))
        text = link_runtime(linked_team(lowered), whole=True)
    # Functions of the C++ library that the loader compiled for the program are the program's own.
    return _LIBRARY_ALIAS.sub(r"\1internal \2", text) if cpp else text


@contextlib.contextmanager
def _told(said: list[str] | None = None) -> Iterator[None]:
    """Prints warnings of the engine as a compiler prints its own. said: they are put there as they are printed"""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            yield
        finally:
            lines = [f"irgrad: warning: {message}\n" for message in dict.fromkeys(str(w.message) for w in found)]
            sys.stderr.writelines(lines)
            if said is not None:
                said += lines


def _module(command: Command, sources: Sequence[Source], depends: Path | None = None) -> tuple[str, bool]:
    """The linked IR of some sources, and whether C++ is among them; writes make's rule where it is asked for."""
    from irgrad.engine.enzyme.registered import speaks
    from irgrad.interop.archives import archives_of, wanted, whole
    from irgrad.interop.hints import import_rules
    from irgrad.interop.linking import wrapped, wraps
    from irgrad.interop.loaders.compiler import at_once
    from irgrad.interop.loaders.libcxx import complete
    from irgrad.interop.loaders.link import link_inputs
    from irgrad.interop.loaders.loading import check_target
    from irgrad.interop.loaders.openmp import complete as with_openmp

    import_rules(command.rules)
    parts = at_once(sources, lambda source: _compilation(command, source))
    for part, source in zip(parts, sources, strict=True):
        check_target(part.text, source.path)
    files = [*(source.path for source in sources), *(name for part in parts for name in part.dependencies)]
    if command.rules or any(speaks(part.text) for part in parts) or any(map(_registers, files)):
        # What is registered is looked up before anything is inlined or dropped.
        parts = at_once(sources, lambda source: _compilation(command, source, (_KEEP_STATICS,)))
    for part in parts:
        if part.warnings:
            print(part.warnings, file=sys.stderr)
    if depends is not None and "-MJ" in command.depends:
        _write_database(command, sources, depends)
    if depends is not None and any(word in command.depends for word in ("-MD", "-MMD")):
        _write_rule(command, sources, parts, depends)
    wrapping = wraps(command.link)
    texts, names = [wrapped(part.text, wrapping) for part in parts], [source.path for source in sources]
    trusted = [_trusted(source.language) for source in sources]  # the others are checked
    entire = whole(command.link) if command.form in ("", ".so") else []
    libraries = [*archives_of(command.link), *entire] if command.form in ("", ".so") else []
    roots = () if sources or command.form else ("main",)
    for name, text in wanted(texts, list(dict.fromkeys(libraries)), roots, entire) if libraries else ():
        names.append(name)
        texts.append(wrapped(text, wrapping))
        trusted.append(False)
    text = texts[0] if trusted == [True] else link_inputs(texts, names, trusted)
    cpp = any(source.language == "c++" for source in sources) or outline(text).has_prefix("_Z")
    with _told():
        return with_openmp(complete(text) if cpp else text, program=True), cpp


def _trusted(language: str) -> bool:
    """Whether a compiler that irgrad runs writes the IR of a language."""
    from irgrad.interop.loaders.languages import by_name

    spoken = by_name(language)
    return spoken is not None and spoken.trusted


def _registers(name: str) -> bool:
    """Whether a source or header may register something, perhaps in a static variable that the compiler leaves out."""
    if name.startswith(_SYSTEM_HEADERS) or "/ziglang/" in name or name.endswith((".ll", ".bc", ".o")):
        return False
    path = Path(name)
    return path.is_file() and _REGISTERS.search(path.read_bytes()) is not None


def _options(command: Command, language: str, more: Sequence[str] = ()) -> Options:
    from irgrad.interop.loaders.compiler import Options

    # The compiler's own passes would vectorise what is differentiated; ours run before and behind the derivative.
    # zig defines NDEBUG when it optimises, clang never does: assertions stay.
    flags = ["-UNDEBUG", *_ATTRIBUTES, *more, *command.flags_for(language)]
    if "-emit-pch" in flags and flags[flags.index("-emit-pch") - 1] == "-Xclang":
        at = flags.index("-emit-pch")  # what is made of a header follows from its language
        del flags[at - 1 : at + 1]
    return Options(flags=tuple(flags), opt=command.opt, passes=False)


def _compilation(command: Command, source: Source, more: Sequence[str] = ()) -> Compilation:
    from dataclasses import replace

    from irgrad.interop.loaders.checked import ending
    from irgrad.interop.loaders.compiler import Options, compile_source
    from irgrad.interop.loaders.languages import by_name, linked_names
    from irgrad.interop.loaders.loading import missing, special

    options, path = _options(command, source.language, more), Path(source.path)
    shown = "<stdin>" if source.path == "-" else source.path
    if source.language in ("c", "c++") and (source.path == "-" or special(path)):
        read = sys.stdin.buffer.read if source.path == "-" else path.read_bytes
        with scratch_folder("src") as folder:
            file = Path(folder, "stdin.c" if source.language == "c" else "stdin.cc")
            file.write_bytes(command.read_once(source.path, shown, read))
            return compile_source(file, source.language, options, display=shown)
    if not path.is_file():
        raise missing(path)
    if source.language in ("c", "c++"):
        return compile_source(path, source.language, options)
    spoken = by_name(source.language)
    assert spoken is not None
    made = spoken.compile(path, Options(opt=command.opt, passes=False), None)
    return replace(made, text=linked_names(ending(made.text))) if spoken.fails else made


def _precompile(command: Command) -> None:
    """Write the headers, precompiled for sources with the same options."""
    from irgrad.interop.loaders.compiler import precompile

    if command.link or (command.output and len(command.sources) > 1):
        raise LoadError("headers are not linked", which=" ".join(source.path for source in command.sources),
                        because="a header is precompiled, into a file of its own",
                        fix="leave the header out   or   irgrad cc -x c++-header a.h -o a.h.pch")
    for source in command.sources:
        output = Path(command.output or f"{source.path}.gch")
        made = precompile(Path(source.path), source.language, _options(command, source.language), output)
        if made.warnings:
            print(made.warnings, file=sys.stderr)
        if any(word in command.depends for word in ("-MD", "-MMD")):
            _write_rule(command, [source], [made], output)


def _write_rule(command: Command, sources: Sequence[Source], parts: Sequence[Compilation], output: Path) -> None:
    """The rule of make that -MD and -MMD ask for."""
    if all(source.language in ("bc", "ll") for source in sources):
        return  # objects that are linked: the rules of their sources stay as their compilations wrote them
    headers = [header.removeprefix("./") for part in parts for header in part.dependencies]
    if "-MMD" in command.depends:
        headers = [row for row in headers if not row.startswith(_SYSTEM_HEADERS) and "/ziglang/" not in row]
    needs = [name.replace(" ", "\\ ") for name in dict.fromkeys([*(source.path for source in sources), *headers])]
    rule = f"{' '.join(command.targets) or output}: " + " \\\n  ".join(needs) + "\n"
    if "-MP" in command.depends:
        rule += "".join(f"\n{name}:\n" for name in needs[len(sources) :])
    Path(command.depends.get("-MF") or output.with_suffix(".d")).write_text(rule, encoding="utf-8")


def _write_database(command: Command, sources: Sequence[Source], output: Path) -> None:
    """The rows of a compilation database that -MJ asks for, behind those that are there, as clang writes them."""
    from json import dumps

    files, skip = {source.path for source in sources}, ("-MD", "-MMD", "-MP", "-MF", "-MT", "-MQ", "-MJ", "-o")
    before = ("", *command.words)
    words = [word for last, word in zip(before, command.words, strict=False)
             if word not in files and word not in skip and last not in ("-MF", "-MT", "-MQ", "-MJ", "-o")]  # fmt: skip
    with Path(command.depends["-MJ"]).open("a", encoding="utf-8") as file:
        for source in sources:
            row = {"directory": str(Path.cwd()), "file": source.path, "output": str(output),
                   "arguments": ["clang", f"-x{source.language}", source.path, "-o", str(output), *words]}
            file.write(dumps(row) + ",\n")


def build(command: Command, output: Path) -> None:
    """Write what the command line asks for, or what the output's suffix says; without a known one, an executable."""
    from irgrad.engine.codegen.objects import FORMATS
    from irgrad.interop.archives import holds_bitcode, machine_code, whole
    from irgrad.interop.linking import link

    form = command.form or (output.suffix if output.suffix in FORMATS else "")
    if form and form != ".so":
        output.write_bytes(_image(command, command.sources, form, output, whole=False))
        return
    with scratch_folder("ld") as folder:
        images = []
        entire = holds_bitcode(whole(command.link))
        if command.sources or entire or (not form and _main_is_in_bitcode(command)):
            images = [Path(folder, "program.o")]
            images[0].write_bytes(_image(command, command.sources, ".o", output, whole=not form))
        for number, file in enumerate(command.assembly):
            assembled = str(Path(folder, f"assembly{number}.o"))
            _assemble(command, file, assembled)
            command.take_object(file, assembled)
        command.link_to(machine_code(command.link, Path(folder)))
        link(command, images, output, shared=form == ".so")


def _main_is_in_bitcode(command: Command) -> bool:
    """Whether a program without sources takes its `main` from an archive of -flto objects."""
    from irgrad.interop.archives import archives_of, holds_bitcode, wanted
    from irgrad.interop.linking import defined

    libraries = archives_of(command.link)
    if not libraries or not holds_bitcode(libraries):
        return False
    objects = [word for word in command.link if word.endswith((".o", ".obj")) and not word.startswith("-")]
    found = defined(objects) if objects else frozenset()
    return found is not None and "main" not in found and bool(wanted((), libraries, ("main",)))


def _image(command: Command, sources: Sequence[Source], form: str, output: Path, *, whole: bool) -> bytes:
    """Object code, or text of the module, through the disk cache."""
    from irgrad.engine.codegen.cache import default_cache, fingerprint
    from irgrad.engine.codegen.llvm import host_cpu, host_features
    from irgrad.engine.codegen.objects import emit, target_of
    from irgrad.engine.codegen.own_sources import digest_of, source_digest
    from irgrad.engine.enzyme.registered import rules_digest

    text, cpp = _module(command, sources, output)
    if command.lazy and command.form == ".o":  # bitcode: it is lowered when the program is linked
        return _bitcode(text)
    text = _without_absent(command, text, whole=whole)
    disk, settled = default_cache(), _settled(command, text, whole=whole)
    cpu, features = command.cpu, ",".join(command.features)
    vectors = "-fveclib=none" not in command.flags
    if not cpu:  # the compiler knows what the options mean, and wrote it down
        cpu, features = target_of(text)
    key = fingerprint("image-5", text, form, str(whole), str(vectors), cpu, features, command.tape_memory,
                      str(command.checkpoint), host_cpu(), host_features(), source_digest(), rules_digest(text),
                      digest_of((Path(__file__).parent,)), *sorted(settled))
    known = disk.get("image", key)
    if known is None:
        said: list[str] = []
        lowered = _lowered(text, whole=whole, cpp=cpp, command=command, settled=settled, form=form, said=said)
        known = emit(lowered, None, form, cpu=cpu, features=features, approximate=vectors)
        disk.put("said", key, "".join(said).encode())
        disk.put("image", key, known)
    elif told := disk.get("said", key):
        sys.stderr.write(told.decode())
    return known


def program_text(words: Sequence[str]) -> str:
    """The IR of the program that `irgrad cc` makes of sources, with all derivatives: what is made machine code of.

    words: of its command line. Raises what a compilation raises.
    """
    command = _prepared(words, CC_USAGE, run=False)
    assert not isinstance(command, int), words
    text, cpp = _module(command, command.sources, None)
    text = _without_absent(command, text, whole=True)
    settled = _settled(command, text, whole=True)
    return _lowered(text, whole=True, cpp=cpp, command=command, settled=settled, form=".o")


def _bitcode(text: str) -> bytes:
    from irgrad.engine.codegen.llvm import parse

    module = parse(text)
    try:
        return bytes(module.as_bitcode())
    finally:
        module.close()


def _assemble(command: Command, file: str, output: str) -> None:
    """Make an object file of assembly, which holds nothing to differentiate: the compiler does it."""
    name = f"./{file}" if file.startswith("-") else file
    words = [*command.flags_for("c"), "-c", name, "-o", output]
    if _compiler_says(words, "c", ours=True):
        raise CompileError(f"`{file}` does not assemble", because="the compiler's messages are above",
                           fix="mend the assembly")


def _answered(command: Command) -> int:
    """What the compiler answers itself: its version, preprocessed source, make's rules. Its exit status."""
    words = list(command.words)
    if "-print-multiarch" in words and sys.platform == "linux":  # zig's clang does not know the question
        _flush()
        print(f"{os.uname().machine}-linux-{'gnu' if libc_ver()[0] == 'glibc' else 'musl'}", flush=True)
        return 0
    if {"-dumpmachine", "-print-target-triple"} & set(words) and "-target" not in words and libc_ver()[0] == "glibc":
        words += ["-target", f"{os.uname().machine}-linux-gnu"]  # zig names a target of its own, not what it links for
    return _compiler_says(words, "c++" if command.cpp else "c", ours=bool(command.sources))


def _compiler_says(words: Sequence[str], language: str, *, ours: bool) -> int:
    """Run the compiler on our own standard output; its exit status. `ours`: with the flags that it always gets."""
    from irgrad.engine.codegen.cache import default_root
    from irgrad.interop.loaders.compiler import find_compiler, own_headers, zig_words

    compiler = find_compiler()
    environment = dict(os.environ)
    if compiler.zig:
        environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(default_root() / "zig"))
        environment.setdefault("ZIG_LOCAL_CACHE_DIR", str(default_root() / "zig"))
    if compiler.zig:
        words = zig_words(words, language)
    flags = (*compiler.flags, *own_headers(language)) if ours else ()
    _flush()
    return subprocess.run([*compiler.command[language], *flags, *words], check=False, env=environment).returncode


def _flush() -> None:
    """What was printed so far comes before what a program prints; standard output may be closed (`>&-`)."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _prepared(words: Sequence[str], usage: str, *, run: bool) -> Command | int:
    """The command line, or the exit status of what was answered at once."""
    if not words or words[0] in ("-h", "--help"):
        print(usage, file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    command = read_command(words, run=run)
    if command.question:
        return _answered(command)
    return command


def main_run(words: Sequence[str]) -> int:
    """`irgrad run`: build the program in a scratch folder and run it; its exit status is the result, 128 + N after
    signal N."""
    command = _prepared(words, RUN_USAGE, run=True)
    if isinstance(command, int):
        return command
    with scratch_folder("run") as folder:
        name = Path(command.sources[0].path).stem if command.sources else ""
        program = Path(folder, name if name.strip("-") else "program").with_suffix("")
        command.make_program()
        build(command, program)
        _flush()
        status = _run_program([str(program), *command.args])
    return status if status >= 0 else 128 - status  # as a shell tells a signal


def _run_program(words: Sequence[str]) -> int:
    """Run it on our own standard input and output; signals that are sent to us are for the program."""
    with _signals() as hand_on, subprocess.Popen(words) as process:
        hand_on(process)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the terminal sent it to the program as well, which decides what it means
                continue


@contextlib.contextmanager
def _signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Signals that come from now on are for the program that the result is called with, also such as came before."""
    to: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def hand_on(process: subprocess.Popen[bytes]) -> None:
        to.append(process)
        while early:
            process.send_signal(early.pop(0))

    def got(number: int, _: object) -> None:
        if to:
            to[0].send_signal(number)
        else:
            early.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield hand_on
        return
    before = {number: signal.signal(number, got) for number in _FORWARDED}
    try:
        yield hand_on
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main_cc(words: Sequence[str]) -> int:
    """`irgrad cc`: write the program, or with -c, -S one file for each source."""
    command = _prepared(words, CC_USAGE, run=False)
    if isinstance(command, int):
        return command
    if command.check_only:
        for source in command.sources:
            _compilation(command, source)
        return 0
    if command.header:
        _precompile(command)
        return 0
    if command.form in ("", ".so"):
        build(command, Path(command.output or "a.out"))
        return 0
    inputs = len(command.sources) + len(command.assembly)
    if not inputs:
        raise LoadError("there is no source file", because="objects and libraries are only read when linking",
                        fix="leave out -c, -S or -emit-llvm")
    if command.output and inputs > 1:
        raise LoadError("one output is named for several files", which=f"-o {command.output}",
                        because="with -c, -S or -emit-llvm each source gives a file of its own",
                        fix="leave out -o   or   compile them one by one")
    for source in command.sources:
        output = Path(command.output or Path(source.path).stem + command.form)
        image = _image(command, [source], command.form, output, whole=False)
        if command.output == "-":
            _flush()
            sys.stdout.buffer.write(image)
        else:
            output.write_bytes(image)
    for file in command.assembly if command.form == ".o" else ():
        _assemble(command, file, command.output or Path(file).stem + ".o")
    return 0
