"""The types of LLVM IR, interned: two equal types are the same object.

    type   ::= void | label | metadata | token | ptr | i<N> | float kind
             | vector <n x T> | array [n x T] | struct {T, ...} (literal, packed or named) | function T (T, ...)

Sizes and alignments are those of the usual 64-bit data layouts (x86-64, aarch64, nvptx64): they agree on every type
here but x86_fp80, which only x86 has.
"""

from __future__ import annotations

from threading import Lock
from typing import Final
from weakref import WeakValueDictionary

FLOAT_BITS: Final = {
    "half": 16,
    "bfloat": 16,
    "float": 32,
    "double": 64,
    "x86_fp80": 80,
    "fp128": 128,
    "ppc_fp128": 128,
}


class Type:
    """Base of every type. Compare by identity (`is`)."""

    __slots__ = ("__weakref__", "text")

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<type {self.text}>"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("types are interned per process; print and read the module instead of pickling it")

    @property
    def is_float(self) -> bool:
        """A scalar floating-point type."""
        return isinstance(self, FloatType)

    @property
    def is_int(self) -> bool:
        """A scalar integer type."""
        return isinstance(self, IntType)

    @property
    def is_ptr(self) -> bool:
        """A pointer of any address space."""
        return isinstance(self, PtrType)

    @property
    def is_vector(self) -> bool:
        """A fixed vector."""
        return isinstance(self, VectorType)

    @property
    def is_aggregate(self) -> bool:
        """A struct or an array."""
        return isinstance(self, StructType | ArrayType)

    @property
    def scalar(self) -> Type:
        """The element type of a vector, else the type itself."""
        return self.elem if isinstance(self, VectorType) else self

    @property
    def is_fp(self) -> bool:
        """A float or a vector of floats."""
        return isinstance(self.scalar, FloatType)


class SimpleType(Type):
    """void, label, metadata, token."""

    __slots__ = ()


class IntType(Type):
    """i<bits>."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        super().__init__(f"i{bits}")
        self.bits = bits


class FloatType(Type):
    """half, bfloat, float, double, x86_fp80, fp128, ppc_fp128."""

    __slots__ = ("bits",)

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.bits = FLOAT_BITS[kind]


class PtrType(Type):
    """An opaque pointer."""

    __slots__ = ("space",)

    def __init__(self, space: int) -> None:
        super().__init__("ptr" if space == 0 else f"ptr addrspace({space})")
        self.space = space


class VectorType(Type):
    """<count x elem>; scalable vectors are not modelled (the reader refuses them)."""

    __slots__ = ("count", "elem")

    def __init__(self, count: int, elem: Type) -> None:
        super().__init__(f"<{count} x {elem}>")
        self.count = count
        self.elem = elem


class ArrayType(Type):
    """[count x elem]."""

    __slots__ = ("count", "elem")

    def __init__(self, count: int, elem: Type) -> None:
        super().__init__(f"[{count} x {elem}]")
        self.count = count
        self.elem = elem


class StructType(Type):
    """A struct. `name` is None for a literal one; `fields` is None while a named one is opaque."""

    __slots__ = ("fields", "name", "packed")

    def __init__(self, fields: tuple[Type, ...] | None, packed: bool, name: str | None) -> None:
        super().__init__(name if name is not None else struct_body(fields, packed))
        self.fields = fields
        self.packed = packed
        self.name = name

    @property
    def body(self) -> str:
        """The text of the fields: `{ i32, double }`, `<{ i8, i32 }>` or `opaque`."""
        return struct_body(self.fields, self.packed)


class FunctionType(Type):
    """ret (params..., ...)."""

    __slots__ = ("params", "ret", "vararg")

    def __init__(self, ret: Type, params: tuple[Type, ...], vararg: bool) -> None:
        parts = [str(p) for p in params] + (["..."] if vararg else [])
        super().__init__(f"{ret} ({', '.join(parts)})")
        self.ret = ret
        self.params = params
        self.vararg = vararg


def struct_body(fields: tuple[Type, ...] | None, packed: bool) -> str:
    """The printed body of a struct with these fields."""
    if fields is None:
        return "opaque"
    inner = ", ".join(map(str, fields))
    text = f"{{ {inner} }}" if inner else "{}"
    return f"<{text}>" if packed else text


VOID: Final = SimpleType("void")
LABEL: Final = SimpleType("label")
METADATA: Final = SimpleType("metadata")
TOKEN: Final = SimpleType("token")

_FLOATS: Final = {kind: FloatType(kind) for kind in FLOAT_BITS}
# Types of named structs belong to a module and must go with it: what is composed of them is held weakly. Two threads
# that ask for the same new type must get one object, hence the lock.
_INTS: dict[int, IntType] = {}
_PTRS: dict[int, PtrType] = {}
_VECTORS: dict[tuple[int, Type], VectorType] = {}
_ARRAYS: WeakValueDictionary[tuple[int, Type], ArrayType] = WeakValueDictionary()
_STRUCTS: WeakValueDictionary[tuple[tuple[Type, ...], bool], StructType] = WeakValueDictionary()
_FUNCTIONS: WeakValueDictionary[tuple[Type, tuple[Type, ...], bool], FunctionType] = WeakValueDictionary()
_NEW_TYPE = Lock()


def float_(kind: str) -> FloatType:
    """The float type of that LLVM name (`double`, `float`, ...). Raises KeyError for another name."""
    return _FLOATS[kind]


def int_(bits: int) -> IntType:
    """i<bits>."""
    found = _INTS.get(bits)
    return found if found is not None else _INTS.setdefault(bits, IntType(bits))


def ptr(space: int = 0) -> PtrType:
    """The pointer type of an address space."""
    found = _PTRS.get(space)
    return found if found is not None else _PTRS.setdefault(space, PtrType(space))


def vector(count: int, elem: Type) -> VectorType:
    """<count x elem>."""
    key = (count, elem)
    found = _VECTORS.get(key)
    return found if found is not None else _VECTORS.setdefault(key, VectorType(count, elem))


def array(count: int, elem: Type) -> ArrayType:
    """[count x elem]."""
    found = _ARRAYS.get((count, elem))
    if found is None:
        with _NEW_TYPE:
            found = _ARRAYS.setdefault((count, elem), ArrayType(count, elem))
    return found


def struct(fields: tuple[Type, ...], packed: bool = False) -> StructType:
    """A literal struct."""
    found = _STRUCTS.get((fields, packed))
    if found is None:
        with _NEW_TYPE:
            found = _STRUCTS.setdefault((fields, packed), StructType(fields, packed, None))
    return found


def named_struct(name: str) -> StructType:
    """A new named struct (`%struct.S` as printed), opaque until its `fields` are set; it belongs to one module."""
    return StructType(None, False, name)


def function(ret: Type, params: tuple[Type, ...], vararg: bool = False) -> FunctionType:
    """The type of a function."""
    key = (ret, params, vararg)
    found = _FUNCTIONS.get(key)
    if found is None:
        with _NEW_TYPE:
            found = _FUNCTIONS.setdefault(key, FunctionType(ret, params, vararg))
    return found


I1: Final = int_(1)
I8: Final = int_(8)
I16: Final = int_(16)
I32: Final = int_(32)
I64: Final = int_(64)
HALF: Final = _FLOATS["half"]
BFLOAT: Final = _FLOATS["bfloat"]
F32: Final = _FLOATS["float"]
F64: Final = _FLOATS["double"]
F80: Final = _FLOATS["x86_fp80"]
PTR: Final = ptr()


def align_of(t: Type) -> int:
    """ABI alignment in bytes."""
    match t:
        case IntType(bits=bits):
            return 1 if bits <= 8 else 2 if bits <= 16 else 4 if bits <= 32 else 8 if bits <= 64 else 16
        case FloatType(bits=bits):
            return 16 if bits >= 80 else bits // 8
        case PtrType():
            return 8
        case VectorType():
            size = 1
            while size < store_size(t):
                size *= 2
            return size
        case ArrayType(elem=elem):
            return align_of(elem)
        case StructType(fields=fields, packed=packed):
            return 1 if packed or not fields else max(map(align_of, fields))
        case _:
            raise TypeError(f"`{t}` has no alignment")


def last_bits(scalar: Type) -> int:
    """The bits of a float that may be cut off or replaced with the number still meant: the last of its significand.

    Half of a double, 12 of a single, as the splittings of C libraries do it, and a first member that an empty
    `std::optional` clears. Fewer bits kept are an index into a table, a constant between its steps.
    """
    return {"double": 32, "float": 12}.get(str(scalar), 0)


def store_size(t: Type) -> int:
    """Bytes that a store of this type writes."""
    match t:
        case IntType(bits=bits) | FloatType(bits=bits):
            return (bits + 7) // 8
        case PtrType():
            return 8
        case VectorType(count=count, elem=elem):
            bits = elem.bits if isinstance(elem, IntType | FloatType) else 64
            return (count * bits + 7) // 8
        case ArrayType(count=count, elem=elem):
            return count * size_of(elem)
        case StructType(fields=fields):
            if fields is None:
                raise TypeError(f"`{t}` is opaque: it has no size")
            return size_of(t)
        case _:
            raise TypeError(f"`{t}` has no size")


def size_of(t: Type) -> int:
    """Distance in bytes between two elements of this type in an array."""
    if isinstance(t, StructType):
        offsets = field_offsets(t)
        return offsets[-1]
    size, align = store_size(t), align_of(t)
    return (size + align - 1) // align * align


def field_offsets(t: StructType) -> tuple[int, ...]:
    """Byte offset of each field, then the size of the whole struct as the last entry."""
    if t.fields is None:
        raise TypeError(f"`{t}` is opaque: it has no layout")
    offset, out = 0, []
    for field in t.fields:
        align = 1 if t.packed else align_of(field)
        offset = (offset + align - 1) // align * align
        out.append(offset)
        offset += size_of(field)
    align = 1 if t.packed else align_of(t)
    return (*out, (offset + align - 1) // align * align)


_capable: dict[Type, bool] = {}


def may_hold_pointer(type_: Type) -> bool:
    """A value of this type may be a pointer or carry one: pointers, integers of 64 bits or more, and what has them.
    A vector counts as a whole: memory is copied through vectors of bytes."""
    known = _capable.get(type_)
    if known is None:
        match type_:
            case PtrType():
                known = True
            case IntType(bits=bits):
                known = bits >= 64
            case VectorType(count=count, elem=IntType(bits=bits)):
                known = count * bits >= 64
            case VectorType(elem=elem) | ArrayType(elem=elem):
                known = may_hold_pointer(elem)
            case StructType(fields=fields):
                known = any(map(may_hold_pointer, fields or ()))
            case _:
                known = False
        _capable[type_] = known
    return known
