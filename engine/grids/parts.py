"""One program with many threads: what the source promises independent becomes the grid.

The program runs in parts, launch after launch. One thread runs it up to a loop whose iterations are independent, all
threads run those, one thread goes on; forward and reverse alike, for what is made of such a loop are loops of the same
kind. Sums over iterations are rows, one for each thread, that are added up in a fixed order; other additions that
iterations share are atomic (see `accumulations.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.grids.accumulations import make_atomic
from irgrad.engine.grids.arena import CARVE, TAPE
from irgrad.engine.grids.grid_text import GridParameter, GridSlot, sample_text
from irgrad.engine.grids.heap import adopt_memory
from irgrad.engine.grids.parts_text import Rows, kernels_text, sums_text
from irgrad.engine.grids.regions import Region, cut_regions, fix_constants, settle
from irgrad.engine.grids.resume import Stop, resumable
from irgrad.engine.grids.static_tape import bounds, place_tape
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare, replace_uses
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.kernel.host import refuse_hosted
from irgrad.engine.normalise.iteration_scopes import drop_scopes
from irgrad.engine.normalise.iterations import apart
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.engine.kernel.programs import Program

__all__ = ["Parts", "parts_of"]

_LARGEST = 1 << 34  # bytes of an array that the launches keep
_COPIES = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")
_STEPS = 100_000  # loops that a grid runs, one after the other


@dataclass(frozen=True, slots=True)
class Parts:
    """The kernels `NAME_first`, `NAME_next`, `NAME_share`, `NAME_fold` of a module (see `parts_text.py`).

    state: bytes of memory that is 0 before the first launch, and stays from launch to launch; room: bytes of memory
    that stays as well; threads: that share a loop; folded: that fold its sums (0: there are none); steps: how often a
    loop is shared, at most

    The launches are `first`, and `steps` times `share`, `fold`, `next`.
    """

    name: str
    text: str
    state: int
    room: int
    threads: int
    folded: int
    steps: int

    @property
    def kernels(self) -> list[str]:
        """Their names."""
        return [f"{self.name}_{word}" for word in ("first", "next", "share", "fold")]


def parts_of(
    program: Program, name: str, parameters: Sequence[GridParameter], slots: Sequence[GridSlot], buffers: Sequence[str],
    sizes: dict[str, int], threads: Callable[[float], int], *, device: bool = True,
) -> Parts:  # fmt: skip
    """A program of outlined loops as kernels for one sample.

    parameters, slots: see `grid_text`; buffers: the parameters that are results; sizes: bytes of each parameter's array
    threads: how many share a loop of at most so many iterations
    device: False for functions of the host, each of which runs one thread

    Raises Unsupported, with the source line, for what a device or what many threads cannot run, and where there is no
    loop for them.
    """
    from irgrad.engine.codegen.nvptx import refuse_host_code
    from irgrad.engine.ir.printer import to_text

    module, names = _module(program, name, parameters, slots)
    fn = module.functions[f"{name}.sample"]
    found = settle(module, fn, names, sizes)
    refuse_host_code(module, {*TAPE, *names})
    if not found:
        raise Unsupported("no loop is left for many threads", because="none of those that are independent runs",
                          fix="batch with jax.vmap")  # fmt: skip
    steps, most = _counts(fn, list(found))
    count = threads(most)
    tape = place_tape(module, f"{name}.sample", _LARGEST)
    widest = max(region.row for region in found.values())
    folded = min(count, 1 << math.ceil(math.log2(count) / 2)) if widest else 0
    rows = Rows(tape, widest, count, folded or count)
    state, room = _arguments(fn)
    header = 8 * (len(parameters) + 2)
    done = resumable(fn, state, list(found), _finish(module, name, room, rows, list(found.values())), header)
    module.functions[f"{name}.resume"] = module.functions.pop(f"{name}.sample")
    fn.name, fn.head = f"{name}.resume", "internal"
    for region in found.values():
        module.functions.pop(region.name, None)
        module.functions[f"{region.name}.one"].head = "internal"
    stops = list(zip(done.stops, found.values(), strict=True))
    texts = [sums_text(name, kind) for kind in ("double", "float")]
    for word in [word for word in module.functions if word.startswith((f"{name}.total.", f"{name}.gather."))]:
        del module.functions[word]  # declared there, and written here
    noted = [p.name for p, arg in zip(parameters, fn.args, strict=False) if _stays(fn, arg)]
    texts.append(kernels_text(name, parameters, buffers, noted, stops, rows, device=device))
    whole = joined(to_text(module), "".join(texts))
    return Parts(name, whole, done.bytes, max(16, tape + widest * count), count, folded, steps)


def _module(
    program: Program, name: str, parameters: Sequence[GridParameter], slots: Sequence[GridSlot]
) -> tuple[Module, list[str]]:
    """`NAME.sample` with all that it calls inside but the loops for many threads, and the names of those."""
    from irgrad.engine.codegen.jit import LLVM_LOCK
    from irgrad.engine.codegen.nvptx import SAMPLE
    from irgrad.engine.codegen.passes import Code, Settings, run_passes
    from irgrad.engine.codegen.target import HOST
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.pipeline.derivatives import link_runtime

    inner = f"{name}.sample"
    body = sample_text(program.stage.name, name, parameters, slots, ["1"], program.status_slot)
    refuse_hosted(program.stage.text, repr(program), "device code")
    rows = link_runtime(program.stage.text, arena=False).splitlines()
    rows = [row for row in rows if not (row.startswith("declare ") and "@irgrad.tape.carve(" in row)]
    module = read(joined("\n".join([*rows, CARVE]), body), roots=[inner])
    drop_scopes(module)
    whole = module.functions[inner]
    replace_uses(whole, dict.fromkeys(whole.args[-3:-1], ConstInt(ty.I64, 0)))  # the one sample, in the one row
    make_atomic(module)
    with LLVM_LOCK:
        settings = Settings((inner,), apart, level=2, machine=HOST.machine())
        code = run_passes(SAMPLE, Code(to_text(module), roots=[inner]), settings)
        names = cut_regions(code.model, name)
        roots = (inner, *(f"{n}.one" for n in names))
        settings = Settings(roots, level=2, machine=HOST.machine())
        code = run_passes(SAMPLE, Code(code.text, roots=roots), settings)
        fix_constants(code.model, inner, names)
        code = run_passes(SAMPLE, Code(code.text, roots=roots), settings)
        text = code.text
        code.close()
    module = read(text, roots=list(roots))
    adopt_memory(module, inner)
    return module, names


def _counts(fn: Function, calls: Sequence[Instruction]) -> tuple[int, float]:
    """How often the loops of the calls run, at most, and the most iterations of one."""
    induction, loops = Induction(fn), get(Loops, fn)
    steps, most = 0, 0.0
    for call in calls:
        turns, loop = 1, loops.of(call.block) if call.block is not None else None
        while loop is not None:
            count = induction.max_trip_count(loop)
            turns = turns * (count.const + 1) if count is not None and count.const is not None else _STEPS + 1
            loop = loop.parent
        steps += turns
        most = max(most, bounds(induction, call.args[0], 1 << 62)[1] + 1)
    if steps > _STEPS:
        raise Unsupported("loops cannot run on many threads: how often is not known beforehand, or too often",
                          because=f"a launch is prepared for each, at most {_STEPS}",
                          fix="give lengths of loops as Python ints, or batch with jax.vmap")  # fmt: skip
    return steps, most


def _arguments(fn: Function) -> tuple[Argument, Argument]:
    """The sample's number, its tape and thread give way to the state and the room."""
    sample, row, tape, thread, threads = fn.args[-5:]
    first = len(fn.args) - 5
    state, room = Argument(ty.PTR, "state", first), Argument(ty.PTR, "room", first + 1)
    state.function = room.function = fn
    zero, one = ConstInt(ty.I64, 0), ConstInt(ty.I64, 1)
    replace_uses(fn, {sample: zero, row: zero, tape: room, thread: zero, threads: one})
    fn.args = [*fn.args[:first], state, room]
    fn.tail = "nounwind"
    for argument in fn.args:
        argument.attrs = ""  # addresses now go through memory: nothing that was found out holds
    fn.ftype = ty.function(fn.ftype.ret, tuple(a.type for a in fn.args))
    return state, room


def _stays(fn: Function, argument: Argument) -> bool:
    """Whether an address in the argument's memory is kept beyond a launch: stored, or made something else than an
    address by which the launch itself reads and writes."""
    uses, work = uses_of(fn.blocks), list[Value]([argument])
    seen = set(work)
    while work:
        value = work.pop()
        for user in uses.get(value, ()):
            if user.traits.has("same_memory"):
                work += [] if user in seen else [user]
                seen.add(user)
            elif user.is_call and (user.callee_name or "").startswith(_COPIES):
                continue
            elif user.opcode != "icmp" and [n for n, o in enumerate(user.operands) if o is value] != [
                user.traits.address
            ]:
                return True
    return False


def _finish(
    module: Module, name: str, room: Argument, rows: Rows, regions: Sequence[Region]
) -> Callable[[Builder, Stop, Instruction], Value | None]:
    """What follows a loop that was shared: its threads' rows are added up."""

    def finish(at: Builder, stop: Stop, call: Instruction) -> Value | None:
        region = regions[stop.number - 1]
        stride, folded = ConstInt(ty.I64, rows.bytes), ConstInt(ty.I64, rows.folded)
        place, totals = rows.at, list[Value]()
        starts = call.args[len(region.given) :]
        for column in region.columns:
            first = at.gep(ty.I8, room, place, flags=())
            place += -(-ty.size_of(column.dtype) * column.count // 8) * 8
            if column.argument:
                gather = declare(module, f"{name}.gather.{column.dtype}", ty.VOID, (ty.PTR, ty.PTR, *[ty.I64] * 3))
                at.call(gather, [call.args[column.argument], first, stride, ConstInt(ty.I64, column.count), folded])
            else:
                total = declare(module, f"{name}.total.{column.dtype}", column.dtype, (ty.PTR, ty.I64, ty.I64))
                got = at.call(total, [first, stride, folded])
                totals.append(at.binary("fadd", starts[len(totals)], got, ()))
        if len(totals) > 1:
            return at.aggregate(call.type, totals)
        return totals[0] if totals else None

    return finish
