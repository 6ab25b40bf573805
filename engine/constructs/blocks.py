"""Folds, scans and histograms in blocks, so that threads can share one call.

    reduce       for each block: p[b] = its fold;    the fold of p
    scan         for each block: y = its scan, p[b] = the last of it;    the scan of p;    y = p[b-1] op y
    histogram    for each block: p[b] = its histogram;    for each bin: the fold of the p[b] that have elements there

How many blocks there are, at most 64, follows from the number of elements alone, so that results have the same bits on
any number of threads. The loops over blocks are promised to be independent, and become chunks as others do
(`engine/threads`), in derivatives too. A scan applies the operator twice to most elements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from irgrad.engine.analyses.control.promises import SHARED_MEMORY, WORKSHARING
from irgrad.engine.constructs.loops import Body, Neutral
from irgrad.engine.signature.prototype import quoted

__all__ = ["histogram_in_blocks", "reduce_in_blocks", "scan_in_blocks"]

_BLOCKS = 64
_LEAST = 1024  # elements of a block


def reduce_in_blocks(
    body: Body, module: str, fold: str, inputs: Sequence[str], results: Sequence[str | None], extent: str
) -> str:  # fmt: skip
    """fold: the function that folds elements to outputs, none to the neutral state. See `loops.reduce_text`."""
    w, operator = body.w, body.operator
    assert operator is not None
    n = body.size(extent)
    promises, nodes = _promises(module, 1)
    length, count = _blocks(body, n)
    parts = _memory(body, str(_BLOCKS))
    with w.loop(count, promises[0]) as number:
        first, size = _bounds(body, n, length, number)
        _call(body, fold, body.elements(inputs, first), size, _in(body, parts, number))
    _call(body, fold, parts, count, body.state)
    _free(body, parts)
    if results[0] is not None:
        body.copy([body.argument(name) for name in results if name is not None], body.state)
        return body.text(module) + nodes
    kind = operator.parts[0].dtype
    return body.text(module, f"{kind.ir} {w.load(kind.ir, body.state[0], align=kind.size)}") + nodes


def scan_in_blocks(
    body: Body, module: str, scan: str, inputs: Sequence[str], results: Sequence[str], extent: str, *, reverse: bool
) -> str:  # fmt: skip
    """scan: the function that scans elements, and has their fold as well. See `loops.scan_text`."""
    w, operator = body.w, body.operator
    assert operator is not None
    n = body.size(extent)
    promises, nodes = _promises(module, 2)
    length, count = _blocks(body, n)
    parts, before = _memory(body, str(_BLOCKS)), _memory(body, str(_BLOCKS))
    with w.loop(count, promises[0]) as number:
        first, size = _bounds(body, n, length, number)
        _call(body, scan, body.elements(inputs, first), size,
              [*body.elements(results, first), *_in(body, parts, number)])  # fmt: skip
    _call(body, scan, parts, count, [*before, *body.state])
    with w.loop(count, promises[1]) as number:
        ahead = w.emit(f"sub i64 {w.add(count, '-1')}, {number}") if reverse else number
        with w.when(w.compare("sgt", ahead, "0")):
            first, size = _bounds(body, n, length, number)
            known = _in(body, before, w.add(number, "1" if reverse else "-1"))
            with w.loop(size) as element:
                place = body.elements(results, w.emit(f"add nuw nsw i64 {first}, {element}"))
                body.apply(known, place)
                body.copy(place, body.next)
    _free(body, [*parts, *before])
    return body.text(module) + nodes


def histogram_in_blocks(
    body: Body, module: str, inside: str, at: str, inputs: Sequence[str], results: Sequence[str], neutral: Neutral,
    extent: str, bins: int,
) -> str:  # fmt: skip
    """inside: the function that makes a histogram, with marks at its bins. See `loops.histogram_text`."""
    w, operator = body.w, body.operator
    assert operator is not None
    n, index = body.size(extent), body.signature.parameters[body.numbers[at]].dtype
    promises, nodes = _promises(module, 2)
    length, count = _blocks(body, n, max(_LEAST, bins))
    parts = _memory(body, w.emit(f"mul i64 {count}, {bins}"))
    marks = w.emit(f"call ptr @calloc(i64 {count}, i64 {max(1, bins)})")
    known = w.alloca("i8")
    with w.loop(count, promises[0]) as number:
        first, size = _bounds(body, n, length, number)
        row = w.emit(f"mul nuw nsw i64 {number}, {bins}")
        arrays = [w.at(body.argument(at), first, index.memory), *body.elements(inputs, first)]
        _call(body, inside, arrays, size, [*_in(body, parts, row), w.at(marks, row)])
    with w.loop(str(bins), promises[1]) as number:
        result = body.elements(results, number)
        body.fill(result, neutral)
        w.do(f"store i8 0, ptr {known}")
        with w.loop(count) as block:
            row = w.emit(f"mul nuw nsw i64 {block}, {bins}")
            place = w.emit(f"add nuw nsw i64 {row}, {number}")
            with w.when(_is_set(body, w.at(marks, place))):
                body.copy(body.next, _in(body, parts, place))
                with w.when(_is_set(body, known)):
                    body.apply(result, _in(body, parts, place))
                w.do(f"store i8 1, ptr {known}")
                body.copy(result, body.next)
    _free(body, [*parts, marks])
    return body.text(module) + nodes


def _is_set(body: Body, mark: str) -> str:
    return body.w.emit(f"icmp ne i8 {body.w.load('i8', mark, align=1)}, 0")


def _blocks(body: Body, n: str, least: int = _LEAST) -> tuple[str, str]:
    """How many elements a block has, and how many blocks there are: none of them is empty."""
    w = body.w
    most = w.add(w.emit(f"udiv i64 {n}, {least}"), "1")
    wanted = w.emit(f"select i1 {w.compare('ult', most, str(_BLOCKS))}, i64 {most}, i64 {_BLOCKS}")
    length = w.emit(f"udiv i64 {w.emit(f'sub i64 {w.add(n, wanted)}, 1')}, {wanted}")
    some = w.emit(f"select i1 {w.compare('sgt', length, '1')}, i64 {length}, i64 1")
    return some, w.emit(f"udiv i64 {w.emit(f'sub i64 {w.add(n, some)}, 1')}, {some}")


def _bounds(body: Body, n: str, length: str, number: str) -> tuple[str, str]:
    """The first element of a block, and how many it has."""
    w = body.w
    first = w.emit(f"mul nuw nsw i64 {number}, {length}")
    rest = w.emit(f"sub nuw nsw i64 {n}, {first}")
    return first, w.emit(f"select i1 {w.compare('ult', rest, length)}, i64 {rest}, i64 {length}")


def _memory(body: Body, count: str) -> list[str]:
    """Memory of some states, a pointer for each part."""
    assert body.operator is not None
    return [body.w.emit(f"call ptr @calloc(i64 {count}, i64 {max(1, part.count * part.dtype.size)})")
            for part in body.operator.parts]  # fmt: skip


def _free(body: Body, memory: Sequence[str]) -> None:
    for pointer in memory:
        body.w.do(f"call void @free(ptr {pointer})")


def _in(body: Body, memory: Sequence[str], index: str) -> list[str]:
    """Addresses of the parts of one state in such memory."""
    assert body.operator is not None
    return [body.element(pointer, part, index) for pointer, part in zip(memory, body.operator.parts, strict=True)]


def _call(body: Body, name: str, arrays: Sequence[str], size: str, results: Sequence[str]) -> None:
    """Call a function of a construct: arrays, what the operator's calls share, how many elements, outputs."""
    assert body.operator is not None
    shared = [body.shared(body.operator.parameters[i]) for i in body.operator.shared]
    args = [*(f"ptr {a}" for a in arrays), *shared, f"i64 {size}", *(f"ptr {r}" for r in results)]
    body.w.do(f"call void @{quoted(name)}({', '.join(args)})")


def _promises(module: str, loops: int) -> tuple[list[str], str]:
    """What goes to the branches of so many loops whose iterations are promised independent, and the nodes for that."""
    first = 1 + max((int(number) for number in re.findall(r"^!(\d+) = ", module, re.M)), default=-1)
    said = [f"!{first + n}" for n in range(2)]
    nodes = [f'{node} = !{{!"{word}"}}' for node, word in zip(said, (WORKSHARING, SHARED_MEMORY), strict=True)]
    own = [f"!{first + 2 + n}" for n in range(loops)]
    nodes += [f"{node} = distinct !{{{node}, {', '.join(said)}}}" for node in own]
    return [f", !llvm.loop {node}" for node in own], "\n".join([*nodes, ""])
