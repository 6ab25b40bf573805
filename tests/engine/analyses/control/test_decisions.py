"""What decides whether an iteration comes to a block, against all walks through random loops."""

from __future__ import annotations

import random

import pytest

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.decisions import decisions
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir.model import Block
from irgrad.engine.ir.text.reader import read

NEST = """define void @f(i1 %a, i1 %b, i1 %c, i1 %d, i1 %end) {
entry:
  br label %head
head:
  br i1 %a, label %then, label %join
then:
  br i1 %b, label %out, label %more
more:
  br label %join
join:
  br i1 %c, label %deep, label %latch
deep:
  br i1 %d, label %out, label %latch
latch:
  br i1 %end, label %out, label %head
out:
  ret void
}
"""


def _blocks() -> tuple[Loops, Loop, dict[str, Block]]:
    fn = read(NEST).functions["f"]
    loops = Loops(Cfg(fn))
    return loops, loops.top[0], {str(block.name): block for block in fn.blocks}


@pytest.mark.parametrize(
    ("block", "wanted"),
    [("head", []), ("then", [("a", True)]), ("more", [("b", False), ("a", True)]), ("join", []),
     ("deep", [("c", True)]), ("latch", [])],
)  # fmt: skip
def test_the_branches(block: str, wanted: list[tuple[str, bool]]) -> None:
    loops, loop, blocks = _blocks()
    found = decisions(loops, loop, blocks[block])
    assert found is not None
    assert [(way.condition.name, way.holds) for way in found] == wanted


def test_a_way_past_the_block_is_no_list() -> None:
    text = NEST.replace("br i1 %b, label %out, label %more", "br i1 %b, label %latch, label %more")
    fn = read(text).functions["f"]
    loops = Loops(Cfg(fn))
    join = next(block for block in fn.blocks if block.name == "join")
    assert decisions(loops, loops.top[0], join) is None


def test_random_loops() -> None:
    """Every iteration whose branches go as listed comes to the block or leaves; all others do not come to it."""
    rng = random.Random(3)
    listed = 0
    for _ in range(150):
        n = rng.randint(3, 8)
        loops = Loops(Cfg(read(_random_text(rng, n)).functions["f"]))
        for loop in loops.all:
            for block in loop.blocks:
                found = decisions(loops, loop, block)
                if found is not None and not loop.children:
                    listed += len(found)
                    _walk(loop, block, {id(way.condition): way.holds for way in found})
    assert listed > 20


def _random_text(rng: random.Random, n: int) -> str:
    """A function of n blocks with random branches, each on an argument of its own."""
    lines = []
    for i in range(n - 1):
        a, b = rng.randrange(1, n), rng.randrange(1, n)
        lines.append(f"b{i}:\n  br i1 %c{i}, label %b{a}, label %b{b}" if a != b else f"b{i}:\n  br label %b{a}")
    arguments = ", ".join(f"i1 %c{i}" for i in range(n))
    return f"define void @f({arguments}) {{\n" + "\n".join(lines) + f"\nb{n - 1}:\n  ret void\n}}\n"


def _walk(loop: Loop, goal: Block, wanted: dict[int, bool]) -> None:
    """No way around the loop that goes where `wanted` says misses the goal, and none that does not comes to it."""
    work: list[tuple[Block, bool]] = [(loop.header, True)]
    seen = set(work)
    while work:
        block, agrees = work.pop()
        if block is goal:
            assert agrees
            continue
        last = block.terminator
        for number, succ in enumerate(last.blocks):
            condition = last.operands[0] if last.opcode == "br" and last.operands else None
            said = wanted.get(id(condition)) if condition is not None and len(set(last.blocks)) > 1 else None
            now = agrees and (said is None or said is (number == 0))
            if succ is loop.header:
                assert not now, "an iteration that goes all the listed ways missed the block"
            elif loop.contains(succ) and (succ, now) not in seen:
                seen.add((succ, now))
                work.append((succ, now))
