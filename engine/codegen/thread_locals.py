"""Thread-local variables of kernels: one for the process.

What gives each thread its copy of such a variable is the system's loader, which only takes files. Calls of a kernel
that keeps data in variables run one at a time, so that its workspaces are as good in variables that all threads share;
what one thread leaves in them, the next one finds. Programs and libraries that are written to files are left alone.
"""

from __future__ import annotations

import re

__all__ = ["as_shared"]

_NAME = r"@(?:\"[^\"]+\"|[\w.$-]+)"
_DEFINED = re.compile(
    rf"^({_NAME}) = (?!external |extern_weak |available_externally )([^\n\"]*?)\bthread_local(?:\(\w+\))? ", re.M
)
_ADDRESS = re.compile(rf"(?:tail |notail )?call [^@\n]*@llvm\.threadlocal\.address\.p0\(ptr [^@\n]*?({_NAME})\)")
_AT_EXIT = re.compile(r"@__cxa_thread_atexit\(")


def as_shared(text: str) -> str:
    """The IR of a module in which the thread-local variables that it defines are ordinary ones; what is to be destroyed
    at the end of a thread is destroyed at the end of the process."""
    if "thread_local" not in text:
        return text
    names = {found[1] for found in _DEFINED.finditer(text)}
    text = _DEFINED.sub(r"\1 = \2", text)
    text = _ADDRESS.sub(
        lambda found: f"getelementptr i8, ptr {found[1]}, i64 0" if found[1] in names else found[0], text
    )
    if re.search(r"^declare [^\n]*@__cxa_atexit\(", text, re.M):
        text = re.sub(r"^declare [^\n]*@__cxa_thread_atexit\([^\n]*\n", "", text, flags=re.M)
    return _AT_EXIT.sub("@__cxa_atexit(", text)
