"""Object files, assembly, shared libraries and IR of a module, for use without Python."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

from irgrad.engine.codegen.llvm import binding, host_features
from irgrad.engine.codegen.long_functions import shorten_module
from irgrad.engine.codegen.optimise import optimised_module
from irgrad.engine.codegen.target import HOST, check_instructions
from irgrad.engine.support.scratch import scratch_folder
from irgrad.rules.errors import CompileError, LoadError

__all__ = ["FORMATS", "emit", "target_of", "write", "write_whole"]

FORMATS = (".ll", ".bc", ".s", ".o", ".so")
_TARGET = re.compile(r'^attributes #\d+ = \{[^\n]*"target-cpu"="([^"]*)"(?:[^\n]*"target-features"="([^"]*)")?', re.M)


def emit(
    text: str, entries: Sequence[str] | None, form: str, *, cpu: str = "native", features: str = "",
    strict_fp: bool = True, approximate: bool = False,
) -> bytes:  # fmt: skip
    """The module in one of FORMATS, optimised; `entries` are its visible functions (None: those of the text).

    cpu:       "native" (this CPU with all its features), "baseline" (every CPU of this architecture), or LLVM's name
               of a CPU
    features:  what to add to it or to take away, as LLVM writes it ("+avx2,-fma"); names it does not know are ignored
    strict_fp: True by default here: vectorised calls into libmvec would have to be linked by the user
    approximate: calls that may be approximated become such calls all the same

    Raises LoadError for an unknown form or entry, IRSyntaxError or IRInvalid for text that LLVM refuses, and
    CompileError when the linker fails (.so).
    """
    if form not in FORMATS:
        raise LoadError(f"`{form}` cannot be written" if form else "the output has no suffix, which says its form",
                        because=f"the forms are {' '.join(FORMATS)}", fix="choose the output's suffix among them")
    if form == ".so":
        return _shared_library(emit(text, entries, ".o", cpu=cpu, features=features, strict_fp=strict_fp,
                                    approximate=approximate))  # fmt: skip
    from irgrad.engine.codegen.jit import LLVM_LOCK

    with LLVM_LOCK:
        machine = _machine(cpu, features)
        there = f"{host_features() if cpu == 'native' else ''},{features}"
        module = optimised_module(text, entries, machine, strict_fp=strict_fp, approximate=there if approximate else "")
        try:
            if form == ".ll":
                return str(module).encode()
            if form == ".bc":
                return bytes(module.as_bitcode())
            if cpu in ("native", "baseline"):
                check_instructions(module, there)
            module = shorten_module(module)
            if form == ".s":
                return str(machine.emit_assembly(module)).encode()
            return bytes(machine.emit_object(module))
        finally:
            module.close()


def write(path: str | os.PathLike[str], text: str, entries: Sequence[str], *, cpu: str = "native",
          strict_fp: bool = True) -> Path:
    """Write the module to `path` in the form of its suffix; the file appears whole or not at all. See `emit`."""
    return write_whole(path, emit(text, entries, Path(path).suffix, cpu=cpu, strict_fp=strict_fp))


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file that appears whole or not at all, with the rights of a new file (a library's are those of a
    program). Raises LoadError where its folder does not exist."""
    target = Path(path)
    if not target.parent.is_dir():
        raise LoadError(f"`{target}` cannot be written", because=f"the folder `{target.parent}` does not exist",
                        fix=f"mkdir -p {target.parent}")
    try:
        handle, temporary = tempfile.mkstemp(prefix=".irgrad-", dir=target.parent)
    except OSError as error:
        raise LoadError(f"`{target}` cannot be written", because=error.strerror or str(error),
                        fix="name a folder that can be written to") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, (0o777 if target.suffix == ".so" else 0o666) & ~mask)  # noqa: PTH101
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target


def _machine(cpu: str, features: str) -> Any:
    known = {word[1:] for word in host_features().split(",")}
    changes = ",".join(word for word in features.split(",") if word[1:] in known)
    if cpu == "native":
        return HOST.machine(features=changes)
    llvm = binding()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    name = "" if cpu == "baseline" else cpu
    return target.create_target_machine(cpu=name, features=changes, opt=3, reloc="pic", codemodel="small")


def target_of(text: str) -> tuple[str, str]:
    """CPU and features that a compiler wrote on the functions of a module; ("baseline", "") where it did not."""
    found = _TARGET.search(text)
    return (found[1], found[2] or "") if found else ("baseline", "")


def _shared_library(image: bytes) -> bytes:
    """Link an object into a shared library: with the wheel's lld (milliseconds), or with the system's `cc`."""
    with scratch_folder("ld") as scratch:
        source, output = Path(scratch, "unit.o"), Path(scratch, "unit.so")
        source.write_bytes(image)
        command = [*_linker(), "-o", str(output), str(source)]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                  errors="replace", timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError("the linker did not run", because=str(error),
                               fix="write a .o and link it yourself") from None
        if done.returncode != 0 or not output.exists():
            raise CompileError("the shared library does not link", because=done.stderr.strip(),
                               fix="write a .o and link it yourself, with the libraries it needs")
        return output.read_bytes()


def _linker() -> list[str]:
    spec = util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        zig = Path(folder, "zig")
        if os.access(zig, os.X_OK):
            return [str(zig), "ld.lld", "-shared", "--eh-frame-hdr", "--as-needed", *_runtime_libraries()]
    return ["cc", "-shared", "-Wl,--as-needed", "-lm"]


@cache
def _runtime_libraries() -> tuple[str, ...]:
    """Files of the libraries that compiled code may call, where this process has them open or can open them."""
    for name in ("libm.so.6", "libgcc_s.so.1"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(name)
    try:
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    files = {line.split(maxsplit=5)[-1] for line in mapped.splitlines()}
    return tuple(sorted(row for row in files if Path(row).name in ("libm.so.6", "libgcc_s.so.1", "libc.so.6")))
