"""What every use of LLVM through llvmlite shares: initialisation, the host, safe parsing.

LLVM's own parser overflows its stack on constant expressions nested some ten thousand deep, and it ignores what
follows a NUL; both are refused here, before LLVM sees the text.
"""

from __future__ import annotations

import re
import threading
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

from irgrad.engine.support.limits import check_length
from irgrad.rules.errors import IRInvalid, IRSyntaxError, LimitExceeded

__all__ = [
    "MAX_NESTING",
    "binding",
    "check_text",
    "host_cpu",
    "host_features",
    "identity",
    "parse",
    "target_machine",
]

MAX_NESTING = 256
MAX_INTEGER_BITS = 4096  # LLVM aborts on some wider than 2**23; the engine itself takes at most 128

_LOCK = threading.Lock()
_STRINGS = re.compile(rb'"[^"\n]*"')
_COMMENTS = re.compile(rb";[^\n]*")
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"()[]{}<>")
_WIDE_INTEGERS = re.compile(r"i(\d{4,})\b")
_IN_NAME = re.compile(r"[\w.%@$#!\"-]")
_CPU_LINES = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")  # of /proc/cpuinfo
_ARROWS = re.compile(rb"->|=>")


@cache
def binding() -> Any:
    """`llvmlite.binding` with the native target initialised (imported on first use: it costs 0.1-0.3 s)."""
    import llvmlite.binding as llvm

    with _LOCK:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        # Before it mends old debug info LLVM verifies the module, and ends the process when that fails; `parse`
        # verifies as well, with an exception.
        llvm.set_option("irgrad", "-disable-auto-upgrade-debug-info")
        llvm.set_option("irgrad", "-enable-matrix")  # code generation ends the process over matrix intrinsics
    return llvm


@cache
def host_cpu() -> str:
    """LLVM's name of this machine's CPU."""
    return str(binding().get_host_cpu_name())


@cache
def host_features() -> str:
    """LLVM's feature string of this machine's CPU, e.g. `+avx2,-avx512f`."""
    return str(binding().get_host_cpu_features().flatten())


@cache
def identity() -> tuple[str, ...]:
    """What LLVM's machine code for this CPU depends on besides its IR: the LLVM build and the CPU.

    Told by the file of LLVM's library and by Linux, not by LLVM: loading it costs more than what a cached gradient
    needs besides. Where they do not tell, LLVM does.
    """
    try:
        spec = util.find_spec("llvmlite")
        library = Path(next(iter(spec.submodule_search_locations or ())) if spec else "", "binding", "libllvmlite.so")
        status = library.stat()
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            first = file.read(1 << 14).partition("\n\n")[0]
    except (OSError, StopIteration):
        first, status = "", None
    told = [row for row in first.splitlines() if row.split("\t")[0] in _CPU_LINES]
    if status is None or len(told) != len(_CPU_LINES):
        llvm = binding()
        version = ".".join(map(str, llvm.llvm_version_info))
        return (version, str(llvm.get_process_triple()), host_cpu(), host_features())
    return (f"llvmlite {status.st_size} {status.st_mtime_ns}", *told)


def target_machine(cpu: str = "", features: str = "", opt: int = 3, *, jit: bool = True, reloc: str = "default") -> Any:
    """A fresh target machine for this process's triple; target machines are not shared between threads."""
    llvm = binding()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=cpu, features=features, opt=opt, jit=jit, reloc=reloc)


def check_text(text: str) -> None:
    """Refuse text that would stop LLVM's parser or be read in part. Raises LimitExceeded or IRSyntaxError."""
    check_length(text)
    if "\0" in text:
        raise IRSyntaxError("the IR contains a NUL character", because="LLVM would ignore everything after it",
                            fix="write the IR anew with `clang -S -emit-llvm`")
    # The character before the `i` is looked at here: a lookbehind makes the search ten times slower.
    types = (found for found in _WIDE_INTEGERS.finditer(text) if not _IN_NAME.match(text, max(found.start() - 1, 0)))
    wide = max((int(found[1]) for found in types), default=0)
    if wide > MAX_INTEGER_BITS:
        raise LimitExceeded(f"an integer type has {wide} bits", because=f"at most {MAX_INTEGER_BITS} are read",
                            fix="use integers of at most 128 bits")
    if _depth_exceeds(text.encode("utf-8", "surrogateescape"), MAX_NESTING):
        raise LimitExceeded(
            "the IR nests constants or types too deeply", because=f"at most {MAX_NESTING} brackets may be open",
            fix="compute the value at run time instead of in one constant expression",
        )


def _depth_exceeds(text: bytes, limit: int) -> bool:
    """Whether brackets nest deeper than `limit`; linear time: no line without `limit` openers can be the culprit."""
    if text.count(b"(") + text.count(b"{") + text.count(b"[") + text.count(b"<") <= limit:
        return False
    bare = _STRINGS.sub(b"", text)
    bare = _ARROWS.sub(b"", _COMMENTS.sub(b"", bare)).translate(None, _NOT_BRACKETS)
    for _ in range(limit):
        shorter = bare.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"").replace(b"<>", b"")
        if len(shorter) == len(bare):
            return len(bare) > limit
        bare = shorter
    return len(bare) > 0


_CONTEXTS: set[Any] = set()


def _tie(module: Any, context: Any) -> None:
    """Let the module own its context, whose end is the end of the module as well.

    The garbage collector ends the objects of a cycle (an exception that keeps its frames) in any order: a context that
    ended before its module would take the process with it. So it is kept here until the module goes.
    """
    pointer, library = module._ptr, module._capi
    _CONTEXTS.add(context)

    def dispose() -> None:
        library.LLVMPY_DisposeModule(pointer)
        _CONTEXTS.discard(context)
        context.close()

    module._dispose = dispose


def parse(text: str, context: Any = None) -> Any:
    """Parse and verify a module (in a context of its own by default). Raises IRSyntaxError or IRInvalid."""
    llvm = binding()
    check_text(text)
    own = context is None
    context = llvm.create_context() if own else context
    try:
        module = llvm.parse_assembly(text, context=context)
    except RuntimeError as error:
        message = str(error).strip().removeprefix("LLVM IR parsing error").strip()
        raise IRSyntaxError("LLVM does not accept the IR", because=message, fix="check it with `opt -S`") from None
    if own:
        _tie(module, context)
    try:
        module.verify()
    except RuntimeError as error:
        module.close()
        raise IRInvalid("the IR is not valid", because=str(error).strip(),
                        fix="check it with `opt -passes=verify`") from None
    return module
