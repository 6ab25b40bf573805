"""Functions that Numba leaves to its own libraries, linked into a module from `numba_runtime.c` and `numba_linalg.c`;
and calls of functions that stand in the module, which Numba makes through variables (recursion).

`np.linalg` is LAPACK's, which Numba takes from SciPy: so do kernels, by the names of Fortran.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from irgrad.interop.loaders.compiler import Options, compile_source
from irgrad.interop.loaders.library_parts import declared, with_parts

__all__ = ["complete"]

_FOLDER = Path(__file__).parent
_SOURCES = ("numba_runtime.c", "numba_linalg.c")
_FLAGS = ("-std=gnu11", "-w", "-g0", "-O2", "-Xclang", "-disable-llvm-passes", "-ffp-contract=off", "-fno-math-errno")
_DEFINED = re.compile(r"^define [^@\n]*@((?:NRT|numba)_\w+)\(", re.M)
_OPEN = re.compile(r'^(  %[\w.]+ = )load ptr, ptr @"?\.numba\.unresolved\$(_\w+)"?(?:, align \d+)?$', re.M)


def complete(text: str) -> str:
    """The module with the functions of Numba's libraries that it calls, and with its recursive calls as calls by name.

    Raises IRSyntaxError or IRInvalid when LLVM refuses `text`.
    """
    own = set(re.findall(r"^define [^@\n]*@(\w+)\(", text, re.M))
    text = _OPEN.sub(lambda row: f"{row[1]}bitcast ptr @{row[2]} to ptr" if row[2] in own else row[0], text)
    if not re.search(r"^declare [^@\n]*@(?:NRT|numba)_", text, re.M):
        return text
    called, known = set(declared(text)), _known()
    if called.isdisjoint(known):
        return text
    if any(known.get(name) == "numba_linalg.c" for name in called):
        _open_lapack()
    return with_parts(text, known.get, lambda source: _compiled(source, source == "numba_linalg.c" and _long()))


def _compiled(source: str, long: bool = False) -> str:
    flags = ("-DLONG",) if long else ()
    return compile_source(_FOLDER / source, "c", Options(flags=(*_FLAGS, *flags))).text


@cache
def _known() -> dict[str, str]:
    """The functions, and the file that has each."""
    return {name: source for source in _SOURCES for name in _DEFINED.findall(_compiled(source))}


@cache
def _long() -> bool:
    """Whether the LAPACK that Numba calls takes integers of 64 bits."""
    try:
        from numba import _helperlib
    except ImportError:  # a Numba of before the question came up
        return False
    return bool(getattr(_helperlib, "LAPACK_BUILD_ILP64", False))


@cache
def _open_lapack() -> None:
    """Have BLAS and LAPACK as SciPy has them: for the calls, and for those that their derivatives make."""
    import ctypes
    import importlib

    from irgrad.engine.codegen.symbols import define, lookup
    from irgrad.rules.blas.spelling import ROUTINES

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    named = ctypes.pythonapi.PyCapsule_GetName
    named.restype, named.argtypes = ctypes.c_char_p, [ctypes.py_object]
    for module in ("cython_blas", "cython_lapack"):
        functions = importlib.import_module(f"scipy.linalg.{module}").__pyx_capi__
        for name, capsule in functions.items():
            symbol = f"{name}_64_" if _long() else f"{name}_"
            if name[0] in "sd" and name[1:] in ROUTINES and not lookup(symbol):
                define(symbol, pointer(capsule, named(capsule)))
