"""Derivatives of BLAS and LAPACK: rules of form (a'), which call the same library again.

They are in force below everything that a user defines, for functions without a body whose symbol is one of BLAS or
LAPACK (`spelling.py`). Rules are made when a program with such a symbol is differentiated.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from irgrad.rules.blas.spelling import Spelling, spelled

if TYPE_CHECKING:
    from irgrad.rules.definitions.definition import Rule

__all__ = ["rules_of", "spelled"]

_FAMILIES = {
    "blas.level1": "scal axpy dot nrm2 asum copy swap rot",
    "blas.level2": "ger syr syr2 gemv symv trmv trsv",
    "blas.level3": "gemm symm syrk syr2k trmm trsm",
    "lapack.cholesky": "potrf potrs",
    "lapack.triangular": "trtrs trtri",
    "lapack.lu": "laswp getrf getrs getri gesv",
    "lapack.qr": "geqrf",
    "lapack.eigen": "syev",
    "lapack.singular": "gesdd",
}
_HOMES = {routine: home for home, routines in _FAMILIES.items() for routine in routines.split()}


@cache
def rules_of(symbol: str) -> tuple[Rule, ...]:
    """The builtin rules of a symbol, one for each mode."""
    spelling = spelled(symbol)
    if spelling is None or spelling.routine not in _HOMES:
        return ()
    return tuple(made for mode in ("forward", "reverse") if (made := _rule(spelling, mode)) is not None)


def _rule(spelling: Spelling, mode: str) -> Rule | None:
    from irgrad.rules.definitions.definition import Key, Rule
    from irgrad.rules.definitions.types import Activity, mode_type

    home = _HOMES[spelling.routine]
    derivation: Callable[[Any], None] = getattr(
        importlib.import_module(f"irgrad.rules.{home}"), f"{spelling.routine}_{mode}"
    )

    def body(ctx: Any, *args: Any) -> None:
        from irgrad.rules.blas.calls import Call

        derivation(Call(ctx, spelling, args))

    types = (mode_type(mode), Activity, *(Activity for _ in spelling.names))
    # irgrad's own sources are part of every key of the disk cache: the name is digest enough
    return Rule(Key("function", spelling.symbol), "calls", types, False, body, spelling.names, False,
                f"irgrad/rules/{home.replace('.', '/')}.py", f"builtin {spelling.symbol} {mode}", "blas")  # fmt: skip
