"""How many threads of a kernel a device holds at once, by the registers of each, and in which blocks they come.

Figures of NVIDIA's multiprocessors from sm_80 on (CUDA's programming guide, "compute capabilities"): 65,536 registers,
given out to warps of 32 threads in eights for each thread, at most 2,048 threads in at most 32 blocks.
"""

from __future__ import annotations

__all__ = ["WARP", "block_of", "resident_threads"]

WARP = 32
_REGISTERS, _THREADS, _BLOCKS = 65536, 2048, 32
_SIZES = (128, 64, 32)


def resident_threads(registers: int) -> int:
    """Threads that a multiprocessor holds at once, in whole warps."""
    each = max(8, -(-registers // 8) * 8) * WARP
    return min(_THREADS, _REGISTERS // each * WARP)


def block_of(registers: int) -> int:
    """Threads of a block, so that blocks fill what the registers allow: the largest size that fills it best."""
    most = resident_threads(registers)
    return max(_SIZES, key=lambda size: (min(most // size, _BLOCKS) * size, size))
