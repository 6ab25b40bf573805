"""Options of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.rules.errors import IRGradError

if TYPE_CHECKING:
    from irgrad.rules.expressions.costs import Costs

__all__ = ["CPU_CHOICES", "TAPE_CHOICES", "Options", "team_size"]

TAPE_CHOICES = ("auto", "store", "recompute")
"""What `Options.tape` may be."""
CPU_CHOICES = ("native", "baseline")
"""What `Options.cpu` may be."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a kernel.

    strict_fp: derivative code keeps the order of every floating-point operation (slower: adjoint sums do not vectorise)
    layout: what wrappers of the function bring together (structs) or check
    tape: whether the values that a reverse sweep needs are handed from the primal to it as an array, where the two run
    apart ("store"), or the primal runs again ("recompute"); "auto" stores where that takes little memory
    strong_zero: in derivatives zero times infinity is zero in place of NaN: a zero tangent or adjoint times an infinite
    slope (`sqrt` at 0), a zero slope times an infinite tangent or adjoint; at the price of comparisons at each product
    device_tape: bytes for the memory of a sample on a GPU, where no bound of it is known; a launch with too few fails
    preopt: False to differentiate what the compiler wrote as it is, and to optimise only the derivative

    keep_on: "cpu" where calls in programs of a GPU stay on the host, between copies of their arrays

    device_block: threads of a block on a GPU, a multiple of 32 up to 1,024; 0 for what the registers allow
    device: as GPUs have it: the tape is planned with their costs, and loops that the source promises independent call a
    function for each iteration, which a grid of threads can run (see `iterations.py`)

    threads: that share independent loops of one call, which then run in chunks (see `engine/threads`); -1 for as many
    as there are cores, 0 for loops as they are

    cpu: "native" for machine code with all that this machine's CPU can do, "baseline" for what every CPU of its
    architecture can: values are those of a compiler without -m options

    checkpoint: loops whose reverse sweep keeps states and runs iterations again, by their places, and how (see
    `checkpoints.py`)

    members: indices of arrays that are members of structs are bounded by the arrays (see `member_arrays.py`); not said,
    but found to be needed

    bounded: a call whose tape passes half of the free memory keeps states in its place (see `Program.within_limit`),
    and loops of which the tape of an iteration is long are fused (see `pipeline/worth_fusing.py`)

    `str` names those that change the code. Raises IRGradError for a word that `tape` or `cpu` does not know.
    """

    strict_fp: bool = False
    layout: str = ""
    tape: str = "auto"
    preopt: bool = True
    strong_zero: bool = False
    device_tape: int = 0
    device_block: int = 0
    device: bool = False
    threads: int = 0
    cpu: str = "native"
    keep_on: str = ""
    checkpoint: tuple[tuple[str, str], ...] = ()
    bounded: bool = True
    members: bool = False

    def __post_init__(self) -> None:
        if self.tape not in TAPE_CHOICES:
            raise IRGradError(f"tape={self.tape!r} is no choice", because=f"the choices are {', '.join(TAPE_CHOICES)}",
                              fix='lib.kernel("name", signature, tape="store")')

        if self.cpu not in CPU_CHOICES:
            raise IRGradError(f"cpu={self.cpu!r} is no choice", because=f"the choices are {', '.join(CPU_CHOICES)}",
                              fix='load(..., cpu="baseline")')

        if self.device_tape < 0:
            raise IRGradError(f"device_tape={self.device_tape} is no number of bytes", because="it is negative",
                              fix="device_tape=65536")  # fmt: skip

        if self.keep_on not in ("", "cpu"):
            raise IRGradError(f"device={self.keep_on!r} is no choice",
                              because="kernels run where the program of JAX does, or stay on the CPU",
                              fix='lib.kernel("name", signature, device="cpu"), or leave it out')

        if self.device_block % 32 or not 0 <= self.device_block <= 1024:
            raise IRGradError(f"device_block={self.device_block} is no block of threads",
                              because="a block has whole warps of 32, at most 1,024 threads", fix="device_block=128")

    @property
    def costs(self) -> Costs:
        """That of the machine whose code is made (see `Target`)."""
        from irgrad.engine.codegen.machine_costs import host_costs
        from irgrad.rules.expressions.costs import GPU

        return GPU if self.device else host_costs()

    def __str__(self) -> str:
        words = [f"strict_fp={self.strict_fp}", self.layout, "" if self.preopt else "preopt=False",
                 "strong_zero" if self.strong_zero else "", "device" if self.device else "",
                 "threads" if self.threads else "",
                 "" if self.cpu == "native" else f"cpu={self.cpu}",
                 f"checkpoint={self.checkpoint}" if self.checkpoint else "",
                 "" if self.bounded else "whole tapes"]  # fmt: skip
        return " ".join(filter(None, words))


def team_size(threads: object) -> int:
    """`Options.threads` for `threads=`. Raises IRGradError for what is neither a number of threads nor "auto"."""
    if threads is None:
        return 0
    if threads == "auto":
        return -1
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 64:
        raise IRGradError(f"threads={threads!r} is no number of threads of a call",
                          because='wanted 1 to 64, "auto", or None',
                          fix='lib.kernel("name", signature, threads="auto")')  # fmt: skip
    return threads
