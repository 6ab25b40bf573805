"""jit: IR text -> machine code in this process, through the disk cache.

Each compiled unit has an LLJIT engine of its own, closed with the last reference to its `Compiled`: a shared engine
would keep some kilobytes of every unit that was ever in it. Machine code is cached as an object file; a second process
links it without running any LLVM pass, and mostly without LLVM at all: `elf.place` takes what it can, LLVM's linker the
rest. So nothing here imports LLVM before it has something to do.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irgrad.engine.codegen import symbols
from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.engine.codegen.elf import ObjectFile, place
from irgrad.engine.codegen.llvm import identity
from irgrad.engine.codegen.symbols import MEET
from irgrad.engine.support.limits import limit
from irgrad.rules.errors import IRInvalid, LoadError, Unsupported

if TYPE_CHECKING:
    from irgrad.engine.codegen.target import Target

__all__ = [
    "LLVM_LOCK",
    "Compiled",
    "compile_known",
    "compile_module",
    "compile_object",
    "link_object",
    "release_tapes",
]

_STARTS = b".init_array\0"  # among the names of sections
_UNIT = "irgrad"
# an entry of this name gives the unit's idle tape memory back (engine/runtime/helpers.py)
_DRAIN = "irgrad_tape_drain"
_TRIM = "irgrad_tape_trim"  # and one of this name that which no call uses
_STOP = "irgrad_tape_stop"  # and one of this name ends the call that holds a tape (engine/runtime/arena.py)
# Engine, tracker and drain of each unit that is open, by a number. They are kept here, not in `Compiled`, because the
# garbage collector finalises the members of a cycle in any order: the code must still be there when it is drained.
_OPEN: dict[int, tuple[Any, Any, Callable[[], Any] | None]] = {}
_TRIMS: dict[int, Callable[[], int]] = {}  # of units that are open
_NUMBERS = count()
# One compilation at a time: LLVM holds a process-wide lock anyway, and llvmlite's objects are not thread-safe.
LLVM_LOCK = threading.RLock()
# Numbers of units whose last reference went while another thread had the lock.
_ENDED: deque[int] = deque()


class Compiled:
    """Machine code of one unit; it lives as long as this object or a function got from it.

    `image` is the object file it was linked from, `cached` whether that came from the disk cache. A unit with an entry
    `irgrad_tape_drain` calls it when it is closed: the memory that it keeps between calls must not outlive it.
    """

    __slots__ = ("__weakref__", "_addresses", "_number", "cached", "image")

    def __init__(self, engine: Any, tracker: Any, entries: Sequence[str], image: bytes, cached: bool) -> None:
        self._addresses = {name: int(tracker[name]) for name in entries}
        drain = self._addresses.get(_DRAIN)
        self._number = next(_NUMBERS)
        _OPEN[self._number] = (engine, tracker, None if drain is None else ctypes.CFUNCTYPE(None)(drain))
        if _TRIM in self._addresses:
            _TRIMS[self._number] = ctypes.CFUNCTYPE(ctypes.c_int64)(self._addresses[_TRIM])
        self.image = image
        self.cached = cached

    def address(self, name: str) -> int:
        """The address of an entry. Raises LoadError for a name that was not among the entries, or after close()."""
        address = self._addresses.get(name)
        if address is None:
            known = ", ".join(f"`{entry}`" for entry in self._addresses) or "none: it is closed"
            raise LoadError(f"`{name}` is not an entry of this unit", because=f"its entries are {known}",
                            fix="compile_module(text, entries=[...]) with that name")
        return address

    def has(self, name: str) -> bool:
        """Whether it is an entry of this unit."""
        return name in self._addresses

    def function(self, name: str, result: Any = None, *arguments: Any) -> Callable[..., Any]:
        """A ctypes function for an entry, with ctypes types; it keeps this unit alive."""
        call: Any = ctypes.CFUNCTYPE(result, *arguments)(self.address(name))
        call.compiled = self
        return call  # type: ignore[no-any-return]

    def close(self) -> None:
        """Free the machine code now. Functions got from this unit must not be called any more."""
        self._addresses = {}
        with LLVM_LOCK:
            _end(self._number)

    def __del__(self) -> None:
        if hasattr(self, "_number") and LLVM_LOCK is not None:  # None: the interpreter is at its end
            _ENDED.append(self._number)
            _end_unused()


def _end(number: int) -> None:
    """Free the machine code of a unit. The lock is held."""
    engine, tracker, drain = _OPEN.pop(number, (None, None, None))
    _TRIMS.pop(number, None)
    if drain is not None:
        drain()
    if tracker is not None:
        tracker.close()
    if engine is not None:
        engine.close()


def release_tapes() -> int:
    """Free the tape memory that units keep between calls, but for what calls of other threads use now; its bytes."""
    with LLVM_LOCK:
        return sum(trim() for trim in list(_TRIMS.values()))


def _end_unused() -> None:
    """Free the units that nothing refers to any more, unless another thread is at work: later, then.

    It never waits. The garbage collector calls it wherever some thread happens to allocate, with whatever locks that
    thread holds; to wait there for a compilation that wants one of these locks would be for ever.
    """
    if not LLVM_LOCK.acquire(blocking=False):
        return
    try:
        while _ENDED:
            _end(_ENDED.popleft())
    finally:
        LLVM_LOCK.release()


def compile_module(
    text: str, entries: Sequence[str], *, strict_fp: bool = False, level: int = 3, cache: bool = True,
    target: Target | None = None, stoppable: bool | str = False,
) -> Compiled:  # fmt: skip
    """Optimise, compile and link a module; `entries` are the functions whose addresses are wanted. stoppable: whether
    signals end its loops, see `passes.Settings`.

    Raises IRSyntaxError, IRInvalid (LLVM refuses the text) or LoadError (an entry without body, a symbol that nothing
    provides; before any of it could run).
    """
    text = _for_process(text)
    stops = [name for name in (_STOP, MEET) if stoppable and _defines(text, name)]
    image, cached = compile_object(text, [*entries, *stops], strict_fp=strict_fp, level=level, cache=cache,
                                   target=target, stoppable=stoppable)  # fmt: skip
    if stoppable:
        return _met(image, entries, cached, elsewhere=stoppable is not True)
    return link_object(image, entries, cached=cached)


def _met(image: bytes, entries: Sequence[str], cached: bool, *, elsewhere: bool = False) -> Compiled:
    """Link an object whose loops may ask for signals, and tell it whom they ask. elsewhere: on threads of XLA's too."""
    known = ObjectFile(image).defined
    unit = link_object(image, [*entries, MEET] if MEET in known else entries, cached=cached)
    if MEET in known:
        from irgrad.engine.codegen.interrupts import count_interrupts, meet

        meet(unit, compile_module)
        if elsewhere:
            count_interrupts()
    return unit


def compile_object(
    text: str, entries: Sequence[str], *, strict_fp: bool = False, level: int = 3, cache: bool = True,
    target: Target | None = None, stoppable: bool | str = False,
) -> tuple[bytes, bool]:  # fmt: skip
    """The object file (position-independent) of a module for a target, and whether it came from the disk cache.

    stoppable: signals end its loops (see `polls`); only in this process"""
    if "@llvm.global_ctors" in text:
        from irgrad.engine.codegen.cxx import run_at_start

        text = run_at_start(text)
    made_for = "host" if target is None else target.name
    key = fingerprint("object-6", made_for, text, "\0".join(entries), f"{strict_fp} {level} {stoppable}",
                      str(limit("OPTIMISED")), *_machine_identity())
    store = default_cache()
    if cache:
        image = store.get("object", key)
        if image is not None:
            return image, True
    with LLVM_LOCK:
        image = store.get("object", key) if cache else None  # another thread may have made it meanwhile
        if image is not None:
            return image, True
        from irgrad.engine.codegen.large_modules import is_large
        from irgrad.engine.codegen.long_functions import shorten_module  # slow to import: not for cached code
        from irgrad.engine.codegen.optimise import is_adjoint, optimised_module
        from irgrad.engine.codegen.target import HOST, check_instructions
        from irgrad.engine.support.progress import Progress

        with Progress(f"making machine code of `{_plain(entries[0])}`" if entries else "making machine code"):
            target = target or HOST
            machine = target.machine_for(adjoint=is_adjoint(text), opt=min(level, 1) if is_large(text) else level)
            module = optimised_module(
                text, entries, machine, strict_fp=strict_fp, level=level, target=target, stoppable=stoppable
            )
            _check_bodies(module, entries)
            check_instructions(module, target.features(), f"@{_plain(entries[0])}" if entries else "")
            module = shorten_module(module)
            image = bytes(machine.emit_object(module))
            module.close()
    if cache:
        store.put("object", key, image)
    return image, False


def _plain(name: str) -> str:
    """The user's name of an entry."""
    plain = name.removeprefix("irgrad.entry.").partition(".normal")[0]
    handler = re.fullmatch(r"irgrad\.(.+?)(?:\.batch)?\.[0-9a-f]{32}", plain)  # of XLA's
    return handler[1] if handler else plain


def _check_bodies(module: Any, entries: Sequence[str]) -> None:
    """Refuse an entry that LLVM found to have no defined behaviour: it has no code, and its unit cannot be linked."""
    for name in entries:
        block = next(iter(module.get_function(name).blocks), None)
        first = next(iter(block.instructions), None) if block is not None else None
        if first is not None and first.opcode == "unreachable":
            plain = _plain(name)
            raise IRInvalid(f"the function `{plain}` has no defined behaviour", where=f"@{plain}",
                            because="every way through it ends in undefined behaviour, so that LLVM left nothing of it",
                            fix="initialise what it reads, return from every path, end its loops (-Wall tells)")


def _for_process(text: str) -> str:
    """A module as this process can take it."""
    if "thread_local" not in text:
        return text
    from irgrad.engine.codegen.thread_locals import as_shared

    return as_shared(text)


def compile_known(
    key: str, text: Callable[[], str], entries: Sequence[str], optional: Sequence[str] = (),
    strict_fp: bool = False, cpu: str = "native",
) -> Compiled:  # fmt: skip
    """`compile_module` of a text that need not be made when the disk cache has its machine code.

    key: a digest of everything that determines the text, and the CPU; optional: entries where the module defines them;
    cpu: a key of `target.CPUS`.
    """
    key = fingerprint("known-2", key, "\0".join(entries), "\0".join(optional), str(strict_fp),
                      str(limit("OPTIMISED")), *_machine_identity())  # fmt: skip
    store = default_cache()
    image = store.get("object", key)
    cached = image is not None
    if image is None:
        from irgrad.engine.codegen.target import CPUS

        made = _for_process(text())
        wanted = [*entries, *(name for name in optional if _defines(made, name))]
        image, _ = compile_object(made, wanted, strict_fp=strict_fp, cache=False, target=CPUS[cpu], stoppable=True)
        store.put("object", key, image)
    defined = ObjectFile(image).defined
    return _met(image, [*entries, *(name for name in optional if name in defined)], cached)


def _defines(text: str, name: str) -> bool:
    from irgrad.engine.support.lines import lines_of  # what is cached is not asked

    return any(f" @{name}(" in row for row in lines_of(text, "define "))


def link_object(image: bytes, entries: Sequence[str], *, cached: bool = False) -> Compiled:
    """Link an object file into this process. Raises LoadError for symbols that nothing provides, Unsupported for
    thread-local variables of others: what finds each thread's copy is the system's loader, which only takes files."""
    _end_unused()
    file = ObjectFile(image)
    if file.thread_local:
        variable = min(file.thread_local, key=len).rpartition(".shadow.")[2]
        raise Unsupported(
            f"the variable `{variable}` is thread-local", where=f"@{_plain(entries[0])}" if entries else "",
            because="each thread's copy of it is made where a program or a library is loaded from a file",
            fix="make it `static` (calls that share such a variable run one at a time), or local",
        )
    names = file.undefined
    missing = symbols.missing(names)
    if missing:
        return _link_with_helpers(image, entries, names, missing, cached=cached)
    if _STARTS in image:
        from irgrad.engine.codegen.cxx import HANDLE, link_with_libcxx

        return Compiled(None, link_with_libcxx([image], [HANDLE]), entries, image, cached)
    addresses = symbols.resolve_all(names)
    placed = place(image, addresses) if not any(map(_unwinds, names)) else None
    if placed is not None:
        return Compiled(None, placed, entries, image, cached)
    return _link_with_llvm(image, entries, addresses, cached=cached)


def _unwinds(name: str) -> bool:
    """Whether code with this symbol throws or catches: only LLVM's linker registers the tables for that."""
    return name.startswith(("__gxx_personality", "_Unwind_"))


def _link_with_helpers(
    image: bytes, entries: Sequence[str], names: Sequence[str], missing: Sequence[str], *, cached: bool
) -> Compiled:
    """Link an object some of whose symbols no library of this process has: bfloat conversions, the C++ library."""
    from irgrad.engine.codegen.bfloat import BFLOAT_SYMBOLS, BFLOAT_TEXT
    from irgrad.engine.codegen.cxx import HANDLE, is_cxx_symbol, link_with_libcxx

    rest = [name for name in missing if name not in BFLOAT_SYMBOLS]
    if all(map(is_cxx_symbol, rest)) and (rest or _STARTS in image):
        more = [compile_object(BFLOAT_TEXT, sorted(BFLOAT_SYMBOLS))[0]] if len(rest) < len(missing) else []
        return Compiled(None, link_with_libcxx([image, *more], rest or [HANDLE]), entries, image, cached)
    addresses = symbols.resolve_all(name for name in names if name not in missing or name in rest)
    return _link_with_llvm(image, entries, addresses, BFLOAT_TEXT, cached=cached)


def _link_with_llvm(
    image: bytes, entries: Sequence[str], addresses: Mapping[str, int], more: str = "", *, cached: bool
) -> Compiled:
    from irgrad.engine.codegen.llvm import binding
    from irgrad.engine.codegen.target import HOST

    llvm = binding()
    with LLVM_LOCK:
        builder = llvm.JITLibraryBuilder().add_object_img(image)
        if more:
            builder.add_ir(more)
        for name, address in addresses.items():
            builder.import_symbol(name, address)
        for name in entries:
            builder.export_symbol(name)
        engine = llvm.create_lljit_compiler(HOST.machine(), use_jit_link=True, suppress_errors=True)
        try:
            tracker = builder.link(engine, _UNIT)
        except RuntimeError as error:
            engine.close()
            raise LoadError("the compiled unit cannot be linked", because=str(error).strip(),
                            fix="check that every entry is defined by the module") from None
    return Compiled(engine, tracker, entries, image, cached)


@cache
def _machine_identity() -> tuple[str, ...]:
    """What machine code depends on besides its IR: this code, LLVM, the CPU, the vector library."""
    folder = Path(__file__).parent
    files = ("optimise.py", "target.py", "vector_math.py", "prepare.py", "masked.py", "large_modules.py",
             "long_functions.py", "polls.py", "hot_functions.py")
    code = fingerprint(*((folder / name).read_bytes() for name in files))
    libmvec = symbols.open_library("libmvec.so.1")
    return (code, f"libmvec={libmvec}", *identity())
