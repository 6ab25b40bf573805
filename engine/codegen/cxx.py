"""Units that need the C++ runtime library: linked with the bundled libc++ into a shared library of their own.

Code compiled by the wheel's clang uses libc++, which no shared library of the system provides; what of it is not
inlined (streams, locales, threads) is taken from the wheel's static libc++; what kernels commonly need of it the loader
has linked in as IR already (`interop/loaders/libcxx.py`). The first such link on a machine builds that library (46 s on
two cores, kept in zig's own cache); later ones take 0.2 s, and their result is in the disk cache. Units with
constructors, or with static variables that have destructors, become shared libraries as well, without libc++.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.engine.support.progress import Progress
from irgrad.engine.support.scratch import scratch_folder
from irgrad.rules.errors import LoadError

__all__ = [
    "CONSTRUCTORS", "HANDLE", "SharedUnit", "constructors", "is_cxx_symbol", "link_with_libcxx", "run_at_start",
]  # fmt: skip

_PREFIXES = ("_ZNSt", "_ZNKSt", "_ZSt", "_ZTISt", "_ZTVSt", "_ZTSSt", "_ZTINSt", "_ZTVNSt", "_ZTSNSt",
             "_ZTVN10__cxxabiv1", "__cxa_", "__gxx_", "_Zn", "_Zd", "_Unwind_")
_TABLES = re.compile(r"_Z(?:T[TCVIS]|T[hv]n?\d+_(?:n?\d+_)?|GV)(?:NK?)?St")  # construction tables, thunks, guards
HANDLE = "__dso_handle"  # of a shared library, which the destructors of its variables are registered with
CONSTRUCTORS = re.compile(r"^@llvm\.global_ctors = appending global \[\d+ x [^]]*\] \[(.*)\]$", re.M)
_ENTRY = re.compile(r'\{ i32 (\d+), ptr (@(?:"[^"]*"|[-\w$.]+)), ptr [^}]*\}')
_USED = re.compile(r"^@llvm\.used = appending global \[(\d+) x ptr\] \[", re.M)
_ARRAY = "@irgrad.init_array"
_TIMEOUT = 900.0


def is_cxx_symbol(name: str) -> bool:
    """Whether the C++ runtime library would define the symbol."""
    return name.startswith(_PREFIXES) or bool(_TABLES.match(name)) or name == HANDLE


def constructors(text: str) -> list[str]:
    """The functions of a module that run when it is loaded, in their order."""
    found = CONSTRUCTORS.search(text)
    entries = _ENTRY.findall(found[1]) if found is not None else []
    return [name for _, name in sorted(entries, key=lambda entry: int(entry[0]))]


def run_at_start(text: str) -> str:
    """The module with its constructors where a shared library looks for them.

    LLVM puts them into `.ctors` here, which nothing runs, and its linker in memory runs none at all.
    """
    found = CONSTRUCTORS.search(text)
    if found is None:
        return text
    functions = constructors(text)
    listed = ", ".join(f"ptr {name}" for name in functions)
    array = f'{_ARRAY} = internal global [{len(functions)} x ptr] [{listed}], section ".init_array", align 8'
    text = text.replace(found[0], array, 1)
    used = _USED.search(text)
    if used is None:
        return f'{text}\n@llvm.used = appending global [1 x ptr] [ptr {_ARRAY}], section "llvm.metadata"\n'
    more = f"@llvm.used = appending global [{int(used[1]) + 1} x ptr] [ptr {_ARRAY}, "
    return text.replace(used[0], more, 1)


class SharedUnit:
    """An opened shared library with the interface of a JIT's resource tracker: `unit[name]` is an address."""

    __slots__ = ("_library",)

    def __init__(self, path: Path) -> None:
        self._library: Any = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)

    def __getitem__(self, name: str) -> int:
        return int(ctypes.cast(self._library[name], ctypes.c_void_p).value or 0)

    def close(self) -> None:
        """Nothing: C++ libraries register destructors that run at exit, so they stay mapped."""


def link_with_libcxx(images: Sequence[bytes], missing: Sequence[str]) -> SharedUnit:
    """Link objects with libc++ and open them. Raises LoadError, naming `missing`, when that is not possible."""
    store, key = default_cache(), fingerprint("libcxx-1", *images)
    data = store.get("shared", key)
    with scratch_folder("cxx") as scratch:
        output = Path(scratch, "unit.so")
        if data is None:
            _link(images, output, missing)
            store.put("shared", key, output.read_bytes())
        else:
            output.write_bytes(data)
        try:
            return SharedUnit(output)
        except OSError as error:
            raise _failed(missing, str(error)) from None


def _link(images: Sequence[bytes], output: Path, missing: Sequence[str]) -> None:
    sources = [output.with_suffix(f".{number}.o") for number in range(len(images))]
    for source, image in zip(sources, images, strict=True):
        source.write_bytes(image)
    spec = util.find_spec("ziglang")
    folders = (spec.submodule_search_locations or ()) if spec else ()
    zig = next((Path(folder, "zig") for folder in folders if os.access(Path(folder, "zig"), os.X_OK)), None)
    if zig is None:
        raise _failed(missing, "the `ziglang` wheel, which brings libc++, is not installed")
    driver = "c++" if set(missing) - {HANDLE} else "cc"  # its C++ library, if any, is that of this process
    command = [str(zig), driver, "-shared", "-O2", "-o", str(output), *map(str, sources), "-lm"]
    try:
        with Progress("building the C++ library (once on this machine, about a minute)"):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                  errors="replace", timeout=_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(missing, str(error)) from None
    if done.returncode != 0 or not output.exists():
        raise _failed(missing, done.stderr.strip())


def _failed(missing: Sequence[str], because: str) -> LoadError:
    shown = ", ".join(f"`{name}`" for name in missing[:3])
    return LoadError(f"C++ runtime symbols such as {shown} are not resolved",
                     because=f"linking with the bundled libc++ failed: {because}",
                     fix="IRGRAD_CC=clang++ (with the system's C++ library)   or   avoid the C++ library in the kernel")
