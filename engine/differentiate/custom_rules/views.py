"""Arrays in bodies of rules: elementwise algebra that is written as one loop where it is stored.

    x.d += 2.0 * x.saved * out.d          x.d[...] = 0.0          s = np.sum(out.d * x.saved)          x[i, j]

Operands have equal shapes, or fewer axes (aligned at the last one, as in NumPy), or axes of the literal length 1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from irgrad.engine.differentiate.custom_rules.symbols import Code, Pointer, Scalar, Variable, _Lifted
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Instruction, Value
from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.tracing import innermost_line

__all__ = ["Lazy", "View", "for_range", "when"]

Index = Sequence[Scalar]


@contextmanager
def for_range(code: Code, start: Any, stop: Any, step: Any = 1) -> Iterator[Scalar]:
    """A counted loop; its counter is an i64."""
    first, last, by = (code.cast(code.number(v), ty.I64) for v in (start, stop, step))
    body, leave = code.block("loop"), code.block("after")
    code.b.cond_br(code.b.icmp("slt", first, last), body, leave)
    entry = code.b.block
    code.b.block = body
    counter = code.b.insert(Instruction("phi", ty.I64, [first], blocks=[entry]))
    code.scopes.append([])
    yield Scalar(code, counter)
    code.close_scope()
    following = code.b.add(counter, by)
    code.b.cond_br(code.b.icmp("slt", following, last), body, leave)
    counter.operands.append(following)
    counter.blocks.append(code.b.block)
    code.b.block = leave


@contextmanager
def when(code: Code, condition: Any) -> Iterator[None]:
    """Code that runs where the condition holds."""
    chosen = condition.v if isinstance(condition, Scalar) else ConstInt(ty.I1, int(bool(condition)))
    body, leave = code.block("when"), code.block("then")
    code.b.cond_br(chosen, body, leave)
    code.b.block = body
    code.scopes.append([])
    yield
    code.close_scope()
    code.b.br(leave)
    code.b.block = leave


class Lazy(_Lifted):
    """An elementwise expression that was not computed yet: a function of the elements of its operands."""

    if TYPE_CHECKING:

        def __add__(self, other: Any) -> Any: ...

        def __radd__(self, other: Any) -> Any: ...

        def __sub__(self, other: Any) -> Any: ...

        def __rsub__(self, other: Any) -> Any: ...

        def __mul__(self, other: Any) -> Any: ...

        def __rmul__(self, other: Any) -> Any: ...

        def __truediv__(self, other: Any) -> Any: ...

        def __rtruediv__(self, other: Any) -> Any: ...

        def __pow__(self, other: Any) -> Any: ...

        def __rpow__(self, other: Any) -> Any: ...

        def __lt__(self, other: Any) -> Any: ...

        def __le__(self, other: Any) -> Any: ...

        def __gt__(self, other: Any) -> Any: ...

        def __ge__(self, other: Any) -> Any: ...

    def __init__(self, code: Code, function: Callable[..., Any], operands: Sequence[Any]) -> None:
        self.code = code
        self.function = function
        self.operands = operands

    def leaves(self) -> list[View]:
        """The arrays below."""
        return [leaf for operand in self.operands if isinstance(operand, Lazy) for leaf in operand.leaves()]

    def item_at(self, at: Callable[..., Any]) -> Any:
        """The value at one place."""
        return self.function(*(o.item_at(at) if isinstance(o, Lazy) else o for o in self.operands))

    def sum(self) -> Any:
        """The sum of all elements; of arrays with lanes, that of each lane."""
        leaves = self.leaves()
        if not leaves:
            raise RuleError("a sum over no array", which=innermost_line(), fix="np.sum(x.saved * out.d)")
        widest = max(leaves, key=lambda v: len(v.shape) - v.lanes)
        if any(leaf.lanes for leaf in leaves):
            return self._lane_sums(widest, leaves)
        total: Any = Variable(self.code, self.code.number(0.0, widest.element))
        with _loops(self.code, widest, leaves) as at:
            total.value = total.value + self.item_at(at)
        found: Scalar = total.value
        return found

    def _lane_sums(self, widest: View, leaves: Sequence[View]) -> View:
        """The sum in each lane."""
        code = self.code
        count = next(leaf.shape[-1] for leaf in leaves if leaf.lanes)
        own = widest.shape[:-1] if widest.lanes else widest.shape
        over = View(code, widest.v, widest.element, (*own, count), lanes=True)
        memory = ty.array(count.__index__(), widest._typed())
        total = View(code, code.stack(memory), widest.element, (count,), lanes=True)
        code.b.store(zero_of(memory), total.v)
        with _loops(code, over, [*leaves, total]) as at:
            at(total, at(total) + self.item_at(at))
        return total

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            what = f"`np.{ufunc.__name__}.{method}` is not among the functions of rules"
            raise RuleError(what, which=innermost_line(),
                            fix="elementwise functions, np.sum, np.where")  # fmt: skip
        return Lazy(self.code, ufunc, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if name == "where" and len(args) == 3:
            return Lazy(self.code, function, args)
        if name == "sum" and len(args) == 1 and not kwargs:
            return args[0].sum()
        if name in ("dot", "vdot", "inner") and len(args) == 2:
            return (args[0] * args[1]).sum()
        raise RuleError(f"`np.{name}` is not among the functions of rules", which=innermost_line(),
                        fix="elementwise functions, np.sum, np.dot of two vectors, np.where, or loops")  # fmt: skip

    def __neg__(self) -> Lazy:
        return Lazy(self.code, lambda a: -a, [self])

    def __abs__(self) -> Lazy:
        return Lazy(self.code, abs, [self])

    def __bool__(self) -> bool:
        from irgrad.engine.differentiate.custom_rules.symbols import undecided

        raise undecided()


def _operators() -> None:
    def define(function: Callable[..., Any], swapped: bool) -> Any:
        def method(self: Lazy, other: Any) -> Lazy:
            return Lazy(self.code, function, [other, self] if swapped else [self, other])

        return method

    for name in ("add", "sub", "mul", "truediv", "pow"):
        function = getattr(operator, name)
        setattr(Lazy, f"__{name}__", define(function, False))
        setattr(Lazy, f"__r{name}__", define(function, True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Lazy, f"__{name}__", define(getattr(operator, name), False))
    Lazy.__hash__ = None  # type: ignore[assignment]


_operators()


class View(Lazy, Pointer):
    """An array: an address, an element type, and extents."""

    def __init__(
        self, code: Code, v: Value, element: ty.Type | None, shape: Sequence[Scalar], lanes: bool = False
    ) -> None:
        """lanes: the last axis is that of tangents or cotangents, which arrays without it do not depend on."""
        Pointer.__init__(self, code, v, element)
        Lazy.__init__(self, code, lambda a: a, [])
        self.shape = tuple(shape)
        self.lanes = lanes

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Scalar:
        """The number of elements."""
        total = self.code.number(1)
        for extent in self.shape:
            total = total * extent
        return total

    @property
    def pointer(self) -> Pointer:
        """The address alone."""
        return self.at(self.v, self.element)

    def leaves(self) -> list[View]:
        return [self]

    def item_at(self, at: Callable[..., Any]) -> Any:
        return at(self)

    def flat(self, index: Sequence[Any]) -> Scalar:
        """The number of the element at an index, in C order."""
        if len(index) != len(self.shape):
            raise RuleError(
                f"{len(index)} indices for {len(self.shape)} axes", which=innermost_line(), fix="one index per axis"
            )
        number = self.code.number(0)
        for extent, i in zip(self.shape, index, strict=True):
            number = number * extent + i
        return number

    def __getitem__(self, index: Any) -> Any:
        if index is Ellipsis or index == ():
            return self if self.shape or index is Ellipsis else Pointer.__getitem__(self, 0)
        return Pointer.__getitem__(self, self.flat(index if isinstance(index, tuple) else (index,)))

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is Ellipsis or index == () or isinstance(index, slice):
            self.assign(value)
        else:
            Pointer.__setitem__(self, self.flat(index if isinstance(index, tuple) else (index,)), value)

    def __add__(self, other: Any) -> Any:
        return Lazy(self.code, operator.add, [self, other])

    def __sub__(self, other: Any) -> Any:
        return Lazy(self.code, operator.sub, [self, other])

    def assign(self, value: Any, *, add: bool = False) -> None:
        """Store an expression everywhere, or add it."""
        if value is self:
            return
        leaves = [self, *(value.leaves() if isinstance(value, Lazy) else [])]
        with _loops(self.code, self, leaves) as at:
            new = value.item_at(at) if isinstance(value, Lazy) else value
            at(self, at(self) + new if add else new)

    def __iadd__(self, value: Any) -> Any:
        self.assign(value, add=True)
        return self


@contextmanager
def _loops(code: Code, over: View, leaves: Sequence[View]) -> Iterator[Any]:
    """A nest of loops over an array. Yields `at(view)`, its element there, and `at(view, value)`, which stores one."""
    flat = all(len(leaf.shape) in (0, len(over.shape)) and not _ones(leaf, over) for leaf in leaves)
    flat = flat and all(leaf.lanes == over.lanes or not leaf.shape for leaf in leaves)
    if any(leaf.lanes and not over.lanes for leaf in leaves):
        raise RuleError("derivatives in all lanes are stored where there is one value", which=innermost_line(),
                        because="a rule for all lanes gets shadows with an axis more",
                        fix="ctx.temporary_like(x.d)")  # fmt: skip
    if any(_rank(leaf) > _rank(over) for leaf in leaves):
        raise RuleError("an array of more axes is stored into one of fewer", which=innermost_line(),
                        because=f"{max(len(v.shape) for v in leaves)} axes into {len(over.shape)}",
                        fix="np.sum(...)")  # fmt: skip
    with _nest(code, [over.size] if flat and over.shape else list(over.shape)) as counters:

        def at(view: View, *stored: Any) -> Any:
            place: Any = 0
            if flat and view.shape:
                place = counters[0]
            elif view.shape:
                own = counters[:-1] if over.lanes and not view.lanes else counters
                own = own[len(own) - len(view.shape) :]
                place = view.flat([0 if _is_one(e) else c for e, c in zip(view.shape, own, strict=True)])
            if stored:
                return Pointer.__setitem__(view, place, stored[0])
            return Pointer.__getitem__(view, place)

        yield at


def _rank(view: View) -> int:
    return len(view.shape) - view.lanes


def _is_one(extent: Scalar) -> bool:
    return isinstance(extent.v, ConstInt) and extent.v.value == 1


def _ones(view: View, over: View) -> bool:
    """An axis of length one that is stretched."""
    return any(_is_one(a) and not _is_one(b) for a, b in zip(view.shape, over.shape, strict=False))


@contextmanager
def _nest(code: Code, extents: Sequence[Scalar]) -> Iterator[list[Scalar]]:
    if not extents:
        yield []
        return
    with for_range(code, 0, extents[0]) as i, _nest(code, extents[1:]) as inner:
        yield [i, *inner]
