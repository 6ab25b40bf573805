"""Kernels of functions with structs: a wrapper in IR that takes one array per field (see `structs`).

    define double @energy.fields(ptr %a0, ptr %a1, i64 %a2)      f64 bodies_pos[n,3], f64 bodies_mass[n], i64 n

brings the fields together in memory that is laid out as C lays it out, calls the function, and takes the fields of
`out` and `inout` structs apart again. Small structs of constant number live on the stack, where LLVM removes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.programs import Options
from irgrad.engine.kernel.trees import TreeKernel
from irgrad.engine.runtime.ir_writer import Writer
from irgrad.engine.signature.dtypes import DType
from irgrad.engine.signature.extents import BinaryExtent, ConstExtent, Extent
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.prototype import check_signature, prototype_of, quoted
from irgrad.engine.signature.status import WRAPPED, marked
from irgrad.engine.signature.structs import Leaf, Struct, StructSignature, parse_structs
from irgrad.rules.errors import SignatureError

__all__ = ["StructKernel", "struct_kernel", "wrapper_text"]

_STACK = 4096  # bytes of structs that may live on the stack
_TYPES = re.compile(r'^%("[^"\n]+"|[\w.$-]+) = type \{ ([^\n]*) \}$', re.MULTILINE)
_SIZES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
_UNROLLED = 8  # elements of a field that are copied one by one
_DECLARED = {
    "malloc": "declare noalias ptr @malloc(i64)",
    "free": "declare void @free(ptr captures(none))",
    "llvm.memset.p0.i64": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)",
}


class StructKernel(TreeKernel[Kernel]):
    """A kernel of a function with structs, called with dicts of arrays or NumPy's structured arrays.

    signature: as it was written; kernel: the kernel of the wrapper, whose arguments are the fields
    """

    def __init__(self, kernel: Kernel, signature: StructSignature) -> None:
        self.signature = signature
        of = signature.of
        inputs = [p for p in signature.c.parameters if p.is_input and p.name not in kernel.signature.sizes]
        templates = [of[p.name].template(p.name) if p.name in of else p.name for p in inputs]
        named = {p.name: of[p.name].template(p.name) if p.name in of else p.name for p in signature.c.outputs}
        returned = ["return"] if signature.c.returns is not None and kernel.signature.status is None else []
        rows = [*returned, *named.values()]
        returns = rows[0] if len(rows) == 1 else tuple(rows) if rows else None
        super().__init__(kernel, templates, returns, None, labels=[p.name for p in inputs])
        self._outputs = [of.get(name) for name in (*returned, *named)]
        self.__doc__ = f"The compiled function `{signature}`."

    def dtype(self, name: str) -> Any:
        """The NumPy dtype of a struct, or of an argument that is one: `np.zeros(n, kernel.dtype("body"))`.

        Raises SignatureError for a name that neither a struct nor such an argument has.
        """
        known: dict[str, Struct] = {**{s.name: s for s in self.signature.structs}, **self.signature.of}
        if name not in known:
            raise SignatureError(f"`{name}` is no struct", where=f"`{self.signature}`",
                                 fix="one of " + ", ".join(f"`{row}`" for row in known))
        return known[name].numpy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns: its value, then `out` and `inout` arguments, structs as dicts of their fields; as
        structured arrays when an argument was one. Raises as a kernel does."""
        out = super().__call__(*args, **kwargs)
        values = (*args, *kwargs.values())
        if not any(getattr(getattr(v, "dtype", None), "names", None) for v in values):
            return out
        single = len(self._outputs) == 1
        rows = [row if struct is None else _record(struct, row)
                for struct, row in zip(self._outputs, [out] if single else out or (), strict=True)]  # fmt: skip
        return rows[0] if single else tuple(rows) if rows else None

    def __repr__(self) -> str:
        return f"<irgrad.StructKernel {self.signature}>"


def _record(struct: Struct, fields: Mapping[str, Any]) -> Any:
    """A structured array from the arrays of its fields."""
    import numpy as np

    leaf = next(struct.leaves())
    value: Any = fields
    for name in leaf.path:
        value = value[name]
    # the shape in front of all fields is that of a leaf without its own extents
    made = np.zeros(np.shape(value)[: np.ndim(value) - len(leaf.shape)], struct.numpy)
    _fill(made, fields)
    return made


def _fill(record: Any, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            _fill(record[name], value)
        else:
            record[name] = value


def struct_kernel(
    text: str, name: str, signature: str | StructSignature, digest: str, errors: Mapping[int, str] | None = None,
    options: Options | None = None, code: tuple[tuple[str, str], ...] = (),
) -> StructKernel:  # fmt: skip
    """The function `name` of a module as a kernel over its structs. digest: of the module; options: but for the layout;
    code: sources that are in no file.

    Raises SignatureError for a signature that makes no sense or contradicts the function, also where the module knows a
    struct of that name with other fields.
    """
    parsed = parse_structs(signature) if isinstance(signature, str) else signature
    c, flat = parsed.c, parsed.flat
    if errors is not None:
        c, flat = marked(c, name), marked(flat, name)
        parsed = StructSignature(parsed.structs, c, parsed.of, flat)
    check_signature(c, prototype_of(text, name))
    _check_layouts(text, parsed)
    wrapper = wrapper_text(name, parsed)
    known = set(re.findall(r"^(?:declare|define) [^@\n]*@\"?([\w.]+)", text, re.MULTILINE))
    declared = [line for symbol, line in _DECLARED.items() if symbol not in known and f"@{symbol}(" in wrapper]
    whole = "\n".join([text, wrapper, *declared, ""])
    options = options or Options()
    options = replace(options, layout=f"{options.layout}{parsed}")
    made = Kernel(whole, _wrapper_name(name), flat, options, digest=digest, errors=errors, code=code)
    return StructKernel(made, parsed)


def _wrapper_name(name: str) -> str:
    return name + WRAPPED


def _check_layouts(text: str, signature: StructSignature) -> None:
    """Compare the structs with those of the same name that the module knows."""
    known = {name.strip('"'): body for name, body in _TYPES.findall(text)}
    for struct in signature.structs:
        body = known.get(f"struct.{struct.name}") or known.get(f"class.{struct.name}") or ""
        theirs = _layout(body, known)
        ours = [(f.offset, f.count, f.type.memory if isinstance(f.type, DType) else f.type.name) for f in struct.fields]
        if theirs is None or theirs == ours:
            continue
        pair = next(((a, b) for a, b in zip(ours, theirs, strict=False) if a != b), None)
        number = ours.index(pair[0]) if pair else min(len(ours), len(theirs))
        which = struct.fields[number].name if number < len(ours) else "the end"
        got, wanted = (_told(rows[number]) if number < len(rows) else "nothing" for rows in (ours, theirs))
        raise SignatureError(f"`struct {struct.name}` is another one in the source", where=f"`{struct}`",
                             which=f"`{which}`", because=f"the signature has {got} there, the source {wanted}",
                             fix="declare the fields as the source does, in its order")


def _told(row: tuple[int, int, str]) -> str:
    return f"{row[1]} x {row[2]} at byte {row[0]}"


def _layout(body: str, known: Mapping[str, str]) -> list[tuple[int, int, str]] | None:
    """Offset, number of elements and type of each field of an IR struct; None where it cannot be told."""
    at, rows = 0, []
    for part in _split(body):
        count, kind = 1, part
        while match := re.fullmatch(r"\[(\d+) x (.+)\]", kind):
            count, kind = count * int(match[1]), match[2]
        sizes = _size(kind, known)
        if sizes is None:
            return None
        size, align = sizes
        at = -(-at // align) * align
        rows.append((at, count, kind.rpartition(".")[2].strip('"') if kind.startswith("%") else kind))
        at += count * size
    return rows or None


def _size(kind: str, known: Mapping[str, str]) -> tuple[int, int] | None:
    """Size and alignment of an IR type."""
    if kind in _SIZES:
        return _SIZES[kind], _SIZES[kind]
    rows = _layout(known.get(kind[1:].strip('"'), ""), known) if kind.startswith("%") else None
    if rows is None:
        return None
    parts = [_size(re.sub(r"^(\[\d+ x )+|\]+$", "", part), known) for part in _split(known[kind[1:].strip('"')])]
    align = max((part[1] for part in parts if part is not None), default=1)
    offset, count, _ = rows[-1]
    last = parts[-1]
    return None if last is None else (-(-(offset + count * last[0]) // align) * align, align)


def _split(body: str) -> list[str]:
    """Fields of the text of an IR struct, `[2 x %struct.p], i8`."""
    rows, depth = [""], 0
    for char in body:
        depth += (char in "[{<(") - (char in ")>}]")
        if char == "," and depth == 0:
            rows.append("")
        else:
            rows[-1] += char
    return [row.strip() for row in rows if row.strip()]


def wrapper_text(name: str, signature: StructSignature) -> str:
    """The wrapper of `@name`, as IR."""
    return _Wrapper(name, signature).text()


class _Wrapper:
    def __init__(self, name: str, signature: StructSignature) -> None:
        self.name, self.signature = name, signature
        flat = signature.flat
        self.returns = "void" if flat.returns is None else flat.returns.ir
        params = [f"{'ptr' if p.is_array else _extended(p.dtype)} %a{k}" for k, p in enumerate(flat.parameters)]
        self.number = {p.name: k for k, p in enumerate(flat.parameters)}
        self.w = Writer(f"define {self.returns} @{quoted(_wrapper_name(name))}({', '.join(params)})")

    def text(self) -> str:
        """The function."""
        w, c = self.w, self.signature.c
        args: list[str] = []
        memory: list[tuple[Parameter, Struct, str, str]] = []
        heap: list[str] = []
        for p in c.parameters:
            struct = self.signature.of.get(p.name)
            if struct is None:
                kind = "ptr" if p.is_array else _extended(p.dtype)
                args.append(f"{kind} %a{self.number[p.name]}")
                continue
            count = self._count(p)
            place = self._place(p, struct, count, heap)
            memory.append((p, struct, count, place))
            args.append(f"ptr {place}")
            if p.is_input:
                self._copy(p, struct, count, place, pack=True)
        callee = f"call {self.returns} @{quoted(self.name)}({', '.join(args)})"
        value = "" if self.returns == "void" else w.emit(callee)
        if not value:
            w.do(callee)
        for p, struct, count, place in memory:
            if p.is_output:
                self._copy(p, struct, count, place, pack=False)
        for place in heap:
            w.do(f"call void @free(ptr {place})")
        return w.text().replace("  ret void\n}", f"  ret {self.returns} {value}".rstrip() + "\n}")

    def _place(self, p: Parameter, struct: Struct, count: str, heap: list[str]) -> str:
        w = self.w
        if count.isdigit() and int(count) * struct.size <= _STACK:
            size = str(max(1, int(count)) * struct.size)
            place = w.alloca("i8", int(size), align=16)
        else:
            size = w.mul(count, str(struct.size))
            place = w.emit(f"call ptr @malloc(i64 {size})")
            heap.append(place)
        if not p.is_input:
            w.do(f"call void @llvm.memset.p0.i64(ptr align {struct.align} {place}, i8 0, i64 {size}, i1 false)")
        return place

    def _copy(self, p: Parameter, struct: Struct, count: str, place: str, *, pack: bool) -> None:
        """Fields into structs, or structs into fields."""
        w = self.w
        if count == "1":
            self._copy_one(p, struct, place, "0", pack)
            return
        with w.loop(count) as i:
            self._copy_one(p, struct, w.at(place, w.mul(i, str(struct.size))), i, pack)

    def _copy_one(self, p: Parameter, struct: Struct, place: str, i: str, pack: bool) -> None:
        w = self.w
        for leaf in struct.leaves():
            array = f"%a{self.number['_'.join((p.name, *leaf.path))]}"
            total = 1
            for extent in leaf.shape:
                total *= extent
            first = array if i == "0" else w.at(array, w.mul(i, str(total)), leaf.dtype.memory)
            self._elements(leaf, first, w.at(place, str(leaf.offset)), pack, 0, unrolled=total <= _UNROLLED)

    def _elements(self, leaf: Leaf, array: str, place: str, pack: bool, axis: int, *, unrolled: bool) -> None:
        w, dtype = self.w, leaf.dtype
        if axis == len(leaf.shape):
            source, target = (array, place) if pack else (place, array)
            value = w.emit(f"load {dtype.memory}, ptr {source}, align {dtype.size}")
            w.do(f"store {dtype.memory} {value}, ptr {target}, align {dtype.size}")
            return
        inner = 1
        for extent in leaf.shape[axis + 1 :]:
            inner *= extent
        if unrolled:
            for k in range(leaf.shape[axis]):
                here = w.at(array, str(k * inner), dtype.memory)
                self._elements(leaf, here, w.at(place, str(k * leaf.strides[axis])), pack, axis + 1, unrolled=True)
            return
        with w.loop(str(leaf.shape[axis])) as j:
            here = w.at(array, w.mul(j, str(inner)), dtype.memory)
            there = w.at(place, w.mul(j, str(leaf.strides[axis])))
            self._elements(leaf, here, there, pack, axis + 1, unrolled=False)

    def _count(self, p: Parameter) -> str:
        """How many structs: the product of the extents, as an i64."""
        numbers = [self._extent(extent, p) for extent in p.shape or ()]
        constant = [int(n) for n in numbers if n.isdigit()]
        product = 1
        for known in constant:
            product *= known
        total = str(product)
        for number in numbers:
            if not number.isdigit():
                total = number if total == "1" else self.w.mul(total, number)
        return total

    def _extent(self, extent: Extent, p: Parameter) -> str:
        if isinstance(extent, ConstExtent):
            return str(extent.number)
        if isinstance(extent, BinaryExtent):
            op = {"+": "add", "-": "sub", "*": "mul", "/": "sdiv", "%": "srem"}[extent.op]
            return self.w.emit(f"{op} i64 {self._extent(extent.left, p)}, {self._extent(extent.right, p)}")
        name = str(extent)
        scalars: Sequence[Parameter] = [q for q in self.signature.c.parameters if not q.is_array]
        q = next((q for q in scalars if q.name == name), None)
        if q is None:
            raise SignatureError(f"the number of structs `{p}` is not known to the function", where=f"`{p}`",
                                 because=f"`{name}` is no parameter of the C function",
                                 fix=f"write the extent as a number, or let the function take `i64 {name}`")
        value = f"%a{self.number[name]}"
        cast = "zext" if q.dtype.kind in "ub" else "sext"
        return value if q.dtype.size == 8 else self.w.emit(f"{cast} {q.dtype.ir} {value} to i64")


def _extended(dtype: DType) -> str:
    """Small integers are extended by the caller in the C calling conventions."""
    if dtype.kind == "b" or dtype.ir in ("i8", "i16"):
        return f"{dtype.ir} {'signext' if dtype.kind == 'i' else 'zeroext'}"
    return dtype.ir
