"""`Library`: linked LLVM IR and the functions in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from irgrad.engine.codegen.cache import fingerprint
from irgrad.rules.errors import LoadError

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel
    from irgrad.engine.signature.signature import Signature
    from irgrad.rules.keys import Declared

__all__ = ["Library"]

_DEFINE = re.compile(r'^define\b(?P<head>[^@\n]*)@(?P<name>"(?:[^"\\]|\\.)*"|[-a-zA-Z$._0-9]+)\s*\(', re.M)
_LOCAL = re.compile(r"\b(internal|private|available_externally)\b")

_SECTIONS = 'fence syncscope("singlethread")'
_ASKED_FOR_THREADS = ("irgrad_omp_max_threads", "!irgrad.one_thread", "@__kmpc_omp_task_alloc(")
"""Of modules that have to know how many threads a kernel has, or of which one thread runs something."""


class Library:
    """Functions loaded from sources, linked into one LLVM module.

    `text` is the module's IR, `digest` its SHA-256, `source_names` what it was loaded from, `warnings` what the
    compiler said, `debug` whether it carries source lines, `preopt` whether its kernels are optimised before they are
    differentiated, `cpu` what machine code is made for (see `load`), `code` the sources that were given as strings, by
    their names in debug locations, `described` gives the IR with types in its debug information, `entire` with the
    functions that nothing calls, `plain` before any pass where passes of the compiler ran, `fails` whether functions
    may fail as a whole (Rust panics): kernels of them have a status and write what the function returns.

        >>> lib = irgrad.load("double f(double x) { return x; } double g(double x) { return 2 * x; }")
        >>> lib
        <irgrad.Library <string>: 2 functions>
    """

    __slots__ = ("_functions", "code", "cpu", "described", "digest", "entire", "fails", "plain", "preopt",
                 "source_names", "text", "warnings")  # fmt: skip

    def __init__(self, text: str, source_names: Sequence[str], warnings: str = "", *, preopt: bool = True,
                 cpu: str = "native", code: Sequence[tuple[str, str]] = (),
                 described: Callable[[], str] | None = None, entire: Callable[[], str] | None = None,
                 plain: Callable[[], str] | None = None, fails: bool = False) -> None:  # fmt: skip
        self.text = text
        self.source_names = tuple(source_names)
        self.warnings = warnings
        self.preopt = preopt
        self.cpu = cpu
        self.code = tuple(code)
        self.described = described
        self.entire = entire
        self.plain = plain
        self.fails = fails
        self.digest = fingerprint(text)
        self._functions: tuple[str, ...] | None = None

    @property
    def debug(self) -> bool:
        """Whether the module has debug locations, so that messages can name source lines."""
        from irgrad.engine.ir.text.outline import outline

        return "llvm.dbg.cu" in outline(self.text).metadata

    def __getattr__(self, name: str) -> Any:
        """Raises AttributeError, which for the name of a function says how it is called."""
        said = f"'Library' object has no attribute {name!r}"
        if not name.startswith("_") and name in self.functions():
            said += f": lib.kernel({name!r}) makes a function of it"
        raise AttributeError(said, name=name, obj=self)

    def functions(self) -> tuple[str, ...]:
        """Names of the functions that are defined and visible from outside, in the order of the module."""
        if self._functions is None:
            rows = _DEFINE.finditer(self.text)
            self._functions = tuple(row["name"].strip('"') for row in rows if not _LOCAL.search(row["head"]))
        return self._functions

    def resolve(self, name: str) -> str:
        """The symbol for a user's name: itself, or the one C++ function whose plain name it is.

        Raises LoadError with the nearest names when there is none, and with the candidates when there are several.
        """
        names = self.functions()
        if name in names:
            return name
        mangled = [symbol for symbol in names if _plain_name(symbol) == name]
        if len(mangled) == 1:
            return mangled[0]
        where = ", ".join(self.source_names)
        if mangled:
            raise LoadError(f"`{name}` names {len(mangled)} overloads", where=where,
                            because="C++ functions share names: " + ", ".join(f"`{row}`" for row in mangled[:6]),
                            fix='use one of these symbols   or   declare the function extern "C"')
        raise LoadError(f"there is no function `{name}`", where=where, because=self._nearest(name),
                        fix=self._hint(name))

    def _found(self, name: str) -> tuple[str, str]:
        """The symbol and the module's text in which it is visible: `static` and `inline` functions become so."""
        try:
            return self.resolve(name), self.text
        except LoadError:
            for text in (lambda: self.text), self.entire:
                made = text() if text is not None else ""
                rows = [row for row in _DEFINE.finditer(made) if name in (row["name"], _plain_name(row["name"]))]
                if len(rows) == 1:
                    head = _LOCAL.sub("", rows[0]["head"])
                    return rows[0]["name"], f"{made[: rows[0].start('head')]}{head}{made[rows[0].end('head') :]}"
            raise

    def _nearest(self, name: str) -> str:
        names = self.functions()
        import difflib

        by_plain = {_plain_name(symbol): symbol for symbol in names}
        near = [by_plain[row] for row in difflib.get_close_matches(name, by_plain, n=4, cutoff=0.5)]
        if near:
            return "the nearest names are " + ", ".join(f"`{row}`" for row in near)
        if not names:
            return "the module defines no function that is visible from outside"
        shown = ", ".join(f"`{row}`" for row in names[:8])
        return f"it defines {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")

    def _hint(self, name: str) -> str:
        import difflib

        near = difflib.get_close_matches(name, self.functions(), n=1, cutoff=0.5)
        return f'lib.kernel("{near[0]}")' if near else "choose one of lib.functions()"

    @overload
    def kernel(
        self, name: str, signature: str | Signature | None = None, *, errors: Mapping[int, str] | None = None,
        tape: str = "auto", strict_fp: bool = False, strong_zero: bool = False, device_tape: int = 0,
        device_block: int = 0, device: str = "", checkpoint: Mapping[Any, Any] | None = None,
        tape_memory: int | str | None = "auto", threads: int | str | None = None,
    ) -> Kernel: ...

    @overload
    def kernel(
        self, name: str, signature: Any, *, errors: Mapping[int, str] | None = None, tape: str = "auto",
        strict_fp: bool = False, strong_zero: bool = False, device_tape: int = 0,
        device_block: int = 0, device: str = "", checkpoint: Mapping[Any, Any] | None = None,
        tape_memory: int | str | None = "auto", threads: int | str | None = None,
    ) -> Any: ...

    def kernel(
        self, name: str, signature: Any = None, *, errors: Mapping[int, str] | None = None, tape: str = "auto",
        strict_fp: bool = False, strong_zero: bool = False, device_tape: int = 0,
        device_block: int = 0, device: str = "", checkpoint: Mapping[Any, Any] | None = None,
        tape_memory: int | str | None = "auto", threads: int | str | None = None,
    ) -> Any:
        """The function `name` as a Kernel; `signature` is its prototype with shapes (see `irgrad.Signature`).

        errors: the function returns a status, 0 for success, and these are the messages of other values:
                `errors={1: "matrix is singular"}`. Calls and derivatives then raise KernelError (under JAX
                `jax.errors.JaxRuntimeError`) with the message. A signature may mark the status itself:
                `status i32(...)`, or `status i32 info` for a parameter.
        tape:   under JAX, where the primal and its reverse sweep run apart (`jax.vjp`, reverse mode over `scan`), the
                values that the sweep needs go along as an array ("store"), or the primal runs again ("recompute");
                "auto" stores where that takes little memory, and not under `vmap`. See `engine.explain_tape`.
        strict_fp: derivatives keep the order of every operation, as the function itself always does (slower: sums of
                adjoints are not vectorised)
        strong_zero: in derivatives zero times infinity is zero, not NaN: for models that take the square root of what
                was clipped to 0. It hides that `sqrt(x) * sqrt(x)` has a slope at 0. Costs comparisons at each product.

        device_tape: bytes for the memory of a sample on a GPU, where no bound of it is known beforehand (a loop that
                ends by what it computes); a launch with too few fails
        device_block: threads of a block on a GPU, where a batch runs; by default what the registers of a thread allow

        device: "cpu" to stay on the host in programs of a GPU, between copies of the arrays: for what a device cannot
                run (printf, BLAS, recursion, a status that has to be raised)

        checkpoint: loops whose reverse sweep saves states and runs iterations again, in place of a tape of all that
                they computed: `{"solve.c:41": 32}` for the loop that begins there: a state each 32 iterations, and a
                tape of 32; "recompute" is 1; "binomial:16" at most 16 states; "memory:64MB" as much as fits; "fused" no
                states, where the cotangents of what leaves the loop are known before it
        threads: that share the loops of one call whose iterations are independent, as `#pragma omp parallel for` says
                or as is found; "auto": as many as `OMP_NUM_THREADS` says or as there are cores; None: none is shared.
                Loops of little work stay with one thread. Results have the same bits on any number of threads
        tape_memory: bytes, or "512MB", for the states and tapes of all outermost loops that can run again; "auto": so
                it is, with a warning, in calls whose tape would pass half of the free memory; None: never

        A signature that declares structs, `"struct body { f64[3] pos; f64 mass; }; f64(body[n] bodies, i64 n)"`, makes
        a `StructKernel`, called with dicts of arrays or structured arrays (see `irgrad.engine.signature.structs`).

        Raises LoadError (no such function), SignatureError (none given where one is needed, or it contradicts
        the IR) or IRGradError (another word for `tape` or `checkpoint`, a negative number).
        """
        from irgrad.engine.kernel.kernel import Kernel
        from irgrad.engine.kernel.options import team_size
        from irgrad.engine.kernel.programs import Options

        said: tuple[tuple[str, str], ...] = ()
        if checkpoint is not None or tape_memory not in (None, "auto"):
            from irgrad.engine.kernel.checkpoints import checkpoints

            said = checkpoints(checkpoint, tape_memory)
        options = Options(strict_fp=strict_fp, tape=tape, preopt=self.preopt, strong_zero=strong_zero,
                          device_tape=device_tape, device_block=device_block, cpu=self.cpu,
                          keep_on=device, checkpoint=said, bounded=tape_memory == "auto" and not said,
                          threads=team_size(threads))  # fmt: skip
        symbol, text = self._found(name)
        if options.threads and any(word in text for word in _ASKED_FOR_THREADS):
            from irgrad.interop.loaders.openmp import with_threads

            text = with_threads(text, symbol, options.threads)
        elif not options.threads and _SECTIONS in text:
            from irgrad.engine.analyses.control.promises import without_sections

            text = without_sections(text)
        if self.fails:
            from irgrad.interop.loaders.checked import checked_kernel

            return checked_kernel(text, symbol, signature, options, errors, self.code, self.described,
                                  self.digest)  # fmt: skip
        if isinstance(signature, str) and "struct" in signature:
            from irgrad.engine.kernel.packing import struct_kernel
            from irgrad.engine.signature.structs import has_structs

            if has_structs(signature):
                return struct_kernel(text, symbol, signature, self.digest, errors, options, self.code)
        if signature is None:
            from irgrad.engine.signature.prototype import infer, prototype_of

            signature = infer(prototype_of(text, symbol), self.described)
        return Kernel(text, symbol, signature, options, errors=errors, code=self.code, plain=self.plain)

    def function(self, name: str) -> Declared:
        """The function `name` of this module as the key of a rule, which then holds in this module only.

        Raises LoadError as `resolve` does.
        """
        from irgrad.rules.definitions.definition import Key
        from irgrad.rules.keys import Declared

        return Declared(Key("function", self.resolve(name), self.digest), None)

    def __repr__(self) -> str:
        return f"<irgrad.Library {', '.join(self.source_names)}: {len(self.functions())} functions>"


def _plain_name(symbol: str) -> str:
    """The last component of an Itanium-mangled function name (`_ZN2ns3fooEd` -> `foo`) or a path, else the symbol."""
    if not symbol.startswith("_Z"):
        return symbol.rpartition("::")[2]
    rest = symbol[2:]
    nested = rest.startswith("N")
    rest = rest.lstrip("NKVRO") if nested else rest.lstrip("L")
    last = symbol
    while match := re.match(r"(\d+)", rest):
        end = match.end() + int(match[1])
        last, rest = rest[match.end() : end], rest[end:]
        if not nested:
            break
    return last
