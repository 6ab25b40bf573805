"""Symbols of BLAS and LAPACK functions, and their prototypes: one table for both conventions and both precisions.

    cblas_dgemm(order, 'T' as 112, m by value, ...)       C
    dgemm_("T", &m, ...)                                  Fortran: everything by reference, column-major

Prefixes and suffixes of builds that rename their symbols are understood: `scipy_dgemm_`, `scipy_cblas_dgemm64_`,
`dgemm_64_` (64-bit integers). The tables follow the reference BLAS (netlib.org/blas) and LAPACK 3.12.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irgrad.rules.definitions.prototype import Param, Prototype

__all__ = ["FLAGS", "ROUTINES", "Spelling", "spelled"]

FLAGS = ("order", "trans", "transa", "transb", "uplo", "side", "diag", "jobz", "job")
"""Parameters that are enumerations in C and letters in Fortran."""

# One word per parameter: a flag, an integer, `=alpha` a number, `<x` memory that is read, `>x` written, `!x` both;
# `#` in front: elements are integers. `-> r`: the function returns a number. `order` comes first in C alone.
_BLAS = {
    "scal": "n =alpha !x incx",
    "axpy": "n =alpha <x incx !y incy",
    "dot": "n <x incx <y incy -> r",
    "nrm2": "n <x incx -> r",
    "asum": "n <x incx -> r",
    "copy": "n <x incx !y incy",
    "swap": "n !x incx !y incy",
    "rot": "n !x incx !y incy =c =s",
    "ger": "order m n =alpha <x incx <y incy !a lda",
    "syr": "order uplo n =alpha <x incx !a lda",
    "syr2": "order uplo n =alpha <x incx <y incy !a lda",
    "gemv": "order trans m n =alpha <a lda <x incx =beta !y incy",
    "symv": "order uplo n =alpha <a lda <x incx =beta !y incy",
    "trmv": "order uplo trans diag n <a lda !x incx",
    "trsv": "order uplo trans diag n <a lda !x incx",
    "gemm": "order transa transb m n k =alpha <a lda <b ldb =beta !c ldc",
    "symm": "order side uplo m n =alpha <a lda <b ldb =beta !c ldc",
    "syrk": "order uplo trans n k =alpha <a lda =beta !c ldc",
    "syr2k": "order uplo trans n k =alpha <a lda <b ldb =beta !c ldc",
    "trmm": "order side uplo trans diag m n =alpha <a lda !b ldb",
    "trsm": "order side uplo trans diag m n =alpha <a lda !b ldb",
}
_LAPACK = {
    "potrf": "uplo n !a lda #>info",
    "potrs": "uplo n nrhs <a lda !b ldb #>info",
    "getrf": "m n !a lda #>ipiv #>info",
    "getrs": "trans n nrhs <a lda #<ipiv !b ldb #>info",
    "getri": "n !a lda #<ipiv !work lwork #>info",
    "gesv": "n nrhs !a lda #>ipiv !b ldb #>info",
    "geqrf": "m n !a lda !tau !work lwork #>info",
    "trtrs": "uplo trans diag n nrhs <a lda !b ldb #>info",
    "trtri": "uplo diag n !a lda #>info",
    "syev": "jobz uplo n !a lda !w !work lwork #>info",
    "gesdd": "job m n !a lda !s !u ldu !vt ldvt !work lwork #!iwork #>info",
    "laswp": "n !a lda k1 k2 #<ipiv incx",
}
ROUTINES: dict[str, str] = {**_BLAS, **_LAPACK}
"""Parameters of each routine, by its name without the letter of the precision."""

_NAMES = "|".join(sorted(ROUTINES, key=len, reverse=True))
_SYMBOL = re.compile(
    rf"(?P<prefix>scipy_)?(?P<c>cblas_)?(?P<letter>[sd])(?P<routine>{_NAMES})(?P<suffix>_64_|64_|_64|_|)"
)
_INTENT = {"<": "in", ">": "out", "!": "inout"}


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one build spells one routine. `ints`: "i32" or "i64"."""

    prefix: str
    c: bool
    letter: str
    routine: str
    suffix: str
    ints: str

    @property
    def symbol(self) -> str:
        """The symbol itself."""
        return f"{self.prefix}{'cblas_' if self.c else ''}{self.letter}{self.routine}{self.suffix}"

    @property
    def dtype(self) -> str:
        """The precision."""
        return "f32" if self.letter == "s" else "f64"

    def other(self, routine: str) -> Spelling:
        """Another routine of the same build."""
        return replace(self, routine=routine)

    @property
    def words(self) -> list[str]:
        """The words of the table, as far as they are parameters here."""
        words = ROUTINES[self.routine].partition("->")[0].split()
        return words if self.c else [word for word in words if word != "order"]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(word.lstrip("=<>!#") for word in self.words)

    @property
    def prototype(self) -> Prototype:
        """The prototype."""
        return _prototype(self)


@cache
def _prototype(spelling: Spelling) -> Prototype:
    from irgrad.rules.definitions.prototype import Prototype

    returns = spelling.dtype if "->" in ROUTINES[spelling.routine] else "void"
    return Prototype(returns, tuple(_param(spelling, word) for word in spelling.words))


def _param(spelling: Spelling, word: str) -> Param:
    from irgrad.rules.definitions.prototype import Param

    name = word.lstrip("=<>!#")
    kind = "scalar" if spelling.c else "reference"
    if name in FLAGS:
        return Param(name, "i32" if spelling.c else "i8", kind)
    if word.startswith("="):
        return Param(name, spelling.dtype, kind)
    if word.startswith("#"):
        return Param(name, spelling.ints, "pointer", (), _INTENT[word[1]])
    if word[0] in _INTENT:
        return Param(name, spelling.dtype, "pointer", (), _INTENT[word[0]])
    return Param(name, spelling.ints, kind)


@cache
def spelled(symbol: str) -> Spelling | None:
    """What a symbol means, None when it is no routine of the tables."""
    match = _SYMBOL.fullmatch(symbol)
    if match is None:
        return None
    c, routine, suffix = bool(match["c"]), match["routine"], match["suffix"]
    if c and (routine in _LAPACK or suffix == "_"):
        return None
    if not c and suffix not in ("_", "_64_"):
        return None
    return Spelling(match["prefix"] or "", c, match["letter"], routine, suffix, "i64" if "64" in suffix else "i32")
