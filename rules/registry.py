"""How rules are defined: `rule`, `inactive`, `opt_out`, `linear`, `alias`, `allocator`, `stop_gradient`, `foreign`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from irgrad.rules.definitions.definition import Form, Key, Rule
from irgrad.rules.definitions.digest import digest_of
from irgrad.rules.definitions.prototype import parse
from irgrad.rules.definitions.types import Activity, AoS, Argument, Batched, Element, Kind, mode_type
from irgrad.rules.errors import RuleError
from irgrad.rules.keys import Declared, canonical, key_of
from irgrad.rules.layers import writable

__all__ = ["alias", "allocator", "extern", "foreign", "inactive", "linear", "opt_out", "rule", "stop_gradient"]

Body = TypeVar("Body", bound=Callable[..., Any])
_TRACERS = {"jax": "irgrad.interop.jax.partials"}
"""Libraries in which bodies of partials may be written, and the module of the floor above that traces such bodies."""


def rule(
    key: Any, *types: Kind, mode: str | None = None, ret: Kind | None = None, width: int | str | None = None,
    host: bool | str = False, **named: Any,
) -> Callable[[Body], Body]:  # fmt: skip
    """Decorator: the function below is the derivative rule of `key`. docs/rules.md describes the forms of bodies.

    key:   a symbol, a Kernel, a function of a library, a ctypes function, `opcode(...)`, `extern(...)`
    types: none, or one for each argument (`Duplicated[Ptr[f64]]`, `Active`, `f32`, ...); `named` ones go by the names
           of the body's parameters
    mode:  "forward", "reverse", or None for both
    ret:   the activity of the result
    width: the only derivative width for which the rule holds, or "any" for all above 1: a body with `ctx` then gets all
           tangents or cotangents at once
    host:  True for Python on whole buffers; "loops" to allow it inside of loops

    Raises RuleError for a declaration that cannot be meant, and for types with a data batch (`Batched[...]`).

        >>> lib = irgrad.load("double table(double x) { return x * x; } double g(double x) { return 3 * table(x); }")
        >>> @irgrad.rule(lib.function("table"))
        ... def _(x):
        ...     return 2 * x
        >>> irgrad.grad(lib.kernel("g"))(5.0)
        np.float64(30.0)
    """
    declared, place = _with_operation(key_of(key), named.get("op")), _place()
    _check_width(width, place, host=bool(host))

    def define(body: Body) -> Body:
        names, has_context, takes_result = _parameters(body, declared, place)
        form: Form = "host" if host else "calls" if has_context else "partials"
        if host and not has_context:
            raise RuleError("a host rule takes `ctx` first", where=place, fix="def _(ctx, ...): ...")
        options: dict[str, Any] = {"host": host} if host else {}
        constructs = (
            {n: v for n, v in named.items() if n == "op"} if declared.key.kind not in ("function", "opcode") else {}
        )
        options |= constructs
        dispatch, is_open = _signature(types, {n: v for n, v in named.items() if n not in constructs}, names, place,
                                       mode_type(mode, width), ret)  # fmt: skip
        if form == "partials":
            home = _tracer(body)
            options |= {"tracer": home} if home is not None else {}
        target = writable()
        if declared.prototype is not None:
            target.declare(declared.key, declared.prototype)
        made = Rule(declared.key, form, dispatch, is_open, body, names, takes_result, place,
                    _digest(form, dispatch, is_open, digest_of(body), options), target.name, options)  # fmt: skip
        target.add(made)
        return body

    return define


def extern(symbol: str, prototype: str) -> Declared:
    """A foreign function with its prototype, `extern("solve", "void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)")`.

    The prototype gives bodies arrays with shapes, and says what the function reads and writes; it holds from here on
    for every rule of the symbol. Raises SignatureError.
    """
    declared = Declared(Key("function", canonical(symbol)), parse(prototype))
    assert declared.prototype is not None
    writable().declare(declared.key, declared.prototype)
    return declared


def _check_width(width: Any, place: str, *, host: bool = False) -> None:
    """Raises RuleError for what is no width, and for host rules of several lanes."""
    number = isinstance(width, int) and not isinstance(width, bool) and width >= 1
    if not (width is None or width == "any" or number):
        raise RuleError(f"width={width!r} is no width of a derivative", where=place,
                        because='a rule holds for one width, for every one above 1 ("any"), or without `width` for one '
                        "tangent or cotangent at a time", fix='width="any"')  # fmt: skip
    if host and width not in (None, 1):
        raise RuleError("a host rule takes one tangent or cotangent at a time", where=place, which=f"width={width!r}",
                        because="Python runs once for each call of the function",
                        fix='without `width`, or foreign(..., width="any")')  # fmt: skip


def _check_batched(
    types: tuple[Any, ...], reverse: str | None, augmented: str | None, primal: str | None, width: Any
) -> None:
    """Raises RuleError for functions that do not go together in a rule for batches."""
    place, batched = _place(), any(isinstance(t, Kind) and issubclass(t, Batched) for t in types)
    if batched and width is not None:
        raise RuleError("a rule for whole batches with a width", where=place, which=f"width={width!r}",
                        because="batches of derivatives of several lanes run sample after sample, or lane by lane",
                        fix="two rules: one with Batched[...], one with `width`")  # fmt: skip
    if batched and reverse is not None and primal is None and augmented is None:
        raise RuleError("a rule for whole batches without the function itself", where=place,
                        because="a batch of gradients calls it for all samples as well",
                        fix='foreign(name, ..., primal="...", reverse="..."), or augmented= in place of primal')
    if batched and primal is not None and augmented is not None:
        raise RuleError("two functions make the call of a batch", where=place,
                        because="augmented= makes it, with a tape", fix="one of primal= and augmented=")  # fmt: skip
    if not batched and primal is not None:
        raise RuleError("the function itself is given for a single sample", where=place, which=f'primal="{primal}"',
                        because="only a rule for whole batches replaces it",
                        fix="Batched[...] among the types, or augmented=")  # fmt: skip


def _with_operation(declared: Declared, op: Any) -> Declared:
    """The key of a construct together with its operation: `reduce` with "sum" is another key than with "product"."""
    key = declared.key
    if key.kind in ("function", "opcode") or op is None:
        return declared
    return Declared(Key(key.kind, op if isinstance(op, str) else getattr(op, "__name__", str(op))), None)


def _digest(form: str, types: tuple[Kind, ...], is_open: bool, body: str, options: dict[str, Any]) -> str:
    from irgrad.rules.definitions.digest import digest_of

    shown = sorted((k, v if isinstance(v, str | int | bool | tuple) else digest_of(v)) for k, v in options.items())
    return f"{form} {' '.join(map(str, types))} {is_open} {body} {shown}"


def _tracer(body: Callable[..., Any]) -> str | None:
    """Where a body is traced that refers to a library with a tracer of its own."""
    from irgrad.rules.definitions.digest import referred

    for value in referred(body):
        name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None) or ""
        home = _TRACERS.get(name.partition(".")[0])
        if home is not None:
            return home
    return None


def _place() -> str:
    """`file.py:12` of the definition."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("irgrad.rules"):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _parameters(body: Callable[..., Any], declared: Declared, place: str) -> tuple[tuple[str, ...], bool, bool]:
    """Names of the parameters behind `ctx`, whether there is a `ctx`, whether the result is taken as `y`."""
    names, takes_result, is_open = [], False, False
    for p in inspect.signature(body).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            if p.name != "y":
                raise RuleError(
                    f"the body of a rule has no keyword `{p.name}`",
                    where=place,
                    because="the only keyword is `y`, the result of the function",
                    fix="def _(a, b, *, y): ...",
                )
            takes_result = True
        elif p.kind is p.VAR_POSITIONAL:
            is_open = True
        else:
            names.append(p.name)
    has_context = bool(names) and names[0] == "ctx"
    given = tuple(names[1:] if has_context else names)
    wanted = declared.prototype
    if wanted is not None and not is_open and has_context and len(given) != len(wanted.params):
        raise RuleError(
            f"the body takes {len(given)} arguments, `{declared.key}` has {len(wanted.params)}",
            where=place,
            which=str(wanted),
            because="the body's parameters behind `ctx` are those of the function",
            fix=f"def _(ctx, {', '.join(p.name or f'a{i}' for i, p in enumerate(wanted.params))}): ...",
        )
    return given, has_context, takes_result


def _signature(
    types: tuple[Any, ...], named: dict[str, Any], names: tuple[str, ...], place: str, mode: Kind, ret: Kind | None
) -> tuple[tuple[Kind, ...], bool]:
    result = Activity if ret is None else _activity(ret, place)
    if types and named:
        raise RuleError("types are given both by position and by name", where=place, fix="use one of the two")
    if named:
        unknown = [name for name in named if name not in names]
        if unknown:
            raise RuleError(
                f"the body has no parameter `{unknown[0]}`",
                where=place,
                because=f"its parameters are {', '.join(names) or 'none'}",
                fix=f"one of {', '.join(f'{n}=' for n in names)}",
            )
        return (mode, result, *(_activity(named.get(n, Activity), place) for n in names)), False
    if types:
        if names and len(types) != len(names):
            raise RuleError(
                f"{len(types)} types for {len(names)} parameters",
                where=place,
                because=f"the body takes ({', '.join(names)})",
                fix="one type for each, or A=... by name",
            )
        return (mode, result, *(_activity(t, place) for t in types)), False
    return (mode, result), True


def _activity(given: Any, place: str, *, batches: bool = False) -> Kind:
    """A type as a user writes it: `Duplicated[Ptr[f64]]`, or an element alone for any activity.

    batches: data batches are allowed. Raises RuleError: a rule that is kept but never called would leave its author
    with other derivatives than the written ones.
    """
    if isinstance(given, Kind) and issubclass(given, Batched):
        if not batches:
            raise RuleError("a rule for whole batches that is no function in C", where=place, which=str(given),
                            because="in a batch, any other rule for one sample is used for every sample",
                            fix='foreign(name, ..., primal="...", reverse="..."), or the type without Batched')
        if AoS in given.parameters:
            raise RuleError("samples one after the other are not what a batch calls a rule with", where=place,
                            which=str(given), because="within a block the samples of an element are side by side",
                            fix=str(given).replace("AoS", "SoA"))  # fmt: skip
        return given if given.parameters else given[Activity]
    if isinstance(given, Kind) and issubclass(given, Argument):
        return given
    if isinstance(given, Kind) and issubclass(given, Element):
        return Activity[given]
    raise RuleError(
        f"`{getattr(given, '__name__', given)}` is no type of an argument",
        where=place,
        because="an activity (Active, Duplicated[Ptr[f64]], ...) or an element (f32, Ptr[f64]) is wanted",
        fix="from irgrad.rules import Active, Const, Duplicated, Ptr, f64",
    )


def _simple(what: Any, form: Form, types: tuple[Kind, ...] = (), options: dict[str, Any] | None = None) -> None:
    declared, place, target = key_of(what), _place(), writable()
    dispatch = (mode_type(None), Activity, *(_activity(t, place) for t in types))
    known = options or {}
    target.add(Rule(declared.key, form, dispatch, not types, None, (), False, place,
                    _digest(form, dispatch, not types, "", known), target.name, known))  # fmt: skip


def inactive(*names: Any, pattern: str | None = None) -> None:
    """No derivative flows through these functions, neither into their results nor through memory.

    pattern: a shell-style pattern of symbols, `"PyErr_*"`.

        >>> lib = irgrad.load("double noise(double x) { return x; } double g(double x) { return x * noise(x); }")
        >>> irgrad.inactive(lib.function("noise"))
        >>> irgrad.grad(lib.kernel("g"))(5.0)
        np.float64(5.0)
    """
    for name in names:
        _simple(name, "inactive")
    if pattern is not None:
        target = writable()
        dispatch = (mode_type(None), Activity)
        target.add_pattern(pattern, Rule(Key("pattern", pattern), "inactive", dispatch, True, None, (), False, _place(),
                                         f"inactive {pattern}", target.name))  # fmt: skip


def stop_gradient(*names: Any) -> None:
    """Calls of these functions are repeated, and what they compute counts as constant.

    Arrays that they write need extents (a Kernel, `extern(...)`): their shadows are cleared.
    """
    for name in names:
        _simple(name, "stop")


def opt_out(name: Any, *types: Kind) -> None:
    """Differentiate the body of this function, even where a rule fits (of calls with these types, if any).

        >>> lib = irgrad.load("double erf(double x) { return x * x; } double g(double x) { return erf(x); }")
        >>> irgrad.opt_out(lib.function("erf"))
        >>> irgrad.grad(lib.kernel("g"))(5.0)
        np.float64(10.0)
    """
    _simple(name, "opt_out", types)


def linear(name: Any) -> None:
    """The function is linear in its floating-point arguments together: its tangent is the function of the tangents."""
    _simple(name, "linear")


def alias(name: str, key: str) -> None:
    """`name` is another spelling of `key`: its rules are those of `key`."""
    writable().alias(name, canonical(key))


def allocator(name: str, size: int | tuple[int, ...] = 0, *, free: str | None = None, zeroed: bool = False) -> None:
    """`name` returns fresh memory of as many bytes as the product of these arguments; `free` gives it back."""
    sizes = (size,) if isinstance(size, int) else tuple(size)
    _simple(name, "allocator", options={"sizes": sizes, "zeroed": zeroed, "frees": False})
    if free is not None:
        _simple(free, "allocator", options={"sizes": (), "zeroed": False, "frees": True})


def foreign(
    name: Any, *types: Kind, reverse: str | None = None, augmented: str | None = None, forward: str | None = None,
    primal: str | None = None, width: int | str | None = None,
) -> None:  # fmt: skip
    """The derivatives of `name` are functions in C; docs/rules.md gives their prototypes.

    types:  with `Batched[...]` among them: functions that a batch calls once for all samples of a block
    primal: for these, the function itself for all samples
    width:  "any" for functions that take all tangents or cotangents of a derivative at once, or the only width (above
            1) that they take

    Raises RuleError when neither `reverse` nor `forward` is given, and for what cannot be meant.
    """
    _check_width(width, _place())
    _check_batched(types, reverse, augmented, primal, width)
    if reverse is None and forward is None:
        raise RuleError(f"no derivative is given for `{name}`", where=_place(), because="augmented alone is none",
                        fix='foreign("f", augmented="f_augmented", reverse="f_reverse")')  # fmt: skip
    declared, place, target = key_of(name), _place(), writable()
    if declared.prototype is not None:
        target.declare(declared.key, declared.prototype)
    for mode, options in (("reverse", {"reverse": reverse, "augmented": augmented, "primal": primal}),
                          ("forward", {"forward": forward})):  # fmt: skip
        if options.get(mode) is None:
            continue
        known = {k: v for k, v in options.items() if v is not None}
        dispatch = (mode_type(mode, width), Activity, *(_activity(t, place, batches=True) for t in types))
        digest = _digest("foreign", dispatch, not types, "", dict(known))
        target.add(Rule(declared.key, "foreign", dispatch, not types, None, (), False, place, digest, target.name,
                        dict(known)))  # fmt: skip
