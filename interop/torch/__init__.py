"""The PyTorch bridge: a Kernel called with tensors is a function of torch (see `call`).

This module is imported when the first tensor meets a Kernel, or when it is asked for; it imports torch.
"""

from __future__ import annotations

from irgrad.interop.torch.call import call, owns
from irgrad.interop.torch.foreign import foreign

__all__ = ["call", "foreign", "owns"]
