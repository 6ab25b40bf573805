"""What operations and the tape cost, in units of one addition: the table by which it is decided what is computed again.

The shipped figures are rounded from measurements in loops over vectors; `irgrad tune` measures those of a machine. Only
proportions matter. Those to the tape are the ones that `irgrad tune` finds (exp 25 to 35, atan2 50, tanh 65, pow 140,
where a number on the tape costs 37 to 43); outside of loops over vectors functions cost more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

__all__ = ["GPU", "LIBRARY_CALL", "OPERATIONS", "SHIPPED", "Costs"]

LIBRARY_CALL = 20
"""Cost of a function of which nothing else is said."""
OPERATIONS: dict[str, int] = {
    **dict.fromkeys("add sub mul neg fabs copysign fma minimum maximum fmin fmax sitofp iadd1 isub1".split(), 1),
    **dict.fromkeys("floor ceil trunc rint ldexp scalbln".split(), 2),
    **dict.fromkeys("div fdiv sqrt".split(), 4),
    **dict.fromkeys("exp exp2 exp10 expm1 log log2 log10 sin cos hypot erf j0 j1 jn y0 y1 yn".split(), LIBRARY_CALL),
    **dict.fromkeys("tan asin acos atan sinh cosh log1p erfc powi".split(), 25),
    **dict.fromkeys("atan2 cbrt".split(), 35),
    "tanh": 40,
    **dict.fromkeys("asinh acosh atanh".split(), 60),
    "pow": 90,
    **dict.fromkeys("fmod frem lgamma".split(), 200),
    "tgamma": 500,
}
"""Operations and functions, with their cost in units of one addition."""


@dataclass(frozen=True)
class Costs:
    """The costs of one machine.

    tape:     what 8 bytes of tape, written and read again, cost
    waits:    whether a chain of operations holds up the sweep; on a GPU other threads run meanwhile
    measured: of operations and functions by their names in `OPERATIONS`, where they differ from the shipped table;
              "call" is a function of the library that has no row
    chunk:    work that is worth a thread of a team, of a loop that threads share
    copied:   work of a chunk that is worth 8 bytes of its copy of an array to which the reverse sweeps of several add
    """

    tape: int = 28
    waits: bool = True
    measured: tuple[tuple[str, int], ...] = ()
    chunk: int = 16_384
    copied: int = 80

    @cached_property
    def _known(self) -> Mapping[str, int]:
        return dict(self.measured)

    def of(self, name: str, shipped: int) -> int:
        """The cost of an operation or function; `shipped`: what it costs in the shipped table."""
        if not self.measured:
            return shipped
        return self._known.get(name, self.call if shipped >= LIBRARY_CALL else shipped)

    def read(self, size: int) -> int:
        """What it costs to read so many bytes that no cache holds any more: of the tape three times as much is moved
        for each number, since to write it fetches its cache line as well."""
        return max(1, self.tape * size // 24)

    @cached_property
    def call(self) -> int:
        """What a function of the library costs of which nothing else is said."""
        return self._known.get("call", LIBRARY_CALL)


SHIPPED = Costs()
GPU = Costs(tape=125, waits=False)
"""Of a GPU: 16 bytes of traffic on a device that moves 4.3 TB and computes 34 T floats a second."""
