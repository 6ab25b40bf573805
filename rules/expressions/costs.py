"""What operations and the tape cost, in units of one addition: the table by which it is decided what is computed again.

The shipped figures are rounded from measurements in loops over vectors; `irgrad tune` measures those of a machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

__all__ = ["GPU", "LIBRARY_CALL", "OPERATIONS", "SHIPPED", "Costs"]

OPERATIONS: dict[str, int] = {
    **dict.fromkeys("add sub mul neg fabs copysign fma minimum maximum fmin fmax sitofp iadd1 isub1".split(), 1),
    **dict.fromkeys("floor ceil trunc rint ldexp scalbln".split(), 2),
    **dict.fromkeys("div fdiv sqrt".split(), 4),
    **dict.fromkeys(
        "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh "
        "pow powi hypot cbrt erf erfc tgamma lgamma j0 j1 jn y0 y1 yn fmod frem".split(),
        20,
    ),
}
"""Operations and functions, with their cost in units of one addition."""
LIBRARY_CALL = 20
"""Cost of a function of which nothing else is said."""


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

    @cached_property
    def call(self) -> int:
        """What a function of the library costs of which nothing else is said."""
        return self._known.get("call", LIBRARY_CALL)


SHIPPED = Costs()
GPU = Costs(tape=125, waits=False)
"""Of a GPU: 16 bytes of traffic on a device that moves 4.3 TB and computes 34 T floats a second."""
