"""Programs: a kernel's function and its words of derivatives, derived, optimised and compiled when first needed.

A program is one normal-form function. `J(active)` and `V(active)` give the programs one derivative further; they are
made once per kernel and word. What a program needs to run (its slots and its IR) is kept on disk under a key over
library, function, signature, word, options and the sources of irgrad, so that a second process neither reads,
analyses nor differentiates anything.
"""

from __future__ import annotations

import ctypes
import math
import re
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irgrad.engine.binding import address_of, frame_of
from irgrad.engine.normal import entry_name, entry_text, normal_name, normal_text
from irgrad.engine.options import Options
from irgrad.engine.pause import no_collections
from irgrad.engine.slots import Slot, Step, derived_slots, primal_slots, word_text
from irgrad.engine.status import Table, failure
from irgrad.engine.turns import in_turn
from irgrad.rules.errors import ActivityError, IRGradError
from irgrad.rules.layers import InForce, current, token

if TYPE_CHECKING:
    from irgrad.engine.ir.model import Module
    from irgrad.engine.signature import Signature
    from irgrad.rules.layers import Snapshot

__all__ = ["Options", "Program", "Source"]

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_READ = ctypes.CFUNCTYPE(ctypes.c_int64)
_PEAK_NAME = "irgrad.tape_bytes"
_DRAIN_NAME = "irgrad_tape_drain"  # closing the unit frees the tape memory that it keeps between calls
_PEAK = f"""
define i64 @{_PEAK_NAME}() {{
  %peak = load atomic i64, ptr @irgrad_tape_peak monotonic, align 8
  ret i64 %peak
}}
"""
_FUNCTION = re.compile(r'^(?:define|declare)\b[^\n@]*@(?:"([^"\n]*)"|([-a-zA-Z$._0-9]+))', re.M)
_TOKENS = 64  # states of the rules that a program remembers
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """What all programs of one kernel share: the module's text and its digest, the C function, its signature, what the
    values of its status mean."""

    text: str
    digest: str
    name: str
    signature: Signature
    options: Options
    errors: Table = ()


@dataclass(frozen=True, slots=True)
class _Stage:
    """A program before machine code: the name of its function, the scratch slots of its last step, compressed IR.

    note: what else there is to know of it (see `tapes`)
    """

    name: str
    scratch: tuple[int, ...]
    packed: bytes
    note: str = ""

    @property
    def text(self) -> str:
        return zlib.decompress(self.packed).decode("utf-8", "surrogateescape")

    @staticmethod
    def of(name: str, scratch: Sequence[int], text: str, note: str = "") -> _Stage:
        return _Stage(name, tuple(scratch), zlib.compress(text.encode("utf-8", "surrogateescape"), 1), note)

    def to_bytes(self) -> bytes:
        head = [self.name, self.note, *map(str, self.scratch)]
        return "\0".join(head).encode("utf-8", "surrogateescape") + b"\n" + self.packed

    @staticmethod
    def from_bytes(data: bytes) -> _Stage:
        head, _, packed = data.partition(b"\n")
        name, note, *scratch = head.decode("utf-8", "surrogateescape").split("\0")
        return _Stage(name, tuple(map(int, scratch)), packed, note)


class Program:
    """One word over a kernel. Thread-safe; compiled at most once."""

    __slots__ = ("__weakref__", "_children", "_compiled", "_entry", "_lock", "_peak", "_said", "_seen", "_shapes",
                 "_slots", "_stage", "_steps", "_symbols", "parent", "ruled", "rules", "source", "word")  # fmt: skip

    def __init__(
        self, source: Source, parent: Program | None = None, step: Step | None = None,
        rules: Snapshot | None = None, ruled: str = "",
    ) -> None:  # fmt: skip
        """rules: those in force when the derivative was asked for; ruled: what they say about its names, a digest."""
        self.source = source
        self.rules = rules
        self.ruled = ruled
        self._seen: dict[Any, Program] = {}
        self._symbols: tuple[str, ...] | None = None
        self._said: tuple[Snapshot, str] | None = None  # the digest for the snapshot asked for last
        self.parent = parent
        self.word: tuple[Step, ...] = (*parent.word, step) if parent is not None and step is not None else ()
        self._lock = threading.RLock()
        self._children: dict[tuple[Step, str], Program] = {}
        self._stage: _Stage | None = None
        self._slots: tuple[Slot, ...] | None = None
        self._compiled: Any = None
        self._peak: Any = None
        self._entry: Any = None
        self._shapes: dict[tuple[int, ...], tuple[tuple[int, ...], ...]] = {}

    # -- the algebra ---------------------------------------------------------------------------------------------
    # width: tangents or cotangents at once; their slots get it as their last axis (see transforms/lanes.py)

    def J(self, active: Iterable[int], width: int = 1) -> Program:  # noqa: N802 - the field's letter
        """The forward derivative: every slot in `active` (positions in `slots`) gets a tangent right behind it."""
        return self._derived("J", active, width)

    def V(self, active: Iterable[int], width: int = 1) -> Program:  # noqa: N802 - the field's letter
        """The reverse derivative: every slot in `active` gets a shadow right behind it."""
        return self._derived("V", active, width)

    def T(self, active: Iterable[int], width: int = 1) -> Program:  # noqa: N802 - the field's letter
        """The forward derivative `J` without the values of the function's own outputs."""
        return self._derived("T", active, width)

    def R(self, active: Iterable[int], width: int = 1) -> Program:  # noqa: N802 - the field's letter
        """The reverse derivative `V` without the values of the function's own outputs."""
        return self._derived("R", active, width)

    def A(self, active: Iterable[int], width: int = 1) -> Program:  # noqa: N802 - the field's letter
        """The function with a tape for `B`, an array of the caller; `tapes.tape_of` tells whether there is one."""
        return self._derived("A", active, width)

    def B(self, active: Iterable[int], width: int = 1) -> Program:  # noqa: N802 - the field's letter
        """The reverse sweep of `V` on the tape of `A`; of the function's own slots it only has the inputs."""
        return self._derived("B", active, width)

    def _derived(self, mode: str, active: Iterable[int], width: int) -> Program:
        step = Step(mode, tuple(sorted(set(active))), width)
        now = token()
        child = self._seen.get((step, now))
        rules, ruled = current(), ""
        if child is None:
            ruled = rules.digest(self.symbols, self.source.digest)
            child = self._children.get((step, ruled))
        if child is None:
            slots = self.slots
            for number in step.active:
                if not slots[number].differentiable:
                    raise ActivityError(f"`{slots[number].name}` has no derivative", where=f"`{self.source.signature}`",
                                        because=f"its elements are {slots[number].dtype}",
                                        fix="differentiate with respect to floating-point arguments")
            with self._lock:
                made = Program(self.source, self, step, rules if ruled else None, ruled)
                child = self._children.setdefault((step, ruled), made)
        if len(self._seen) > _TOKENS:
            self._seen.clear()
        self._seen[step, now] = child
        return child

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the functions that the program's module defines or declares: those that rules may speak about."""
        if self._symbols is None:
            text = self.source.text if self.parent is None else self.stage.text
            self._symbols = tuple(sorted({a or b for a, b in _FUNCTION.findall(text)}))
        return self._symbols

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots, in the order of the frame. For a derivative this differentiates (or asks the disk cache)."""
        if self._slots is None:
            if self.parent is None:
                self._slots = primal_slots(self.source.signature)
            else:
                step = self.word[-1]
                self._slots = derived_slots(self.parent.slots, step.mode, step.active, self.stage.scratch,
                                            len(self.word) - 1, step.width)
        return self._slots

    def find(self, index: int, *steps: int) -> int | None:
        """Position of the slot of C parameter `index` derived at these steps of the word, None when there is none."""
        for number, slot in enumerate(self.slots):
            if slot.index == index and slot.steps == steps and slot.role != "scratch":
                return number
        return None

    @property
    def status_slot(self) -> int | None:
        """Position of the slot with the function's status, None when it has none."""
        status = self.source.signature.status
        return None if status is None else self.find(status)

    @property
    def key(self) -> str:
        """Digest over everything that determines the program's code."""
        from irgrad.engine.codegen.cache import fingerprint
        from irgrad.engine.own_sources import source_digest

        source = self.source
        return fingerprint(source.digest, source.name, str(source.signature), word_text(self.word),
                           str(source.options), source_digest(), *self._ruled_steps())

    def _ruled_steps(self) -> list[str]:
        """What the rules said at each step of the word; nothing when they never said anything."""
        said = [self.ruled] if self.parent is None else [*self.parent._ruled_steps(), self.ruled]
        return said if any(said) else []

    # -- making it -----------------------------------------------------------------------------------------------

    @property
    def stage(self) -> _Stage:
        """Name, scratch slots and IR; from the disk cache when it has them."""
        if self._stage is None:
            with self._lock:
                if self._stage is None:
                    self._stage = self._make_stage()
        return self._stage

    def _make_stage(self) -> _Stage:
        from irgrad.engine.codegen.cache import default_cache

        disk, key = default_cache(), self.key
        stored = disk.get("program", key)
        if stored is not None:
            return _Stage.from_bytes(stored)
        from irgrad.engine.progress import Progress

        if self.parent is not None:
            _ = self.parent.stage
        doing = "preparing" if self.parent is None else "differentiating"
        with no_collections(), Progress(f"{doing} `{self.source.name}`"):
            stage = self._primal_stage() if self.parent is None else self._derived_stage(self.parent)
        disk.put("program", key, stage.to_bytes())
        return stage

    def _primal_stage(self) -> _Stage:
        from irgrad.engine.ir.assembly import plain_assembly
        from irgrad.engine.ir.entities import restrict
        from irgrad.engine.ir.validate import validate

        source, name = self.source, normal_name(self.source.name)
        own = plain_assembly(restrict(source.text, [source.name]))
        text = own + normal_text(source.name, source.signature)
        validate(_read(text, name))  # before LLVM sees it: what LLVM accepts may still end the process
        return _Stage.of(name, (), _prepared(source, own))

    def _derived_stage(self, parent: Program) -> _Stage:
        if self.word[-1].mode == "B":
            return self._other_half(parent)
        kept = parent.kept(self.rules)
        while True:
            stage, wanted = self._derive(parent, kept)
            if wanted <= kept:
                return stage
            kept |= wanted  # a rule calls functions of the module that nothing else calls: they have to stay

    def _other_half(self, parent: Program) -> _Stage:
        """The stage of B: the same module as that of A with the same rules."""
        from irgrad.engine.transforms.taped import reverse_name

        step = Step("A", self.word[-1].active, self.word[-1].width)
        first = parent._children.get((step, self.ruled)) or Program(self.source, parent, step, self.rules, self.ruled)
        stage = first.stage
        return _Stage(reverse_name(stage.note), stage.scratch, stage.packed)

    def _derive(self, parent: Program, kept: frozenset[str]) -> tuple[_Stage, frozenset[str]]:
        from irgrad.engine.analyses.rulebook import Rulebook
        from irgrad.engine.codegen.prepare import prepare
        from irgrad.engine.ir.printer import to_text
        from irgrad.engine.limits import check_count, within_time
        from irgrad.engine.transforms.derive import derive
        from irgrad.engine.transforms.taped import halves
        from irgrad.engine.transforms.unwinding import has_exceptions, lower_exceptions

        step = self.word[-1]
        text, name, preopt = parent.stage.text, parent.stage.name, self.source.options.preopt
        if parent.parent is not None:  # a derivative is optimised before it is differentiated again
            text = prepare(text, [name], kept.__contains__ if kept else None, preopt=preopt)
        elif kept:
            text = _prepared(parent.source, parent.source.text + "\n", kept.__contains__)
        if has_exceptions(text):
            module = _read(text, name)
            lower_exceptions(module, module.functions[name], kept)
            text = prepare(to_text(module), [name], kept.__contains__ if kept else None, preopt=preopt)
        module = _read(text, name)
        active = set(step.active)
        args = ["dup" if number in active else "const" for number in range(len(parent.slots))]
        buffers = [slot.dtype.memory if slot.dtype.is_float else "" for slot in parent.slots]
        status = parent.status_slot
        outputs = [n for n, s in enumerate(parent.slots) if s.role != "in" and n != status]
        rules = None
        if self.rules is not None:
            rules = Rulebook(self.rules, self.source.digest, module, frozenset(parent.symbols))
            rules.kept = kept
        strong = self.source.options.strong_zero
        options: dict[str, Any] = {"buffers": buffers, "strict_fp": self.source.options.strict_fp, "rules": rules,
                                   "strong_zero": strong, "zero_slopes": strong, "width": step.width}  # fmt: skip
        mode = "forward" if step.mode in ("J", "T") else "reverse"
        if step.mode == "A":
            written = [n for n, s in enumerate(parent.slots) if s.role != "in"]
            make: Callable[[], Any] = lambda: halves(module, name, args, written, **options)  # noqa: E731
        else:
            discard = outputs if step.mode in ("R", "T") else ()
            make = lambda: derive(module, name, mode, args, discard=discard, **options)  # noqa: E731
        try:
            derived = within_time(make, f"differentiating `{self.source.name}`")
            check_count(sum(len(block.instructions) for f in module.functions.values() for block in f.blocks),
                        f"the derivative of `{self.source.name}`")  # fmt: skip
        except IRGradError as error:
            from irgrad.engine.messages import in_users_words

            raise in_users_words(error, self.source.name, self.source.signature) from None
        wanted = rules.wanted if rules is not None else ()
        note = derived.note if step.mode == "A" else ""
        made = to_text(module) if derived.name else ""
        return _Stage.of(derived.name, derived.scratch, made, note), frozenset(wanted)

    @property
    def in_force(self) -> InForce | None:
        """The rules in force as far as they speak about this program's names; None where they do not."""
        rules = current()
        if self._said is None or self._said[0] is not rules:
            self._said = (rules, rules.digest(self.symbols, self.source.digest))
        said = self._said[1]
        return InForce(said, rules) if said else None

    @property
    def lane_by_lane(self) -> bool:
        """Whether rules that are in force take one tangent or cotangent at a time, with none for all beside them."""
        from irgrad.rules.report import one_at_a_time

        rules = current()
        root = self if self.parent is None else self.parent
        return any(one_at_a_time(rules.find(name, self.source.digest)) for name in root.symbols)

    def kept(self, rules: Snapshot | None) -> frozenset[str]:
        """The functions with a body that have a rule: they stay out of line until they are differentiated."""
        if rules is None:
            return frozenset()
        found = ((name, rules.find(name, self.source.digest)) for name in self.symbols)
        return frozenset(name for name, tables in found if any(not table.builtin for table in tables))

    @property
    def ir(self) -> str:
        """The IR that is compiled: the function in normal form and its entry."""
        from irgrad.engine.codegen.prepare import prepare
        from irgrad.engine.transforms.distribute import distributed_text
        from irgrad.engine.transforms.runtime import link_runtime

        text = self.stage.text
        if self.word and self.word[-1].width > 1:
            text = distributed_text(text, self.stage.name, prepare)
        text = link_runtime(text) + "\n" + entry_text(self.stage.name, len(self.slots))
        return text + _PEAK if "@irgrad_tape_peak =" in text else text

    @property
    def entry_symbol(self) -> str:
        """Name of the entry in the IR."""
        return entry_name(self.stage.name)

    @property
    def compiled(self) -> Any:
        """Machine code; it lives as long as this object."""
        if self._compiled is None:
            with self._lock:
                if self._compiled is None:
                    from irgrad.engine.codegen.jit import compile_known

                    if self.rules is not None:
                        from irgrad.engine.host import register

                        register(self.rules)
                    unit = compile_known(self.key, lambda: self.ir, [self.entry_symbol], [_PEAK_NAME, _DRAIN_NAME],
                                         strict_fp=self.source.options.strict_fp)
                    self._peak = _READ(unit.address(_PEAK_NAME)) if unit.has(_PEAK_NAME) else None
                    self._compiled = unit
        return self._compiled

    @property
    def address(self) -> int:
        """Address of the entry, `void (*)(void **frame)`. Compiles on first use."""
        return int(self.compiled.address(self.entry_symbol))

    @property
    def entry(self) -> Any:
        """The entry as a ctypes function of the frame's address; the GIL is released while it runs."""
        if self._entry is None:
            entry = in_turn(_ENTRY(self.address), self.stage.text)
            if any(self._ruled_steps()):
                from irgrad.engine.host import guarded

                entry = guarded(entry, self.stage.text)
            self._entry = entry
        return self._entry

    @property
    def tape_bytes(self) -> int:
        """The most tape memory that one call has used so far, in bytes; 0 for a program without a tape."""
        _ = self.compiled
        return int(self._peak()) if self._peak is not None else 0

    # -- running it ----------------------------------------------------------------------------------------------

    def shapes(self, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], ...]:
        """The shape of each slot."""
        key = tuple(sizes.values())
        shapes = self._shapes.get(key)
        if shapes is None:
            shapes = tuple(slot.shape(sizes) for slot in self.slots)
            if len(self._shapes) < 256:
                self._shapes[key] = shapes
        return shapes

    def run(self, buffers: list[Array | None], sizes: Mapping[str, int]) -> list[Array]:
        """Call the entry. Slots without a buffer get one of zeros; returns all buffers.

        Buffers must be C-contiguous arrays of the slots' dtypes and shapes; those of inout slots are overwritten.
        """
        full = self.fill(buffers, sizes)
        self.invoke(full)
        return full

    def invoke(self, buffers: Sequence[Array]) -> None:
        """Call the entry on one buffer per slot; they are not checked. Raises KernelError for a status other than 0."""
        self.enter(frame_of(buffers), buffers)

    def enter(self, frame: Any, buffers: Sequence[Array]) -> None:
        """`invoke` with the frame that holds the addresses of the buffers (see `frame_of`)."""
        self.entry(ctypes.addressof(frame))
        if self.source.signature.status is not None:
            self.check_status(buffers)

    def check_status(self, buffers: Sequence[Array]) -> None:
        """Look at the status after a call. Raises KernelError."""
        slot = self.status_slot
        status = 0 if slot is None else int(buffers[slot].item())
        if status:
            source = self.source
            raise failure(source.name, source.signature, source.errors, status)

    def fill(self, buffers: list[Array | None], sizes: Mapping[str, int]) -> list[Array]:
        """Buffers of zeros where there is none."""
        return [
            array if array is not None else (_lanes if slot.lanes else np.zeros)(shape, slot.dtype.numpy)
            for slot, shape, array in zip(self.slots, self.shapes(sizes), buffers, strict=False)
        ]

    def __repr__(self) -> str:
        return f"<Program {word_text(self.word)} of {self.source.name}>"


def _lanes(shape: tuple[int, ...], dtype: Any) -> Array:
    """Zeros that begin at a cache line: NumPy's own memory does not, and each vector of lanes would lie across two."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + 64, np.uint8)
    first = -address_of(raw) % 64
    whole: Array = raw[first : first + size].view(dtype).reshape(shape)
    return whole


def _prepared(source: Source, module: str, kept: Callable[[str], bool] | None = None) -> str:
    """The normal form of a kernel's function, prepared; inputs that it may write are copied first.

    `kept`: functions that stay calls, since a rule is registered for them.
    """
    from irgrad.engine.codegen.prepare import prepare
    from irgrad.engine.writes import perhaps_written

    name, inline = normal_name(source.name), kept is None
    text = prepare(module + normal_text(source.name, source.signature, inline=inline), [name], kept,
                   preopt=source.options.preopt)
    copied = perhaps_written(text, name, source.signature)
    if not copied:
        return text
    return prepare(module + normal_text(source.name, source.signature, copied, module, inline=inline), [name], kept,
                   preopt=source.options.preopt)


def _read(text: str, name: str) -> Module:
    from irgrad.engine.ir.reader import read

    return read(text, roots=[name])
