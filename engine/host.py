"""The Python side of rules with `host=True`: arrays on the memory of a running kernel, exceptions handed on.

Compiled code calls `irgrad.host.DIGEST(frame, description)` (see transforms/hosted.py). The GIL is taken for the call.
An exception cannot pass through compiled code: it is kept, further callbacks of that call do nothing, and it is raised
when the kernel has returned.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.engine.programs import Program
    from irgrad.rules.definition import Rule
    from irgrad.rules.layers import Snapshot

__all__ = ["HostArray", "HostContext", "HostNumber", "guarded", "hosted", "refuse_hosted", "register"]

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_KNOWN: dict[str, Any] = {}  # symbol -> callback: compiled code may call them as long as the process lives
_STATE = threading.local()
_NUMPY = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
          "i1": np.bool_}  # fmt: skip


def register(rules: Snapshot) -> None:
    """Give the bodies of host rules addresses that compiled code finds."""
    from irgrad.engine.codegen.symbols import define
    from irgrad.engine.transforms.hosted import host_symbol

    for frozen in rules.layers:
        for defined in frozen.rules.values():
            for rule in defined:
                if rule.form == "host" and (symbol := host_symbol(rule)) not in _KNOWN:
                    _KNOWN[symbol] = callback = _CALLBACK(_entrance(rule))
                    define(symbol, ctypes.cast(callback, ctypes.c_void_p).value or 0)


def hosted(text: str) -> bool:
    """Whether a program calls Python."""
    return "@irgrad.host." in text


def guarded(entry: Callable[[int], Any], text: str) -> Callable[[int], Any]:
    """The entry of a module; one that calls Python raises what its callbacks raised."""
    if not hosted(text):
        return entry

    def call(address: int) -> None:
        before = getattr(_STATE, "error", None)
        _STATE.error = None
        try:
            entry(address)
            error = _STATE.error
        finally:
            _STATE.error = before
        if error is not None:
            raise error

    return call


def refuse_hosted(program: Program, where: str) -> None:
    """Raise Unsupported where callbacks into Python cannot hand their exceptions on."""
    if hosted(program.stage.text):
        raise Unsupported(f"a host rule in {where}", which=repr(program),
                          because="exceptions of Python cannot leave it, and each of its calls would wait for the GIL",
                          fix="partials or a rule with `ctx` instead of host=True")  # fmt: skip


def _entrance(rule: Rule) -> Callable[[int, int], None]:
    descriptions: dict[bytes, Any] = {}

    def call(frame: int, description: int) -> None:
        if getattr(_STATE, "error", None) is not None:
            return
        try:
            text = ctypes.string_at(description)
            row = descriptions.get(text)
            if row is None:
                row = descriptions[text] = json.loads(text)
            _run(rule, frame, row)
        except BaseException as error:
            _STATE.error = error

    return call


def _run(rule: Rule, frame: int, row: dict[str, Any]) -> None:
    slots = _Slots(frame)
    arguments = [
        HostArray(slots, r) if r["kind"] == "array" else HostNumber.of(slots, r, row["mode"]) for r in row["arguments"]
    ]
    result = HostNumber.of(slots, row["result"], row["mode"], result=True) if "result" in row else None
    context = HostContext(row["mode"], result)
    assert rule.body is not None
    rule.body(context, *arguments, **({"y": result} if rule.takes_result else {}))
    for argument in (*arguments, result):
        if isinstance(argument, HostNumber):
            argument.store()


class _Slots:
    """The frame of one callback."""

    def __init__(self, address: int) -> None:
        self.address = address

    def number(self, slot: int, dtype: str) -> Any:
        """The number in a slot."""
        return _array(self.address + 8 * slot, (), dtype)[()]

    def pointer(self, slot: int) -> int:
        """The address in a slot."""
        return ctypes.c_size_t.from_address(self.address + 8 * slot).value


def _array(address: int, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    kind = np.dtype(_NUMPY[dtype])
    size = kind.itemsize * int(np.prod(shape, dtype=np.int64))
    if not size:
        return np.zeros(shape, kind)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, kind, memory)


class HostArray:
    """An array argument: `value` (its memory now), `saved`, `result`, `d` (the shadow), `shape`, `active`."""

    def __init__(self, slots: _Slots, row: dict[str, Any]) -> None:
        self.shape = tuple(int(slots.number(slot, "i64")) for slot in row["shape"])
        self.active: bool = row["active"]
        self._slots = slots
        self._row = row
        self._d: Any = None

    def _get(self, what: str) -> np.ndarray[Any, Any]:
        return _array(self._slots.pointer(self._row[what]), self.shape, self._row["dtype"])

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """The memory as it is now."""
        return self._get("value")

    @property
    def saved(self) -> np.ndarray[Any, Any]:
        """The contents when the function was called."""
        return self._get("saved" if "saved" in self._row else "value")

    @property
    def result(self) -> np.ndarray[Any, Any]:
        """The contents when the function had returned."""
        return self._get("result" if "result" in self._row else "value")

    @property
    def d(self) -> np.ndarray[Any, Any]:
        """The shadow; zeros that nobody reads for a Const argument."""
        if self._d is None:
            self._d = self._get("d") if self.active else np.zeros(self.shape, _NUMPY[self._row["dtype"]])
        return self._d  # type: ignore[no-any-return]

    @d.setter
    def d(self, value: Any) -> None:
        if value is not self.d:
            self.d[...] = value


class HostNumber(float):
    """A number argument or the result: a float with `d` and `active`. Integers are floats here: `int(n)`."""

    d: Any
    active: bool
    _store: Any

    @classmethod
    def of(cls, slots: _Slots, row: dict[str, Any], mode: str, *, result: bool = False) -> HostNumber:
        """Read from a frame. What is to be written goes back with `store`."""
        made = cls(slots.number(row["value"], row["dtype"]))
        made.active = bool(row.get("active", "d" in row))
        made._store = None
        made.d = 0.0
        if "d" in row:
            written = (mode == "reverse") != result
            if written:
                made._store = _array(slots.pointer(row["d"]), (), row["dtype"])
                made.d = made._store[()]
            else:
                made.d = slots.number(row["d"], row["dtype"])
        return made

    def store(self) -> None:
        """Write the adjoint (of an argument) or the tangent (of the result)."""
        if self._store is not None:
            self._store[()] = self.d

    def __index__(self) -> int:
        return int(self)


class HostContext:
    """`ctx` of a host rule: `mode`, `result`, `width`."""

    width = 1

    def __init__(self, mode: str, result: HostNumber | None) -> None:
        self.mode = mode
        self.result = result
