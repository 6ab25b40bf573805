"""Exported programs that call kernels: made with `export`, kept as bytes with `serialize`, read by `deserialize`.

`jax.export` refuses custom calls without a guarantee of compatibility, and another process has nothing behind the name
of a kernel's target. Here the names are digests of what they compute, and the bytes carry the IR of every target: the
process that reads them needs irgrad, but neither the kernel's source nor a compiler for it.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.export

from irgrad.interop.jax.handler import TARGETS, register_text
from irgrad.rules.errors import LoadError

__all__ = ["deserialize", "export", "serialize"]

_TARGET = re.compile(r"stablehlo\.custom_call @(irgrad\.[\w.$]+|\"irgrad\.[^\"]+\")")


def export(fun: Any, *, disabled_checks: Sequence[Any] = ()) -> Callable[..., jax.export.Exported]:
    """`jax.export.export` for jitted functions that call kernels.

    fun: what `jax.jit` returned. The result is called with arguments or `jax.ShapeDtypeStruct`s, also with symbolic
    sizes of batch axes, and returns a `jax.export.Exported` for the CPU. Raises what tracing raises.
    """

    def exported(*args: Any, **kwargs: Any) -> jax.export.Exported:
        def attempt() -> jax.export.Exported:
            checks = [*disabled_checks, *_allowed()]
            made = jax.export.export(fun, platforms=["cpu"], disabled_checks=checks)
            return made(*args, **kwargs)

        return _until_known(attempt)

    return exported


def _allowed() -> list[jax.export.DisabledSafetyCheck]:
    return [jax.export.DisabledSafetyCheck.custom_call(name) for name in TARGETS]


def _until_known(attempt: Callable[[], Any]) -> Any:
    """Run `attempt` again while it fails but lowers to kernels that were not registered before."""
    while True:
        before = len(TARGETS)
        try:
            return attempt()
        except ValueError:
            if len(TARGETS) == before:
                raise


def serialize(exported: jax.export.Exported, *, vjp_order: int = 0) -> bytes:
    """Bytes of an exported program with the IR of every kernel that it calls.

    vjp_order: derivatives of the exported program to include, as in `jax.export.Exported.serialize`.
    Raises LoadError for a kernel that this process does not know.
    """

    def attempt() -> bytes:
        checks = tuple(dict.fromkeys([*exported.disabled_safety_checks, *_allowed()]))
        return bytes(replace(exported, disabled_safety_checks=checks).serialize(vjp_order=vjp_order))

    program = _until_known(attempt)
    names = sorted({name.strip('"') for name in _TARGET.findall(exported.mlir_module())})
    if vjp_order:  # its targets are in bytes that cannot be searched: all that are registered go along
        names = sorted(TARGETS)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("program", program)
        for number, name in enumerate(names):
            if name not in TARGETS:
                raise LoadError(f"the kernel behind `{name}` is not in this process",
                                because="its IR is not known here", fix="serialize it where it was exported")
            target = TARGETS[name]
            archive.writestr(f"{number}.json", json.dumps({"name": name, "strict_fp": target.strict_fp}))
            archive.writestr(f"{number}.ll", target.text)
    return packed.getvalue()


def deserialize(data: bytes) -> jax.export.Exported:
    """The exported program in `data`; its kernels are compiled for this CPU. `data` is code: read what you trust only.

    Raises LoadError for bytes that `serialize` did not make.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            program = archive.read("program")
            heads = sorted(name for name in archive.namelist() if name.endswith(".json"))
            rows = [(json.loads(archive.read(name)), archive.read(name[:-4] + "ll").decode()) for name in heads]
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise LoadError("these bytes are no exported program with kernels", because=str(error),
                        fix="pass what irgrad.interop.jax.serialize returned") from None
    for head, text in rows:
        register_text(head["name"], text, head["strict_fp"])
    return jax.export.deserialize(bytearray(program))
