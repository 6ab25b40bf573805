"""`Kernel`: a compiled function with a signature, callable on NumPy arrays and on JAX arrays."""

from __future__ import annotations

import ctypes
import inspect
import itertools
import keyword
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from irgrad.engine.kernel.binding import Binder, Bound
from irgrad.engine.kernel.frames import MISSED, Calls
from irgrad.engine.kernel.programs import Options, Program, Source
from irgrad.engine.signature.prototype import check_signature, infer, prototype_of
from irgrad.engine.signature.signature import Signature
from irgrad.engine.signature.slots import RETURN
from irgrad.engine.support.foreign import bridge_for
from irgrad.rules.errors import SignatureError

if TYPE_CHECKING:
    from irgrad.engine.kernel.trees import TreeKernel
    from irgrad.engine.signature.status import Table

__all__ = ["KERNELS", "Kernel", "Prepared"]

Array = np.ndarray[Any, Any]
KERNELS: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
"""Kernels by their handles, for those who cannot keep an object (`torch.compile`): what they compute, and a number."""
_NUMBERS = itertools.count()


class Prepared:
    """A call bound to its buffers: calling it runs the native entry and nothing else but resetting what it accumulates.

    buffers: one per slot of the program, by position; `reset` lists pairs (buffer, initial value) copied back before
    each call (cotangents and gradients); `outputs` are the arrays that hold the results after a call.
    """

    __slots__ = ("_address", "_entry", "_frame", "_reset", "buffers", "checked", "outputs", "program")

    def __init__(self, program: Program, buffers: list[Array], reset: list[tuple[Array, Array | float]],
                 outputs: list[Array]) -> None:  # fmt: skip
        self.program = program
        self.buffers = buffers
        self.outputs = outputs
        self._reset = reset
        self._entry = program.entry
        self._frame = (ctypes.c_void_p * len(buffers))(*[b.ctypes.data for b in buffers])
        self._address = ctypes.addressof(self._frame)
        self.checked = program.source.signature.status is not None

    def __call__(self) -> None:
        for array, value in self._reset:
            array[...] = value
        failed = self._entry(self._address)
        if failed is not None:
            raise self.program.out_of_tape(failed)
        if self.checked:
            self.program.check_status(self.buffers)


class Kernel:
    """A compiled C function and its signature.

    Called with NumPy arrays (or lists and numbers) it returns the function's return value, `out` and `inout` arrays,
    as a tuple when there are several: return value first, then in the order of the prototype. Size arguments are filled
    from the shapes. Called with JAX arrays or tracers it is a JAX function (jit, grad, jvp, vmap, ...).

    Buffers never overlap: `inout` arguments and arrays that are not C-contiguous are copied, outputs are fresh and
    start from zero. The native code runs without the GIL.

    Raises SignatureError, ShapeError or DTypeError before any native code runs, KernelError after a run that reported a
    status other than 0 (for functions whose signature says `status`, or with `errors`).

    Kernels do not change: copies are the kernel itself. Pickled ones carry their module's IR, so that another process
    needs no source (it has to load the shared libraries that the module calls, and to register the rules, by itself).

        >>> f(3.0, 2.0), f(x=3.0, y=1.0)
        (np.float64(18.0), np.float64(9.0))
        >>> f
        <irgrad.Kernel product: f64(f64 x, f64 y)>
    """

    def __init__(
        self, text: str, name: str, signature: str | Signature | None = None, options: Options | None = None,
        *, digest: str | None = None, errors: Mapping[int, str] | None = None,
        code: tuple[tuple[str, str], ...] = (), plain: Callable[[], str] | None = None,
    ) -> None:  # fmt: skip
        """text: the IR of the module that defines `name`; digest: of that text, when it is known already; errors: the
        function's integer result is a status, and what its values mean; code: sources that are in no file, by name;
        plain: gives the IR before any pass, where `text` is what passes of the compiler have left."""
        prototype = prototype_of(text, name)
        if signature is None:
            signature = infer(prototype)
        elif isinstance(signature, str):
            signature = Signature(signature)
        elif not isinstance(signature, Signature):
            raise SignatureError(f"a {type(signature).__name__} is no signature", where=f"`{prototype}`",
                                 because="a string or an irgrad.Signature is wanted",
                                 fix='lib.kernel("name", "f64(f64[n] x, i64 n)")')
        meanings: Table = ()
        if errors is not None:
            from irgrad.engine.signature.status import marked, status_table

            signature, meanings = marked(signature, name), status_table(errors)
        check_signature(signature, prototype, text)
        if digest is None:
            from irgrad.engine.codegen.cache import fingerprint

            digest = fingerprint(text)
        self._hold(Source(text, digest, name, signature, options or Options(), meanings, code,
                          plain or partial(str, text)))  # fmt: skip

    def _hold(self, source: Source) -> None:
        self.source = source
        self.signature = signature = source.signature
        self.__name__ = source.name
        self.__doc__ = f"The compiled function `{signature}`."
        if not any(keyword.iskeyword(p.name) for p in signature.arguments):  # jax.jit(static_argnames=...) asks for it
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            self.__signature__ = inspect.Signature([inspect.Parameter(p.name, kind) for p in signature.arguments])
        self._primal = Program(source)
        self._bind = Binder(signature)
        self._lock = threading.Lock()
        self._calls: Calls | None = None
        self.adapters: dict[Any, Any] = {}  # what the bridges to other frameworks keep for it
        self.handle = f"{source.name}.{self.content_digest}.{next(_NUMBERS)}"
        KERNELS[self.handle] = self
        outputs = [i for i, p in enumerate(signature.parameters) if p.is_output]
        self._size = len(self._primal.slots)
        returned = signature.returns is not None and not signature.returns_status
        self._outputs = [*([self._size - 1] if returned else []), *outputs]

    @property
    def name(self) -> str:
        """The function's symbol."""
        return self.source.name

    @property
    def options(self) -> Options:
        """Options that change the code."""
        return self.source.options

    def with_options(self, **changes: Any) -> Kernel:
        """The same function with other options (see `Options`)."""
        other = object.__new__(type(self))
        other._hold(replace(self.source, options=replace(self.options, **changes)))
        return other

    @property
    def primal(self) -> Program:
        """The function itself in normal form; its derivatives are `primal.jvp(...)`, `primal.vjp(...)` and so on."""
        return self._primal

    @property
    def output_positions(self) -> tuple[int, ...]:
        """Slots of what a call returns: return value first, then `out` and `inout` in order."""
        return tuple(self._outputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of what a call returns; the return value is called `return`."""
        names = [p.name for p in self.signature.parameters]
        return tuple(names[i] if i < len(names) else RETURN for i in self._outputs)

    def ordered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Positional and keyword arguments in the order of `signature.arguments`. Raises SignatureError."""
        return self._bind.ordered(args, kwargs)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        """Check and convert arguments. Raises SignatureError, DTypeError, ShapeError."""
        return self._bind.bind(args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        calls = self._calls
        if calls is not None and not kwargs:
            given = calls(args)
            if given is not MISSED:
                return given[0] if len(given) == 1 else tuple(given) if given else None
        bridge = bridge_for(args) or (bridge_for(kwargs.values()) if kwargs else None)
        if bridge is not None:
            return bridge(self, args, kwargs)
        if calls is None:  # for the next call
            origin = [i for i, _ in enumerate(self.signature.parameters)]
            origin += [-1] * (self._size - len(origin))
            self._calls = Calls(self._primal, self.signature, self._bind.bind, origin, self._outputs)
        bound = self._bind.bind(args, kwargs)
        buffers = bound.buffers
        if len(buffers) < self._size:
            buffers.append(None)
        full = self._primal.run(buffers, bound.sizes)
        return self.result(full)

    def result(self, buffers: list[Array]) -> Any:
        """What a call returns, from the buffers of all primal slots: one value, or a tuple; None for no output."""
        outputs = self._outputs
        if len(outputs) == 1:
            return plain(buffers[outputs[0]])
        return tuple([plain(buffers[i]) for i in outputs]) if outputs else None

    def prepare(self, *args: Any, **kwargs: Any) -> Prepared:
        """A call without arguments on buffers made now, for measuring: it runs the native code only."""
        bound = self._bind.bind(args, kwargs)
        padded = bound.buffers + [None] * (self._size - len(bound.buffers))
        buffers = self._primal.fill(padded, bound.sizes)
        reset: list[tuple[Array, Array | float]] = []
        for number, slot in enumerate(self._primal.slots):
            if slot.role == "inout":
                reset.append((buffers[number], buffers[number].copy()))
            elif slot.role == "out" and slot.parameter.is_array:
                reset.append((buffers[number], 0.0))
        return Prepared(self._primal, buffers, reset, [buffers[i] for i in self._outputs])

    def tape_bytes(self, *args: Any, **kwargs: Any) -> int:
        """The bytes of tape that a reverse sweep at these arguments takes (`grad`, `vjp`); it runs twice to tell.

        All floating-point arguments are differentiated. Memory is taken in chunks, so that a little more may be
        allocated. `explain(kernel).tape_bytes` computes it from sizes without a run, where it is known, and says which
        loops and values it is for. Raises as the kernel does.

            >>> power.tape_bytes(0.3, 1000)
            8000
        """
        from irgrad.engine.kernel.memory import tape_of_call

        program = self._primal.pullback([n for n, slot in enumerate(self._primal.slots) if slot.differentiable])
        return tape_of_call(program, self.bind(args, kwargs), self._outputs)

    def tree(self, *templates: Any, returns: Any = None, fixed: Mapping[str, Any] | None = None) -> TreeKernel[Kernel]:
        """The kernel as a function of trees: nested dicts, lists, tuples, named tuples and dataclasses of arguments.

        templates: one per argument: a tree whose leaves are names of the kernel's arguments; a dataclass itself stands
                   for the names of its fields, None for a part that is not used
        returns:   a tree of names of outputs (the return value is `return`); without it, what the kernel returns
        fixed:     values of arguments that are in no template, by name

            advance = step.tree({"x": "pos", "v": "vel"}, returns={"x": "pos", "v": "vel"}, fixed={"dt": 0.1})
            state = advance(state)

        Works on NumPy arrays, and under `jax.jit`, `jax.grad`, `jax.vmap`, ... as a function of pytrees;
        `grad`, `value_and_grad`, `jvp`, `vjp` and `hvp` of it give trees. Raises SignatureError for names
        that the kernel does not have, and for arguments without a leaf.
        """
        from irgrad.engine.kernel.trees import TreeKernel

        return TreeKernel(self, templates, returns, fixed)

    @property
    def content_digest(self) -> str:
        """Digest over the module, the function, its signature and options: equal for kernels that compute the same."""
        from irgrad.engine.codegen.cache import fingerprint

        source = self.source
        said = [repr(source.errors)] if source.errors else []
        return fingerprint(source.digest, source.name, str(source.signature), str(source.options), *said)

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.source,)

    def __repr__(self) -> str:
        return f"<irgrad.Kernel {self.name}: {self.signature}>"


def _unpickled(source: Source) -> Kernel:
    kernel = Kernel.__new__(Kernel)
    kernel._hold(source)
    return kernel


def plain(array: Array) -> Any:
    """0-d arrays become NumPy scalars."""
    return array[()] if array.ndim == 0 else array
