"""Arguments of a kernel from the command line: sizes, ranges of random numbers, values, arrays from files."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irgrad.rules.errors import IRGradError, LoadError, SignatureError

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel

__all__ = ["Choice", "as_options", "known_size", "random_arguments", "sizes_of"]


@dataclass(frozen=True, slots=True)
class Choice:
    """sizes: of extents and integer arguments; given: `NAME=VALUE`; bounds: of random numbers, `of` those of single
    arguments as `NAME=LOW:HIGH`; seed: of the random numbers."""

    sizes: dict[str, int]
    given: Sequence[str] = ()
    bounds: tuple[float, float] = (0.5, 1.5)
    of: Sequence[str] = ()
    seed: int = 0


_OPTIONS = (
    (re.compile(r'lib\.kernel\("[^"]*", "(.*)"\)'), r"--sig '\1'"),
    (re.compile(r'load\(\.\.\., link=\["([^"]*)"\]\)'), r"--link '\1'"),
    (re.compile(r'load\("([^"]*)"\)'), r"name `\1`"),
    (re.compile(r"pass include=\[\.\.\.\], define=\{\.\.\.\}, flags=\[\.\.\.\] to load\(\)"), "-I DIR, -D NAME=VALUE"),
    (re.compile(r"(?s)^(@rule\(.*)$"), r"\1\n(rules and `inactive` stand in a file: --rules FILE.py)"),
)


def as_options(error: IRGradError) -> IRGradError:
    """The error with a way out as the command line takes it, where that of Python has an option that says the same."""
    fix = error.fix
    for pattern, option in _OPTIONS:
        fix = pattern.sub(option, fix)
    return error.change(fix=fix)


def sizes_of(rows: list[str]) -> dict[str, int]:
    sizes = {}
    for row in rows:
        name, equals, number = row.partition("=")
        if not equals or not number.removeprefix("-").isdecimal():
            raise SignatureError(f"`--size {row}` cannot be read", fix="--size n=16")
        sizes[name] = int(number)
    return sizes


def random_arguments(kernel: Kernel, choice: Choice) -> list[Any]:
    """Arguments for a call: those that are given, extents from their shapes, random numbers for the others.

    Raises SignatureError for names that the kernel does not have, and for what cannot be read.
    """
    import numpy as np

    rng = np.random.default_rng(choice.seed)
    bounds = _bounds(kernel, choice)
    given = {name: _value(kernel, name, text) for name, text in _pairs(kernel, choice.given, "--set", "dt=0.01")}
    names = {n for p in kernel.signature.parameters for e in p.shape or () for n in e.names()}
    known = sorted(names | {p.name for p in kernel.signature.arguments if not (p.is_array or p.dtype.is_float)})
    for name, value in choice.sizes.items():
        known_size(kernel, name, value, known)
    values = {**dict.fromkeys(sorted(names), 5), **_bound_sizes(kernel, given), **choice.sizes}
    args: list[Any] = []
    for p in kernel.signature.arguments:
        shape = p.extents(values)
        if p.name in given:
            value = given[p.name]
            args.append(np.full(shape, value, p.dtype.numpy) if p.is_array and np.ndim(value) == 0 else value)
        elif p.dtype.is_float:
            array = rng.uniform(*bounds.get(p.name, choice.bounds), shape).astype(p.dtype.numpy)
            args.append(array if p.is_array else float(array))
        elif p.is_array:
            args.append(rng.integers(0, 2, shape).astype(p.dtype.numpy))
        else:
            args.append(values.get(p.name, 5))
    return args


def _bounds(kernel: Kernel, choice: Choice) -> dict[str, tuple[float, float]]:
    """The range of each argument that has one of its own."""
    import numpy as np

    found = {}
    rows = [("", choice.bounds)]
    for name, text in _pairs(kernel, choice.of, "--range", "dt=0:0.02"):
        low, _, high = text.partition(":")
        try:
            rows.append((name, (float(low), float(high))))
        except ValueError:
            raise SignatureError(f"`--range {name}={text}` cannot be read", fix=f"--range {name}=0.5:1.5") from None
    for name, pair in rows:
        if not (np.isfinite(pair).all() and pair[0] <= pair[1]):
            low, high = (f"{bound:g}" for bound in pair)
            better = f"{high} {low}" if pair[1] < pair[0] else "0.5 1.5"
            shown, fix = ((f"{name}={low}:{high}", f"{name}={better.replace(' ', ':')}") if name
                          else (f"{low} {high}", better))  # fmt: skip
            raise SignatureError(f"`--range {shown}` is no range", because="LOW is above HIGH, or one is not finite",
                                 fix=f"--range {fix}")  # fmt: skip
        if name:
            found[name] = pair
    return found


def _pairs(kernel: Kernel, rows: Sequence[str], option: str, example: str) -> list[tuple[str, str]]:
    """Name and text of each `NAME=TEXT`. Raises SignatureError for a name that is no argument."""
    from difflib import get_close_matches

    names = [p.name for p in kernel.signature.arguments]
    extents = {n for p in kernel.signature.parameters for e in p.shape or () for n in e.names()}
    found = []
    for row in rows:
        name, equals, text = row.partition("=")
        if not equals or not text:
            raise SignatureError(f"`{option} {row}` cannot be read", fix=f"{option} {example}")
        if name in extents - {*names}:
            raise SignatureError(f"`{option} {row}`: `{name}` is a size", where=f"`{kernel.signature}`",
                                 because="sizes follow from the shapes of arrays", fix=f"--size {name}=16")
        if name not in names:
            near = get_close_matches(name, names, 1)
            raise SignatureError(f"`{option} {row}` names nothing", where=f"`{kernel.signature}`",
                                 because=f"the arguments are {', '.join(f'`{known}`' for known in names)}",
                                 fix=f"{option} {near[0]}={text}" if near else "choose one of them")
        found.append((name, text))
    return found


def _value(kernel: Kernel, name: str, text: str) -> Any:
    """A number, or an array from a file. Arrays are converted to the argument's dtype, as numbers are."""
    (p,) = [p for p in kernel.signature.arguments if p.name == name]
    path, _, key = text.partition(":")
    if Path(path).suffix in (".npy", ".npz"):
        return _array(path, key or name).astype(p.dtype.numpy)
    try:
        number = float(text) if p.dtype.is_float else int(text)
    except ValueError:
        raise SignatureError(f"`--set {name}={text}` cannot be read", because=f"`{p}` takes a number or a file",
                             fix=f"--set {name}=1   or   --set {name}=FILE.npy, FILE.npz:KEY") from None
    return number


def _array(path: str, key: str) -> Any:
    import numpy as np

    if not Path(path).is_file():
        from irgrad.interop.loaders.loading import missing

        raise missing(Path(path))
    try:
        data = np.load(path, allow_pickle=False)
        if isinstance(data, np.ndarray):
            return data
        with data:
            if key not in data.files:
                raise LoadError(f"there is no array `{key}` in `{path}`",
                                because="it holds " + ", ".join(f"`{name}`" for name in data.files),
                                fix=f"--set NAME={path}:{(data.files or ['KEY'])[0]}")  # fmt: skip
            return data[key]
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise LoadError(f"`{path}` is no file of arrays", because=str(error),
                        fix="np.save or np.savez writes one") from None  # fmt: skip


def _bound_sizes(kernel: Kernel, given: dict[str, Any]) -> dict[str, int]:
    """Extents that the shapes of given arrays say, and integers that are given."""
    import numpy as np

    found = {}
    for p in kernel.signature.arguments:
        if p.name not in given:
            continue
        if p.is_array:
            for extent, size in zip(p.shape or (), np.shape(given[p.name]), strict=False):
                if str(extent) in extent.names():
                    found[str(extent)] = size
        elif not p.dtype.is_float:
            found[p.name] = int(given[p.name])
    return found


def known_size(kernel: Kernel, name: str, value: int, known: list[str]) -> None:
    if name not in known:
        said = ", ".join(f"`{row}`" for row in known) or "none: its arguments are floats of known sizes"
        raise SignatureError(f"`--size {name}={value}` names nothing", where=f"`{kernel.signature}`",
                             because=f"extents and integer arguments are {said}",
                             fix=f"--size {known[0]}={value}" if known else "leave it out")
