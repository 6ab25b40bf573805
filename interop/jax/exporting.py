"""Exported programs that call kernels: made with `export`, kept as bytes with `serialize`, read by `deserialize`.

`jax.export` refuses custom calls without a guarantee of compatibility, and another process has nothing behind the name
of a kernel's target. Here the names are digests of what they compute, and the bytes carry the IR of every target: the
process that reads them needs irgrad, but neither the kernel's source nor a compiler for it.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.export

from irgrad.engine.codegen.polls import ASKS, HANDLER, WANTED
from irgrad.interop.jax.device import TARGET as PTX
from irgrad.interop.jax.handler import TARGETS, register_text
from irgrad.interop.jax.host_transfer import ON_DEVICE, register_transfer
from irgrad.rules.errors import LoadError

__all__ = ["deserialize", "export", "serialize"]

_TARGET = re.compile(r"stablehlo\.custom_call @(irgrad\.[\w.$]+|\"irgrad\.[^\"]+\")")


def export(
    fun: Any, *, disabled_checks: Sequence[Any] = (), platforms: Sequence[str] = ("cpu",)
) -> Callable[..., jax.export.Exported]:
    """`jax.export.export` for jitted functions that call kernels.

    fun: what `jax.jit` returned. The result is called with arguments or `jax.ShapeDtypeStruct`s, for the CPU also with
    symbolic sizes of batch axes, and returns a `jax.export.Exported`. Raises what tracing raises.
    platforms: "cpu", "cuda", or both, of which the one is chosen where the program runs
    """

    def exported(*args: Any, **kwargs: Any) -> jax.export.Exported:
        def attempt() -> jax.export.Exported:
            checks = [*disabled_checks, *_allowed()]
            made = jax.export.export(fun, platforms=list(platforms), disabled_checks=checks)
            return made(*args, **kwargs)

        return _until_known(attempt)

    return exported


def _allowed() -> list[jax.export.DisabledSafetyCheck]:
    return [jax.export.DisabledSafetyCheck.custom_call(name) for name in (*TARGETS, PTX)]


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

    vjp_order: derivatives of the exported program to include, as in `jax.export.Exported.serialize`

    Raises LoadError for a kernel that this process does not know.
    """

    def attempt() -> bytes:
        checks = tuple(dict.fromkeys([*exported.disabled_safety_checks, *_allowed()]))
        return bytes(replace(exported, disabled_safety_checks=checks).serialize(vjp_order=vjp_order))

    program = _until_known(attempt)
    names = sorted({name.strip('"') for name in _TARGET.findall(exported.mlir_module())})
    if vjp_order:  # its targets are in bytes that cannot be searched: all that are registered go along
        names = sorted(TARGETS)
    members = {"program": program}
    for number, name in enumerate(names):
        if name not in TARGETS:
            raise LoadError(f"the kernel behind `{name}` is not in this process",
                            because="its IR is not known here", fix="serialize it where it was exported")
        target = TARGETS[name]
        head = {"name": name, "strict_fp": target.strict_fp, "transfer": name in ON_DEVICE, "threads": target.threads}
        members[f"{number}.json"] = json.dumps(head).encode()
        members[f"{number}.ll"] = target.text.encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (*members.items(), ("digest", _digest(members))):
            archive.writestr(name, data)
    return packed.getvalue()


def _digest(members: dict[str, bytes]) -> bytes:
    digest = hashlib.sha256()
    for name, data in sorted(members.items()):
        digest.update(f"{name} {len(data)} ".encode() + data)
    return digest.hexdigest().encode()


def deserialize(data: bytes) -> jax.export.Exported:
    """The exported program in `data`; its kernels are compiled for this CPU. `data` is code: read only what you trust.

    Raises LoadError for bytes that `serialize` did not make.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        whole = members.pop("digest", b"") == _digest(members)
    except Exception as error:  # damaged bytes fail in any of the steps of an archive, each with errors of its own
        raise _unreadable(str(error) or type(error).__name__) from None
    if not whole:
        raise _unreadable("its parts are not those that were written")
    for name in sorted(name for name in members if name.endswith(".json")):
        head = json.loads(members[name])
        text = members[name[:-4] + "ll"].decode()
        kind = ASKS if f"@{WANTED}(" in text else HANDLER
        register_text(head["name"], text, head["strict_fp"], kind, head["threads"])
        if head["transfer"]:
            register_transfer(head["name"])
    try:
        return jax.export.deserialize(bytearray(members["program"]))
    except Exception as error:  # of a version of JAX that writes another format
        raise _unreadable(f"JAX {jax.__version__} says {type(error).__name__}: {error}") from error


def _unreadable(because: str) -> LoadError:
    return LoadError("these bytes are no exported program with kernels", because=because,
                     fix="pass all that irgrad.interop.jax.serialize returned; if that was in another version, export "
                         "again")
