"""The Python side of rules with `host=True`: arrays that show the memory of a running kernel, exceptions handed on.

Compiled code calls `irgrad.host.DIGEST(frame, description)` (see differentiate/custom_rules/hosted.py). The GIL is
taken for the call. An exception cannot pass through compiled code: it is kept, further callbacks of that call do
nothing, and it is raised when the kernel has returned.
"""

from __future__ import annotations

import ctypes
import json
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from irgrad.engine.codegen.symbols import PYTHON
from irgrad.engine.ir.text.outline import outline
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.rules.definitions.definition import Rule
    from irgrad.rules.layers import Snapshot

__all__ = ["HostArray", "HostContext", "HostNumber", "guarded", "hosted", "kept", "refuse_hosted", "register"]

Array = np.ndarray[Any, Any]
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_KNOWN: dict[str, Any] = {}  # symbol -> callback: compiled code may call them as long as the process lives
_STATE = threading.local()
_NUMPY = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
          "i1": np.bool_}  # fmt: skip


def register(rules: Snapshot) -> None:
    """Give the bodies of host rules addresses that compiled code finds."""
    from irgrad.engine.codegen.symbols import define
    from irgrad.engine.differentiate.custom_rules.hosted import host_symbol

    for frozen in rules.layers:
        for defined in frozen.rules.values():
            for rule in defined:
                if rule.form == "host" and (symbol := host_symbol(rule)) not in _KNOWN:
                    _KNOWN[symbol] = callback = _CALLBACK(_entrance(rule))
                    define(symbol, ctypes.cast(callback, ctypes.c_void_p).value or 0)


def hosted(text: str) -> bool:
    """Whether a program calls Python."""
    found = outline(text)
    return found.has_prefix("irgrad.host.") or not PYTHON.isdisjoint(found.functions)


def kept(call: Callable[[], Any], otherwise: Any) -> Any:
    """What a callback gives; `otherwise` where it raises, which is kept for the kernel, or where one before has."""
    if getattr(_STATE, "error", None) is not None:
        return otherwise
    try:
        return call()
    except BaseException as error:
        _STATE.error = error
        return otherwise


def guarded(entry: Callable[[int], Any], text: str) -> Callable[[int], Any]:
    """The entry of a module; one that calls Python raises what its callbacks raised."""
    if not hosted(text):
        return entry

    def call(address: int) -> Any:
        before = getattr(_STATE, "error", None)
        _STATE.error = None
        try:
            failed = entry(address)
            error = _STATE.error
        finally:
            _STATE.error = before
        if error is not None:
            raise error
        return failed

    return call


def refuse_hosted(text: str, who: str, where: str) -> None:
    """Raise Unsupported where callbacks into Python cannot hand their exceptions on."""
    if hosted(text):
        if not outline(text).has_prefix("irgrad.host."):
            raise Unsupported(f"a function of Python in {where}", which=who,
                              because="its exceptions cannot leave it, and each of its calls would wait for the GIL",
                              fix="a function of C, or of ctypes, in place of a primal of Python")  # fmt: skip
        raise Unsupported(f"a host rule in {where}", which=who,
                          because="exceptions of Python cannot leave it, and each of its calls would wait for the GIL",
                          fix="partials or a rule with `ctx` instead of host=True")  # fmt: skip


def _entrance(rule: Rule) -> Callable[[int, int], None]:
    descriptions: dict[bytes, Any] = {}

    def run(frame: int, description: int) -> None:
        text = ctypes.string_at(description)
        row = descriptions.get(text)
        if row is None:
            row = descriptions[text] = json.loads(text)
        _run(rule, frame, row)

    return lambda frame, description: kept(lambda: run(frame, description), None)


def _run(rule: Rule, frame: int, row: dict[str, Any]) -> None:
    slots, shadows = _Slots(frame), _Shadows()
    arguments: list[HostArray | HostNumber] = [
        HostArray(slots, shadows, r) if r["kind"] == "array" else HostNumber.of(slots, shadows, r, row["mode"])
        for r in row["arguments"]
    ]
    result = HostNumber.of(slots, shadows, row["result"], row["mode"], result=True) if "result" in row else None
    context = HostContext(row["mode"], result)
    assert rule.body is not None
    try:
        rule.body(context, *arguments, **({"y": result} if rule.takes_result else {}))
        shadows.write()
    finally:
        given = [weakref.ref(thing) for thing in (*arguments, result) if thing is not None]
        arguments.clear()
        del context, result
        for reference in given:
            if (kept := reference()) is not None:  # by the body, or by the traceback of its error
                kept.settle()


class _Slots:
    """The frame of one callback."""

    def __init__(self, address: int) -> None:
        self.address = address

    def number(self, slot: int, dtype: str) -> Any:
        """The number in a slot."""
        return _copy(self.address + 8 * slot, (), dtype)[()]

    def pointer(self, slot: int) -> int:
        """The address in a slot."""
        return ctypes.c_size_t.from_address(self.address + 8 * slot).value


def _size(shape: tuple[int, ...], dtype: str) -> int:
    return np.dtype(_NUMPY[dtype]).itemsize * int(np.prod(shape, dtype=np.int64))


def _copy(address: int, shape: tuple[int, ...], dtype: str) -> Array:
    """What the memory of a kernel holds, in memory that outlives it."""
    size = _size(shape, dtype)
    if not size:
        return np.zeros(shape, _NUMPY[dtype])
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, _NUMPY[dtype], memory).copy()


class _Shadows:
    """The adjoints or tangents that a rule may write: copies of their memory, one for arrays that overlap, from the
    first look at them until they are written back."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []
        self._copies: dict[tuple[int, int], Array] = {}

    def add(self, address: int, size: int) -> None:
        """An array of so many bytes; all are added before any is looked at."""
        start, end = address, address + size
        for span in [s for s in self._spans if s[0] < end and start < s[1]]:
            self._spans.remove(span)
            start, end = min(start, span[0]), max(end, span[1])
        self._spans.append((start, end))

    def array(self, address: int, shape: tuple[int, ...], dtype: str) -> Array:
        """The array at an address, in the copy."""
        if not _size(shape, dtype):
            return np.zeros(shape, _NUMPY[dtype])
        span = next(s for s in self._spans if s[0] <= address < s[1])
        if span not in self._copies:
            self._copies[span] = _copy(span[0], (span[1] - span[0],), "i8")
        return np.ndarray(shape, _NUMPY[dtype], self._copies[span], address - span[0])

    def write(self) -> None:
        """Bring what was looked at back into the kernel's memory."""
        for (start, _), copy in self._copies.items():
            ctypes.memmove(start, copy.ctypes.data, copy.nbytes)


class HostArray:
    """An array argument: `value` (its memory now), `saved`, `result`, `d` (the shadow), `shape`, `active`.

    The arrays are copies: the kernel's memory may be gone when the rule has returned. What the rule makes of `d` is
    brought back then.
    """

    def __init__(self, slots: _Slots, shadows: _Shadows, row: dict[str, Any]) -> None:
        self.shape = tuple(int(slots.number(slot, "i64")) for slot in row["shape"])
        self.active: bool = row["active"]
        self._dtype: str = row["dtype"]
        self._shadows = shadows
        known = [what for what in ("value", "saved", "result", "d") if what in row]
        self._addresses: dict[str, int] = {what: slots.pointer(row[what]) for what in known}
        self._copies: dict[int, Array] = {}
        self._d: Array | None = None
        if self.active:
            shadows.add(self._addresses["d"], _size(self.shape, self._dtype))

    def _get(self, what: str) -> Array:
        address = self._addresses.get(what, self._addresses["value"])
        if address not in self._copies:
            self._copies[address] = _copy(address, self.shape, self._dtype)
        return self._copies[address]

    def settle(self) -> None:
        """Copy what was not looked at while the rule ran: it was kept, and the memory will be gone."""
        for what, address in self._addresses.items():
            if address:
                _ = self.d if what == "d" else self._get(what)

    @property
    def value(self) -> Array:
        """The memory as it is now."""
        return self._get("value")

    @property
    def saved(self) -> Array:
        """The contents when the function was called."""
        return self._get("saved")

    @property
    def result(self) -> Array:
        """The contents when the function had returned."""
        return self._get("result")

    @property
    def d(self) -> Array:
        """The shadow; zeros that nobody reads for a Const argument."""
        if self._d is None:
            zeros: Array = np.zeros(self.shape, _NUMPY[self._dtype])
            self._d = self._shadows.array(self._addresses["d"], self.shape, self._dtype) if self.active else zeros
        return self._d

    @d.setter
    def d(self, value: Any) -> None:
        if value is not self.d:
            self.d[...] = value


class HostNumber(float):
    """A number argument or the result: a float with `d` and `active`. Integers are floats here: `int(n)`."""

    active: bool
    _cell: Callable[[], Array]

    @classmethod
    def of(
        cls, slots: _Slots, shadows: _Shadows, row: dict[str, Any], mode: str, *, result: bool = False
    ) -> HostNumber:
        """Read from a frame. What is written to `d`, an adjoint of an argument or the tangent of the result, goes back
        with the shadows."""
        made = cls(slots.number(row["value"], row["dtype"]))
        made.active = bool(row.get("active", "d" in row))
        dtype, written = row["dtype"], "d" in row and (mode == "reverse") != result
        if written and (address := slots.pointer(row["d"])):
            shadows.add(address, _size((), dtype))
            made._cell = lambda: shadows.array(address, (), dtype)
        else:
            cell = np.array(slots.number(row["d"], dtype) if "d" in row else 0.0)
            made._cell = lambda: cell
        return made

    @property
    def value(self) -> float:
        """The number itself, as an array's is its contents."""
        return float(self)

    @property
    def d(self) -> Any:
        """The tangent or adjoint; zero that nobody reads where there is none."""
        return self._cell()[()]

    @d.setter
    def d(self, value: Any) -> None:
        self._cell()[()] = value

    def settle(self) -> None:
        """As that of an array."""
        self._cell()

    def __index__(self) -> int:
        return int(self)


class HostContext:
    """`ctx` of a host rule: `mode`, `result`, `width`."""

    width = 1

    def __init__(self, mode: str, result: HostNumber | None) -> None:
        self.mode = mode
        self.result = result
