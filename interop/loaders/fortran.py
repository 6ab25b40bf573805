"""Fortran: flang of LLVM <= 22, source file in, LLVM IR text out, through the disk cache.

flang passes arguments by reference; assumed-shape arrays come as descriptors, which wrappers build (`checked.py`) from
what the debug information says of the parameters. Its own optimiser expands intrinsic functions and array expressions
(`-O1`); what is left to its run-time library is in `fortran_runtime.c`. `stop` and `error stop` are failures of the
kernel. Procedures go by the names of the source: `energy`, `model::energy`.
"""

from __future__ import annotations

import re
from pathlib import Path

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.engine.signature.prototype import Prototype, quoted
from irgrad.interop.loaders.compiler import Compilation, Options, cached_compilation, packed, run_compiler
from irgrad.interop.loaders.fortran_internal import bound
from irgrad.interop.loaders.fortran_runtime import complete, library_digest
from irgrad.interop.loaders.rust_panics import Panics
from irgrad.rules.blas.spelling import spelled
from irgrad.rules.errors import CompileError

__all__ = ["compile_fortran", "draft", "passing", "plain_blas", "plain_names", "report_stops"]

_WORDS = ("-S", "-emit-llvm", "-g1", "-ffp-contract=off")
_DEFINED = re.compile(r"^define (?!internal|private)[^@\n]*@(_QM(\w+?)P(\w+)|_QP(\w+)|([a-z]\w*)_)\(", re.M)
_STOP = re.compile(
    r"^  (?:tail )?call void @(_FortranA(?:StopStatement\w*|ProgramEndStatement|ReportFatalUserError))\((.*)\)"
    r"(?: #\d+)?((?:, !\w+ !\d+)*)\n  unreachable", re.M,
)  # fmt: skip
_TEXT = re.compile(r'^@(_QQ\w+) = [^\n]*?constant \[\d+ x i8\] c"([^"\n]*)"', re.M)
_NODE = re.compile(r"^(!\d+) = (?:distinct )?(.*)$", re.M)
_LINE = re.compile(r"^!DILocation\(line: (\d+)")
_DECLARED = re.compile(r"^declare [^@\n]*@(_FortranA(?:StopStatement\w*|ReportFatalUserError))\([^\n]*\n", re.M)
_EXTERNAL = re.compile(r"^declare [^@\n]*@(?P<name>\w+)\((?P<types>[^()\n]*)\)", re.M)
_OTHER_FILES = re.compile(r"^\s*(?:#\s*)?include\b", re.M | re.I)
_DEFAULT = {"real": "f32", "integer": "i32", "logical": "i32", "double precision": "f64"}
_KINDS = {"real": "f", "integer": "i", "logical": "i"}


def compile_fortran(path: Path, options: Options, tool: tuple[str, str], display: str | None = None) -> Compilation:
    """Compile one file of Fortran to LLVM IR text.

    `tool` is the compiler and its version, `display` names the source in messages. Raises CompileError with the
    compiler's own diagnostics.
    """
    program, version = tool
    shown = display or str(path)
    level = (options.opt or "O1").lstrip("-").removeprefix("O")
    words = [program, *_WORDS, f"-O{max(1, int(level)) if level.isdecimal() else 1}",
             *(f"-I{folder}" for folder in options.include),
             *(f"-D{name}={value}" for name, value in options.define), *options.flags]  # fmt: skip
    source = path.read_bytes()
    key = fingerprint("fortran-ir-7", library_digest(), version, shown, str(path.resolve()), source, *words)
    store = default_cache()
    hit = cached_compilation(store.get("ir", key))
    if hit is not None:
        return hit
    from irgrad.engine.support.progress import Progress
    from irgrad.engine.support.scratch import scratch_folder

    with scratch_folder("fortran") as scratch, Progress(f"compiling `{shown}`"):
        output = Path(scratch, "out.ll")
        done = run_compiler([*words, f"-J{scratch}", "-o", str(output), str(path.resolve())])
        messages = done.stderr.replace(str(path.resolve()), shown).strip()
        if done.returncode != 0 or not output.exists():
            raise CompileError(f"`{shown}` does not compile",
                               because=f"flang says:\n{messages or f'exit status {done.returncode}'}",
                               fix="mend the source   or   pass include=[...], flags=[...] to load()")
        text = output.read_text("utf-8", "surrogateescape")
    name = re.escape(path.resolve().name)
    text = re.sub(rf'(!DIFile\(filename: )"[^"\n]*{name}", directory: "[^"]*"', rf'\1"{shown}", directory: "."', text)
    text = report_stops(complete(plain_blas(plain_names(bound(text)))), shown)
    result = Compilation(text, messages, (), cached=False)
    if not options.include and not _OTHER_FILES.search(source.decode("utf-8", "replace")):
        store.put("ir", key, packed(result))  # of other files nothing says when they change
    return result


def plain_names(text: str) -> str:
    """The module in which procedures go by the names of the source."""
    taken = set(re.findall(r'^define [^@\n]*@"?([\w.$:]+)"?\(', text, re.M))
    for symbol, module, procedure, inside, outside in _DEFINED.findall(text):
        name = f"{module}::{procedure}" if module else inside or outside
        if name in taken:
            continue
        taken.add(name)
        text = re.sub(rf"@{symbol}(?![\w.$])", f"@{quoted(name)}", text)
    return text


def plain_blas(text: str) -> str:
    """The module in which routines of BLAS and LAPACK are called as C calls them: the lengths of letters, which Fortran
    passes behind the other arguments, are left out (the rules of these routines have no place for them)."""
    extra: dict[str, int] = {}
    for row in _EXTERNAL.finditer(text):
        known, types = spelled(row["name"]), [word for word in row["types"].split(",") if word.strip()]
        more = [word.split()[0] for word in types[len(known.names) :]] if known is not None else []
        if more and set(more) == {"i64"}:
            extra[row["name"]] = len(more)
    for name, count in extra.items():
        head = rf"^((?:declare|  (?:%[\w.]+ = )?(?:tail )?call) [^@\n]*@{name}\([^\n]*?)"
        lengths = rf"(?:, i64(?: [^,()\n]+)?){{{count}}}\)"
        text = re.sub(rf"{head}{lengths}(?=[^()\n]*(?:\n|!|#))", r"\1)", text, flags=re.M)
    return text


def report_stops(text: str, shown: str) -> str:
    """The module in which statements that end the program are failures."""
    if not _STOP.search(text):
        return text
    texts = dict(_TEXT.findall(text))
    nodes = dict(_NODE.findall(text))
    panics = Panics()

    def reported(call: re.Match[str]) -> str:
        name, arguments, metadata = call.groups()
        said = next((texts[word] for word in re.findall(r"@(_QQ\w+)", arguments) if word in texts), "")
        code = re.search(r"i32 (-?\d+)", arguments)
        where = re.search(r"!dbg (!\d+)", metadata)
        line = _LINE.match(nodes.get(where[1], "")) if where else None
        message = said.removesuffix("\\00") or (f"stop {code[1]}" if code and "Text" not in name else "stop")
        place = f" at {shown}:{line[1]}" if line else ""
        return (f"  call void @irgrad.panic(ptr {panics.name(message + place)}) noreturn nounwind{metadata}\n"
                "  unreachable")  # fmt: skip

    text = _STOP.sub(reported, text)
    text = _DECLARED.sub(lambda row: row[0] if text.count(f"@{row[1]}(") > 1 else "", text)
    return text + "\ndeclare void @irgrad.panic(ptr) noreturn nounwind cold\n" + panics.text()


def passing(text: str, name: str) -> list[str] | None:
    """How a procedure of Fortran takes its arguments, from its debug information: `reference f64`, `array f64 2`,
    `descriptor f64 2`, `allocatable f64 2` and `pointer f64 2` with ranks, `other` for what no signature has; None for
    functions of other languages.
    """
    nodes = dict(_NODE.findall(text))

    def field(ref: str, key: str) -> str:
        found = re.search(rf'\b{key}: ("[^"]*"|!\d+|[^,()]+)', nodes.get(ref, ""))
        return found[1].strip('"') if found else ""

    def listed(ref: str) -> list[str]:
        body = nodes.get(ref, "")
        return [part.strip() for part in body[2:-1].split(",") if part.strip()] if body.startswith("!{") else []

    def element(ref: str) -> str:
        kind = re.fullmatch(r"(\w+)\(kind=(\d+)\)", field(ref, "name"))
        if kind and kind[1] in _KINDS:
            return f"{_KINDS[kind[1]]}{8 * int(kind[2])}"
        return _DEFAULT.get(field(ref, "name"), "?")

    line = re.search(rf"^define\b[^\n]*?@{re.escape(quoted(name))}\([^\n]*!dbg (!\d+)", text, re.M)
    if line is None or "DW_LANG_Fortran" not in nodes.get(field(line[1], "unit"), ""):
        return None
    found = []
    for ref in listed(field(field(line[1], "type"), "types"))[1:]:
        if field(ref, "tag") != "DW_TAG_array_type":
            known = element(ref)
            found.append("other" if known == "?" else f"reference {known}")
            continue
        rank, base = len(listed(field(ref, "elements"))), element(field(ref, "baseType"))
        body = nodes[ref]
        form = "allocatable" if "allocated:" in body else "pointer" if "associated:" in body else \
            "descriptor" if "dataLocation:" in body else "array"
        found.append(f"{form} {base} {rank}")
    return found


def draft(text: str, prototype: Prototype) -> str:
    """A signature for a procedure, `?` for what no signature has; arrays are drafted with extents of their own."""
    returned = {"void": "void", "double": "f64", "float": "f32", "i32": "i32", "i64": "i64"}.get(prototype.returns, "?")
    sizes, rows = iter("nmkpqrstuvw"), []
    for n, (how, kind) in enumerate(zip(passing(text, prototype.name) or (), prototype.params, strict=False), 1):
        form, *words = how.split()
        if form == "other":
            rows.append(f"? a{n}")
        elif form == "reference":
            written = kind == "ptr" and "readonly" not in prototype.written[n - 1]
            rows.append(f"{'out ' if written else ''}{words[0]} a{n}")
        else:
            written = "readonly" not in prototype.written[n - 1]
            shape = ",".join(next(sizes, "n") for _ in range(int(words[1])))
            rows.append(f"{'inout ' if written else ''}{words[0]}[{shape}] a{n}")
    return f"{returned}({', '.join(rows)})"
