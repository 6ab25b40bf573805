"""Block functions: IR that runs one program for a block of samples (see `batch_driver` for who calls it).

Three forms, by *strategy*:

- `loop`: sample after sample; each slot has a stride in bytes, known at run time. Any program.
- `scalars`: programs of scalars without loops. The program is inlined into a loop over a constant number of samples
  with constant strides over buffers that do not overlap, and everything between the loads and stores is in registers:
  LLVM makes vector code of it, with `exp`, `log`, ... from the vector library.
- `lanes`: a program that `widen.widening` widened: one call for all samples of a block, whose memory is interleaved.

How a slot of a block is used, besides the roles of `slots`:

    in each / in one      an input with a value per sample / one value for all
    zero, each, one       memory that starts from zero / from a value per sample / from one value for all, ...
    ... + " out"          ... whose contents afterwards are wanted
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.runtime.arena import guarded_text, run_name
from irgrad.engine.runtime.ir_writer import Writer
from irgrad.engine.signature.prototype import quoted
from irgrad.engine.signature.slots import Slot

__all__ = ["BLOCK", "BYTES", "LANES", "lanes_text", "loop_text", "scalars_text"]

BLOCK = "irgrad.batch.block"
LANES = 64
"""A block of scalars has a multiple of so many samples: enough to hide the cost of a loop, few enough for one sample to
cost little more than it must."""
BYTES = 64
"""Bytes of the lanes of one value; twice as many in programs without a tape, whose values fit the registers (measured
on the Lorenz system by RK4: the function is 1.6x faster with 16 lanes than with 8, its gradient is not)."""

# The whole vector registers: LLVM takes half of them by default where they lower the clock rate, which batches outweigh
# (measured: 1.1x on the price of options, AVX-512).
WIDE = '"prefer-vector-width"="512"'
_ROLLED = """
!900000001 = distinct !{!900000001, !900000002}
!900000002 = !{!"llvm.loop.unroll.disable"}
"""
_PARAMETERS = "(i64 %count, ptr %pointers, ptr %strides)"


def _writer(tape: bool) -> Writer:
    """The block function, or with a tape the function that it calls (see `runtime/arena.py`)."""
    head = f"define internal void @{run_name(BLOCK)}" if tape else f"define ptr @{BLOCK}"
    return Writer(f"{head}{_PARAMETERS} {WIDE}")


def _text(w: Writer, tape: bool, unwinds: bool = False) -> str:
    return w.text() + guarded_text(BLOCK, ("i64", "ptr", "ptr"), unwinds=unwinds) if tape else w.text("ptr null")


def loop_text(program: str, slots: int, *, tape: bool, unwinds: bool = False) -> str:
    """The block function that calls a program sample by sample. tape: the program's runtime is the arena's;
    unwinds: it catches exceptions of the C++ runtime."""
    w = _writer(tape)
    bases = [w.load("ptr", "%pointers", i) for i in range(slots)]
    strides = [w.load("i64", "%strides", i) for i in range(slots)]
    with w.loop("%count") as j:
        arguments = [w.at(base, w.mul(j, stride)) for base, stride in zip(bases, strides, strict=True)]
        w.do(f"call void @{quoted(program)}({', '.join(f'ptr {a}' for a in arguments)})")
    return _text(w, tape, unwinds)


def lanes_text(program: str, slots: int, *, tape: bool, unwinds: bool = False) -> str:
    """The block function of a widened program: one call for all lanes."""
    w = _writer(tape)
    bases = [w.load("ptr", "%pointers", i) for i in range(slots)]
    w.do(f"call void @{quoted(program)}({', '.join(f'ptr {base}' for base in bases)})")
    return _text(w, tape, unwinds)


def scalars_text(program: str, slots: Sequence[Slot], uses: Sequence[str], *, tape: bool, unwinds: bool = False) -> str:
    """The block function of a program of scalars, for a multiple of `LANES` samples."""
    outer = _writer(tape)
    bases = [outer.load("ptr", "%pointers", i) for i in range(len(slots))]
    with outer.loop(outer.emit(f"udiv i64 %count, {LANES}")) as group:
        first = outer.mul(group, str(LANES))
        heads = [base if use in ("in one", "one") else outer.at(base, first, slot.dtype.memory)
                 for base, use, slot in zip(bases, uses, slots, strict=True)]  # fmt: skip
        outer.do(f"call void @irgrad.batch.samples({', '.join(f'ptr {head}' for head in heads)})")
    parameters = ", ".join(f"ptr noalias %s{i}" for i in range(len(slots)))
    w = Writer(f"define internal void @irgrad.batch.samples({parameters}) {WIDE}")
    cells = [w.alloca(slot.dtype.memory, align=16) for slot in slots]
    kinds = [(slot.dtype.memory, slot.dtype.size) for slot in slots]
    shared = {i: w.load(kind, f"%s{i}", align=size) for i, (kind, size) in enumerate(kinds) if "one" in uses[i]}
    with w.loop(str(LANES), ", !llvm.loop !900000001") as j:
        for i, (kind, size) in enumerate(kinds):
            value = shared.get(i, "zeroinitializer")
            if "each" in uses[i]:
                value = w.load(kind, f"%s{i}", j, align=size)
            w.do(f"store {kind} {value}, ptr {cells[i]}, align {size}")
        w.do(f"call void @{quoted(program)}({', '.join(f'ptr {cell}' for cell in cells)}) alwaysinline")
        for i, (kind, size) in enumerate(kinds):
            if uses[i].endswith("out"):
                value = w.load(kind, cells[i], align=size)
                w.do(f"store {kind} {value}, ptr {w.at(f'%s{i}', j, kind)}, align {size}")
    return w.text() + _text(outer, tape, unwinds) + _ROLLED
