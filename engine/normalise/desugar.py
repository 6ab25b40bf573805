"""Takes apart calls and instructions that do several things at once, before analysis, so that rules and sweeps see
simple ones.

    sincos(x, s, c)             *s = sin x ; *c = cos x
    modf(x, p)                  t = trunc x ; *p = t ; copysign(x - t, x)   (0 for infinite x)
    realloc(p, n)               q = malloc(n) ; memcpy(q, p, min(size of p, n)) ; free(p)
    posix_memalign(o, a, n)     *o = aligned_alloc(a, n) ; 0
    strtod(s, e)                x = strtod(s, &t) ; if (e) *e = s + (t - s) ; x
    __dynamic_cast(p, ...)      q = where the class is ; q ? p + (q - p) : null, or p - the base's offset if it is known
    llvm.ptrmask(p, m)          p + ((p & m) - p)
    cexpf, cexpl, ...           of the parts: clang passes them in a vector, or in memory
    cproj(z)                    infinite ? (infinity, copysign(0, im)) : z
    scalb(x, n)                 n == trunc n ? ldexp(x, n) : NaN
    vector.reduce.op            the chain of scalar operations
    fshl, fshr                  two shifts and an or, where whole bytes move
    atomicrmw, cmpxchg (float)  load, operation, store (differentiated code runs a call in one thread)
    loops of cmpxchg            load, operation, store (`exchange_loops.py`)
    byval arguments             an explicit copy on the caller's stack
    threadlocal.address         the variable itself
    structs with integers       loads and stores of their parts, each of which may carry something else
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import gcd

from irgrad.engine.analyses.types.carriers import integers_in
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.intrinsics import PURE, type_suffix
from irgrad.engine.ir.model import (
    Block,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    GlobalVariable,
    Instruction,
    Module,
    Value,
    const_float,
)
from irgrad.engine.ir.rewrite import declare, replace_uses
from irgrad.engine.normalise.exchange_loops import settle_exchanges
from irgrad.engine.runtime.complex_products import FUNCTIONS, PARTS

BYVAL = re.compile(r"\bbyval\(([^()]*(?:\([^()]*\))?[^()]*)\)\s*")
Rewrite = Callable[[Module, Builder, Instruction], Value | None]


def desugar(module: Module, fn: Function) -> bool:
    """Calls and instructions that do several things at once are taken apart. Returns whether anything changed."""
    changed = settle_exchanges(fn)
    replaced: dict[Value, Value] = {}
    for arg in fn.args:
        arg.attrs = BYVAL.sub("", arg.attrs)
    for block in fn.blocks:
        if not any(_rewrite_of(i) for i in block.instructions):
            continue
        old, block.instructions = block.instructions, []
        b = Builder(block)
        for instr in old:
            rewrite = _rewrite_of(instr)
            if rewrite is None:
                block.instructions.append(instr)
                continue
            dbg = instr.metadata.get("dbg")
            b.metadata = {"dbg": dbg} if dbg else {}
            result = rewrite(module, b, instr)
            if result is not None and result is not instr:
                replaced[instr] = result
            changed = True
    if replaced:
        replace_uses(fn, replaced)
    return changed


_SHORT_LENGTHS = frozenset(("llvm.memcpy.p0.p0.i32", "llvm.memmove.p0.p0.i32", "llvm.memset.p0.i32"))


def _rewrite_of(instr: Instruction) -> Rewrite | None:
    if instr.opcode == "call":
        name = instr.callee.name if isinstance(instr.callee, Function) and instr.callee.is_declaration else None
        if name is not None:
            if name in CALLS:
                return CALLS[name]
            if name in COMPLEX and instr.args and _pair(instr, 0) is not None:
                return _complex
            if name.startswith("llvm.threadlocal.address."):
                return _thread_local
            if name.startswith("llvm.vector.reduce.") and name.split(".")[3] in REDUCTIONS:
                return _reduce
            if name.startswith(("llvm.fshl.i", "llvm.fshr.i")) and _by_bytes(instr.args[2]):
                return _funnel
            if name.startswith("llvm.ptrmask.p0.i64"):
                return _mask_pointer
            if name in _SHORT_LENGTHS:
                return _long_length
        if instr.call is not None and any("byval(" in a for a in instr.call.arg_attrs):
            return _byval
    elif instr.opcode == "atomicrmw" and instr.type.is_float and instr.pred in ATOMIC:
        return _atomic
    elif instr.opcode == "cmpxchg" and _float_bits(instr.operands[2]):
        return _compare_exchange
    elif instr.opcode == "load" and integers_in(instr.type) and instr.type.is_aggregate:
        return _load_parts
    elif instr.opcode == "store" and instr.operands[0].type.is_aggregate and integers_in(instr.operands[0].type):
        return _store_parts
    return None


def _float_bits(value: Value) -> bool:
    return value.type.is_float or (
        isinstance(value, Instruction) and value.opcode == "bitcast" and value.operands[0].type.is_float
    )


def _intrinsic(module: Module, b: Builder, name: str, *args: Value) -> Value:
    type_ = args[0].type
    fn = declare(module, f"llvm.{name}.{type_suffix(type_)}", type_, tuple(a.type for a in args), PURE)
    return b.call(fn, args)


def _sincos(module: Module, b: Builder, instr: Instruction) -> None:
    x, sine, cosine = instr.args
    # glibc reads x before it writes, so the results may overlap it
    values = [_intrinsic(module, b, "sin", x), _intrinsic(module, b, "cos", x)]
    b.store(values[0], sine)
    b.store(values[1], cosine)


def _modf(module: Module, b: Builder, instr: Instruction) -> Value:
    x, whole = instr.args
    integral = _intrinsic(module, b, "trunc", x)
    b.store(integral, whole)
    infinite = b.fcmp("oeq", _intrinsic(module, b, "fabs", x), const_float(x.type, float("inf")))
    fraction = b.select(infinite, const_float(x.type, 0.0), b.binary("fsub", x, integral))
    return _intrinsic(module, b, "copysign", fraction, x)


def _pair(instr: Instruction, at: int) -> ty.Type | None:
    """The type of the parts of a complex argument: two floats in a vector, two long doubles in memory."""
    type_ = instr.args[at].type
    if isinstance(type_, ty.VectorType):
        return type_.elem if type_.count == 2 and type_.elem is ty.F32 else None
    return ty.F80 if type_.is_ptr and isinstance(instr.callee, Function) and str(instr.callee.name)[-1] == "l" else None


def _complex(module: Module, b: Builder, instr: Instruction) -> Value:
    name, scalar = str(instr.callee_name), _pair(instr, 0)
    assert scalar is not None
    parts: list[Value] = []
    for arg in instr.args:
        if scalar is ty.F32:
            parts += [b.extractelement(arg, 0), b.extractelement(arg, 1)]
        else:
            parts += [b.load(scalar, arg, 16), b.load(scalar, b.gep(ty.I8, arg, 16), 16)]
    if name[:-1] in COMPLEX_SIZES:
        real, swapped = COMPLEX_SIZES[name[:-1]]
        fn = declare(module, real + name[-1], scalar, (scalar, scalar), PURE)
        return b.call(fn, parts[::-1] if swapped else parts)
    pair = ty.struct((scalar, scalar))
    fn = declare(module, PARTS + name, pair, tuple(part.type for part in parts), PURE)
    result = b.call(fn, parts)
    if scalar is not ty.F32:
        return result
    low = b.insertelement(ConstUndef(instr.type, poison=True), b.extractvalue(result, 0), 0)
    return b.insertelement(low, b.extractvalue(result, 1), 1)


def _projection(module: Module, b: Builder, instr: Instruction) -> Value | None:
    scalar = _pair(instr, 0) or instr.args[0].type
    if scalar is ty.F32:
        parts: list[Value] = [b.extractelement(instr.args[0], i) for i in (0, 1)]
    elif len(instr.args) == 1:
        parts = [b.load(scalar, instr.args[0], 16), b.load(scalar, b.gep(ty.I8, instr.args[0], 16), 16)]
    else:
        parts = list(instr.args)
    infinity = const_float(scalar, float("inf"))
    far = [b.fcmp("oeq", _intrinsic(module, b, "fabs", part), infinity) for part in parts]
    either = b.binary("or", far[0], far[1])
    zero = _intrinsic(module, b, "copysign", const_float(scalar, 0.0), parts[1])
    values = [b.select(either, infinity, parts[0]), b.select(either, zero, parts[1])]
    if scalar is ty.F32:
        return b.insertelement(b.insertelement(ConstUndef(instr.type, poison=True), values[0], 0), values[1], 1)
    return b.aggregate(instr.type, values)


def _scalb(module: Module, b: Builder, instr: Instruction) -> Value:
    x, n = instr.args
    far = const_float(n.type, 1e5)
    low = _intrinsic(module, b, "maxnum", n, const_float(n.type, -1e5))
    by = b.cast("fptosi", _intrinsic(module, b, "minnum", low, far), ty.I32)
    fn = declare(module, f"llvm.ldexp.{type_suffix(x.type)}.i32", x.type, (x.type, ty.I32), PURE)
    whole = b.fcmp("oeq", _intrinsic(module, b, "trunc", n), n)
    return b.select(whole, b.call(fn, [x, by]), const_float(x.type, float("nan")))


def _realloc(module: Module, b: Builder, instr: Instruction) -> Value:
    old, size = instr.args[:2]
    new = b.call(declare(module, "malloc", ty.PTR, (ty.I64,)), [size])
    usable = declare(module, "malloc_usable_size", ty.I64, (ty.PTR,), "nounwind memory(none)")
    known = b.call(usable, [old])
    known.call.arg_attrs = ["captures(none)"]  # type: ignore[union-attr]
    less = b.icmp("ult", known, size)
    count = b.select(less, known, size)
    copy = declare(module, "llvm.memcpy.p0.p0.i64", ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
    moved = b.call(copy, [new, old, count, ConstInt(ty.I1, 0)])
    moved.call.arg_attrs = ["align 16", "align 16"]  # type: ignore[union-attr]
    b.call(declare(module, "free", ty.VOID, (ty.PTR,)), [old])
    return new


def _by_bytes(value: Value) -> bool:
    return isinstance(value, ConstInt) and value.value % 8 == 0


def _funnel(_module: Module, b: Builder, instr: Instruction) -> Value:
    high, low, by = instr.args
    assert isinstance(by, ConstInt) and isinstance(instr.type, ty.IntType)
    bits = instr.type.bits
    left = by.value % bits
    if (instr.callee_name or "").startswith("llvm.fshr."):
        left = (bits - left) % bits
        if left == 0:
            return low
    if left == 0:
        return high
    upper = b.binary("shl", high, ConstInt(instr.type, left), ())
    lower = b.binary("lshr", low, ConstInt(instr.type, bits - left), ())
    return b.binary("or", upper, lower, ("disjoint",))


def _dynamic_cast(_module: Module, b: Builder, instr: Instruction) -> Value | None:
    """At a known offset where the class cast to has the class cast from as its only base of that kind, and that base is
    not virtual; else as far from the pointer as was found."""
    source, offset = instr.args[0], instr.args[3]
    found = b.insert(Instruction("call", instr.type, list(instr.operands), call=instr.call))
    missed = b.icmp("eq", found, ConstZero(ty.PTR))
    by: Value | int
    if isinstance(offset, ConstInt) and offset.value >= 0:
        by = -offset.value
    else:
        by = b.binary("sub", b.cast("ptrtoint", found, ty.I64), b.cast("ptrtoint", source, ty.I64))
    return b.select(missed, ConstZero(ty.PTR), b.gep(ty.I8, source, by))


def _mask_pointer(_module: Module, b: Builder, instr: Instruction) -> Value:
    pointer, mask = instr.args
    number = b.cast("ptrtoint", pointer, ty.I64)
    by = b.binary("sub", b.binary("and", number, mask), number)
    return b.gep(ty.I8, pointer, by, flags=())


def _long_length(module: Module, b: Builder, instr: Instruction) -> Value:
    """Lengths of copies and fills are of 64 bits from here on; flang writes shorter ones."""
    target, value, length, volatile = instr.args
    name = f"{str(instr.callee.name).removesuffix('i32')}i64"
    fn = declare(module, name, ty.VOID, (ty.PTR, value.type, ty.I64, ty.I1))
    call = b.call(fn, [target, value, b.to_i64(length, signed=False), volatile])
    if call.call is not None and instr.call is not None:
        call.call.arg_attrs = list(instr.call.arg_attrs)
    return call


def _posix_memalign(module: Module, b: Builder, instr: Instruction) -> Value:
    out, align, size = instr.args
    new = b.call(declare(module, "aligned_alloc", ty.PTR, (ty.I64, ty.I64)), [align, size])
    b.store(new, out)
    return ConstInt(instr.type, 0)


def _number_of_text(_module: Module, b: Builder, instr: Instruction) -> Value:
    """Where the number ends is as far from the text's beginning as the function says: so it has the text's shadow."""
    text, end = instr.args[:2]
    call = b.insert(Instruction("call", instr.type, list(instr.operands), call=instr.call))
    if isinstance(end, ConstZero):
        return call
    entry = b.block.function.entry if b.block.function is not None else b.block
    cell, nowhere = (Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=ty.PTR, align=8) for _ in range(2))
    _at_top(entry, b.block, cell)
    call.operands[1] = cell
    by = b.binary("sub", b.load(ty.I64, cell), b.cast("ptrtoint", text, ty.I64))
    if not _certain(end):
        _at_top(entry, b.block, nowhere)
        end = b.select(b.icmp("eq", end, ConstZero(ty.PTR)), nowhere, end)
    b.store(b.gep(ty.I8, text, by), end)
    return call


def _certain(pointer: Value) -> bool:
    """Whether a pointer is certainly not null."""
    while isinstance(pointer, Instruction) and pointer.opcode == "getelementptr" and "inbounds" in pointer.flags:
        pointer = pointer.operands[0]
    return isinstance(pointer, GlobalVariable) or (isinstance(pointer, Instruction) and pointer.opcode == "alloca")


def _thread_local(_module: Module, _b: Builder, instr: Instruction) -> Value:
    # The intrinsic is for code that moves between threads; a derivative stays on the one that called it.
    return instr.args[0]


REDUCTIONS = {
    "fadd": "fadd", "fmul": "fmul", "fmax": "maxnum", "fmin": "minnum", "fmaximum": "maximum", "fminimum": "minimum",
}  # fmt: skip


def _reduce(module: Module, b: Builder, instr: Instruction) -> Value:
    kind = REDUCTIONS[(instr.callee.name or "").split(".")[3]]
    args = instr.args
    vector = args[-1]
    assert isinstance(vector.type, ty.VectorType)
    b.flags = instr.flags
    parts = [b.extractelement(vector, i) for i in range(vector.type.count)]
    total = args[0] if len(args) == 2 else parts.pop(0)
    for part in parts:
        if kind in ("fadd", "fmul"):
            total = b.binary(kind, total, part)
        else:
            total = _intrinsic(module, b, kind, total, part)
    b.flags = ()
    return total


ATOMIC = {"fadd": "fadd", "fsub": "fsub", "xchg": "", "fmax": "maxnum", "fmin": "minnum",
          "fmaximum": "maximum", "fminimum": "minimum"}  # fmt: skip


def _atomic(module: Module, b: Builder, instr: Instruction) -> Value:
    pointer, value = instr.operands
    before = b.load(instr.type, pointer)
    kind = ATOMIC[instr.pred]
    if kind in ("fadd", "fsub"):
        value = b.binary(kind, before, value)
    elif kind:
        value = _intrinsic(module, b, kind, before, value)
    b.store(value, pointer)
    return before


def _compare_exchange(_module: Module, b: Builder, instr: Instruction) -> Value:
    pointer, expected, new = instr.operands
    before = b.load(expected.type, pointer)
    equal = b.icmp("eq", before, expected) if not expected.type.is_float else b.fcmp("oeq", before, expected)
    b.store(b.select(equal, new, before), pointer)
    return b.aggregate(instr.type, [before, equal])


def _byval(_module: Module, b: Builder, instr: Instruction) -> Value:
    assert instr.call is not None
    outside = isinstance(instr.callee, Function) and instr.callee.is_declaration
    for i, attrs in enumerate(instr.call.arg_attrs):
        found = BYVAL.search(attrs)
        if found is None:
            continue
        size = _size_of_text(_module, found.group(1))
        entry = b.block.function.entry if b.block.function is not None else b.block
        cell = Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=ty.array(size, ty.I8), align=16)
        _at_top(entry, b.block, cell)
        copy = declare(_module, "llvm.memcpy.p0.p0.i64", ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
        b.call(copy, [cell, instr.operands[i], ConstInt(ty.I64, size), ConstInt(ty.I1, 0)])
        instr.operands[i] = cell
        if not outside:  # what stands elsewhere takes its copy from the stack
            instr.call.arg_attrs[i] = BYVAL.sub("", attrs)
    b.block.instructions.append(instr)
    return instr


def _parts(type_: ty.Type, path: tuple[int, ...] = (), at: int = 0) -> Iterator[tuple[tuple[int, ...], int, ty.Type]]:
    """(path, offset, type) of the values in a struct or array."""
    if isinstance(type_, ty.StructType):
        offsets = ty.field_offsets(type_)
        for i, field in enumerate(type_.fields or ()):
            yield from _parts(field, (*path, i), at + offsets[i])
    elif isinstance(type_, ty.ArrayType):
        for i in range(type_.count):
            yield from _parts(type_.elem, (*path, i), at + i * ty.size_of(type_.elem))
    else:
        yield path, at, type_


def _load_parts(_module: Module, b: Builder, instr: Instruction) -> Value:
    whole: Value = ConstUndef(instr.type, poison=True)
    align = instr.align or ty.align_of(instr.type)
    for path, at, type_ in _parts(instr.type):
        part = b.load(type_, b.gep(ty.I8, instr.operands[0], at), gcd(align, at))
        whole = b.insertvalue(whole, part, *path)
    return whole


def _store_parts(_module: Module, b: Builder, instr: Instruction) -> None:
    value, pointer = instr.operands
    align = instr.align or ty.align_of(value.type)
    for path, at, _ in _parts(value.type):
        b.store(b.extractvalue(value, *path), b.gep(ty.I8, pointer, at), gcd(align, at))


def _at_top(entry: Block, _here: Block, instr: Instruction) -> None:
    instr.block = entry
    entry.instructions.insert(0, instr)


def _size_of_text(module: Module, text: str) -> int:
    from irgrad.engine.ir.text.cursor import Cursor

    return ty.size_of(Cursor(module, text).type_())


COMPLEX_SIZES = {"cabs": ("hypot", False), "carg": ("atan2", True)}
COMPLEX = frozenset(stem + suffix for stem in (*FUNCTIONS, *COMPLEX_SIZES) for suffix in "fl")
CALLS: dict[str, Rewrite] = {
    "scalb": _scalb, "scalbf": _scalb, "scalbl": _scalb,
    "cproj": _projection, "cprojf": _projection, "cprojl": _projection,
    "sincos": _sincos, "sincosf": _sincos, "sincosl": _sincos, "modf": _modf, "modff": _modf, "modfl": _modf,
    "realloc": _realloc, "posix_memalign": _posix_memalign, "__dynamic_cast": _dynamic_cast,
    **dict.fromkeys("strtod strtof strtold strtol strtoll strtoul strtoull".split(), _number_of_text),
}  # fmt: skip
