"""Python functions that Numba compiles, as kernels.

Numba's IR of a function for given types is taken before LLVM's passes, and called by a function with a C prototype,
which makes of each pointer the parts of Numba's arrays. Numba's calling convention: `i32 f(ptr result, ptr exception,
parts of the arguments...)`, 0 for success; an array is its owner, its parent, the number of its elements, their size,
the address, extents and strides. What Numba's runtime does for arrays that the function makes is given as IR, so that
it is differentiated as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from irgrad.interop.loaders.library import Library
from irgrad.interop.loaders.numba_exceptions import buffers, with_constant_texts
from irgrad.interop.loaders.numba_members import typed_members
from irgrad.interop.loaders.numba_results import OTHER_SHAPE, Result, fitting, split, written
from irgrad.interop.loaders.numba_runtime import complete
from irgrad.rules.errors import CompileError, LoadError, SignatureError

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel
    from irgrad.engine.signature.parameter import Parameter
    from irgrad.engine.signature.signature import Signature

__all__ = ["from_numba", "from_types", "jit"]

_OTHER, _FIRST = 1, 3  # statuses: an exception that is made when it is raised; the first that is known beforehand
_RESULT = "result"
_OF_RUNTIME = re.compile(
    r"^(?:define|declare) [^\n]*@(?:NRT_\w+|nrt_atomic_\w+)\((?:[^\n]*\{\n.*?^\}|[^\n]*)\n", re.M | re.S,
)  # fmt: skip
_LISTS = re.compile(r"^declare [^\n]*@NRT_MemInfo_(?:new_varsize|varsize_)\w*\([^\n]*\n", re.M)
_OF_PYTHON = re.compile(r"^define [^\n]*@(?:_ZN7cpython|cfunc\.)[^\n]*\{\n.*?^\}\n", re.M | re.S)
_NRT = re.compile(r"@(NRT_\w+)\(")
_CONTAINERS = re.compile(r"^declare [^\n]*@numba_(?:list|dict)_", re.M)
_CALLS_PYTHON = re.compile(r"^  call [^\n]*@(?:PySys_FormatStdout|PyObject_Call\w*)\(", re.M)
_ADDRESS = re.compile(r"\binttoptr \(i64 \d{5,}")
_RUNTIME = """
define internal noalias ptr @NRT_MemInfo_alloc(i64 %size) alwaysinline {
  %info = call ptr @malloc(i64 40)
  %data = call ptr @malloc(i64 %size)
  store i64 1, ptr %info
  %at = getelementptr { i64, ptr, ptr, ptr, i64 }, ptr %info, i64 0, i32 3
  store ptr %data, ptr %at
  ret ptr %info
}
define internal noalias ptr @NRT_MemInfo_alloc_safe(i64 %size) alwaysinline {
  %info = call ptr @NRT_MemInfo_alloc(i64 %size)
  ret ptr %info
}
define internal noalias ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) alwaysinline {
  %info = call ptr @NRT_MemInfo_alloc(i64 %size)
  ret ptr %info
}
define internal noalias ptr @NRT_MemInfo_alloc_safe_aligned(i64 %size, i32 %align) alwaysinline {
  %info = call ptr @NRT_MemInfo_alloc(i64 %size)
  ret ptr %info
}
define internal noalias ptr @NRT_MemInfo_alloc_dtor(i64 %size, ptr %destructor) alwaysinline {
  %info = call ptr @NRT_MemInfo_alloc(i64 %size)
  ret ptr %info
}
define internal ptr @NRT_MemInfo_data_fast(ptr %info) alwaysinline {
  %at = getelementptr { i64, ptr, ptr, ptr, i64 }, ptr %info, i64 0, i32 3
  %data = load ptr, ptr %at
  ret ptr %data
}
define internal void @NRT_incref(ptr %info) alwaysinline {
  %none = icmp eq ptr %info, null
  br i1 %none, label %done, label %held
held:
  %count = load i64, ptr %info
  %more = add i64 %count, 1
  store i64 %more, ptr %info
  br label %done
done:
  ret void
}
define internal void @NRT_decref(ptr %info) alwaysinline {
  %none = icmp eq ptr %info, null
  br i1 %none, label %done, label %held
held:
  %count = load i64, ptr %info
  %less = sub i64 %count, 1
  store i64 %less, ptr %info
  %last = icmp eq i64 %less, 0
  br i1 %last, label %free, label %done
free:
  %at = getelementptr { i64, ptr, ptr, ptr, i64 }, ptr %info, i64 0, i32 3
  %data = load ptr, ptr %at
  call void @free(ptr %data)
  call void @free(ptr %info)
  br label %done
done:
  ret void
}
define internal noalias ptr @NRT_Allocate(i64 %size) alwaysinline {
  %data = call ptr @malloc(i64 %size)
  ret ptr %data
}
define internal void @NRT_Free(ptr %data) alwaysinline {
  call void @free(ptr %data)
  ret void
}
"""


def from_numba(function: Any, signature: str | Signature, **options: Any) -> Kernel:
    """A Python function that Numba can compile, as a kernel: everything that a kernel of C can do.

    function:  a function, or what `numba.njit` made of one (its `fastmath`, `error_model` and `boundscheck` hold)
    signature: its parameters in their order, as `"f64(f64[n,3] pos, f64[n] mass, f64 dt)"`; arrays are C-contiguous,
               `inout` and `out` ones are written; `void` where it returns nothing. An array that it returns, or a
               tuple, is written to `out` parameters in front of its own: `"void(out f64[n] y, f64[n] x)"`
    options:   of `Library.kernel`

    An exception of the function is a `KernelError` with its message. Raises LoadError where numba is not installed,
    CompileError with Numba's diagnostics, SignatureError for parameters that are not those of the function.

        >>> f = irgrad.from_numba(lambda x: x * x, "f64(f64 x)")
        >>> irgrad.grad(f)(3.0)
        np.float64(6.0)
    """
    from irgrad.engine.signature.signature import Signature

    return _kernel(function, Signature(signature) if isinstance(signature, str) else signature, options, settled=True)


def from_types(function: Any, parameters: Sequence[Parameter]) -> Kernel:
    """The kernel of a function for parameters of these types; what it returns is Numba's to say. Raises as
    `from_numba` does."""
    from irgrad.engine.signature.signature import Signature

    return _kernel(function, Signature(parameters), {}, settled=False)


def _kernel(function: Any, given: Signature, options: dict[str, Any], *, settled: bool) -> Kernel:
    """settled: the signature says what the function returns."""
    results, own = split(function, given) if settled else ([], list(given.parameters))
    name, text, given, returned = _compiled(function, given, own, results, settled=settled)
    prototype = _prototype(given)
    inner = _inner(text, name)
    exceptions = buffers(text)
    handed = list(zip(returned, results, strict=True))
    wrapper = _wrapper(given.returns is not None, own, handed, prototype, _plain(function), inner,
                       [buffer for buffer, _ in exceptions])
    listed = "".join(row for row in _LISTS.findall(text))
    text = _OF_PYTHON.sub("", _OF_RUNTIME.sub("", text))
    if _CONTAINERS.search(text):
        raise CompileError(f"`{_plain(function)}` keeps a typed list or a dictionary",
                           because="their memory is managed by functions of Numba that have no derivative",
                           fix="a list, `[...]`, or an array with an index in place of a key")
    if _CALLS_PYTHON.search(text):
        raise CompileError(f"`{_plain(function)}` calls Python while it runs",
                           because="it has a `print` or an `objmode` block, and kernels run without the interpreter",
                           fix="leave it out of the function, or under `if False:`, or return what it shows")
    made = set(_NRT.findall(listed + _RUNTIME))
    other = next((name for name in _NRT.findall(text) if name not in made), None)
    if other is not None:
        raise CompileError(f"`{_plain(function)}` calls a function of Numba's runtime that irgrad has none of",
                           which=other, because="it has to do with memory that Numba manages",
                           fix="arrays, lists and tuples")
    text = with_constant_texts(text) + listed + _RUNTIME + _allocation(text) + wrapper
    text = complete(text)
    messages = {_OTHER: "an exception of the Python function",
                OTHER_SHAPE: "the function returns an array of another shape than its signature says",
                **{_FIRST + n: m for n, (_, m) in enumerate(exceptions)}}  # fmt: skip
    library = Library(text, [f"{_plain(function)} by numba"])
    kernel: Kernel = library.kernel(_plain(function), prototype, errors=messages, **options)
    return kernel


def jit(signature: Any, **options: Any) -> Any:
    """A decorator that makes a kernel of a Python function by Numba: `@irgrad.jit("f64(f64[n] x)")`.

    Without a signature, `@irgrad.jit`, the types are those of the first call, and of each call with others: see
    `numba_lazy.LazyKernel`. The arguments are those of `from_numba`, which also says what it raises.

        >>> @irgrad.jit("f64(f64[n] x)")
        ... def squares(x):
        ...     return np.sum(x * x)
        >>> irgrad.grad(squares)(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    if not callable(signature):
        return lambda function: from_numba(function, signature, **options)
    from irgrad.interop.loaders.numba_lazy import LazyKernel

    return LazyKernel(signature, from_types)


def _plain(function: Any) -> str:
    name = getattr(function, "__name__", "function")
    return name if re.fullmatch(r"\w+", name) else "function"  # `<lambda>`


def _compiled(
    function: Any, signature: Signature, own: Sequence[Parameter], results: Sequence[Parameter], *, settled: bool,
) -> tuple[str, str, Signature, list[Result]]:  # fmt: skip
    """The symbol that Numba gives the function for these types, the module, the signature with its result, and what
    parameters take of it."""
    from irgrad.engine.codegen.cache import default_cache
    from irgrad.interop.loaders.numba_cache import key_of

    key = key_of(function, ", ".join(map(str, own)))
    store = default_cache()
    kept = store.get("numba", key) if key is not None else None
    if kept is not None:
        name, returned, text = kept.decode("utf-8").split("\0", 2)
    else:
        name, returned, text, movable = _by_numba(function, own)
        if key is not None and movable:
            store.put("numba", key, "\0".join((name, returned, text)).encode("utf-8"))
    signature = signature if settled else _returning(signature, returned)
    return name, text, signature, fitting(returned, signature, results)


def _by_numba(function: Any, parameters: Sequence[Parameter]) -> tuple[str, str, str, bool]:
    """The symbol, the type of the result, the module, and whether that means the same in another process."""
    try:
        import numba
        from numba.core import config as settings
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.errors import NumbaError, UnsupportedBytecodeError
    except ImportError as error:
        raise LoadError("numba is not installed", because=str(error), fix='pip install "irgrad[numba]"') from None

    options = {"nopython": True, **getattr(function, "targetoptions", {}), "parallel": False}
    dispatcher: Any = numba.jit(**options)(getattr(function, "py_func", function))
    types = tuple(_type(numba.types, p) for p in parameters)
    config: Any = settings
    with global_compiler_lock, _kept_apart(function), typed_members():
        level, config.OPT = config.OPT, 0
        try:
            dispatcher.compile(types)
        except (NumbaError, UnsupportedBytecodeError, TypeError, NotImplementedError) as error:
            raise CompileError(f"`{_plain(function)}` does not compile", because=f"numba says:\n{error}",
                               fix="mend the function   or   the types in the signature (arrays that are written are "
                                   "`inout` or `out`)") from None
        finally:
            config.OPT = level
    made = dispatcher.overloads[types]
    text = dispatcher.inspect_llvm(types)
    movable = not made.library.has_dynamic_globals and _ADDRESS.search(text) is None
    return made.fndesc.llvm_func_name, str(made.signature.return_type), text, movable


@contextmanager
def _kept_apart(function: Any) -> Iterator[None]:
    """Compiled functions that the function calls keep nothing of what is compiled meanwhile, in memory and in Numba's
    own cache: it is not optimised."""
    from numba.core.caching import NullCache

    before = [(called, called._cache, dict(called.overloads)) for called in _called(function, set())]
    for called, _, _ in before:
        called._cache = NullCache()
    try:
        yield
    finally:
        for called, cache, known in before:
            called._cache = cache
            if set(called.overloads) != set(known):
                called._reset_overloads()
                for made in known.values():
                    called.add_overload(made)


def _called(function: Any, seen: set[int]) -> Iterator[Any]:
    """The compiled functions of Numba that a function reads from globals and closures, and those that these read."""
    python = getattr(function, "py_func", function)
    code = getattr(python, "__code__", None)
    if code is None or id(python) in seen:
        return
    seen.add(id(python))
    cells = [cell.cell_contents for cell in python.__closure__ or () if cell != CellType()]
    for value in [*(python.__globals__.get(name) for name in code.co_names), *cells]:
        if hasattr(value, "py_func") and hasattr(value, "overloads"):
            yield value
        if hasattr(value, "py_func") or isinstance(value, FunctionType):
            yield from _called(value, seen)


def _returning(signature: Signature, returned: str) -> Signature:
    """The signature with what Numba says of the result, where a signature has that."""
    from irgrad.engine.signature.dtypes import DTYPES
    from irgrad.engine.signature.signature import Signature

    found = next((dtype for dtype in DTYPES.values() if dtype.numpy_name == returned), None)
    return Signature(signature.parameters, found)


def _type(types: Any, p: Parameter) -> Any:
    scalar = getattr(types, {"f": "float", "i": "int", "u": "uint"}.get(p.dtype.kind, "") + str(8 * p.dtype.size), None)
    scalar = types.boolean if p.dtype.kind == "b" else scalar
    if scalar is None or p.is_status or (p.dtype.is_float and p.dtype.size < 4):
        raise SignatureError(f"`{p}` is no type of Numba",
                             because="kernels of Numba take floats, integers and arrays of them",
                             fix="f32, f64, or an integer type; exceptions take the place of statuses")
    if not p.shape:
        if p.shape == ():
            raise SignatureError(f"`{p}` is a pointer to one number", because="Python functions take numbers by value",
                                 fix=f"`{p.dtype} {p.name}`, or an array of one element")
        return scalar
    return types.Array(scalar, len(p.shape), "C", readonly=not p.is_output)


def _prototype(given: Signature) -> Signature:
    """The C prototype: extents that are no parameters are handed on too, and the result is written."""
    from irgrad.engine.signature.dtypes import DTYPES
    from irgrad.engine.signature.parameter import Parameter
    from irgrad.engine.signature.signature import Signature

    known = {p.name for p in given.parameters}
    names = sorted({name for p in given.parameters for extent in p.shape or () for name in extent.names()} - known)
    sizes = [Parameter(name, DTYPES["i64"]) for name in names]
    result = [Parameter(_RESULT, given.returns, (), "out")] if given.returns is not None else []
    return Signature([*result, *given.parameters, *sizes], DTYPES["i32"])


def _inner(text: str, name: str) -> str:
    found = re.search(rf'^define [^\n]*@("?){re.escape(name)}\1\(', text, re.M)
    if found is None:
        raise LoadError("the function of Numba is not in its module", which=name, fix="report this: Numba has changed")
    return f"@{found[1]}{name}{found[1]}"


def _allocation(text: str) -> str:
    rows = {"malloc": "declare noalias ptr @malloc(i64)\n", "free": "declare void @free(ptr)\n",
            "llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"}  # fmt: skip
    known = {name for name in rows if re.search(rf"^declare [^\n]*@{re.escape(name)}\(", text, re.M)}
    return "".join(row for name, row in rows.items() if name not in known)


def _wrapper(
    returns: bool, own: Sequence[Parameter], results: Sequence[tuple[Result, Parameter]], prototype: Signature,
    name: str, inner: str, exceptions: Sequence[str],
) -> str:  # fmt: skip
    """The function with the C prototype."""
    parameters = ", ".join(f"{'ptr' if p.is_array else p.dtype.ir} %a.{p.name}" for p in prototype.parameters)
    type_, behind, shaped = written([row for row, _ in results], [p for _, p in results], _extents) if results else (
        "ptr", [], False)  # fmt: skip
    rows = ["  %exception = alloca ptr, align 8", "  store ptr null, ptr %exception, align 8"]
    result = f"%a.{_RESULT}" if returns else "%returned"
    if not returns:
        rows.append(f"  %returned = alloca {type_}, align 8")
    widths = {p.name: p.dtype for p in prototype.parameters if p.shape is None and p.dtype.kind in "iu"}
    for size, dtype in widths.items():
        wide = "zext" if dtype.kind == "u" else "sext"
        same = f"add i64 %a.{size}, 0"
        rows.append(f"  %n.{size} = {same if dtype.size == 8 else f'{wide} {dtype.ir} %a.{size} to i64'}")
    arguments = []
    for p in own:
        arguments += _parts(p, rows.append) if p.is_array else [f"{p.dtype.ir} %a.{p.name}"]
    rows.append(f"  %status = call i32 {inner}(ptr {result}, ptr %exception{''.join(f', {row}' for row in arguments)})")
    rows += ["  %good = icmp eq i32 %status, 0", "  %none = icmp eq i32 %status, -2", "  %fine = or i1 %good, %none",
             "  br i1 %fine, label %done, label %raised", "done:", *behind, "  ret i32 0",
             *(["other.shape:", f"  ret i32 {OTHER_SHAPE}"] if shaped else []), "raised:",
             "  %which = load ptr, ptr %exception, align 8"]  # fmt: skip
    last = str(_OTHER)
    for n, buffer in enumerate(exceptions):
        rows += [f"  %is.{n} = icmp eq ptr %which, @{buffer}",
                 f"  %code.{n} = select i1 %is.{n}, i32 {_FIRST + n}, i32 {last}"]  # fmt: skip
        last = f"%code.{n}"
    return "\n".join(["", f"define i32 @{name}({parameters}) {{", *rows, f"  ret i32 {last}", "}", ""])


def _extents(p: Parameter) -> list[str]:
    """The extents of an array, as values of the wrapper."""
    from irgrad.engine.signature.extents import ConstExtent, NameExtent

    extents = []
    for extent in p.shape or ():
        if isinstance(extent, ConstExtent):
            extents.append(str(extent.number))
        elif isinstance(extent, NameExtent):
            extents.append(f"%n.{extent.name}")
        else:
            raise SignatureError(f"the extent `{extent}` is a product or a sum", where=f"`{p}`",
                                 because="Numba is handed each extent", fix="a name or a number")
    return extents


def _parts(p: Parameter, write: Callable[[str], None]) -> list[str]:
    """The parts of an array that Numba's functions take."""
    extents = _extents(p)
    stride, strides = str(p.dtype.size), list[str]()
    for axis in reversed(range(len(extents))):
        strides.insert(0, f"i64 {stride}")
        write(f"  %s.{p.name}.{axis} = mul i64 {stride}, {extents[axis]}")
        stride = f"%s.{p.name}.{axis}"
    write(f"  %count.{p.name} = udiv exact i64 {stride}, {p.dtype.size}")
    return ["ptr null", "ptr null", f"i64 %count.{p.name}", f"i64 {p.dtype.size}", f"ptr %a.{p.name}",
            *(f"i64 {extent}" for extent in extents), *strides]  # fmt: skip
