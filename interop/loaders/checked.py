"""Functions that may fail, of languages that end the program there: a function with a status in their place.

    define i32 @energy.checked(parameters..., ptr %result)

calls the function and writes what it returns. Failures (`irgrad.panic`) leave it with a number, which is the status
(see `normalise/exceptions/`). Where the language passes an array together with its length, the signature may leave
out the length: it follows from the shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from irgrad.rules.errors import IRGradError, SignatureError

if TYPE_CHECKING:
    from irgrad.engine.kernel.programs import Options
    from irgrad.engine.signature.extents import Extent
    from irgrad.engine.signature.parameter import Parameter
    from irgrad.engine.signature.prototype import Prototype
    from irgrad.engine.signature.signature import Signature
    from irgrad.engine.signature.structs import StructSignature

__all__ = ["Checked", "checked", "checked_kernel", "ending"]

_RESULT = "result"
_BEYOND = 1 << 20  # numbers of failures, where the function has a status of its own
_NUMBER = re.compile(
    r'^(@irgrad\.panic\.[\w.]+ = private constant \{ i32, \[\d+ x i8\] \} \{ i32 )\d+'
    r'(, \[\d+ x i8\] c"([^"\n]*)")', re.M,
)  # fmt: skip
_CFI_VERSION = 20240719
_POINTER, _ALLOCATABLE = 1, 2
_ALLOCATION = {
    "malloc": "declare noalias ptr @malloc(i64)\n", "free": "declare void @free(ptr)\n",
    "llvm.umax.i64": "declare i64 @llvm.umax.i64(i64, i64)\n",
    "llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n",
    "irgrad.panic": "declare void @irgrad.panic(ptr) noreturn nounwind cold\n",
}  # fmt: skip
_CFI_TYPES = {"i8": 7, "i16": 8, "i32": 9, "i64": 10, "f32": 27, "f64": 28}
_ENDING = """define internal void @irgrad.panic(ptr %which) noinline noreturn cold {
  %text = getelementptr i8, ptr %which, i64 4
  %written = call i64 @strlen(ptr %text)
  %sent = call i64 @write(i32 2, ptr %text, i64 %written)
  %line = alloca i8
  store i8 10, ptr %line
  %ended = call i64 @write(i32 2, ptr %line, i64 1)
  call void @abort()
  unreachable
}
"""
_NEEDED = {
    "strlen": "declare i64 @strlen(ptr)\n", "write": "declare i64 @write(i32, ptr, i64)\n",
    "abort": "declare void @abort() noreturn\n",
}  # fmt: skip
_RANGE = re.compile(r"\brange\(i64 0, (-?\d+)\)")
_SRET = re.compile(r"\bsret\((\[\d+ x i8\]|[^()]*)\)")
_HELD = re.compile(r"\bdereferenceable\((\d+)\)")


@dataclass(frozen=True, slots=True)
class Checked:
    """A function with a status: the module with it, its name, its prototype, what its statuses mean; `wrapper`, what
    the module has beside the source's."""

    text: str
    name: str
    signature: Signature
    errors: Mapping[int, str]
    wrapper: str


def checked_kernel(
    text: str, name: str, signature: Any, options: Options, errors: Mapping[int, str] | None,
    code: Sequence[tuple[str, str]], described: Callable[[], str] | None, digest: str,
) -> Any:  # fmt: skip
    """The function `name` of a module as a kernel with a status; the arguments are those of `Library.kernel`.

    Raises SignatureError where none is given and one is needed, or where it contradicts the function.
    """
    from irgrad.engine.kernel.kernel import Kernel
    from irgrad.engine.kernel.packing import struct_kernel
    from irgrad.engine.signature.prototype import infer, prototype_of
    from irgrad.engine.signature.signature import Signature
    from irgrad.engine.signature.status import marked
    from irgrad.engine.signature.structs import StructSignature, has_structs, parse_structs

    prototype = prototype_of(text, name)
    structs = parse_structs(signature) if has_structs(signature) else None
    if structs is not None:
        given = structs.c
        _check_layouts(structs, described)
    elif signature is None:
        given = _inferred(text, prototype, described) or infer(prototype)
    else:
        given = signature if isinstance(signature, Signature) else Signature(signature)
    if errors is not None:
        given = marked(given, name)
    try:
        made = checked(text, name, given, prototype)
    except SignatureError as error:
        suggested = _suggested(text, prototype, described)
        raise error.change(fix=f"{error.fix}\nfrom this draft   {suggested}") if suggested else error from None
    table = {**made.errors, **(errors or {})}
    options = replace(options, layout=made.wrapper)  # the digest is that of the module: rules go by it
    if structs is None:
        return Kernel(made.text, made.name, made.signature, options, digest=digest, errors=table, code=tuple(code))
    start = next((n for n, p in enumerate(made.signature.parameters) if p == given.parameters[0]), 0)
    front = made.signature.parameters[:start]
    behind = made.signature.parameters[start + len(given.parameters) :]
    flat = Signature((*front, *structs.flat.parameters, *behind), made.signature.returns, returns_status=True)
    whole = StructSignature(structs.structs, made.signature, structs.of, flat)
    return struct_kernel(made.text, made.name, whole, digest, table, options, tuple(code))


def _suggested(text: str, prototype: Prototype, described: Callable[[], str] | None) -> str:
    """A signature from the types of the source; empty where they are not known."""
    from irgrad.interop.loaders import fortran
    from irgrad.interop.loaders.rust_types import draft

    if fortran.passing(text, prototype.name) is not None:
        return fortran.draft(text, prototype)
    try:
        return (draft(described(), prototype.name) if described is not None else None) or ""
    except IRGradError:  # of a compiler that takes no words for its debug information
        return ""


def _inferred(
    text: str, prototype: Prototype, described: Callable[[], str] | None
) -> Signature | None:
    """The signature where the source's types settle it: numbers, and slices and arrays of them that are only read.

    Raises SignatureError with a draft where they do not."""
    from irgrad.engine.signature.signature import Signature
    from irgrad.engine.signature.structs import has_structs

    named = all(re.fullmatch(r"%[A-Za-z_]\w*", symbol) for symbol in prototype.symbols)
    plain = all(not kind.startswith(("{", "[", "<", "ptr")) for kind in prototype.params)
    if named and plain and not prototype.returns.startswith(("{", "[", "<", "ptr")):
        return None
    suggested = _suggested(text, prototype, described)
    if suggested and "?" not in suggested and not has_structs(suggested) and not re.search(r"\binout\b", suggested):
        return Signature(suggested)
    held = suggested and "?" in suggested
    raise SignatureError(
        f"`{prototype.name}` needs a signature", where=f"`{prototype}`",
        because="a signature has numbers and arrays, and structs behind references" if held
        else "what is behind its pointers is not in the IR",
        fix=f"start from this draft   {suggested or 'f64(f64[n] x)'}"
        + ("\nfor `?`, write a function with numbers and slices around it that unwraps its result" if held else ""),
    )  # fmt: skip


def _check_layouts(structs: StructSignature, described: Callable[[], str] | None) -> None:
    from irgrad.interop.loaders.rust_types import check_layout

    text = described() if described is not None else ""
    for struct in structs.structs:
        check_layout(text, struct)


def checked(text: str, name: str, signature: Signature, prototype: Prototype) -> Checked:
    """The function `name` of a module with a status in place of its result, which is written.

    Raises SignatureError where the signature contradicts the function.
    """
    from irgrad.engine.signature.dtypes import DTYPES
    from irgrad.engine.signature.signature import Signature
    from irgrad.engine.signature.status import CHECKED
    from irgrad.interop.loaders.fortran import passing

    first = _BEYOND if signature.status is not None else 1
    errors: dict[int, str] = {}

    def numbered(row: re.Match[str]) -> str:
        number = first + len(errors)
        errors[number] = _message(row[3])
        return f"{row[1]}{number}{row[2]}"

    text = _NUMBER.sub(numbered, text)
    if any(p.is_status for p in signature.parameters):
        raise SignatureError(
            "a status is written through a pointer",
            where=f"`{signature}`",
            because=f"`{name}` may fail, and the kernel has one status, which it returns",
            fix="`inout i32[1]` for the parameter   or   return the status",
        )
    given, symbol = _flat(signature), f"{name}{CHECKED}"
    writer = _Writer(signature, given, prototype, passing(text, name))
    wrapper = writer.text(symbol, name)
    for message in writer.failures:
        errors[first + len(errors)] = message
    wrapper += writer.needs(text, first + len(errors) - len(writer.failures))
    return Checked(f"{text}\n{wrapper}", symbol, Signature(given, DTYPES["i32"], returns_status=True), errors,
                   f"{first}\n{wrapper}")  # fmt: skip


def ending(text: str) -> str:
    """The module for a program, which a failure ends: it says what failed, as the language's own runtime does."""
    if not re.search(r"^declare [^@\n]*@irgrad\.panic\(", text, re.M):
        return text
    text = re.sub(r"^declare [^@\n]*@irgrad\.panic\([^\n]*\n", "", text, flags=re.M)
    known = set(re.findall(r"^(?:declare|define) [^@\n]*@(\w+)\(", text, re.M))
    return text + "".join(row for name, row in _NEEDED.items() if name not in known) + _ENDING


def _message(raw: str) -> str:
    data = re.sub(rb"\\([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), raw.encode("utf-8", "surrogateescape"))
    return data.split(b"\0")[0].decode("utf-8", "replace")


def _flat(signature: Signature) -> tuple[Parameter, ...]:
    """The parameters of the wrapper: the function's, where its result goes, extents that are no parameters."""
    from irgrad.engine.signature.dtypes import DTYPES
    from irgrad.engine.signature.parameter import Parameter

    known = {p.name for p in signature.parameters}
    loose = sorted({name for p in signature.parameters for extent in p.shape or () for name in extent.names()} - known)
    result = _RESULT if _RESULT not in known else f"{_RESULT}_"
    returned = signature.returns if signature.status is None or not signature.returns_status else None
    out = [Parameter(result, returned, (), "out")] if returned is not None else []
    return (*out, *signature.parameters, *(Parameter(n, DTYPES["i64"]) for n in loose))


class _Writer:
    """Writes the wrapper."""

    def __init__(
        self, signature: Signature, given: Sequence[Parameter], prototype: Prototype, passing: Sequence[str] | None
    ) -> None:  # fmt: skip
        self.signature, self.given, self.prototype, self.passing = signature, given, prototype, passing
        self.rows: list[str] = []
        self.behind: list[str] = []  # what follows the call
        self.failures: list[str] = []
        self.values = 0

    def text(self, symbol: str, name: str) -> str:
        """The definition of the wrapper."""
        from irgrad.engine.signature.prototype import quoted

        arguments = ", ".join(self._arguments())
        returned, returns = self.signature.returns, self.prototype.returns
        wanted = "void" if returned is None else returned.ir
        if wanted != returns:
            raise self._error(f"the function returns `{returns}`", f"the signature says `{wanted}`",
                              "unwrap an Option or a Result (a panic is an error of the kernel), write arrays and "
                              "structs through a `&mut` parameter")  # fmt: skip
        call = f"call {wanted} @{quoted(name)}({arguments})"
        if returned is None:
            end = [f"  {call}", *self.behind, "  ret i32 0"]
        elif self.signature.returns_status:
            cast = "%value" if returned.size == 4 else "%status"
            kind = "trunc" if returned.size > 4 else "sext" if returned.kind == "i" else "zext"
            end = [f"  %value = {call}", *self.behind,
                   *([f"  %status = {kind} {wanted} %value to i32"] if cast == "%status" else []),
                   f"  ret i32 {cast}"]  # fmt: skip
        else:
            value = "%byte" if returned.kind == "b" else "%value"
            end = [f"  %value = {call}", *self.behind,
                   *(["  %byte = zext i1 %value to i8"] if value == "%byte" else []),
                   f"  store {returned.memory} {value}, ptr %a.{self.given[0].name}, align {returned.size}",
                   "  ret i32 0"]  # fmt: skip
        parameters = ", ".join(f"{'ptr' if p.is_array else p.dtype.ir} %a.{p.name}" for p in self.given)
        return "\n".join([f"define i32 @{quoted(symbol)}({parameters}) {{", *self.rows, *end, "}", ""])

    def _arguments(self) -> list[str]:
        """What is passed: of a slice its address and its length, which may be a parameter or follow from the shape."""
        written, symbols = self.prototype.written, self.prototype.symbols
        pairs = {n for n in range(len(written) - 1) if _slice(self.prototype.params, symbols, n)}
        parameters = list(self.signature.parameters)
        explicit = len(parameters) == len(written)
        if not explicit and len(parameters) != len(written) - len(pairs):
            count = len(written) - len(pairs)
            raise self._error(f"the signature has {len(parameters)} parameters, the function {count}",
                              "slices count once, or with their lengths behind them", self._draft())  # fmt: skip
        found, at = [], 0
        for p in parameters:
            found.append(self._argument(p, at))
            if not explicit and at in pairs:
                found.append(f"i64 {self._length(p, written[at + 1])}")
                at += 1
            at += 1
        return found

    def _argument(self, p: Parameter, at: int) -> str:
        """One value as the function takes it."""
        kind, written = self.prototype.params[at].split(" ")[0], self.prototype.written[at]
        wanted = "ptr" if p.is_array else p.dtype.ir
        how = self.passing[at].split() if self.passing is not None and at < len(self.passing) else []
        if how and kind == "ptr":
            return self._referred(p, *how)
        if kind != wanted:
            raise self._error(f"parameter `{p}` contradicts the function",
                              f"the function takes `{kind}`, the signature says `{wanted}`", self._draft())  # fmt: skip
        if not p.is_array:
            extended = {"f": ""}.get(p.dtype.kind, "signext " if p.dtype.kind == "i" else "zeroext ")
            return f"{kind} {extended if p.dtype.size < 4 else ''}%a.{p.name}"
        held, shape = _HELD.search(written), [getattr(extent, "number", None) for extent in p.shape or ()]
        size = p.dtype.size
        for extent in shape:
            size *= extent or 0
        if held and None not in shape and size < int(held[1]):
            raise self._error(f"`{p}` has {size} bytes", f"the function takes {held[1]}", "the whole shape")
        struct = _SRET.search(written)
        return f"ptr sret({struct[1]}) %a.{p.name}" if struct else f"ptr %a.{p.name}"

    def _referred(self, p: Parameter, form: str, element: str = "", rank: str = "0") -> str:
        """The address that a procedure of Fortran gets: of a number, of an array, of an array's descriptor."""
        if form == "reference" and p.shape == () and element == p.dtype.name:
            return f"ptr %a.{p.name}"
        scalar = form == "reference"
        same = element == p.dtype.name or (element == "?" and p.dtype.kind == "s")
        if form == "other" or p.is_array == scalar or not same:
            wanted = "a type that no signature has" if form == "other" else f"`{element}`"
            if form != "other":
                wanted += " by reference: a number of the signature" if scalar else " in an array"
            raise self._error(
                f"parameter `{p}` contradicts the procedure", f"it takes {wanted}",
                "numbers and arrays with the element types of the source; shapes are those of NumPy, which are "
                "Fortran's from back to front; `out f64 y` for a number that is written",
            )  # fmt: skip
        if scalar:
            self.rows.append(f"  %r.{p.name} = alloca {p.dtype.ir}, align {p.dtype.size}")
            self.rows.append(f"  store {p.dtype.ir} %a.{p.name}, ptr %r.{p.name}, align {p.dtype.size}")
            return f"ptr %r.{p.name}"
        if form == "array":
            return f"ptr %a.{p.name}"
        if len(p.shape or ()) != int(rank):
            raise self._error(f"`{p}` has {len(p.shape or ())} extents", f"the array of the source has {rank}", "all")
        if form == "allocatable":
            return self._allocated(p)
        return self._descriptor(p, _POINTER if form == "pointer" else 0)

    def _allocated(self, p: Parameter) -> str:
        """The descriptor of an allocatable array: a copy, which the procedure may free and allocate anew; what it
        leaves is copied back. One that is `out` is not allocated before."""
        size = "1"
        for extent in p.shape or ():
            size = self._emit(f"mul i64 {size}, {self._extent(extent)}")
        size = self._emit(f"mul i64 {size}, {p.dtype.size}")
        copy = "null"
        if p.is_input:
            copy = self._emit(f"call ptr @malloc(i64 {self._emit(f'call i64 @llvm.umax.i64(i64 {size}, i64 1)')})")
            self.rows.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr align {p.dtype.size} {copy}, ptr align "
                             f"{p.dtype.size} %a.{p.name}, i64 {size}, i1 false)")  # fmt: skip
        place = self._descriptor(p, _ALLOCATABLE, copy)
        rows, self.rows = self.rows, []
        fine, left = "true", f"%left.{p.name}"
        self.rows.append(f"  {left} = load ptr, {place}, align 8")
        for axis, extent in enumerate(reversed(p.shape or ())):
            address = self._emit(f"getelementptr i8, {place}, i64 {32 + 24 * axis}")
            same = self._emit(f"icmp eq i64 {self._emit(f'load i64, ptr {address}')}, {self._extent(extent)}")
            fine = self._emit(f"and i1 {fine}, {same}")
        there = self._emit(f"icmp ne ptr {left}, null")
        name = f"@irgrad.panic.left.{len(self.failures)}"
        self.failures.append(f"the procedure leaves `{p.name}` with another shape, or not allocated")
        self.rows += [f"  br i1 {self._emit(f'and i1 {fine}, {there}')}, label %same.{p.name}, label %other.{p.name}",
                      f"other.{p.name}:", f"  call void @irgrad.panic(ptr {name}) noreturn nounwind", "  unreachable",
                      f"same.{p.name}:"]  # fmt: skip
        if p.is_output:
            self.rows.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr align {p.dtype.size} %a.{p.name}, ptr align "
                             f"{p.dtype.size} {left}, i64 {size}, i1 false)")  # fmt: skip
        self.rows.append(f"  call void @free(ptr {left})")
        self.behind += self.rows
        self.rows = rows
        return place

    def needs(self, text: str, first: int) -> str:
        """What the wrapper refers to and the module does not have; first: the number of the wrapper's first failure."""
        rows = []
        for n, message in enumerate(self.failures):
            raw = message.encode("ascii", "replace").decode() + "\\00"
            kind = f"[{len(raw) - 2} x i8]"
            rows.append(f"@irgrad.panic.left.{n} = private constant {{ i32, {kind} }} "
                        f'{{ i32 {first + n}, {kind} c"{raw}" }}\n')
        if self.failures:
            known = set(re.findall(r"^(?:declare|define) [^@\n]*@([\w.]+)\(", text, re.M))
            rows += [row for name, row in _ALLOCATION.items() if name not in known]
        return "".join(rows)

    def _descriptor(self, p: Parameter, attribute: int = 0, base: str = "") -> str:
        """A contiguous array as flang describes it: address, bytes of an element, version, rank, type, attribute; lower
        bound, extent and stride of each axis, the first of which is the last of NumPy's."""
        shape, place = list(p.shape or ()), f"%d.{p.name}"
        self.rows.append(f"  {place} = alloca [{24 + 24 * len(shape)} x i8], align 8")

        def put(at: int, kind: str, value: str) -> None:
            address = self._emit(f"getelementptr i8, ptr {place}, i64 {at}")
            self.rows.append(f"  store {kind} {value}, ptr {address}")

        put(0, "ptr", base or f"%a.{p.name}")
        put(8, "i64", str(p.dtype.size))
        put(16, "i32", str(_CFI_VERSION))
        kinds = len(shape), _CFI_TYPES.get(p.dtype.name, -1), attribute, 0
        for at, number in zip((20, 21, 22, 23), kinds, strict=True):
            put(at, "i8", str(number))
        stride = str(p.dtype.size)
        for axis, extent in enumerate(reversed(shape)):
            count = self._extent(extent)
            for n, value in enumerate(("1", count, stride)):
                put(24 + 24 * axis + 8 * n, "i64", value)
            stride = self._emit(f"mul i64 {stride}, {count}")
        return f"ptr {place}"

    def _length(self, p: Parameter, written: str) -> str:
        """The elements of a slice: the product of the extents, without those inside of an element."""
        bound, shape = _RANGE.search(written), list(p.shape or ())
        if bound is None:
            raise self._error(f"the size of the elements of `{p}` is not in the IR", "the compiler has not written it "
                              "down", "give the length as a parameter: `f64[n] x, i64 n`")  # fmt: skip
        most, size, inner = int(bound[1]) % (1 << 64), p.dtype.size, len(shape)
        while ((1 << 63) - 1) // size + 1 != most:
            number = getattr(shape[inner - 1], "number", None) if inner else None
            if not number:
                raise self._error(f"the elements of `{p}` have another size than those of the slice",
                                  f"those have about {((1 << 63) - 1) // max(most - 1, 1)} bytes",
                                  "the element type, and extents inside of an element as numbers: `f64[n,3]`")
            size, inner = size * number, inner - 1
        total = "1"
        for extent in shape[:inner]:
            total = self._emit(f"mul i64 {total}, {self._extent(extent)}")
        return total

    def _extent(self, extent: Extent) -> str:
        from irgrad.engine.signature.extents import BinaryExtent, ConstExtent

        if isinstance(extent, ConstExtent):
            return str(extent.number)
        if isinstance(extent, BinaryExtent):
            op = {"+": "add", "-": "sub", "*": "mul", "/": "sdiv", "%": "srem"}[extent.op]
            return self._emit(f"{op} i64 {self._extent(extent.left)}, {self._extent(extent.right)}")
        p = next(row for row in self.given if row.name == str(extent))
        cast = "zext" if p.dtype.kind == "u" else "sext"
        return f"%a.{p.name}" if p.dtype.size == 8 else self._emit(f"{cast} {p.dtype.ir} %a.{p.name} to i64")

    def _emit(self, text: str) -> str:
        self.values += 1
        self.rows.append(f"  %n.{self.values} = {text}")
        return f"%n.{self.values}"

    def _draft(self) -> str:
        from irgrad.engine.signature.prototype import draft

        return f"the IR suggests   {draft(self.prototype)}"

    def _error(self, what: str, because: str, fix: str) -> SignatureError:
        return SignatureError(
            what, where=f"`{self.signature}`\nand the IR's `{self.prototype}`", because=because, fix=fix
        )


def _slice(params: Sequence[str], symbols: Sequence[str], at: int) -> bool:
    """Whether two parameters are a slice: rustc calls them `x.0` and `x.1`."""
    first, second = symbols[at].strip('%"'), symbols[at + 1].strip('%"')
    return params[at : at + 2] == ("ptr", "i64") and first.endswith(".0") and second == f"{first[:-2]}.1"
