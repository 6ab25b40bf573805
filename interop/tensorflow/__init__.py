"""The TensorFlow bridge: a Kernel called with tensors of TensorFlow is a function of it (see `call`).

This module is imported when the first tensor meets a Kernel, or when it is asked for; it imports TensorFlow.
"""

from __future__ import annotations

from irgrad.interop.tensorflow.call import call, owns

__all__ = ["call", "owns"]
