"""Regions whose threads know their numbers, for as many threads as the program asks for.

A region that asks which of its threads runs it, or in which all threads do the same, sees how many threads there are.
Its threads run one after the other, each from one barrier to the next (`phases.py`):

    call @__kmpc_fork_call(place, n, f, captured...)    becomes    call @f.team(threads, captured...)
    f.team:  for thread in 0..threads:  call @f.numbered.phase.0(thread, threads, captured..., its variables...)
             and so on, until a phase says that none follows

What such a region calls is copied where it depends on the thread: a copy has the thread and their number as two more
arguments. Worksharing loops give a thread its iterations by the rules of libomp for `schedule(static)`, and an equal
part of them, in order, for other schedules. Regions inside of regions have one thread, as they have by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Block, CallInfo, ConstInt, Function, InlineAsm, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.ir.text.outline import calls_of, function_bodies
from irgrad.engine.parallel.copies import copied_blocks, inline
from irgrad.engine.parallel.phases import END, NONE, REST, Phases, split
from irgrad.engine.parallel.regions import ENTER, LEAVE, counts_regions, forks
from irgrad.rules.effects import facts

__all__ = ["MAX_THREADS", "Numbered", "with_numbers"]

MAX_THREADS = "irgrad_omp_max_threads"
"""The variable of the runtime that says how many threads a region has where the source does not."""

_NUMBERED, _TEAM = ".numbered", ".team"
_FORK, _PUSH = "__kmpc_fork_call", "__kmpc_push_num_threads"
_ASKS = re.compile(r"@omp_(?:get_(?:thread_num|num_threads|active_level|ancestor_thread_num|team_size)|in_parallel)\(")
_CONSTRUCT = re.compile(
    r"@__kmpc_(?:for_static_init|dispatch_init|dist_|single|master|masked|omp_task|taskloop|fork_teams)\w*\(")
_POINTER = re.compile(r'@(?:"([^"\n]*)"|([-\w$.]+))(?![-\w$."(])')
"""A function that is named and not called."""
_OF_TEAM = re.compile(r"__kmpc_(?:for_static_init|dispatch_next)_\w+$")
_ANSWERS = {
    "__kmpc_global_thread_num": "thread", "__kmpc_bound_thread_num": "thread", "omp_get_thread_num": "thread",
    "omp_get_num_threads": "threads", "omp_in_parallel": "active", "omp_get_active_level": "active",
    "omp_get_ancestor_thread_num": "thread above", "omp_get_team_size": "threads above",
}  # fmt: skip
_UNKNOWN = {
    "__kmpc_copyprivate": "`copyprivate`", "__kmpc_ordered": "`ordered`", "__kmpc_doacross_init": "`ordered`",
    "__kmpc_cancel": "`cancel`", "__kmpc_cancel_barrier": "`cancel`", "__kmpc_threadprivate_cached": "`threadprivate`",
    "__kmpc_taskred_init": "`task_reduction`", "__kmpc_taskred_modifier_init": "`task_reduction`",
}  # fmt: skip
"""Functions of the runtime that threads would have to be at once for, or that nobody has written for teams."""
_BARRIERS = {"__kmpc_barrier": REST, "__kmpc_end_reduce": END}
_LARGE = 4096  # bytes of a variable from which a team's are on the heap


@dataclass(slots=True)
class Numbered:
    """The text, and for each region that stays with one thread its line and why: `f.c:3: it has ...`."""

    text: str
    others: list[str] = field(default_factory=list)


def with_numbers(text: str) -> Numbered:
    """The module in which regions that depend on the number of threads have the threads that the program asks for."""
    if "@__kmpc_fork_call(" not in text:
        return Numbered(text)
    bodies = function_bodies(text)
    regions = dict.fromkeys(fork.region[1:].strip('"') for fork in forks(text) if not fork.teams)
    reached = {name: _reached(bodies, name, regions) for name in regions}
    asked = [name for name in regions if _depends("".join(bodies[n] for n in sorted(reached[name])))]
    inside = set().union(*reached.values())
    callers = [name for name, body in bodies.items() if name not in inside and "@__kmpc_fork_call(" in body]
    if not asked:
        return Numbered(text)
    outside = {called for name, body in bodies.items() if name not in inside for called in calls_of(body)}
    both = [name for name in sorted(inside & outside - {*regions}) if "@__kmpc_fork_call(" in bodies[name]]
    if not callers and not both:
        return Numbered(text)
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    module = read(text, roots=[*callers, *inside])
    made = _Regions(module, set(regions), counted=counts_regions(text), pointed=_pointed(text, bodies, set(regions)))
    done = [made.fork(call) for name in callers for call in _forks(module.functions[name], set(asked))]
    for call in (call for name in both for call in _forks(module.functions[name], set(asked))):
        made.others.append(f"{locate(module, call) or 'a region'}: regions call its function, and others do")
    return Numbered(to_text(module) if any(done) else text, list(dict.fromkeys(made.others)))


def _reached(bodies: dict[str, str], region: str, regions: Iterable[str]) -> set[str]:
    """A region and what it calls, but for other regions: a team of one thread runs these."""
    found, work = {region} & bodies.keys(), [region]
    while work:
        more = (calls_of(bodies.get(work.pop(), "")) & bodies.keys()) - found - {*regions}
        found |= more
        work += more
    return found


def _pointed(text: str, bodies: dict[str, str], regions: set[str]) -> bool:
    """Whether functions are called through pointers, perhaps, that depend on the thread which calls them."""
    calls = {name: calls_of(body) for name, body in bodies.items()}
    found = {name for name, body in bodies.items() if _ASKS.search(body) or "@__kmpc_" in body} - regions
    while more := {name for name, called in calls.items() if called & found} - found - regions:
        found |= more
    return any((row[1] or row[2]) in found for row in _POINTER.finditer(text))


def _depends(body: str) -> bool:
    """Whether what a region does, as the bodies of all that it calls say, depends on how many threads there are."""
    return _ASKS.search(body) is not None or _CONSTRUCT.search(body) is None


def _forks(fn: Function, regions: set[str]) -> list[Instruction]:
    return [i for i in fn.instructions() if i.opcode == "call" and i.callee_name == _FORK and len(i.args) > 2
            and i.args[2].name in regions]  # fmt: skip


class _Stays(Exception):
    """Why one thread runs a region."""


class _Regions:
    """The regions of a module as they become teams."""

    def __init__(self, module: Module, regions: set[str], *, counted: bool, pointed: bool) -> None:
        self.module = module
        self.pointed = pointed
        self.regions = regions
        self.counted = counted
        self.others: list[str] = []
        self.teams: dict[str, Function | str] = {}

    def fork(self, call: Instruction) -> bool:
        """Have a team run a region; whether it does."""
        region = call.args[2]
        assert isinstance(region, Function) and call.block is not None
        name = region.name or ""
        if name not in self.teams:
            try:
                self.teams[name] = self._team(region)
            except _Stays as why:
                self.teams[name] = str(why)
        team = self.teams[name]
        block = call.block
        if isinstance(team, str):
            self.others.append(f"{locate(self.module, call) or 'a region'}: {team}")
            return False
        at = Builder(block, block.instructions.index(call))
        at.metadata = {"dbg": call.metadata["dbg"]} if "dbg" in call.metadata else {}
        wanted = _pushed(call)
        if wanted is None:
            wanted = at.call(declare(self.module, "omp_get_max_threads", ty.I32, ()), [])
        one = ConstInt(ty.I32, 1)
        threads = one if wanted is one else at.select(at.icmp("sgt", wanted, one), wanted, one)
        for before, after in ((ENTER, LEAVE),) if self.counted else ():
            at.call(declare(self.module, before, ty.VOID, ()), [])
            at.call(team, [threads, *call.args[3:]])
            at.call(declare(self.module, after, ty.VOID, ()), [])
        if not self.counted:
            at.call(team, [threads, *call.args[3:]])
        block.instructions.remove(call)
        return True

    # -- copies for a thread -----------------------------------------------------------------------------------------

    def _team(self, region: Function) -> Function:
        """The function that runs a region for each thread. Raises _Stays."""
        copies = _Copies(self.module, region, self.regions, pointed=self.pointed)
        body = copies.made[region]
        for _ in range(1000):
            call = next((i for i in body.instructions() if i.is_call and copies.waits(i.callee)), None)
            if call is None:
                break
            if call.opcode != "call" or call.callee is body:
                raise _Stays("a barrier is in a function that it calls where exceptions are caught, or in itself")
            inline(body, call)
        found = split(body, _barrier, _plain)
        if isinstance(found, str):
            raise _Stays(found)
        del self.module.functions[body.name or ""]
        for phase in found.phases:
            self.module.functions[phase.function.name or ""] = phase.function
        return _driver(self.module, region, found)


def _pushed(call: Instruction) -> Value | None:
    """How many threads `num_threads` asks for at a fork."""
    assert call.block is not None
    rows = call.block.instructions
    for instr in reversed(rows[: rows.index(call)]):
        if instr.is_call and instr.callee_name == _PUSH:
            return instr.args[2]
        if instr.is_call and instr.callee_name == _FORK:
            return None
    return None


def _barrier(call: Instruction) -> int:
    return _BARRIERS.get(call.callee_name or "", NONE)


def _plain(instr: Instruction) -> bool:
    """Whether a call only reads and writes the variables that it gets addresses of."""
    name = (instr.callee_name or "") if instr.is_call else ""
    return name.startswith(("llvm.mem", "irgrad_omp_team_"))


class _Copies:
    """Copies of a region and of what it calls, that depend on the thread."""

    def __init__(self, module: Module, region: Function, regions: set[str], *, pointed: bool) -> None:
        self.module = module
        found = _called([region], regions)
        for fn in found:
            _check(fn)
        depends = {fn for fn in found if fn is region or any(_of_thread(i) for i in fn.instructions())}
        _with_callers(depends, found)
        taken = {o for fn in found for i in fn.instructions() for n, o in enumerate(i.operands)
                 if isinstance(o, Function) and not (i.is_call and n == len(i.operands) - 1)}  # fmt: skip
        handed = _called([fn for fn in taken if fn.name not in regions], regions)
        if taken & depends or any(_asks(i) for fn in handed for i in fn.instructions()) or (
            pointed and any(_indirect(i) for fn in found for i in fn.instructions())
        ):
            raise _Stays("it calls functions through pointers, which may ask for the thread")
        self.made: dict[Value, Function] = {fn: self._declared(fn, fn is region) for fn in sorted(
            depends, key=lambda fn: fn.name or "")}  # fmt: skip
        for old, copy in self.made.items():
            assert isinstance(old, Function)
            self._fill(old, copy, old is region)
        copies = set(self.made.values())
        self.waiting = {copy for copy in copies if any(i.is_call and _barrier(i) for i in copy.instructions())}
        _with_callers(self.waiting, copies)

    def waits(self, callee: Value) -> bool:
        """Whether a function has barriers, or calls one that has."""
        return callee in self.waiting

    def _declared(self, fn: Function, region: bool) -> Function:
        given = [a.type for a in fn.args]
        params = [ty.I32, ty.I32, *given[2:]] if region else [*given, ty.I32, ty.I32]
        copy = Function(f"{fn.name}{_NUMBERED}", ty.function(fn.ftype.ret, tuple(params), fn.ftype.vararg))
        copy.head, copy.ret_attrs = _static(fn.head), fn.ret_attrs
        copy.tail = re.sub(r",? ?comdat(?:\([^)]*\))?", "", fn.tail)
        for old, new in zip(fn.args[2:] if region else fn.args, copy.args[2:] if region else copy.args, strict=False):
            new.attrs, new.name = old.attrs, old.name
        self.module.functions[copy.name or ""] = copy
        return copy

    def _fill(self, fn: Function, copy: Function, region: bool) -> None:
        thread, threads = (copy.args[0], copy.args[1]) if region else (copy.args[-2], copy.args[-1])
        known: dict[Value, Value] = dict(zip(fn.args, copy.args, strict=False))
        start = Block()
        at = Builder(start)
        if region:
            place = at.alloca(ty.I32, align=4)
            at.store(thread, place, 4)
            known.update(dict(zip(fn.args, [place, place, *copy.args[2:]], strict=True)))
        blocks = copied_blocks(fn.blocks, known)
        for instr in start.instructions:
            instr.block = blocks[0]
        blocks[0].instructions[:0] = start.instructions
        copy.blocks = blocks
        for block in copy.blocks:
            block.function = copy
        answers: dict[Value, Value] = {}
        for call in [i for i in copy.instructions() if i.is_call]:
            name = call.callee_name or ""
            assert call.block is not None
            if name in _ANSWERS:
                before = Builder(call.block, call.block.instructions.index(call))
                answers[call] = _answer(before, _ANSWERS[name], call.args, thread, threads)
                if call.opcode == "invoke":
                    before.br(call.blocks[0])
                call.block.instructions.remove(call)
            elif _OF_TEAM.match(name):
                callee = call.callee
                assert isinstance(callee, Function) and call.call is not None
                wanted = name.replace("__kmpc_", "irgrad_omp_team_")
                other = declare(self.module, wanted, callee.ftype.ret, (*callee.ftype.params, ty.I32))
                _call_instead(call, other, [*call.args, threads])
            elif call.callee in self.made:
                _call_instead(call, self.made[call.callee], [*call.args, thread, threads])
        for instr in copy.instructions():
            instr.operands = [answers.get(o, o) for o in instr.operands]


def _answer(at: Builder, asked: str, given: list[Value], thread: Value, threads: Value) -> Value:
    """What a function of `omp.h` returns in a team that no other is around."""
    one = ConstInt(ty.I32, 1)
    if asked == "active":
        return at.cast("zext", at.icmp("sgt", threads, one), ty.I32)
    if asked in ("thread", "threads"):
        return thread if asked == "thread" else threads
    outer = ConstInt(ty.I32, 0) if asked == "thread above" else one
    other = at.select(at.icmp("eq", given[0], ConstInt(ty.I32, 0)), outer, ConstInt(ty.I32, -1))
    return at.select(at.icmp("eq", given[0], one), thread if asked == "thread above" else threads, other)


def _call_instead(call: Instruction, callee: Function, args: list[Value]) -> None:
    said = call.call
    assert said is not None
    call.operands = [*args, callee]
    call.call = CallInfo(callee.ftype, cc=said.cc, ret_attrs=said.ret_attrs, arg_attrs=said.arg_attrs,
                         fn_attrs=said.fn_attrs, bundles=said.bundles)  # fmt: skip


def _called(functions: Iterable[Function], regions: set[str]) -> set[Function]:
    """Functions and what they call, but for regions."""
    found = set(functions)
    work = [*found]
    while work:
        for instr in work.pop().instructions():
            callee = instr.callee if instr.is_call else None
            if isinstance(callee, Function) and callee.blocks and callee not in found and callee.name not in regions:
                found.add(callee)
                work.append(callee)
    return found


def _with_callers(found: set[Function], functions: set[Function]) -> None:
    """Add to some functions those that call them."""
    while more := {fn for fn in functions - found if any(i.is_call and i.callee in found for i in fn.instructions())}:
        found |= more


def _static(head: str) -> str:
    words = [word for word in head.split() if word in ("fastcc", "ccc", "coldcc")]
    return " ".join(["internal", *words])


def _of_thread(instr: Instruction) -> bool:
    """Whether what an instruction does depends on the thread."""
    return _asks(instr) or (instr.is_call and (instr.callee_name or "").startswith("__kmpc_"))


def _asks(instr: Instruction) -> bool:
    return instr.is_call and (instr.callee_name or "") in _ANSWERS


def _indirect(instr: Instruction) -> bool:
    return instr.is_call and not isinstance(instr.callee, Function | InlineAsm)


def _check(fn: Function) -> None:
    """Raises _Stays for what threads that run one after the other cannot do."""
    for instr in fn.instructions():
        for operand in instr.operands:
            if "thread_local" in getattr(operand, "head", ""):
                raise _Stays("it has `threadprivate` or thread-local variables")
        if not instr.is_call or not isinstance(instr.callee, Function):
            continue
        name = instr.callee_name or ""
        if name in _UNKNOWN or name.startswith("__kmpc_dist"):
            raise _Stays(f"it has {_UNKNOWN.get(name, '`distribute`')}")
        if instr.callee.is_declaration and not name.startswith(("llvm.", "__kmpc_", "omp_", "irgrad")) and (
            facts(name) is None
        ):
            raise _Stays(f"`{name}` is not here, which may ask for the thread")


# -- the team ----------------------------------------------------------------------------------------------------------


def _driver(module: Module, region: Function, found: Phases) -> Function:
    """`void f.team(i32 threads, captured...)`."""
    made = Function(f"{region.name}{_TEAM}", ty.function(ty.VOID, (ty.I32, *(a.type for a in region.args[2:]))))
    made.head, made.tail = "internal", "nounwind" if "nounwind" in region.tail else ""
    for old, new in zip(region.args[2:], made.args[1:], strict=True):
        new.attrs, new.name = old.attrs.replace("noalias", "").strip(), old.name
    module.functions[made.name or ""] = made
    threads = made.args[0]
    entry, done = Block(), Block()
    at = Builder(entry)
    count = at.to_i64(threads)
    large: list[Value] = []
    frames: list[Value] = []
    for variable in found.variables:
        elem = _spaced(variable)
        if ty.size_of(elem) >= _LARGE and variable.align <= 16:
            size = at.mul(count, ConstInt(ty.I64, ty.size_of(elem)))
            large.append(at.call(declare(module, "malloc", ty.PTR, (ty.I64,)), [size]))
            frames.append(large[-1])
        else:
            frames.append(at.alloca(elem, count, variable.align))
    blocks = [(Block(), Block()) for _ in found.phases]
    at.br(blocks[0][0])
    for phase, (turn, ended) in zip(found.phases, blocks, strict=True):
        _turns(phase.function, turn, ended, made, frames, found)
        end = Builder(ended)
        nexts = [blocks[n][0] if n else done for n in phase.after]
        if not nexts:
            end.unreachable()
        elif len(nexts) == 1:
            end.br(nexts[0])
        else:
            said = ended.instructions[0] if ended.phis else None
            assert said is not None
            end.switch(said, nexts[0], [(ConstInt(ty.I32, n), blocks[n][0]) for n in phase.after[1:]])
    end = Builder(done)
    for memory in large:
        end.call(declare(module, "free", ty.VOID, (ty.PTR,)), [memory])
    end.ret()
    made.blocks = [entry, *(b for pair in blocks for b in pair), done]
    _close_phis(made, [turn for turn, _ in blocks])
    for block in made.blocks:
        block.function = made
    return made


def _spaced(variable: Instruction) -> ty.Type:
    """The type of a variable, as long as its alignment asks: each thread's is aligned as the one of one thread was."""
    kind = variable.elem or ty.I8
    rest = -ty.size_of(kind) % max(variable.align, 1)
    return ty.struct((kind, ty.array(rest, ty.I8))) if rest else kind


def _turns(
    phase: Function, turn: Block, ended: Block, made: Function, frames: list[Value], found: Phases
) -> None:
    """Each thread's turn of a phase."""
    threads, captured = made.args[0], made.args[1:]
    at = Builder(turn)
    thread = at.phi(ty.I32, [])
    where = at.to_i64(thread)
    own = [at.gep(_spaced(v), frame, where) for v, frame in zip(found.variables, frames, strict=True)]
    said = at.call(phase, [thread, threads, *captured, *own])
    more = at.add(thread, ConstInt(ty.I32, 1))
    at.cond_br(at.icmp("slt", more, threads), turn, ended)
    thread.operands, thread.blocks = [more], [turn]
    if phase.ftype.ret is not ty.VOID:
        Builder(ended).phi(ty.I32, [(said, turn)])


def _close_phis(made: Function, turns: list[Block]) -> None:
    """Each phase begins with thread 0, from wherever it is come to."""
    for turn in turns:
        thread = turn.instructions[0]
        for block in made.blocks:
            if block is not turn and turn in block.successors:
                thread.operands.append(ConstInt(ty.I32, 0))
                thread.blocks.append(block)
