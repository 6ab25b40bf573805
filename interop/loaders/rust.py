"""Rust: rustc of LLVM <= 22, source file in, LLVM IR text out, through the disk cache.

The module comes as it is before LLVM's passes, as that of clang does. It is compiled with `panic=abort`: nothing
unwinds, and panics become failures of the kernel (`rust_panics.py`). Public functions go by the path that the user
wrote (`energy`, `models::energy`), memory comes from C's `malloc`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.interop.loaders.compiler import Compilation, Options, cached_compilation, packed, run_compiler
from irgrad.interop.loaders.rust_panics import demangled, report_panics
from irgrad.interop.loaders.rust_std import one_thread
from irgrad.rules.errors import CompileError, LoadError

__all__ = ["compile_rust", "finished", "open_library", "own_memory", "plain_names"]

_WORDS = (
    "--crate-type=lib", "--edition=2021", "-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=1", "-Cdebuginfo=1",
)  # fmt: skip
_DEFINED = re.compile(r'^define (?!internal|private|hidden)[^@\n]*@("?)(_(?:ZN|R)[\w.$]+)\1\(', re.M)
_PERSONALITY = re.compile(r" personality ptr @rust_eh_personality\b")
_OF_LIBRARY = re.compile(r"^declare [^@\n]*@_(?:R|ZN4core|ZN5alloc|ZN3std)", re.M)
_RESUME = re.compile(r"^  resume [^\n]*$", re.M)
_MEMORY = re.compile(
    r"^(?P<head>declare [^@\n]*)@(?P<symbol>\w*?___?rust_(?P<what>no_alloc_shim|alloc_zeroed|\w*alloc)\w*)"
    r"\([^\n]*\n", re.M
)
_ALIGNED = """  %large = icmp ugt i64 %align, 16
  br i1 %large, label %unknown, label %usual
unknown:
  call void @irgrad.panic(ptr @irgrad.panic.aligned) noreturn nounwind
  unreachable
usual:
  %p = call noalias ptr {}
  ret ptr %p"""
_BODIES = {
    "alloc": ("ptr", "i64 %size, i64 %align", _ALIGNED.format("@malloc(i64 %size)")),
    "alloc_zeroed": ("ptr", "i64 %size, i64 %align", _ALIGNED.format("@calloc(i64 %size, i64 1)")),
    "realloc": ("ptr", "ptr %old, i64 %before, i64 %align, i64 %size",
                _ALIGNED.format("@realloc(ptr %old, i64 %size)")),
    "dealloc": ("void", "ptr %p, i64 %size, i64 %align", "  call void @free(ptr %p)\n  ret void"),
    "no_alloc_shim": ("void", "", "  ret void"),
}  # fmt: skip
_OF_C = {
    "malloc": "declare noalias ptr @malloc(i64)\n", "calloc": "declare noalias ptr @calloc(i64, i64)\n",
    "realloc": "declare noalias ptr @realloc(ptr, i64)\n", "free": "declare void @free(ptr)\n",
}  # fmt: skip


def compile_rust(path: Path, options: Options, tool: tuple[str, str], display: str | None = None) -> Compilation:
    """Compile one file of Rust, with its modules, to LLVM IR text.

    `tool` is the compiler and its version, `display` names the source in messages. Raises CompileError with the
    compiler's own diagnostics, LoadError where macros are given.
    """
    program, version = tool
    if options.define:
        raise LoadError(
            "Rust has no macros of this kind",
            which=" ".join(name for name, _ in options.define),
            because="`define` is given",
            fix="""flags=['--cfg', 'name="value"']   or   constants""",
        )
    # O0 is O1 without passes: only then rustc says how long slices may be, and what is not aliased.
    unoptimised = options.opt is not None and options.opt.lstrip("-") in ("O0", "0")
    shown, plain = display or str(path), options.opt is None or not options.passes or unoptimised
    crate = re.sub(r"\W", "_", path.stem) if re.match(r"[A-Za-z]", path.stem) else "source"
    words = [program, f"--crate-name={crate}", *_WORDS, *(["-Cno-prepopulate-passes"] if plain else []),
             *([f"-Copt-level={1 if unoptimised else _level(options.opt)}"] if options.opt else []),
             *(f"-L{folder}" for folder in options.include), *options.flags]  # fmt: skip
    key = fingerprint("rust-ir-14", version, shown, str(path.resolve()), path.read_bytes(), *words)
    store = default_cache()
    hit = cached_compilation(store.get("ir", key))
    if hit is not None:
        return hit
    from irgrad.engine.support.progress import Progress
    from irgrad.engine.support.scratch import scratch_folder

    with scratch_folder("rust") as scratch, Progress(f"compiling `{shown}`"):
        output, rule, file = Path(scratch, "out.ll"), Path(scratch, "out.d"), path.resolve()
        # All functions are compiled for others only where rustc compiles incrementally.
        words += [f"-Cincremental={scratch}/again", f"--remap-path-prefix={file.parent}={Path(shown).parent}",
                  f"--remap-path-prefix={file}={shown}", f"--emit=llvm-ir={output},dep-info={rule}"]  # fmt: skip
        done = run_compiler([*words, str(file)])
        messages = done.stderr.replace(str(file), shown).strip()
        if done.returncode != 0 or not output.exists():
            raise CompileError(
                f"`{shown}` does not compile",
                because=f"rustc says:\n{messages or f'exit status {done.returncode}'}",
                fix="mend the source   or   pass flags=[...] to load()",
            )
        text = output.read_text("utf-8", "surrogateescape")
        needs = _dependencies(rule.read_text("utf-8"), file)
    text = finished(text, crate)
    result = Compilation(text, messages, needs, cached=False)
    store.put("ir", key, packed(result))
    return result


def finished(text: str, crate: str) -> str:
    """The module of a crate that nothing unwinds, with the names of the source, memory of C, panics as failures."""
    text = _RESUME.sub("  unreachable", _PERSONALITY.sub("", text))
    return report_panics(own_memory(one_thread(plain_names(text, crate))))


def open_library(text: str, find: Callable[[], tuple[str, str]]) -> str:
    """The text; Rust's own library is opened for what of it the module calls and has no body of (printing, texts).
    `find` gives the compiler."""
    if not _OF_LIBRARY.search(text):
        return text
    import ctypes

    folder = run_compiler([find()[0], "--print=target-libdir"]).stdout.strip()
    for library in sorted(Path(folder).glob("libstd-*.so")) if folder else ():
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)  # never closed
    return text


def _level(opt: str) -> str:
    return opt.lstrip("-").removeprefix("O") or "3"


def _dependencies(rule: str, file: Path) -> tuple[str, ...]:
    """The files that make's rule names, but for the source."""
    named = re.findall(r"^((?:[^:\s\\]|\\.)+):$", rule, re.M)
    return tuple(sorted({name.replace("\\ ", " ") for name in named} - {str(file)}))


def plain_names(text: str, crate: str) -> str:
    """The module in which public functions of the crate go by their paths."""
    taken = set(re.findall(r'^define [^@\n]*@"?([\w.$]+)"?\(', text, re.M))
    for quote, symbol in _DEFINED.findall(text):
        path = demangled(symbol)
        name = "::".join(path[1:])
        if len(path) < 2 or path[0] != crate or "$" in name or name in taken:
            continue
        taken.add(name)
        shown = name if len(path) == 2 else f'"{name}"'
        text = re.sub(rf"@{quote}{re.escape(symbol)}{quote}(?![\w.$])", f"@{shown}", text)
    return text


def own_memory(text: str) -> str:
    """The module in which Rust's allocator is that of C; memory with an alignment that C's lacks is a panic."""
    used: set[str] = set()

    def body(match: re.Match[str]) -> str:
        known = _BODIES.get(match["what"])
        if known is None:
            return match[0]
        used.update(re.findall(r"@([a-z]+)\(", known[2]))
        return f"define internal {known[0]} @{match['symbol']}({known[1]}) alwaysinline {{\n{known[2]}\n}}\n"

    text = _MEMORY.sub(body, text)
    return text + "".join(
        _OF_C[name] for name in sorted(used) if not re.search(rf"^declare [^@\n]*@{name}\(", text, re.M)
    )
