"""Programs: a kernel's function and its words of derivatives, derived, optimised and compiled when first needed.

A program is one normal-form function. `jvp(active)` and `vjp(active)` give the programs one derivative further; they
are made once per kernel and word. What a program needs to run (its slots and its IR) is kept on disk under a key over
library, function, signature, word, options and the sources of irgrad, so that a second process neither reads,
analyses nor differentiates anything.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.engine.codegen.symbols import PYTHON
from irgrad.engine.kernel.binding import aligned_zeros, frame_of
from irgrad.engine.kernel.normal_form import Stage, entry_name, normal_name, prepared_text, primal_text, with_entry
from irgrad.engine.kernel.options import Options
from irgrad.engine.kernel.pages import free_memory, zeros
from irgrad.engine.kernel.serialised_calls import in_turn
from irgrad.engine.runtime.arena import LIMIT, PEAK, WANTED
from irgrad.engine.signature.slots import Slot, Step, derived_slots, only_again, primal_slots, word_text
from irgrad.rules.errors import ActivityError, IRGradError, TapeMemoryError
from irgrad.rules.layers import InForce, current, token

if TYPE_CHECKING:
    from irgrad.engine.differentiate.roots import Derived
    from irgrad.engine.differentiate.shared.request import Derivative, Request
    from irgrad.engine.differentiate.shared.rulebook import Rulebook
    from irgrad.engine.ir.model import Module
    from irgrad.engine.signature.signature import Signature
    from irgrad.engine.signature.status import Table
    from irgrad.rules.layers import Snapshot

    Problem = tuple[Module, Request, Rulebook | None]

__all__ = ["Options", "Program", "Source"]

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_READ = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_FUNCTION = re.compile(r'^(?:define|declare)\b[^\n@]*@(?:"([^"\n]*)"|([-a-zA-Z$._0-9]+))', re.M)
_TOKENS = 64  # states of the rules that a program remembers
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """What all programs of one kernel share: the module's text and its digest, the C function, its signature, what the
    values of its status mean.

    code: sources that are in no file: the names in debug locations, and the texts; plain: gives the module as it is
    before any pass
    """

    text: str
    digest: str
    name: str
    signature: Signature
    options: Options
    errors: Table = ()
    code: tuple[tuple[str, str], ...] = ()
    plain: Callable[[], str] = field(default=str, compare=False, repr=False)


class Program:
    """One word over a kernel. Thread-safe; compiled at most once."""

    __slots__ = ("__weakref__", "_children", "_compiled", "_entry", "_limit", "_lock",
                 "_longer", "_peak", "_said", "_seen", "_shapes",
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
        self._stage: Stage | None = None
        self._slots: tuple[Slot, ...] | None = None
        self._compiled: Any = None
        self._peak: Any = None
        self._limit = 0  # bytes of tape of a call; 0: as many as there are
        self._longer: dict[Any, Program] = {}  # for calls that pass it
        self._entry: Any = None
        self._shapes: dict[tuple[int, ...], tuple[tuple[int, ...], ...]] = {}

    # -- the algebra ---------------------------------------------------------------------------------------------
    # width: tangents or cotangents at once; their slots get it as their last axis (see differentiate/layout/lanes.py)

    def jvp(self, active: Iterable[int], width: int = 1) -> Program:
        """The forward derivative: every slot in `active` (positions in `slots`) gets a tangent right behind it."""
        return self._derived("jvp", active, width)

    def vjp(self, active: Iterable[int], width: int = 1) -> Program:
        """The reverse derivative: every slot in `active` gets a shadow right behind it."""
        return self._derived("vjp", active, width)

    def jvp_only(self, active: Iterable[int], width: int = 1) -> Program:
        """The forward derivative `jvp` without the values of the function's own outputs."""
        return self._derived("jvp_only", active, width)

    def pullback(self, active: Iterable[int], width: int = 1) -> Program:
        """The reverse derivative `vjp` without the values of the function's own outputs."""
        return self._derived("pullback", active, width)

    def forward_with_tape(self, active: Iterable[int], width: int = 1) -> Program:
        """The function with a tape for `reverse_from_tape`, an array of the caller; `tapes.tape_of` tells whether there
        is one."""
        return self._derived("forward_with_tape", active, width)

    def reverse_from_tape(self, active: Iterable[int], width: int = 1) -> Program:
        """The reverse sweep of `vjp` on the tape of `forward_with_tape`; of the function's own slots it only has the
        inputs."""
        return self._derived("reverse_from_tape", active, width)

    def _derived(self, derivative: Derivative, active: Iterable[int], width: int) -> Program:
        step = Step(derivative, tuple(sorted(set(active))), width)
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
                self._slots = derived_slots(self.parent.slots, step.derivative, step.active, self.stage.scratch,
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
        from irgrad.engine.codegen.own_sources import source_digest

        source = self.source
        return fingerprint(source.digest, source.name, str(source.signature), word_text(self.word),
                           str(source.options), source_digest(), *self._ruled_steps())

    def _ruled_steps(self) -> list[str]:
        """What the rules said at each step of the word; nothing when they never said anything."""
        said = [self.ruled] if self.parent is None else [*self.parent._ruled_steps(), self.ruled]
        return said if any(said) else []

    # -- making it -----------------------------------------------------------------------------------------------

    @property
    def stage(self) -> Stage:
        """Name, scratch slots and IR; from the disk cache when it has them."""
        if self._stage is None:
            with self._lock:
                if self._stage is None:
                    self._stage = self._make_stage()
        return self._stage

    def _make_stage(self) -> Stage:
        disk, key = default_cache(), self.key
        stored = disk.get("program", key)
        if stored is not None:
            return Stage.from_bytes(stored)
        from irgrad.engine.support.pause import no_collections
        from irgrad.engine.support.progress import Progress

        if self.parent is not None:
            _ = self.parent.stage
        doing = "preparing" if self.parent is None else "differentiating"
        with no_collections(), Progress(f"{doing} `{self.source.name}`"):
            stage = self._primal_stage() if self.parent is None else self._derived_stage(self.parent)
        disk.put("program", key, stage.to_bytes())
        return stage

    def remake(self) -> None:
        """Make name, scratch slots and IR without asking the disk cache, to watch how they are made."""
        from irgrad.engine.support.pause import no_collections

        with self._lock, no_collections():
            self._stage = self._primal_stage() if self.parent is None else self._derived_stage(self.parent)

    def with_text(self, text: str) -> Program:
        """The same program with another module in place of its own, as `stage.text`."""
        source, stage = replace(self.source, digest=fingerprint(text)), self.stage
        made = Program(source, self.parent, self.word[-1] if self.word else None, self.rules, self.ruled)
        made._stage = Stage.of(stage.name, stage.scratch, text, stage.note, stage.warned)
        return made

    def _primal_stage(self) -> Stage:
        source = self.source
        text = primal_text(source.text, source.name, source.signature, source.options)
        return Stage.of(normal_name(source.name), (), text)

    def _derived_stage(self, parent: Program) -> Stage:
        if self.word[-1].derivative == "reverse_from_tape":
            return self._other_half(parent)
        kept = parent.kept(self.rules)
        while True:
            stage, wanted = self._derive(kept)
            if wanted <= kept:
                return stage
            kept |= wanted  # a rule calls functions of the module that nothing else calls: they have to stay

    def _other_half(self, parent: Program) -> Stage:
        """The stage of the reverse sweep: the same module as that of the function with the tape, by the same rules."""
        from irgrad.engine.differentiate.with_tape import reverse_name

        step = Step("forward_with_tape", self.word[-1].active, self.word[-1].width)
        first = parent._children.get((step, self.ruled)) or Program(self.source, parent, step, self.rules, self.ruled)
        stage = first.stage
        return Stage(reverse_name(stage.note), stage.scratch, stage.packed)

    def problem(self, kept: frozenset[str] | None = None, *, inside: bool = False, members: str = "") -> Problem:
        """What the last step of the word asks of the differentiator: the module of the program before it, the request,
        the rules. kept: functions that stay out of line, by default those that have a rule; inside: constructors run in
        the function (see `constructors`); members: the module before any pass, where `Options.members` is to hold."""
        from irgrad.engine.differentiate.shared.rulebook import Rulebook
        from irgrad.engine.ir.text.reader import read
        from irgrad.engine.kernel.constructors import constructed
        from irgrad.engine.kernel.requests import request_of
        from irgrad.engine.pipeline.derivatives import ready

        parent, step, options = self.parent, self.word[-1], self.source.options
        assert parent is not None
        kept = parent.kept(self.rules) if kept is None else kept
        text, name, keep = parent.stage.text, parent.stage.name, kept.__contains__ if kept else None
        fresh = parent.parent is not None or inside  # a derivative is optimised before it is differentiated again
        if (kept or members) and parent.parent is None:
            source, how = parent.source, replace(options, members=bool(members))
            text = prepared_text(source.name, source.signature, f"{members or source.text}\n", keep, how)
        text = constructed(text, name) if inside else text
        if options.threads and step.derivative == "forward_with_tape":
            from irgrad.engine.threads.chunks import with_loops_inside

            text, fresh = with_loops_inside(text, name), True
        text, _ = ready(text, name, keep, preopt=options.preopt, fresh=fresh, failing=not options.device)
        module = read(text, roots=[name])
        followed = only_again(self.source.signature, self.word, parent.slots)
        request = request_of(name, step, parent.slots, parent.status_slot, options, followed)
        rules = None
        if self.rules is not None:
            rules = Rulebook(self.rules, self.source.digest, module, frozenset(parent.symbols), kept=kept)
        return module, request, rules

    def _derive(self, kept: frozenset[str]) -> tuple[Stage, frozenset[str]]:
        from irgrad.engine.ir.printer import to_text
        from irgrad.engine.kernel.ways import first_way
        from irgrad.engine.pipeline.derivatives import derive
        from irgrad.engine.runtime.exceptions import unpromised
        from irgrad.engine.support.limits import check_count, within_time

        def differentiate(inside: bool, members: str) -> tuple[Derived, Problem]:
            problem = self.problem(kept, inside=inside, members=members)
            derived = within_time(lambda: derive(*problem), f"differentiating `{self.source.name}`")
            check_count(sum(len(block.instructions) for f in problem[0].functions.values() for block in f.blocks),
                        f"the derivative of `{self.source.name}`")  # fmt: skip
            return derived, problem

        assert self.parent is not None
        first = self.parent.parent is None and not self.source.options.device
        plain = self.source.plain if first else str
        try:
            derived, (module, _, rules) = first_way(self.parent.stage.text, plain, differentiate)
        except IRGradError as error:
            from irgrad.engine.kernel.messages import in_users_words

            raise in_users_words(error, self.source.name, self.source.signature) from None
        wanted = rules.wanted if rules is not None else ()
        made = unpromised(to_text(module)) if derived.name else ""
        return Stage.of(derived.name, derived.scratch, made, derived.note, derived.warned), frozenset(wanted)

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
        from irgrad.engine.pipeline.derivatives import scheduled

        text = self.stage.text
        if self.source.options.threads:
            from irgrad.engine.kernel.shared_loops import teams_of

            text = teams_of(self).text
        elif self.word and self.word[-1].width > 1:
            text = scheduled(text, self.stage.name)
        return with_entry(text, self.stage.name, len(self.slots))

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
                        from irgrad.engine.kernel.host import register

                        register(self.rules)
                    options, entries = self.source.options, [self.entry_symbol]
                    if options.threads:
                        from irgrad.engine.kernel.shared_loops import compiled_with_threads

                        unit = compiled_with_threads(self)
                    else:
                        unit = compile_known(self.key, lambda: self.ir, entries, WANTED, options.strict_fp, options.cpu)
                    self._peak = _READ(unit.address(PEAK)) if unit.has(PEAK) else None
                    if options.bounded and unit.has(LIMIT) and (free := free_memory()):
                        self._limit = free // 2
                        unit.function(LIMIT, None, ctypes.c_int64)(self._limit)
                    self._compiled = unit
        return self._compiled

    @property
    def address(self) -> int:
        """Address of the entry, `void *(*)(void **frame)`; the result is null, or the record of a failure (see
        `tape_memory`). Compiles on first use."""
        return int(self.compiled.address(self.entry_symbol))

    @property
    def entry(self) -> Any:
        """The entry as a ctypes function of the frame's address; the GIL is released while it runs. It returns None, or
        the record of a failure for `out_of_tape`."""
        if self._entry is None:
            entry = in_turn(_ENTRY(self.address), self.stage.text)
            if PYTHON or any(self._ruled_steps()):
                from irgrad.engine.kernel.host import guarded

                entry = guarded(entry, self.stage.text)
            self._entry = entry
        return self._entry

    @property
    def tape_bytes(self) -> int:
        """The most tape memory that one call has used so far, in bytes; 0 for a program without a tape."""
        _ = self.compiled
        return int(self._peak(0)) if self._peak is not None else 0

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
        self.invoke(full := self.fill(buffers, sizes))
        return full

    def invoke(self, buffers: Sequence[Array]) -> None:
        """Call the entry on one buffer per slot; they are not checked. Raises KernelError for a status other than 0,
        TapeMemoryError where there is no memory for the tape."""
        self.enter(frame_of(buffers), buffers)

    def out_of_tape(self, record: int) -> BaseException:
        """The error that a failed entry's record tells of, or what a handler of a signal raised meanwhile."""
        from irgrad.engine.kernel.messages import of_record

        return of_record(self.source.name, record, self._limit)

    def enter(self, frame: Any, buffers: Sequence[Array]) -> None:
        """`invoke` with the frame that holds the addresses of the buffers (see `frame_of`)."""
        failed = self.entry(ctypes.addressof(frame))
        if failed is not None:
            raise self.out_of_tape(failed)
        if self.source.signature.status is not None:
            self.check_status(buffers)

    def within_limit(self, frame: Any, buffers: Sequence[Array], again: Callable[[], None]) -> None:
        """`enter`. A call whose tape passes half of the free memory begins anew, when `again` has set the buffers back,
        with states in place of the tape."""
        program = self._longer.get(_call_key(self.slots, buffers), self) if self._longer else self
        try:
            program.enter(frame, buffers)
        except TapeMemoryError as error:
            with self._lock:
                other = self._longer[_call_key(self.slots, buffers)] = self.keeping_states(error)
            again()
            other.enter(frame, buffers)

    def keeping_states(self, error: TapeMemoryError) -> Program:
        """The program for calls whose tape passes the limit. Raises the error where it is another one. Warns."""
        from irgrad.engine.kernel.checkpoints import keeping_states

        return cast(Program, keeping_states(self, self._limit, error, known=next(iter(self._longer.values()), None)))

    def check_status(self, buffers: Sequence[Array]) -> None:
        """Look at the status after a call. Raises KernelError."""
        slot, source = self.status_slot, self.source
        if slot is not None and (status := int(buffers[slot].item())):
            from irgrad.engine.signature.status import failure

            raise failure(source.name, source.signature, source.errors, status)

    def fill(self, buffers: list[Array | None], sizes: Mapping[str, int]) -> list[Array]:
        """Buffers of zeros where there is none."""
        rows = zip(self.slots, self.shapes(sizes), buffers, strict=False)
        return [array if array is not None else (aligned_zeros if slot.lanes else zeros)(shape, slot.dtype.numpy)
                for slot, shape, array in rows]  # fmt: skip

    def __repr__(self) -> str:
        return f"<Program {word_text(self.word)} of {self.source.name}>"


def _call_key(slots: Sequence[Slot], buffers: Sequence[Array]) -> tuple[Any, ...]:
    """What the tape of a call may hang on, as far as arguments tell: shapes and integers."""
    rows = zip(slots, buffers, strict=True)
    return tuple(b.shape if s.parameter.is_array or s.differentiable else b.tobytes() for s, b in rows)
