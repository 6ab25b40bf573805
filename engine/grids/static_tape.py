"""The tapes of all threads as arrays with an element of each thread side by side.

Where the sizes of what a sample keeps are constants, every array of the tape gets its place beforehand: with T threads,
element i of thread t of an array at byte `offset` of one thread's tape is at `offset * T + (i * T + t) * size`. Threads
that go together then read and write neighbours, which is one access for all of them. An array whose elements are not
all of one size is kept whole for each thread, at `offset * T + t * room`, where `room` is that of all arrays that the
same place makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, ConstData, ConstInt, Function, GlobalVariable, Instruction, Module, Value
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.rules.errors import Unsupported

__all__ = ["bounds", "element_size", "place_tape", "whole_elements"]

_ALLOC = ("irgrad.tape.alloc",)
_LARGEST = 1 << 26  # bytes: more is no bound
_BOUND = ('a bound in bytes: lib.kernel("name", signature, device_tape=65536), or keep the kernel on the CPU: '
          'device="cpu"')  # fmt: skip
_NOTES = ("irgrad.tape.finish", "irgrad.tape.at")


def place_tape(
    module: Module, name: str, largest: int = _LARGEST, widths: Mapping[Instruction, int] | None = None
) -> int:
    """Place the tape of the function `name`, whose last argument is an arena; in its place it gets the tape of all
    threads, the number of its thread, and how many there are. Returns the bytes of one thread's tape.

    largest: bytes of an array; a bound above that is none
    widths: bytes of an element of arrays whose addresses have their steps already; all others lie whole. None: of the
    arrays that have one, found here

    Raises Unsupported for an array whose size, or how often it is made, has no bound that is a constant.
    """
    fn = module.functions[name]
    calls = [i for i in fn.instructions() if i.is_call and i.callee_name in _ALLOC]
    induction = Induction(fn)
    rooms = [_room(module, fn, call, induction, largest) for call in calls]
    arena = fn.args[-1]
    for instr in fn.instructions():
        if arena in instr.operands and not (instr.is_call and instr.callee_name in (*_ALLOC, *_NOTES)):
            raise Unsupported("a GPU cannot run this: a function that calls itself has memory of its own",
                              where=locate(module, instr) or f"@{fn.name}", because="how deep is not known beforehand",
                              fix=f"write a loop, or {_BOUND}")  # fmt: skip
    fn.args.pop()
    first = len(fn.args)
    tape, thread = Argument(ty.PTR, "tape", first), Argument(ty.I64, "thread", first + 1)
    threads = Argument(ty.I64, "threads", first + 2)
    for argument in (tape, thread, threads):
        argument.function = fn
        fn.args.append(argument)
    fn.ftype = ty.function(fn.ftype.ret, (*fn.ftype.params[:-1], ty.PTR, ty.I64, ty.I64))
    uses = uses_of(fn.blocks)
    offset, placed = 0, dict[Value, Value]()
    for call, room in zip(calls, rooms, strict=True):
        width, at = _element(call, uses) if widths is None else widths.get(call, 0), _before(call)
        begin = _offset(fn, at, call, offset if width else 0, again=get(Loops, fn).of(at.block) is not None)
        own = at.mul(thread, ConstInt(ty.I64, width or room), ())
        before = at.mul(threads, begin, ()) if width else at.mul(threads, ConstInt(ty.I64, offset), ())
        inside = own if width else at.add(own, begin, ())
        placed[call] = at.gep(ty.I8, tape, at.add(before, inside, ()), flags=())
        if width and widths is None:
            _spread(call, uses, threads, width)
        offset += room
    replace_uses(fn, placed)
    gone = (*_ALLOC, *_NOTES)
    for block in fn.blocks:
        block.instructions = [i for i in block.instructions if not (i.is_call and i.callee_name in gone)]
    called = {i.callee_name for f in module.functions.values() for i in f.instructions() if i.is_call}
    for word in gone:
        if word not in called:
            module.functions.pop(word, None)
    return offset


def _offset(fn: Function, at: Builder, call: Instruction, first: int, *, again: bool) -> Value:
    """Where an array begins in one thread's tape: behind those that the same call has made before."""
    if not again:
        return ConstInt(ty.I64, first)
    entry = Builder(fn.entry, 0)
    cell = entry.alloca(ty.I64, None, 8)
    entry.store(ConstInt(ty.I64, first), cell, 8)
    now = at.load(ty.I64, cell, 8)
    at.store(at.add(now, _rounded(at, call.operands[1]), ()), cell, 8)
    return now


def _rounded(at: Builder, size: Value) -> Value:
    if isinstance(size, ConstInt):
        return ConstInt(ty.I64, -(-size.value // 16) * 16)
    return at.binary("and", at.add(size, ConstInt(ty.I64, 15), ()), ConstInt(ty.I64, -16))


def _before(instr: Instruction) -> Builder:
    block = instr.block
    assert block is not None
    return Builder(block, block.instructions.index(instr))


def _room(module: Module, fn: Function, call: Instruction, induction: Induction, largest: int) -> int:
    """Bytes for all arrays that a call makes."""
    loop = get(Loops, fn).of(call.block) if call.block is not None else None
    most = bounds(induction, call.operands[1], largest)[1]
    most = math.ceil(most / 16) * 16 if most < largest else most
    why = "the length of an array has no bound that is a constant of the call"
    while loop is not None and most < largest:
        count = induction.max_trip_count(loop)
        if count is None or count.const is None:
            most, why = math.inf, "how often a loop runs is no constant of the call"
        else:
            most *= count.const + 1
        loop = loop.parent
    if most >= largest:
        raise Unsupported("a GPU cannot run this: how much memory a sample needs is not known beforehand",
                          where=_place(module, fn, call), because=why,
                          fix=f"give lengths of loops and arrays as Python ints, or {_BOUND}")  # fmt: skip
    return int(most)


def bounds(induction: Induction, value: Value, largest: int) -> tuple[float, float]:
    """Least and greatest number of a size: an affine form in the counters of loops, or products, quotients, remainders,
    the greater and the lesser of such."""
    low, high = induction.bounds(induction.form(value))
    if high < largest or not isinstance(value, Instruction):
        return low, high
    sums, products = ("add", "sub"), ("mul", "shl")
    if value.opcode not in sums + products:
        return _other_bounds(induction, value, largest) or (low, high)
    (a, b), (c, d) = (bounds(induction, operand, largest) for operand in value.operands)
    if value.opcode in sums:
        return (a + c, b + d) if value.opcode == "add" else (a - d, b - c)
    if value.opcode == "shl":
        c, d = 2.0 ** min(c, 64), 2.0 ** min(d, 64)
    if not all(map(math.isfinite, (a, b, c, d))):
        return -math.inf, math.inf
    ends = [x * y for x in (a, b) for y in (c, d)]
    return min(ends), max(ends)


def _other_bounds(induction: Induction, value: Instruction, largest: int) -> tuple[float, float] | None:
    """The same for a value that is no sum and no product; None where nothing is known."""
    name = value.opcode if not value.is_call else (value.callee_name or "").rpartition(".")[0]
    given = value.args if value.is_call else value.operands[1:] if name == "select" else value.operands
    if not (name in _EXTREMA or value.traits.has("lanewise")) or not all(isinstance(v.type, ty.IntType) for v in given):
        return None
    rows = [bounds(induction, operand, largest) for operand in given]
    by = given[-1].value if len(given) > 1 and isinstance(given[-1], ConstInt) else 0
    (a, b), (c, d) = rows[0], rows[-1]
    if name in ("select", "freeze"):
        return min(a, c), max(b, d)
    if name in ("sext", "zext"):
        half = 1 << (given[0].type.bits - 1)  # type: ignore[attr-defined]
        return (a, b) if (a >= 0 or (name == "sext" and a >= -half)) and b < half else None
    if name.startswith("llvm."):
        pick = max if name.endswith("max") else min
        return (pick(a, c), pick(b, d)) if name[5] == "s" or min(a, c) >= 0 else None
    if name in ("or", "xor") and a >= 0 and math.isfinite(b) and isinstance(given[-1], ConstInt):
        bits = (1 << int(b).bit_length()) - 1
        return by & ~bits, by | bits
    if by <= 0:
        return None
    if name in ("and", "urem"):
        return 0, by if name == "and" else by - 1
    if name == "srem":
        return (0 if a >= 0 else 1 - by), by - 1
    if name not in ("lshr", "udiv"):
        return None
    by = 1 << by if name == "lshr" else by
    return (a // by, b // by) if a >= 0 and math.isfinite(b) else None


_EXTREMA = tuple(f"llvm.{word}" for word in ("smax", "smin", "umax", "umin"))


def _place(module: Module, fn: Function, call: Instruction) -> str:
    """The line that memory is for: of the call, as a note before it says, or of the loop around it."""
    where = locate(module, call)
    for instr in () if where or call.block is None else call.block.instructions:
        if instr is call:
            break
        text = instr.operands[2] if instr.is_call and instr.callee_name == "irgrad.tape.at" else None
        if isinstance(text, GlobalVariable) and isinstance(text.init, ConstData):
            where = text.init.data.rstrip(b"\0").decode()
    loop = get(Loops, fn).of(call.block) if call.block is not None else None
    for block in loop.blocks if loop is not None and not where else ():
        where = where or next(filter(None, (locate(module, instr) for instr in block.instructions)), "")
    return where or f"@{fn.name}"


def _element(array: Instruction, uses: Uses) -> int:
    """The size of all elements of an array, 0 where they differ or are not all known."""
    sizes: set[int] = set()
    steps: list[Instruction] = []
    work: list[Value] = [array]
    while work:
        pointer = work.pop()
        for user in uses.get(pointer, ()):
            if user.opcode == "getelementptr" and user.operands[0] is pointer and user.operands.count(pointer) == 1:
                steps.append(user)
                work.append(user)
            elif user.opcode == "load" and not user.ordering:
                sizes.add(element_size(user.type))
            elif user.opcode == "store" and user.operands[0] is not pointer and not user.ordering:
                sizes.add(element_size(user.operands[0].type))
            else:
                return 0
    width = sizes.pop() if len(sizes) == 1 else 0
    return width if width in (1, 2, 4, 8) and all(whole_elements(step, width) for step in steps) else 0


def element_size(kind: ty.Type) -> int:
    """The bytes of a number or an address; 0 for other types."""
    return ty.size_of(kind) if isinstance(kind, (ty.IntType, ty.FloatType, ty.PtrType)) else 0


def whole_elements(step: Instruction, width: int) -> bool:
    """Whether a step of an address is one of whole elements."""
    if len(step.operands) != 2 or step.elem is None or step.operands[1].type is not ty.I64:
        return False
    return _multiple(step.operands[1], ty.size_of(step.elem), width)


def _multiple(index: Value, unit: int, width: int) -> bool:
    if unit % width == 0:
        return True
    if isinstance(index, ConstInt):
        return index.value * unit % width == 0
    if isinstance(index, Instruction) and index.opcode in ("mul", "shl") and isinstance(index.operands[1], ConstInt):
        by = index.operands[1].value
        return (by if index.opcode == "mul" else 1 << by) * unit % width == 0
    return False


def _spread(array: Instruction, uses: Uses, threads: Value, width: int) -> None:
    """Steps of an array's addresses are as many times larger as there are threads."""
    work: list[Instruction] = [array]
    while work:
        for user in uses.get(work.pop(), ()):
            if user.opcode in ("load", "store"):
                user.align = min(user.align or width, width)
                continue
            user.operands[1] = _before(user).mul(user.operands[1], threads, ())
            user.flags = ()
            work.append(user)
