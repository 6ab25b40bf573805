"""Blocks and loops of a function's text: what is asked of a module that is not worth reading as a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["blocks_of", "loops_of"]

_LABEL = re.compile(r'("[^"\n]*"|[-\w$.]+):')
_TARGET = re.compile(r'\blabel %("[^"\n]*"|[-\w$.]+)')


def blocks_of(body: str) -> dict[str, list[str]]:
    """The lines of each block by label; those of the first are under "" where it has no label."""
    blocks: dict[str, list[str]] = {"": []}
    lines = blocks[""]
    for line in body.splitlines(keepends=True):
        label = _LABEL.match(line) if line[0] not in " \n" else None
        if label:
            lines = blocks[label[1]] = []
        lines.append(line)
    if not any(map(str.strip, blocks[""])):
        del blocks[""]
    return blocks


def loops_of(blocks: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """The blocks of each loop by its head: the target of an edge that goes back in a walk from the first block.

    blocks: the lines of each block by label, the first block first (`blocks_of`)
    """
    after: dict[str, list[str]] = {}
    for label, lines in blocks.items():
        targets: list[str] = [target for line in lines if "label %" in line for target in _TARGET.findall(line)]
        after[label] = [target for target in dict.fromkeys(targets) if target in blocks]
    before: dict[str, list[str]] = {label: [] for label in after}
    for label, following in after.items():
        for target in following:
            before[target].append(label)
    loops: dict[str, set[str]] = {}
    for tail, head in _back_edges(after):
        inside, work = loops.setdefault(head, {head}), [tail]
        while work:
            label = work.pop()
            if label not in inside:
                inside.add(label)
                work += before[label]
    return loops


def _back_edges(after: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    first = next(iter(after))
    seen, path = {first}, {first}
    work = [(first, iter(after[first]))]
    while work:
        label, rest = work[-1]
        target = next(rest, None)
        if target is None:
            work.pop()
            path.discard(label)
        elif target in path:
            yield label, target
        elif target not in seen:
            seen.add(target)
            path.add(target)
            work.append((target, iter(after[target])))
