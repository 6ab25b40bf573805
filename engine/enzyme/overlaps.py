"""Whether the memory that a call of the notation is given overlaps, asked when the program runs.

Pointers of a program may overlap, so what is read through one of them has to be kept where another one is written
(see `apart.py`): in a nest of loops that is a tape of all iterations where none is needed. Two derivatives are made
then, one for memory apart, and what each pointer leads to is compared in front of them.

Method: the bytes that a function touches behind each of its pointers, as numbers that are known where it begins
(`evolution/regions.py`); every access must be within such a region, or in memory of the function's own. Shadows are
touched where their values are. All regions, of values and shadows, have to be disjoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution import trips
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.regions import Region, Regions, emit_union
from irgrad.engine.analyses.memory.objects import NUMBER
from irgrad.engine.enzyme import rows
from irgrad.engine.enzyme.apart import may_overlap
from irgrad.engine.enzyme.calls import DerivativeCall
from irgrad.engine.enzyme.early_values import EarlyValues, UnknownError
from irgrad.engine.enzyme.float_memory import formals_of
from irgrad.engine.enzyme.members import Members, arguments_of, with_members
from irgrad.engine.enzyme.products import distribute
from irgrad.engine.enzyme.results import Found
from irgrad.engine.enzyme.thunks import active
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Argument,
    Block,
    Constant,
    ConstInt,
    ConstZero,
    Function,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import ACCESSES, CHOICES
from irgrad.engine.ir.quoting import quoted_name
from irgrad.rules.effects import facts
from irgrad.rules.errors import IRGradError

__all__ = ["Made", "chooser_text", "disjoint_text", "two_versions"]

_TAPED = "@irgrad.tape.alloc("
_ROW = " = load ptr, ptr "
_PHI = " = phi "
_SHORT = 1 << 17  # characters of a module whose functions are inlined to see what they touch
_LARGEST = 400  # accesses of a function whose regions are asked for
_PASSES = ("unify-returns", "make-reducible", "canonical-loops")


class Made(Protocol):
    """A derivative of a root (see `lower.py`)."""

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def ready(self) -> str: ...

    @property
    def plain(self) -> Found | None: ...


class Derived(Protocol):
    """Makes a derivative of a call under a name; of this text where one is given, which is ready."""

    def __call__(self, name: str, call: DerivativeCall, ready: str = "") -> Made: ...


def two_versions(call: DerivativeCall, made: Made, name: str, derived: Derived) -> tuple[str, list[str]]:
    """Which function is the derivative of a root, and the texts that it needs beside the one that was made: a second
    derivative, for memory that does not overlap, and what chooses one of the two. It is the first alone where that
    would not be slower (no tape, no loop over memory that may overlap), or where it is not known what is touched."""
    pointers, alone = may_overlap(call), (made.name, list[str]())
    if made.plain is None or not pointers or not (_TAPED in made.text or _PHI in made.ready):
        return alone
    module = _inlined(made.ready, name)
    names = (f"{name}.given", made.name, f"{name}.members.either")
    within = with_members(call, module, name, pointers, f"noalias {NUMBER}", names) if module is not None else None
    if within is not None:
        found = _versions(within.call, made, within, f"{names[2]}.whole", derived)
        if found:
            return names[0], [*found[1], within.chooser]
    own = Members(call, made.ready, name, tuple(pointers), {}, "")
    return _versions(call, made, own, made.name, derived) or alone


def _versions(
    call: DerivativeCall, made: Made, of: Members, slow: str, derived: Derived
) -> tuple[str, list[str]] | None:
    """The same of one form of the root; `slow`: the function that was made, with the arguments of this form."""
    pointers, name, taped = of.pointers, of.root, _TAPED in made.text
    if len(pointers) < 2:
        return None
    kinds = [kind == "dup" for kind in active(call)]
    shadowed = [n for n, k in enumerate(kinds) if k]
    numbers = [n for n, formal in enumerate(formals_of(call)) if not formal.type.is_ptr]
    flat = _flat(of.text, name, pointers, shadowed, numbers) if _ROW in of.text else None
    ready, root, spaced = (flat.text, f"{name}.rows", f"{name}.spaced") if flat else (of.text, name, "")
    faster = (flat is not None and flat.jumps) or _meet(ready, root, set(pointers), set(shadowed), call.forward)
    if not (taped or faster):
        return None
    check, both = f"{name}.check", f"{name}.either"
    compared = disjoint_text(ready, root, check, pointers, shadowed, numbers, of.read)
    if not compared:
        return None
    apart = replace(call, apart=call.apart | frozenset(pointers))
    given = flat.text if flat else of.text if of.text is not made.ready else ""
    try:
        other = derived(root if given else f"{name}.apart", apart, given)
    except IRGradError:
        return None
    more, less = other.text.count(_TAPED), made.text.count(_TAPED)
    if not _alike(other.plain, made.plain) or more > less or (more == less and not faster):
        return None
    if flat is None:
        return both, [other.text, compared, chooser_text(both, check, other.name, slow, kinds)]
    chooser = rows.chooser_text(both, flat, spaced, check, (other.name, slow), kinds)
    return both, [other.text, compared, flat.check, rows.SPACED, chooser]


def _alike(one: Found | None, two: Found | None) -> bool:
    """Whether the same is known of two results, of which the first may be of a function with more parameters."""
    if one is None or two is None:
        return one is two
    return replace(one, given=one.given[: len(two.given)]) == two


def _flat(
    text: str, root: str, pointers: Sequence[int], shadowed: Sequence[int], numbers: Sequence[int]
) -> rows.Flat | None:
    """The root over the arrays that its tables of pointers lead to (see `rows.py`)."""
    module = _inlined(text, root)
    if module is None:
        return None

    return rows.flattened(module, module.functions[root], f"{root}.rows", f"{root}.spaced", pointers, shadowed,
                          frozenset(numbers), f"noalias {NUMBER}")  # fmt: skip


def _meet(text: str, root: str, pointers: set[int], shadowed: set[int], forward: bool) -> bool:
    """Whether a loop without inner ones, inside of another one or with several places of one pointer, adds to the
    shadow of one pointer's memory or writes it, and goes to another one's: in memory apart its sums stay in registers,
    neighbours share what they add, and nothing is compared again. Of a single loop over places LLVM compares them.
    forward: only memory that the function writes itself is written"""
    module = _inlined(text, root)
    if module is None:
        return False
    fn = module.functions[root]
    induction, loops, met = Induction(fn), get(Loops, fn), dict[Loop, list[tuple[int, Value]]]()
    writing = set[Loop]()
    for instr in fn.instructions():
        loop = loops.of(instr.block) if instr.block is not None else None
        if instr.opcode in ("load", "store") and loop is not None and not loop.children:
            place = instr.operands[-1]
            there = arguments_of(induction.address(place)[0]) & pointers
            met.setdefault(loop, []).extend((index, place) for index in there)
            if there and (instr.opcode == "store" or not forward):
                writing.add(loop)
    for loop, touched in met.items():
        there = {index for index, _ in touched}
        if loop in writing and len(there) > 1 and there & shadowed and (loop.parent or len(set(touched)) > len(there)):
            return True
    return False


def _inlined(text: str, root: str) -> Module | None:
    """The module of a root that calls no function with a body, with loops in one form; None where it would be long."""
    from irgrad.engine.codegen.passes import Code, Settings, run_passes
    from irgrad.engine.codegen.prepare import inlined, prepare
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.pipeline import stages

    module = read(text, roots=[root])
    if any(_defined(i, module) for i in module.functions[root].instructions()):
        if len(text) > _SHORT:
            return None
        module = read(prepare(inlined(text, root), [root]), roots=[root])
    run_passes([p for p in stages.NORMALISE if p.name in _PASSES], Code(model=module), Settings((root,)))
    return module


def disjoint_text(
    text: str, root: str, name: str, pointers: Sequence[int], shadowed: Sequence[int], numbers: Sequence[int],
    read: Mapping[int, tuple[int, int]] = MappingProxyType({}),
) -> str:  # fmt: skip
    """The text of `i1 @name(...)`, which takes the arguments of the root and the shadows of those in `shadowed`, and
    says whether all that is touched behind `pointers` and their shadows is apart; "" where that is not known.

    text: the root, ready to be differentiated; numbers: the arguments that lead to numbers of the call's; read: by
    argument, bytes behind it that were read before
    """
    from irgrad.engine.ir.printer import to_text

    module = _inlined(text, root)
    if module is None:
        return ""
    try:
        fn = module.functions[root]
        distribute(fn)
        touched = _Touched(fn, frozenset(pointers)).regions()
        for n, (low, high) in read.items():
            touched.setdefault(n, []).append(Region(fn.args[n], (low, trips.const(0)), (high, trips.const(0))))
        made = _check(module, fn, name, touched, shadowed, numbers)
    except UnknownError:
        return ""
    for other in list(module.functions):
        if other != name and not module.functions[other].is_declaration:
            del module.functions[other]
    module.globals.clear()
    return to_text(module) if made else ""


def chooser_text(name: str, check: str, apart: str, either: str, kinds: Sequence[bool]) -> str:
    """The function that calls one of two derivatives. kinds: for each argument of the root whether it has a shadow"""
    params, given, shadows = [], [], []
    for n, shadowed in enumerate(kinds):
        params += [f"ptr %a{n}", *([f"ptr %d{n}"] if shadowed else [])]
        given.append(f"ptr %a{n}")
        shadows += [f"ptr %d{n}"] if shadowed else []
    slots = ", ".join(params)
    return f"""
declare i1 @{quoted_name(check)}({', '.join('ptr' for _ in (*given, *shadows))})
declare void @{quoted_name(apart)}({', '.join('ptr' for _ in params)})
declare void @{quoted_name(either)}({', '.join('ptr' for _ in params)})
define void @{quoted_name(name)}({slots}) {{
  %apart = call i1 @{quoted_name(check)}({', '.join((*given, *shadows))})
  br i1 %apart, label %disjoint, label %overlapping
disjoint:
  call void @{quoted_name(apart)}({slots})
  ret void
overlapping:
  call void @{quoted_name(either)}({slots})
  ret void
}}
"""


def _defined(instr: Instruction, module: Module) -> bool:
    """Whether an instruction calls a function with a body."""
    callee = module.functions.get(instr.callee_name or "") if instr.is_call else None
    return callee is not None and not callee.is_declaration


class _Touched:
    """The regions that a function touches behind its arguments."""

    def __init__(self, fn: Function, pointers: frozenset[int]) -> None:
        self.fn = fn
        self.pointers = pointers
        self.induction = Induction(fn)
        self.loops = get(Loops, fn)
        self.of_loop: dict[Loop, Regions] = {}
        self.found: dict[int, list[Region]] = {}

    def regions(self) -> dict[int, list[Region]]:
        """By the number of the argument. Raises UnknownError."""
        count = 0
        returning = _returning(self.fn)
        for instr in self.fn.instructions():
            if instr.is_call and all(self._own(self._base(a)) for a in instr.args if a.type.is_ptr):
                name, known = instr.callee_name or "", facts(instr.callee_name or "")
                silent = known is not None and known.kind in ("pure", "inactive") and not known.writes
                if silent or (name.startswith("_ZNSt") and instr.block not in returning):
                    continue  # it is given nothing that is compared; the C++ library makes what is thrown
            rows = _accesses(instr)
            count += len(rows)
            if count > _LARGEST:
                raise UnknownError
            for pointer, size in rows:
                self._access(instr, pointer, size)
        return self.found

    def _access(self, instr: Instruction, pointer: Value, size: Value) -> None:
        base = self._base(pointer)
        loop = self._outermost(instr)
        if loop is None:
            regions: Sequence[Region] | str = [self._plain(pointer, size)]
        else:
            if loop not in self.of_loop:
                self.of_loop[loop] = Regions(self.fn, loop)
            regions = self.of_loop[loop].reach(pointer, size, either=True)
            if isinstance(regions, str) and self._own(base):
                return
        if isinstance(regions, str):
            raise UnknownError
        for region in regions:
            base = region.base
            if isinstance(base, Argument) and base.index in self.pointers:
                self.found.setdefault(base.index, []).append(Region(base, region.low, region.high))
            elif not self._own(base):
                raise UnknownError

    def _own(self, pointer: Value) -> bool:
        """Whether the memory behind a pointer is the function's own, a number of the call's, or never written."""
        ways = [pointer]
        for way in ways:
            if isinstance(way, Instruction) and way.opcode in CHOICES:
                ways += [base for v in way.operands if v.type.is_ptr and (base := self._base(v)) not in ways]
        return all((isinstance(way, Instruction) and way.opcode in CHOICES) or self._made(way) for way in ways)

    def _base(self, pointer: Value) -> Value:
        return self.induction.address(pointer)[0]

    def _made(self, base: Value) -> bool:
        if isinstance(base, Argument):  # what is compared is said to be apart already
            return base.index not in self.pointers and "noalias" in base.attrs.split()
        if isinstance(base, GlobalVariable):
            return base.constant
        if isinstance(base, Function | ConstZero):
            return True
        if not isinstance(base, Instruction):
            return False
        known = facts(base.callee_name or "") if base.opcode == "call" else None
        return base.opcode == "alloca" or (known is not None and known.allocates)

    def _outermost(self, instr: Instruction) -> Loop | None:
        return next((loop for loop in self.loops.top if loop.contains(instr.block)), None)

    def _plain(self, pointer: Value, size: Value) -> Region:
        base, form = self.induction.address(pointer)
        total = trips.const(0)
        for symbol, coefficient in form.terms.items():
            if not isinstance(symbol, Value):
                raise UnknownError
            total = trips.make("add", total, trips.make("mul", ("value", symbol), trips.const(coefficient)))
        low = trips.signed(form.const)
        if isinstance(size, ConstInt):
            return Region(base, (low, total), (low + size.value, total))
        return Region(base, (low, total), (low, trips.make("add", total, ("value", size))))


def _accesses(instr: Instruction) -> list[tuple[Value, Value]]:
    """Addresses and bytes of what an instruction accesses. Raises UnknownError for what may access anything, and for
    pointers in memory."""
    if instr.opcode in ("load", "store"):
        kind = instr.type if instr.opcode == "load" else instr.operands[0].type
        fixed = instr.opcode == "store" and isinstance(instr.operands[0], Constant)
        if not fixed and (kind.scalar.is_ptr or isinstance(kind, ty.StructType | ty.ArrayType)):
            raise UnknownError
        return [(instr.operands[-1], ConstInt(ty.I64, ty.store_size(kind)))]
    if instr.opcode in ACCESSES:
        raise UnknownError
    if not instr.is_call:
        return []
    name = instr.callee_name or ""
    if name.startswith(("llvm.memset.", "llvm.memcpy.", "llvm.memmove.")):
        places = [instr.args[0], *([] if name.startswith("llvm.memset.") else [instr.args[1]])]
        return [(place, instr.args[2]) for place in places]
    known = facts(name) if name else None
    if known is None or known.writes or not (name.startswith("llvm.") or known.allocates or known.frees is not None):
        raise UnknownError
    return []


def _returning(fn: Function) -> set[Block]:
    """The blocks from which the function may return."""
    before: dict[Block, list[Block]] = {}
    for block in fn.blocks:
        for after in block.terminator.blocks:
            before.setdefault(after, []).append(block)
    found, work = set[Block](), [block for block in fn.blocks if block.terminator.opcode == "ret"]
    while work:
        block = work.pop()
        if block not in found:
            found.add(block)
            work += before.get(block, [])
    return found


def _check(
    module: Module, fn: Function, name: str, touched: dict[int, list[Region]], shadowed: Sequence[int],
    numbers: Sequence[int],
) -> Function | None:  # fmt: skip
    """The function that compares; None where there is nothing to compare."""
    if len(touched) < 2:
        return None
    made = Function(name, ty.function(ty.I1, (ty.PTR,) * (len(fn.args) + len(shadowed))))
    made.tail = "nounwind"
    block = Block("entry")
    made.blocks = [block]
    b = Builder(block)
    before = EarlyValues(b, made.args, frozenset(numbers))
    spans: list[tuple[Value, Value]] = []
    for number, regions in touched.items():
        base = made.args[number]
        rows = [Region(base, (r.low[0], before.expr(r.low[1])), (r.high[0], before.expr(r.high[1]))) for r in regions]
        address, size = emit_union(b, None, rows)
        start = b.cast("ptrtoint", address, ty.I64)
        spans.append((start, b.add(start, size, ())))
        if number in shadowed:
            shadow = made.args[len(fn.args) + list(shadowed).index(number)]
            ahead = b.sub(b.cast("ptrtoint", shadow, ty.I64), b.cast("ptrtoint", base, ty.I64), ())
            spans.append((b.add(start, ahead, ()), b.add(spans[-1][1], ahead, ())))
    answer: Value = ConstInt(ty.I1, 1)
    for n, (start, end) in enumerate(spans):
        for other, stop in spans[:n]:
            free = b.binary("or", b.icmp("ule", end, other), b.icmp("ule", stop, start))
            answer = b.binary("and", answer, free)
    b.ret(answer)
    module.functions[name] = made
    return made
