"""Kernels as functions of trees: nested dicts, lists, tuples, named tuples and dataclasses of arguments.

A *template* has the shape of the tree; its leaves are names of the kernel's arguments (or outputs):

    step = lib.kernel("step", "void(inout f64[n,3] pos, inout f64[n,3] vel, f64[n] mass, f64 dt, i64 n)")
    advance = step.tree({"x": "pos", "v": "vel"}, "mass", "dt", returns={"x": "pos", "v": "vel"})
    state = advance({"x": pos, "v": vel}, mass, 0.1)

The templates alone say which part of a tree goes where, so no library of trees is needed for NumPy arrays; under JAX
the trees are pytrees, and `jax.jit`, `jax.grad`, `jax.vmap` see a function of pytrees as they see any other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from irgrad.engine.kernel.binding import unknown_name
from irgrad.engine.signature.parameter import Wrt
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import ActivityError, SignatureError

__all__ = ["TreeGradient", "TreeKernel", "leaves_of"]


class Leaves(Protocol):
    """A function whose arguments are the leaves of trees: a `Kernel`."""

    @property
    def name(self) -> str: ...

    @property
    def signature(self) -> Signature: ...

    @property
    def output_names(self) -> tuple[str, ...]: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


K = TypeVar("K", bound=Leaves)


class TreeKernel(Generic[K]):
    """A kernel as a function of trees; made by `Kernel.tree`.

    kernel: what it calls; templates: one per argument, with the names of the kernel's arguments as leaves
    """

    def __init__(
        self, kernel: K, templates: Sequence[Any], returns: Any = None, fixed: Mapping[str, Any] | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """labels: names of the trees, by which they may be given too; without them only leaves have one."""
        self.kernel = kernel
        self.templates = tuple(map(_expanded, templates))
        self.returns = None if returns is None else _expanded(returns)
        self.fixed = dict(fixed or {})
        names = [t if isinstance(t, str) else f"argument {n}" for n, t in enumerate(self.templates)]
        self.labels = list(labels) if labels is not None else names
        self.__name__ = kernel.name
        self.__doc__ = f"The compiled function `{kernel.signature}` over trees."
        self._check()

    def _check(self) -> None:
        signature = self.kernel.signature
        known = [p.name for p in signature.arguments]
        where = f"`{signature}`"
        named = [name for template in self.templates for name in leaves_of(template)] + list(self.fixed)
        for name in named:
            if name not in known:
                raise unknown_name(name, known, where, signature)
            if named.count(name) > 1:
                raise SignatureError(f"argument `{name}` is given twice", where=where,
                                     because="two leaves of the templates have its name", fix="name each argument once")
        missing = [name for name in known if name not in named]
        if missing:
            raise SignatureError(f"argument `{missing[0]}` is missing", where=where,
                                 because="no leaf of the templates has its name",
                                 fix=f'add a leaf "{missing[0]}"   or   fixed={{"{missing[0]}": value}}')
        outputs = self.kernel.output_names
        for name in leaves_of(self.returns) if self.returns is not None else ():
            if name not in outputs:
                raise SignatureError(f"there is no output `{name}`", where=where,
                                     because="the outputs are " + ", ".join(f"`{row}`" for row in outputs),
                                     fix="leaves of `returns` are names of outputs")

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The kernel's arguments by name. Raises SignatureError for a tree that is not shaped as its template."""
        values = dict(zip(self.labels, args, strict=False))
        for label, value in kwargs.items():
            if label not in self.labels or label in values:
                what = f"argument `{label}` is given twice" if label in values else f"there is no argument `{label}`"
                raise SignatureError(what, where=repr(self), because="the arguments are " + ", ".join(self.labels),
                                     fix="one tree per template")
            values[label] = value
        if len(args) > len(self.labels) or len(values) < len(self.labels):
            raise SignatureError(f"got {len(args) + len(kwargs)} arguments, wanted {len(self.labels)}",
                                 where=repr(self), because="the arguments are " + ", ".join(self.labels),
                                 fix="one tree per template")
        found = dict(self.fixed)
        for template, label in zip(self.templates, self.labels, strict=True):
            _collect(template, values[label], label, found)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the kernel returns, in the shape of `returns`. Raises as the kernel does, and SignatureError for a tree
        that is not shaped as its template."""
        return self._shaped(self.kernel(**self.named(args, kwargs)))

    def _shaped(self, out: Any) -> Any:
        """Outputs, or their tangents, in the shape of `returns`."""
        names = self.kernel.output_names
        if self.returns is None or not names:
            return out
        return _built(self.returns, dict(zip(names, [out] if len(names) == 1 else out, strict=True)))

    def _leaves(self, trees: Sequence[Any], templates: Sequence[Any], what: str) -> dict[str, Any]:
        """Tangents by the names of leaves; None for a tree, or a leaf, without any."""
        if len(trees) != len(templates):
            raise SignatureError(f"got {len(trees)} {what} for {len(templates)} arguments", where=repr(self),
                                 because="the arguments are " + ", ".join(self.labels),
                                 fix="one tree per template, None for no perturbation")
        found: dict[str, Any] = {}
        for template, tree in zip(templates, trees, strict=True):
            if tree is not None:
                _collect(template, tree, what, found)
        return found

    def _given(self, primals: Sequence[Any]) -> list[Any]:
        values = self.named(primals, {})
        return [values[p.name] for p in self.kernel.signature.arguments]

    def jvp(self, function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """`function`, which is `irgrad.jvp`, of trees: outputs and tangents in the shape of `returns`."""
        moved = self._leaves(tangents, self.templates, "tangents")
        rows = [moved.get(p.name) for p in self.kernel.signature.arguments]
        out, tangent = function(self.kernel, self._given(primals), rows)
        return self._shaped(out), self._shaped(tangent)

    def vjp(self, function: Callable[..., Any], primals: Sequence[Any], wrt: Wrt) -> tuple[Any, Callable[[Any], Any]]:
        """`function`, which is `irgrad.vjp`, of trees: the pullback takes a cotangent in the shape of `returns`, and
        gives a tree for each argument, or one where `wrt` is one."""
        rows = range(len(self.templates)) if wrt is None else [wrt] if isinstance(wrt, str | int) else wrt
        chosen, names = [_chosen(self, row) for row in rows], self.float_leaves(wrt)
        out, pull = function(self.kernel, *self._given(primals), wrt=names)

        def pullback(cotangent: Any) -> Any:
            if self.returns is not None:
                leaves: dict[str, Any] = {}
                _collect(self.returns, cotangent, "the cotangent", leaves)
                found = [leaves.get(name) for name in self.kernel.output_names]
                cotangent = found[0] if len(found) == 1 else tuple(found)
            values = dict(zip(names, pull(cotangent), strict=True))
            trees = [_built(template, values) for template in chosen]
            return trees[0] if isinstance(wrt, str | int) else tuple(trees)

        return self._shaped(out), pullback

    def hvp(self, function: Callable[..., Any], primals: Sequence[Any], tangents: Any, wrt: Wrt) -> Any:
        """`function`, which is `irgrad.hvp`, of trees: `tangents` is a tree like the argument, or a tuple of them where
        `wrt` is one, and so is the result."""
        single = wrt is None or isinstance(wrt, str | int)
        rows = [0] if wrt is None else [wrt] if isinstance(wrt, str | int) else list(wrt)
        chosen, names = [_chosen(self, row) for row in rows], self.float_leaves(rows)
        moved = self._leaves([tangents] if single else tangents, chosen, "tangents")
        missing = [name for name in names if moved.get(name) is None]
        if missing:
            raise SignatureError(f"the tangent of `{missing[0]}` is missing", where=repr(self),
                                 because="the vector has an entry for each floating-point leaf", fix="zeros there")
        out = function(self.kernel, self._given(primals), tuple(moved[name] for name in names), wrt=names)
        trees = [_built(template, dict(zip(names, out, strict=True))) for template in chosen]
        return trees[0] if single else tuple(trees)

    def float_leaves(self, wrt: Wrt) -> tuple[str, ...]:
        """The kernel's arguments in these trees (by position, by name, or by the name of a leaf), in all by default."""
        rows = range(len(self.templates)) if wrt is None else [wrt] if isinstance(wrt, str | int) else wrt
        return _floats(self, [_chosen(self, row) for row in rows])

    def __repr__(self) -> str:
        trees = ", ".join(map(repr, self.templates))
        return f"<irgrad.TreeKernel {self.kernel.name}({trees}) of {self.kernel.signature}>"


class TreeGradient:
    """The gradient of a scalar-valued `TreeKernel`, with respect to trees. Made by `grad` and `value_and_grad`."""

    def __init__(self, tree: TreeKernel[Any], make: Callable[..., Any], wrt: Wrt, argnums: Wrt = None) -> None:
        """make: `grad` or `value_and_grad`; wrt, argnums: positions of the trees or names, the first by default."""
        if wrt is not None and argnums is not None:
            raise SignatureError("both `wrt` and `argnums` are given", where=repr(tree), fix="give one of them")
        wrt = wrt if wrt is not None else argnums
        rows = [0] if wrt is None else [wrt] if isinstance(wrt, str | int) else list(wrt)
        self.tree = tree
        self.single = wrt is None or isinstance(wrt, str | int)
        self.chosen = [_chosen(tree, row) for row in rows]
        self.names = tree.float_leaves(rows)
        self.gradient = make(tree.kernel, wrt=self.names)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The gradient as a tree like the argument (None for leaves that have none), a tuple of trees when `argnums` is
        one; `(value, gradient)` with value."""
        out = self.gradient(**self.tree.named(args, kwargs))
        value, rows = out if self.gradient.with_value else (None, out)
        found = dict(zip(self.names, rows, strict=True))
        trees = [_built(template, found) for template in self.chosen]
        result = trees[0] if self.single else tuple(trees)
        return (value, result) if self.gradient.with_value else result


def _floats(tree: TreeKernel[Any], chosen: Sequence[Any]) -> tuple[str, ...]:
    """The floating-point leaves of templates. Raises ActivityError when there are none."""
    floats = {p.name for p in tree.kernel.signature.arguments if p.dtype.is_float}
    names = tuple(name for template in chosen for name in leaves_of(template) if name in floats)
    if not names:
        raise ActivityError("there is nothing to differentiate", where=repr(tree),
                            because="no leaf of the tree is floating-point", fix="argnums= of a tree with floats")
    return names


def _chosen(tree: TreeKernel[Any], row: str | int) -> Any:
    """The template of an argument, by its position, by its name, or by that of a leaf."""
    count = len(tree.templates)
    if isinstance(row, int) and not isinstance(row, bool) and -count <= row < count:
        return tree.templates[row]
    if row in tree.labels:
        return tree.templates[tree.labels.index(str(row))]
    leaves = [name for template in tree.templates for name in leaves_of(template)]
    if row in leaves:
        return row
    raise SignatureError(f"there is no argument {row!r}", where=repr(tree),
                         because="the arguments are " + ", ".join(tree.labels),
                         fix=f"positions from 0 to {count - 1}, or one of {', '.join(map(repr, leaves))}")


def leaves_of(template: Any) -> list[str]:
    """The names in a template, in order."""
    if isinstance(template, str):
        return [template]
    return [name for _, _, child in _children(template) for name in leaves_of(child)]


def _expanded(template: Any) -> Any:
    """The template with classes of dataclasses in it as dataclasses of the names of their fields."""
    if isinstance(template, type) and dataclasses.is_dataclass(template):
        return _made(template, {f.name: f.name for f in dataclasses.fields(template)})
    if template is None or isinstance(template, str):
        return template
    if not _is_node(template):
        raise SignatureError(f"{template!r} is no template", because=f"it is a {type(template).__name__}",
                             fix='names of arguments in dicts, lists, tuples and dataclasses: {"x": "pos"}')
    return _rebuilt(template, {key: _expanded(child) for key, _, child in _children(template)})


def _is_node(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) or dataclasses.is_dataclass(value)


def _children(template: Any) -> list[tuple[Any, str, Any]]:
    """Key, how it is written behind the tree's name, and child; nothing for a leaf."""
    if template is None or isinstance(template, str):
        return []
    if isinstance(template, Mapping):
        return [(key, f"[{key!r}]", child) for key, child in template.items()]
    if dataclasses.is_dataclass(template):
        return [(f.name, f".{f.name}", getattr(template, f.name)) for f in dataclasses.fields(template)]
    fields = getattr(template, "_fields", None)
    if fields is not None:
        return [(name, f".{name}", getattr(template, name)) for name in fields]
    return [(number, f"[{number}]", child) for number, child in enumerate(template)]


def _collect(template: Any, value: Any, path: str, found: dict[str, Any]) -> None:
    if template is None:
        return
    if isinstance(template, str):
        found[template] = value
        return
    rows = _children(template)
    by_name = bool(rows) and rows[0][1].startswith(".")
    if isinstance(template, Mapping):
        value = _as_mapping(value)
        fits = isinstance(value, Mapping) and set(value) == set(template)
        wanted = f"a dict with the keys {', '.join(map(repr, template))}"
    elif by_name:
        fits = all(hasattr(value, key) for key, _, _ in rows)
        wanted = f"a {type(template).__name__} with {', '.join(str(key) for key, _, _ in rows)}"
    else:
        fits = isinstance(value, list | tuple) and len(value) == len(rows)
        wanted = f"a list or tuple of {len(rows)}"
    if not fits:
        keys = f" with the keys {', '.join(map(repr, value))}" if isinstance(value, Mapping) else ""
        because = f"got a {type(value).__name__}{keys}, wanted {wanted}"
        raise SignatureError(f"{path} does not fit its template", because=because,
                             fix="pass a tree of that shape; None in a template stands for what is not used")
    for key, written, child in rows:
        _collect(child, getattr(value, key) if by_name else value[key], path + written, found)


def _as_mapping(value: Any) -> Any:
    """The fields of a structured array, a dataclass or a named tuple as a dict; anything else as it is."""
    names = getattr(getattr(value, "dtype", None), "names", None)
    if names:
        return {name: value[name] for name in names}
    if isinstance(value, Mapping | type) or not _is_node(value):
        return value
    rows = _children(value)
    return {key: child for key, _, child in rows} if rows and rows[0][1].startswith(".") else value


def _built(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with values in the place of names; None where there is none."""
    if template is None or isinstance(template, str):
        return None if template is None else values.get(template)
    return _rebuilt(template, {key: _built(child, values) for key, _, child in _children(template)})


def _rebuilt(template: Any, children: dict[Any, Any]) -> Any:
    if isinstance(template, Mapping):
        return dict(children)
    if dataclasses.is_dataclass(template):
        return _made(type(template), children)
    if hasattr(template, "_fields"):
        return type(template)(**children)
    return tuple(children.values()) if isinstance(template, tuple) else list(children.values())


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """A dataclass with these fields, without running its __init__: a check there could not know what leaves are."""
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made
