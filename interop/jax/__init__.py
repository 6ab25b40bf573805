"""The JAX bridge: a Kernel called with JAX values is a primitive with an FFI handler (see `call`).

This module is imported when the first JAX value meets a Kernel; it imports JAX.
"""

from __future__ import annotations

from irgrad.interop.jax.call import call, owns

__all__ = ["call", "owns"]
