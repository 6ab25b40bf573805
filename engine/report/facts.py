"""What `explain` tells, as data: values, loops, what is kept, rules, lanes, passes. Nothing here changes once made.

Lines are those of the source, from debug locations: 0 where there is none. Bytes are those of the tape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irgrad.engine.report.formulas import Formula
from irgrad.engine.report.sizes import Size, total_of

__all__ = [
    "ActiveValue", "ArgumentFacts", "DeviceFacts", "FunctionFacts", "KeptValue", "LaneFacts", "LoopFacts", "PassTime",
    "Place", "RecalledValue", "Report", "RuleUse", "SourceText", "Step",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the source. file: as the compiler was given it, "" where it is not known; line, column: from 1,
    0 where they are not known."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __bool__(self) -> bool:
        return self.line > 0

    def __str__(self) -> str:
        return f"line {self.line}" if self.line else "no line"


@dataclass(frozen=True, slots=True)
class Step:
    """A station of a chain. kind: "argument" (or output, or result), "memory" or "value"; name: in words."""

    kind: str
    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class ActiveValue:
    """A value with a tangent or an adjoint.

    name: of the IR value, "" where it has none; opcode: what computes it, for calls the function's name;
    type: of the IR; function: the C function; origin: the way from a differentiated argument to it;
    target: the way from it to an output
    """

    name: str
    opcode: str
    type: str
    function: str
    place: Place
    origin: tuple[Step, ...]
    target: tuple[Step, ...]

    @property
    def why(self) -> str:
        """Both ways in one line."""
        return f"{route(self.origin[:-1])} \N{RIGHTWARDS ARROW} here \N{RIGHTWARDS ARROW} {route(self.target[1:])}"


@dataclass(frozen=True, slots=True)
class ArgumentFacts:
    """An argument, or the result (`return`). role: "differentiated", "output" (only that), "scratch" (not asked for,
    but its memory carries active values on the way and needs a shadow), or "constant"; output: what it holds after
    the call is differentiated."""

    name: str
    role: str
    output: bool


@dataclass(frozen=True, slots=True)
class KeptValue:
    """Something that the primal sweep saves for the reverse sweep.

    what:   "value", "shadow" (of a pointer), "address" (of an array of the tape), "count" (iterations), "path" (which
            way control came), "link" (to the record before), "rule" (what a rule or callee keeps)
    name:   the IR value that it is, or that it belongs to; opcode: what computes that
    type:   of the IR; bytes: of one
    where:  "array" (over iterations), "record" (one an iteration), "variable" (once, in a register or on the stack)
    over:   lines of the loops whose iterations an array ranges over, outermost first
    size:   bytes of an array in a call; None for records (the loop has them) and variables
    reader: the instruction whose reverse reads it, with its line
    """

    what: str
    name: str
    opcode: str
    type: str
    bytes: int
    where: str
    over: tuple[int, ...]
    size: Size | None
    place: Place
    reader: str


@dataclass(frozen=True, slots=True)
class RecalledValue:
    """Something that the reverse sweep has again without the tape. how: "reloaded" (its memory still holds it),
    "recomputed" or "stepped back" (an integer or a pointer whose steps are undone); name, opcode, type, place,
    reader: as in `KeptValue`."""

    how: str
    name: str
    opcode: str
    type: str
    place: Place
    reader: str


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """A loop.

    function: the C function; number: of the loop in it, outer loops first; parent: number of the loop around it, None
                outside of all; depth: 1 for an outermost one
    place:      where it begins; last_line: where it ends, 0 where that is not known
    iterations: each time that it is entered; None where only the run tells
    bytes:      of the tape in an iteration of this loop itself, those of inner loops left out
    sizes:      the tape of a call for this loop itself; None where its bytes are not known before it runs
    kept, recalled: what is saved, reloaded and computed again of an iteration, inner loops left out
    kind:       "independent", "reduction", "scan", "time steps" or "sequential": what iterations hand to one another;
                carries: the same with the lines that make it so, in words
    choices:    of an outermost loop, what its reverse may keep: bytes and what runs again, a line each
    """

    function: str
    number: int
    parent: int | None
    depth: int
    place: Place
    last_line: int
    iterations: Formula | None
    bytes: int
    sizes: tuple[Size, ...] | None
    kept: tuple[KeptValue, ...]
    recalled: tuple[RecalledValue, ...]
    kind: str = ""
    carries: str = ""
    choices: tuple[str, ...] = ()

    @property
    def trips(self) -> str:
        """The iterations in words."""
        return "not known before it runs" if self.iterations is None else str(self.iterations)

    @property
    def total(self) -> str:
        """The bytes of a call in words."""
        return "not known before it runs" if self.sizes is None else total_of(self.sizes)

    def tape_bytes(self, sizes: Mapping[str, int] | None = None, **more: int) -> int | None:
        """The same as a number, for these integer arguments; None where only the run tells. Raises KeyError."""
        given = {**(sizes or {}), **more}
        return None if self.sizes is None else sum(size.evaluate(given) for size in self.sizes)

    @property
    def reloaded(self) -> tuple[RecalledValue, ...]:
        """What the reverse sweep reads from memory again."""
        return tuple(value for value in self.recalled if value.how == "reloaded")

    @property
    def recomputed(self) -> tuple[RecalledValue, ...]:
        """What the reverse sweep computes again."""
        return tuple(value for value in self.recalled if value.how == "recomputed")


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A function with a derivative of its own: the kernel, or what it calls.

    place: where it is defined; root: whether it is the kernel itself; kept, recalled: outside of loops;
    bytes: of the tape in each call, outside of loops; own_memory: where it allocates memory whose shadow is kept until
    the end of the derivative, in the memory of the tape, beside what is counted here; repeated: it keeps nothing, and
    is run again in the reverse sweep; segments: of a loop that keeps states in place of a tape, what it keeps
    """

    name: str
    place: Place
    root: bool
    bytes: int
    kept: tuple[KeptValue, ...]
    recalled: tuple[RecalledValue, ...]
    loops: tuple[LoopFacts, ...]
    own_memory: tuple[Place, ...] = ()
    repeated: bool = False
    segments: str = ""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A derivative on a GPU, one sample a thread.

    target:    the architecture; registers, stack, spilled: of a thread, the last two in bytes; resident: threads that a
               multiprocessor holds at once by their registers; None where ptxas is not installed
    loads, stores, atomics: instructions of the kernel on memory of the device; bytes_once: of the first two, each run
               once; stack_accesses: instructions on the thread's own stack
    divergent: lines with a branch that samples may decide in different ways
    shared_loops, other_loops: in a call without a batch: loops that many threads share, and why the other outermost
               loops run in one thread
    """

    target: str
    registers: int | None
    stack: int | None
    spilled: int | None
    resident: int | None
    loads: int
    stores: int
    atomics: int
    stack_accesses: int
    bytes_once: int
    divergent: tuple[str, ...]
    shared_loops: tuple[str, ...]
    other_loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleUse:
    """Where the derivative of the calls of a function comes from.

    how:    "rule", "body", "tables", "inactive", "repeated" (the call is only made again), "nothing", or "unused" (a
            rule of a function that nothing calls)
    types:  what the call passes, as dispatch sees it; rule: its signature; defined: its place; layer: of the rules
    missed: why the nearest rule does not fit, "" where there is none; calls: the lines of the calls
    """

    callee: str
    how: str
    types: tuple[str, ...] = ()
    rule: str = ""
    defined: str = ""
    layer: str = ""
    missed: str = ""
    calls: tuple[Place, ...] = ()

    @property
    def text(self) -> str:
        """How, in words."""
        shown = f"({', '.join(self.types)})"
        missed = f"; {self.missed}" if self.missed else ""
        match self.how:
            case "inactive":
                return "inactive"
            case "repeated":
                return "repeated (all its arguments are Const, or its result is not used)"
            case "rule":
                return f"{shown} by the rule {self.rule} at {self.defined}, layer {self.layer}"
            case "body":
                return f"{shown} by its body{missed}"
            case "tables":
                return "by the tables"
            case "unused":
                note = "the file may have been compiled with inlining before: load the source, or declare it noinline"
                return f"the rule at {self.defined} is not used: nothing calls it ({note})"
        return f"{shown} by nothing: it has neither a body nor a rule{missed}"


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """How many runs share one. what: "samples of a batch" or "directions"; lanes: side by side, 1 for one after the
    other, 0 where LLVM decides; why: the reason, a refusal where lanes is 1; where: its place in the source, or "" """

    what: str
    lanes: int
    why: str
    where: str = ""

    @property
    def refused(self) -> bool:
        """They run one after the other."""
        return self.lanes == 1


@dataclass(frozen=True, slots=True)
class PassTime:
    """A pass that ran: its seconds, and the instructions of the module after it (0 where they were not counted)."""

    name: str
    seconds: float
    instructions: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source file: its name in debug locations, its lines."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All of it.

    kernel, signature, derivative, wrt: what was asked for; debug: whether the module has debug locations;
    arguments: with outputs, in order; functions: the kernel first; active: values by function and line;
    sources: texts that are known; passes: empty where they were not measured;
    one_thread: source lines with parallel regions of OpenMP, which one thread runs; team: where `threads` is given, the
    places of the loops that a team of threads shares, and of others with the reason;
    refusal: the error with which the derivative is refused, "" where there is none (or it was not made: `lanes=False`)
    device: what a GPU makes of it, None where none was asked for
    pointers: what the analysis of pointers did not tell apart, because there was too much of it
    looks: where indices of arrays that are members of structs are compared with the arrays when it runs
    optimised: of a very large derivative, its lines of IR, and of how many (in the functions that run most often) LLVM
    optimises all that it can; None where it does so everywhere
    """

    kernel: str
    signature: str
    derivative: str
    wrt: tuple[str, ...]
    debug: bool
    arguments: tuple[ArgumentFacts, ...]
    functions: tuple[FunctionFacts, ...]
    active: tuple[ActiveValue, ...]
    rules: tuple[RuleUse, ...]
    lanes: tuple[LaneFacts, ...]
    sources: tuple[SourceText, ...]
    passes: tuple[PassTime, ...]
    refusal: str = ""
    one_thread: tuple[int, ...] = ()
    team: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    device: DeviceFacts | None = None
    pointers: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()
    optimised: tuple[int, int] | None = None

    @property
    def loops(self) -> tuple[LoopFacts, ...]:
        """The loops of all functions."""
        return tuple(loop for function in self.functions for loop in function.loops)

    @property
    def kept(self) -> tuple[KeptValue, ...]:
        """All that is saved, of all functions."""
        outside = tuple(value for function in self.functions for value in function.kept)
        return outside + tuple(value for loop in self.loops for value in loop.kept)

    @property
    def recalled(self) -> tuple[RecalledValue, ...]:
        """All that is reloaded or recomputed, of all functions."""
        outside = tuple(value for function in self.functions for value in function.recalled)
        return outside + tuple(value for loop in self.loops for value in loop.recalled)

    @property
    def sizes(self) -> tuple[Size, ...] | None:
        """The tape of a call; None where its bytes are not known before it runs, or rules or functions that are called
        keep some."""
        names = {function.name for function in self.functions}
        if any(value.what == "rule" and value.opcode not in names for value in self.kept):
            return None
        found: list[Size] = []
        for function in self.functions:
            parts = [loop.sizes for loop in function.loops]
            if not function.root and (function.bytes or any(parts) or None in parts):
                return None
            for sizes in parts:
                if sizes is None:
                    return None
                found += sizes
        return tuple(found)

    def tape_bytes(self, sizes: Mapping[str, int] | None = None, **more: int) -> int | None:
        """The bytes of the tape of a call for these integer arguments; None where only the run tells. At most so many
        where a loop stands behind a branch; shadows of memory that the function allocates itself come on top (see
        `FunctionFacts.own_memory`). Raises KeyError for an argument that is missing."""
        found, given = self.sizes, {**(sizes or {}), **more}
        return None if found is None else sum(size.evaluate(given) for size in found)

    @property
    def total(self) -> str:
        """The tape of a call in words."""
        return "not known before it runs" if self.sizes is None else total_of(self.sizes)


def route(steps: tuple[Step, ...]) -> str:
    """A chain in words, neighbours on one line once."""
    names: list[str] = []
    for number, step in enumerate(steps):
        if step.kind == "value" and not step.place and 0 < number < len(steps) - 1:
            continue  # made by the compiler, between others
        name = f"line {step.place.line}" if step.place else step.name
        if not names or names[-1] != name:
            names.append(name)
    shown = names if len(names) <= 6 else [*names[:3], "...", *names[-2:]]
    return " \N{RIGHTWARDS ARROW} ".join(shown)
