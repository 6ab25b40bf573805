"""The JAX bridge: a Kernel called with JAX values is a primitive with an FFI handler (see `call`).

This module is imported when the first JAX value meets a Kernel; it imports JAX.
"""

from __future__ import annotations

from irgrad.interop.jax.broadcast import broadcast
from irgrad.interop.jax.call import call, owns
from irgrad.interop.jax.constructs import mapped
from irgrad.interop.jax.custom_jvp import as_custom_jvp
from irgrad.interop.jax.exporting import deserialize, export, serialize
from irgrad.interop.jax.hiprims import hijax

__all__ = ["as_custom_jvp", "broadcast", "call", "deserialize", "export", "hijax", "mapped", "owns", "serialize"]
