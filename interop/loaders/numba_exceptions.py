"""Exceptions in modules of Numba: what they say, and blocks that do nothing but make their text.

A function leaves with an exception by a status other than 0, the address of the exception, which is pickled, in
`%excinfo`. Where the text depends on values, whole functions of strings are compiled to make it; a kernel reports the
constant part, so that these have no part in what is differentiated.
"""

from __future__ import annotations

import itertools
import re

__all__ = ["buffers", "with_constant_texts"]

_BUFFER = re.compile(r"^@(\.const\.picklebuf\.[\w.]+) = [^\n]*?\{ ptr @(\.const\.pickledata\.[\w.]+), i32", re.M)
_FUNCTION = re.compile(r"^define [^\n]*\bi32 @[^\n]*%excinfo\b[^\n]*\{\n(.*?)^\}\n", re.M | re.S)
_LABEL = re.compile(r'^(?:([-\w$.]+)|"([^"\n]*)"):', re.M)
_NEXT = re.compile(r'label %(?:([-\w$.]+)|"([^"\n]*)")')
_NORMAL = re.compile(r"^  ret i32 (?:0|-2|-3)$", re.M)
_MADE = re.compile(r"load \{ ptr, i32, ptr, ptr, i32 \}, ptr @(\.const\.picklebuf\.[\w.]+)")
_RAISED = re.compile(r"store ptr @(\.const\.picklebuf\.[\w.]+), ptr %excinfo\b")


def buffers(text: str) -> list[tuple[str, str]]:
    """The exceptions that the module holds: the name of the variable, and what it says."""
    return [(buffer, _message(text, data)) for buffer, data in _BUFFER.findall(text)]


def _message(text: str, data: str) -> str:
    import pickle

    found = re.search(rf'^@{re.escape(data)} = [^\n]*?\bc"([^\n]*)"', text, re.M)
    raw = re.sub(rb"\\([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), found[1].encode("latin-1")) if found else b""
    try:
        kind, arguments = pickle.loads(raw)[:2]  # written by Numba in this process
    except Exception:  # an exception of a class that cannot be imported again
        return "an exception of the Python function"
    if not isinstance(kind, type):  # a constant that is no exception
        return "an exception of the Python function"
    said = ", ".join(row if isinstance(row, str) else "..." if row is None else str(row) for row in arguments or ())
    return f"{kind.__name__}: {said}".split("\0")[0].strip() if said else kind.__name__


def with_constant_texts(text: str) -> str:
    """The module in which blocks that only lead to an exception raise its constant part at once."""
    return _FUNCTION.sub(lambda row: row[0].replace(row[1], _shortened(row[1])), text)


def _shortened(body: str) -> str:
    blocks = _blocks(body)
    names = list(blocks)
    after = {name: [a or b for a, b in _NEXT.findall(block)] for name, block in blocks.items()}
    before: dict[str, list[str]] = {name: [] for name in names}
    for name, row in after.items():
        for follower in row:
            before[follower].append(name)
    fine = _reached([name for name in names if _NORMAL.search(blocks[name])], before)
    entries = [name for name in names if name not in fine
               and (name == names[0] or any(row in fine for row in before[name]))]  # fmt: skip
    for name in entries:
        region = "".join(blocks[row] for row in names if row in _reached([name], after))
        raised = _MADE.findall(region) or _RAISED.findall(region)
        if not raised or "call " not in region:
            continue
        head = blocks[name].partition("\n")[0] + "\n" if name != names[0] or _LABEL.match(blocks[name]) else ""
        blocks[name] = f"{head}  store ptr @{raised[-1]}, ptr %excinfo, align 8\n  ret i32 1\n\n"
        after[name] = []
    kept = _reached(names[:1], after)
    return "".join(blocks[name] for name in names if name in kept)


def _blocks(body: str) -> dict[str, str]:
    starts = [(row[1] or row[2], row.start()) for row in _LABEL.finditer(body)]
    if not starts or starts[0][1] > 0:
        starts.insert(0, ("", 0))
    ends = [*(start for _, start in starts[1:]), len(body)]
    return {name: body[start:end] for (name, start), end in zip(starts, ends, strict=True)}


def _reached(names: list[str], edges: dict[str, list[str]]) -> set[str]:
    """The blocks that are reached along edges."""
    seen, work = set(names), list(names)
    while work:
        for other in itertools.chain(edges[work.pop()]):
            if other not in seen:
                seen.add(other)
                work.append(other)
    return seen
