"""Normal form and entries, as IR text.

The normal form of `T f(double x, ptr a)` is `void @"f.normal"(ptr noalias x, ptr noalias a, ptr noalias ret)`: every
argument by pointer, the return value stored through the last one. Differentiation maps normal forms to normal forms, so
that its words (J, V, JV, ...) are closed. The *entry* of a function takes one array with its pointers: ctypes calls it
with one word, an FFI handler builds the array from its buffers, a C header declares it.
"""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.kernel.options import Options
from irgrad.engine.signature.prototype import quoted
from irgrad.engine.signature.signature import Signature

if TYPE_CHECKING:
    from irgrad.rules.expressions.costs import Costs

__all__ = ["Stage", "entry_name", "entry_text", "normal_name", "normal_text", "prepared_text",
           "primal_text", "with_entry"]


@dataclass(frozen=True, slots=True)
class Stage:
    """A program before machine code: the name of its function, the scratch slots of its last step, compressed IR.

    note: what else there is to know of it (see `tapes`); warned: loops with long tapes, of which was warned when it was
    made
    """

    name: str
    scratch: tuple[int, ...]
    packed: bytes
    note: str = ""
    warned: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The IR."""
        return zlib.decompress(self.packed).decode("utf-8", "surrogateescape")

    @staticmethod
    def of(
        name: str, scratch: Sequence[int], text: str, note: str = "", warned: Sequence[str] = ()
    ) -> Stage:  # fmt: skip
        """Of IR that is not compressed."""
        packed = zlib.compress(text.encode("utf-8", "surrogateescape"), 1)
        return Stage(name, tuple(scratch), packed, note, tuple(warned))

    def to_bytes(self) -> bytes:
        """For the disk cache."""
        head = [self.name, self.note, "\1".join(self.warned), *map(str, self.scratch)]
        return "\0".join(head).encode("utf-8", "surrogateescape") + b"\n" + self.packed

    @staticmethod
    def from_bytes(data: bytes) -> Stage:
        """What `to_bytes` made. Warns as was warned then."""
        head, _, packed = data.partition(b"\n")
        name, note, said, *scratch = head.decode("utf-8", "surrogateescape").split("\0")
        warned = tuple(said.split("\1")) if said else ()
        if warned:
            from irgrad.engine.differentiate.tape.long_tapes import WholeTape

            for text in warned:
                warnings.warn(WholeTape(text), stacklevel=5)
        return Stage(name, tuple(map(int, scratch)), packed, note, warned)


def normal_name(name: str) -> str:
    """Name of the normal form of `name`."""
    return f"{name}.normal"


def entry_name(name: str) -> str:
    """Name of the entry of the normal-form function `name`."""
    return f"irgrad.entry.{name}"


def normal_text(
    name: str, signature: Signature, copied: Sequence[int] = (), module: str = "", *, inline: bool = True
) -> str:
    """The wrapper `void @NAME.normal(...)`. `noalias` holds: the caller passes buffers that never overlap.

    copied: array arguments of which the function gets a copy; `module` tells what is declared already.
    """
    from irgrad.engine.analyses.memory.objects import BY_VALUE, FLOAT, NUMBER  # a cached kernel needs no analysis

    params, loads, args = [], [], []
    for index, p in enumerate(signature.parameters):
        align = p.dtype.size
        said = f" {FLOAT}" if p.dtype.kind == "f" else "" if p.is_array else f" {NUMBER} {BY_VALUE}"
        params.append(f"ptr noalias noundef nonnull align {align}{said} %a{index}")
        if p.is_array:
            args.append(f"ptr noundef %{'c' if index in copied else 'a'}{index}")
        elif p.dtype.kind == "b":  # memory holds a byte, the call wants i1
            loads.append(f"  %m{index} = load i8, ptr %a{index}, align 1")
            loads.append(f"  %v{index} = icmp ne i8 %m{index}, 0")
            args.append(f"i1 zeroext %v{index}")
        else:
            loads.append(f"  %v{index} = load {p.dtype.ir}, ptr %a{index}, align {align}")
            args.append(f"{_extended(p.dtype.ir, p.dtype.kind)} %v{index}")
    returns = signature.returns
    callee = f"@{quoted(name)}({', '.join(args)}){' alwaysinline' if inline else ''}"
    if returns is None:
        body = [f"  call void {callee}"]
    else:
        params.append(f"ptr noalias noundef nonnull align {returns.size} %ret")
        body = [f"  %r = call {returns.ir} {callee}"]
        value = "%r"
        if returns.kind == "b":
            body.append("  %rb = zext i1 %r to i8")
            value = "%rb"
        body.append(f"  store {returns.memory} {value}, ptr %ret, align {returns.size}")
    copies, frees = [], []
    for index in copied:
        from irgrad.engine.kernel.writes import extent_text  # cold code: it imports the IR

        sizes, total = extent_text(signature.parameters[index], signature, f"n{index}")
        copies += [*sizes, f"  %c{index} = call ptr @malloc(i64 {total})"]
        copies.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr %c{index}, ptr %a{index}, i64 {total}, i1 false)")
        frees.append(f"  call void @free(ptr %c{index})")
    head = f"define void @{quoted(normal_name(name))}({', '.join(params)}) {{"
    lines = [head, *loads, *copies, *body, *frees, "  ret void", "}"]
    known = _declared(module) if copied else set()
    lines += [f"declare {text}" for symbol, text in _COPYING.items() if copied and symbol not in known]
    return "\n".join(lines) + "\n"


_THROW = re.compile(r"((?:call|invoke) void @__cxa_throw\([^\n]*\))")
_COPYING = {
    "malloc": "noalias ptr @malloc(i64)",
    "free": "void @free(ptr captures(none))",
    "llvm.memcpy.p0.p0.i64": "void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)",
}


def _declared(module: str) -> set[str]:
    return set(re.findall(r"^(?:declare|define) [^@\n]*@\"?([\w.]+)", module, re.MULTILINE))


def _extended(ir: str, kind: str) -> str:
    """Small integers are extended by the caller in the C calling conventions."""
    if ir in ("i8", "i16"):
        return f"{ir} {'signext' if kind == 'i' else 'zeroext'}"
    return ir


def entry_text(name: str, slots: int, *, tape: bool = False, unwinds: bool = False) -> str:
    """`ptr @irgrad.entry.NAME(ptr %frame)`: load `slots` pointers from the frame and call @NAME with them.

    The result is null; for functions with a tape, the record of a failure where there is no memory for it (see
    `transforms/arena.ll`). unwinds: exceptions of the C++ runtime may leave the function."""
    from irgrad.engine.runtime.arena import guarded_text, run_name

    entry = quoted(entry_name(name))
    head = f"define internal void @{run_name(entry)}" if tape else f"define ptr @{entry}"
    lines = [f"{head}(ptr noundef %frame) {{"]
    for index in range(slots):
        lines.append(f"  %g{index} = getelementptr inbounds ptr, ptr %frame, i64 {index}")
        lines.append(f"  %p{index} = load ptr, ptr %g{index}, align 8")
    args = ", ".join(f"ptr %p{index}" for index in range(slots))
    lines += [f"  call void @{quoted(name)}({args}) alwaysinline", "  ret void" if tape else "  ret ptr null", "}"]
    return "\n".join(lines) + "\n" + (guarded_text(entry, ["ptr"], unwinds=unwinds) if tape else "")


def with_entry(text: str, name: str, slots: int) -> str:
    """The module of a function in normal form with its runtime and its entry."""
    from irgrad.engine.ir.text.outline import outline
    from irgrad.engine.pipeline.derivatives import link_runtime
    from irgrad.engine.runtime.arena import PEAK_TEXT
    from irgrad.engine.runtime.exceptions import catching, is_caught
    from irgrad.engine.runtime.helpers import uses_tape

    text = link_runtime(catching(text))
    text += "\n" + entry_text(name, slots, tape=uses_tape(text), unwinds=is_caught(text))
    return text + PEAK_TEXT if "irgrad_tape_peak" in outline(text).variables else text


def primal_text(module: str, name: str, signature: Signature, options: Options) -> str:
    """`prepared_text` of what a function of a module reaches. Raises IRSyntaxError, IRInvalid, SignatureError."""
    from irgrad.engine.ir.assembly import plain_assembly
    from irgrad.engine.ir.text.entities import restrict
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.ir.text.validate import validate
    from irgrad.engine.kernel.writes import check_elements

    own, normal = plain_assembly(restrict(module, [name])), normal_name(name)
    whole = read(own + normal_text(name, signature), roots=[normal])
    validate(whole)  # before LLVM sees it: what LLVM accepts may still end the process
    check_elements(whole, normal, signature)
    return prepared_text(name, signature, own, options=options)


def prepared_text(
    name: str, signature: Signature, module: str, kept: Callable[[str], bool] | None = None,
    options: Options | None = None,
) -> str:  # fmt: skip
    """The normal form of a function of a module, optimised for differentiation; inputs that it may write are copied.

    kept: functions that stay calls, since a rule is registered for them
    options: `preopt` says whether anything is optimised, `device` whether independent loops are outlined
    """
    from irgrad.engine.codegen.prepare import prepare
    from irgrad.engine.kernel.writes import perhaps_written

    options = options or Options()
    normal, inline = normal_name(name), kept is None

    def prepared(text: str) -> str:
        text = _THROW.sub(r"\1 nomerge", text)  # one throw of two has no line
        if options.device:
            text = _by_iterations(text, normal, kept)
        elif options.threads:
            text = _by_chunks(text, normal, kept, signature, options.costs)
        text = prepare(text, [normal], kept, preopt=options.preopt, members=options.members)
        without = _without_panics(text, normal, kept)
        text = text if without is text else prepare(without, [normal], kept, preopt=options.preopt)
        return text if options.device else _with_failures(text, normal, kept)

    text = prepared(module + normal_text(name, signature, inline=inline))
    copied = perhaps_written(text, normal, signature)
    if copied:
        text = prepared(module + normal_text(name, signature, copied, module, inline=inline))
    return text


def _without_panics(text: str, normal: str, kept: Callable[[str], bool] | None) -> str:
    """Panics as early returns with a status, which the last argument takes."""
    from irgrad.engine.codegen.passes import Code, observed
    from irgrad.engine.ir.text.outline import outline

    if "irgrad.panic" not in outline(text).functions:
        return text
    from irgrad.engine.normalise.exceptions.unwinding import lower_exceptions  # cold code

    code = Code(text, roots=[normal])
    module = code.model
    closed = frozenset(name for name in module.functions if kept is not None and kept(name))
    root = module.functions[normal]
    with observed("lower-panics", code):
        lower_exceptions(module, root, closed, status=root.args[-1])
    return code.text


def _with_failures(text: str, normal: str, kept: Callable[[str], bool] | None) -> str:
    """Exceptions that nothing catches end the call with an error."""
    from irgrad.engine.codegen.early_inlining import inline_never_returning
    from irgrad.engine.codegen.passes import Code, Settings, observed
    from irgrad.engine.normalise.exceptions.uncaught import fail_where_thrown, throws
    from irgrad.engine.normalise.exceptions.unwinding import has_exceptions

    if not throws(text):
        return text
    code, catches = Code(text), has_exceptions(text)
    with observed("fail-where-thrown", code):
        if not catches:
            inline_never_returning(code, Settings((normal,), kept))
        fail_where_thrown(code.model, catches=catches)
    return code.text


def _by_iterations(text: str, normal: str, kept: Callable[[str], bool] | None) -> str:
    """Independent loops outlined: before LLVM optimises, which moves values from one iteration to the next."""
    from irgrad.engine.codegen.prepare import tidy
    from irgrad.engine.normalise.iterations import promises, scalar_loops, with_iterations

    if not promises(text):
        return text
    return with_iterations(tidy(scalar_loops(text), [normal], kept), normal)


def _by_chunks(
    text: str, normal: str, kept: Callable[[str], bool] | None, signature: Signature, costs: Costs
) -> str:  # fmt: skip
    """Independent loops in chunks, for a team of threads."""
    from irgrad.engine.codegen.prepare import tidy
    from irgrad.engine.kernel.checkpoints import bytes_of
    from irgrad.engine.signature.slots import primal_slots
    from irgrad.engine.threads.chunks import with_chunks
    from irgrad.engine.threads.own_updates import with_own_updates
    from irgrad.engine.threads.work import Worth

    text = with_own_updates(tidy(text, [normal], kept, small=True), normal)
    return with_chunks(text, normal, bytes_of=bytes_of(primal_slots(signature)), worth=Worth(costs.chunk, costs.copied))
