"""Loops that can be stopped: optimised code asks a flag of the process at the heads of its long loops.

The flag is nought but for an instant ten times a second (`interrupts.py`), so that a head costs one load and a branch
that is always predicted; it is put in when LLVM has optimised, and hinders no vectorisation. Asked are the loops that
have loops inside, and outermost loops that call something or carry a floating-point number from one iteration to the
next. What is left are loops over memory, which end when the memory does.

Where the flag is set, `irgrad.stop.tick` lets Python's handlers of signals run. If one of them raises, the tape is
given back, control returns to the entry, and the entry returns the record of a failure (`arena.ll`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["STATE", "TICK", "with_polls"]

STATE, TICK = "irgrad.stop.state", "irgrad.stop.tick"
_FUNCTION = re.compile(r'^define\b[^\n]*?@(?P<name>"[^"\n]*"|[-\w$.]+)\([^\n]*\{\n(?P<body>.*?)^\}', re.M | re.S)
_LABEL = re.compile(r'^("[^"\n]*"|[-\w$.]+):', re.M)
_TARGET = re.compile(r'\blabel %("[^"\n]*"|[-\w$.]+)')
_CALL = re.compile(r"\b(?:call|invoke)\b[^\n]* (?:@(?!\"?llvm\.)|%)")
_CARRIED = re.compile(r"^  \S+ = phi (?:fast |nnan |ninf |nsz |arcp |contract |afn |reassoc )*(?:double|float) ", re.M)
_PHI = re.compile(r"^  \S+ = phi [^\n]*\n", re.M)
_AT = re.compile(r"!dbg !(\d+)")
_SCOPE = re.compile(r"^!(\d+) = (?:distinct )?!DI(?:Location|LexicalBlock|Subprogram|LexicalBlockFile|File)\(([^\n]*)\)$",
                    re.M)  # fmt: skip
_OWN = "irgrad."
_ENTRY = "irgrad.entry."
_RUNTIME = f"""
@{STATE} = external global [8 x i64]
@irgrad.stop.record = internal constant [5 x i64] [i64 0, i64 0, i64 -3, i64 0, i64 0]
declare i32 @{TICK}(ptr)
%DECLARED%
define internal preserve_allcc void @irgrad.stop.poll(ptr %place) noinline cold nounwind {{
  %raised = call i32 @{TICK}(ptr %place)
  %none = icmp eq i32 %raised, 0
  br i1 %none, label %out, label %stop
stop:
  %TAPE%
  %guardp = getelementptr i8, ptr @{STATE}, i64 40
  %guard = load ptr, ptr %guardp, align 8
  call void @longjmp(ptr %guard, i32 1)
  unreachable
out:
  ret void
}}

define ptr @%ENTRY%(ptr %frame) noinline nounwind {{
  %guard = alloca [256 x i8], align 16
  %saved = alloca ptr, align 8
  %me = call ptr @__errno_location()
  %mainp = getelementptr i8, ptr @{STATE}, i64 8
  %main = load ptr, ptr %mainp, align 8
  %waits = icmp eq ptr %me, %main
  br i1 %waits, label %guarded, label %plain
plain:
  %given = call ptr @%INNER%(ptr %frame)
  ret ptr %given
guarded:
  %nowp = getelementptr i8, ptr @{STATE}, i64 40
  %before = load ptr, ptr %nowp, align 8
  store ptr %before, ptr %saved, align 8
  %came = call i32 @_setjmp(ptr %guard) returns_twice
  %first = icmp eq i32 %came, 0
  br i1 %first, label %run, label %stopped
run:
  store ptr %guard, ptr %nowp, align 8
  %countp = getelementptr i8, ptr @{STATE}, i64 24
  %count = load i64, ptr %countp, align 8
  %more = add i64 %count, 1
  store i64 %more, ptr %countp, align 8
  %got = call ptr @%INNER%(ptr %frame)
  %outer = load ptr, ptr %saved, align 8
  store ptr %outer, ptr %nowp, align 8
  ret ptr %got
stopped:
  %last = load volatile ptr, ptr %saved, align 8
  store ptr %last, ptr %nowp, align 8
  ret ptr @irgrad.stop.record
}}
"""
_DECLARED = {
    "__errno_location": "declare ptr @__errno_location()",
    "_setjmp": "declare i32 @_setjmp(ptr) returns_twice",
    "longjmp": "declare void @longjmp(ptr, i32) noreturn",
}


def with_polls(text: str, entries: Sequence[str]) -> str:
    """The optimised text of a program (its entry is the first that is named) with polls in its loops; the same string
    where no loop wants one."""
    entry = entries[0]
    if not entry.startswith(_ENTRY) or "br label" not in text:
        return text
    places = _Places(text)
    pieces, end, number = [], 0, 0
    for found in _FUNCTION.finditer(text):
        name, body = found["name"].strip('"'), found["body"]
        if name.startswith(_OWN) and not name.startswith(_ENTRY):
            continue
        polled, count = _polled(body, number, places)
        if count:
            pieces += [text[end : found.start("body")], polled]
            end, number = found.end("body"), number + count
    if not number:
        return text
    return _guarded("".join([*pieces, text[end:]]), entry) + places.constants()


def _guarded(text: str, entry: str) -> str:
    """The entry under another name, behind one that can be stopped."""
    name, inner = (f'"{word}"' for word in (entry, f"{entry}.polled"))
    head = re.compile(rf'^define (?P<how>[^\n@]*)@"?{re.escape(entry)}"?\(', re.M)
    text = head.sub(lambda m: f"define internal {m['how']}@{inner}(", text, count=1)
    declared = [line for name_, line in _DECLARED.items() if f" @{name_}(" not in text]
    tape = "call void @irgrad_tape_stop()" if "@irgrad_tape_stop(" in text else ""
    runtime = _RUNTIME.replace("%DECLARED%", "\n".join(declared)).replace("%TAPE%", tape)
    return text + runtime.replace("@%ENTRY%", f"@{name}").replace("@%INNER%", f"@{inner}")


def _polled(body: str, number: int, places: _Places) -> tuple[str, int]:
    """The body of a function with its polls, numbered from `number`, and how many they are."""
    blocks = _blocks(body)
    heads = [head for head in _long_loops(blocks) if " landingpad " not in blocks[head]]
    if not heads:
        return body, 0
    for at, head in enumerate(heads, number):
        text = blocks[head]
        start = 0
        for phi in _PHI.finditer(text):
            start = phi.end()
        start = start or text.index("\n") + 1
        place = places.name(text)
        blocks[head] = (
            f"{text[:start]}  %irgrad.flag.{at} = load atomic i32, ptr @{STATE} monotonic, align 8\n"
            f"  %irgrad.none.{at} = icmp eq i32 %irgrad.flag.{at}, 0\n"
            f"  br i1 %irgrad.none.{at}, label %irgrad.on.{at}, label %irgrad.tick.{at}, !prof !{places.weights}\n"
            f"irgrad.tick.{at}:\n  call preserve_allcc void @irgrad.stop.poll(ptr {place})\n"
            f"  br label %irgrad.on.{at}\nirgrad.on.{at}:\n{text[start:]}"
        )
    body = "".join(blocks.values())
    for at, head in enumerate(heads, number):
        body = _renamed(body, head, f"irgrad.on.{at}")
    return body, len(heads)


def _renamed(body: str, old: str, new: str) -> str:
    """The body with the phis that came from a block coming from another."""
    end = f", %{old} ]"
    return _PHI.sub(lambda m: m[0].replace(end, f", %{new} ]"), body) if end in body else body


def _blocks(body: str) -> dict[str, str]:
    """The text of each block by label; that of the first is under "" where it has no label."""
    marks = [(m.start(), m[1]) for m in _LABEL.finditer(body)]
    if not marks or body[: marks[0][0]].strip():
        marks.insert(0, (0, ""))
    ends = [*(start for start, _ in marks[1:]), len(body)]
    return {label: body[start:end] for (start, label), end in zip(marks, ends, strict=True)}


def _long_loops(blocks: dict[str, str]) -> list[str]:
    """The heads of loops that are asked."""
    after = {label: [t for t in dict.fromkeys(_TARGET.findall(text)) if t in blocks] for label, text in blocks.items()}
    loops = _loops(after)
    long = []
    for head, inside in loops.items():
        nested = any(other != head and other in inside for other in loops)
        outermost = not any(other != head and head in loops[other] for other in loops)
        if nested or (outermost and _slow(blocks[head], (blocks[label] for label in inside))):
            long.append(head)
    return long


def _slow(head: str, inside: Iterable[str]) -> bool:
    """Whether a loop without loops can take long: it calls something, or waits for the iteration before."""
    return _CARRIED.search(head) is not None or any(_CALL.search(text) for text in inside)


def _loops(after: dict[str, list[str]]) -> dict[str, set[str]]:
    """The blocks of each loop by its head: the target of an edge that goes back in a walk from the first block."""
    before: dict[str, list[str]] = {label: [] for label in after}
    for label, targets in after.items():
        for target in targets:
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


class _Places:
    """Names of places in the source, as constants of the module."""

    def __init__(self, text: str) -> None:
        self._rows = dict(_SCOPE.findall(text))
        numbers = re.findall(r"^!(\d+) = ", text, re.M)
        self.weights = 1 + max(map(int, numbers), default=0)
        self._names: dict[str, str] = {}

    def name(self, block: str) -> str:
        """The constant that tells where a block comes from, `null` where that is not known."""
        at = _AT.search(block)
        place = self._place(at[1]) if at else ""
        return self._names.setdefault(place, f"@irgrad.place.{len(self._names)}") if place else "null"

    def _place(self, number: str) -> str:
        row = self._rows.get(number, "")
        line = re.search(r"\bline: (\d+)", row)
        while row and not (file := re.search(r"\bfile: !(\d+)", row)):
            scope = re.search(r"\bscope: !(\d+)", row)
            row = self._rows.get(scope[1], "") if scope else ""
        name = re.search(r'\bfilename: "([^"]*)"', self._rows.get(file[1], "")) if row and file else None
        return f"{name[1]}:{line[1]}" if name and line else ""

    def constants(self) -> str:
        """Their definitions, and the weights of a branch that is not taken."""
        from irgrad.engine.runtime.ir_writer import constant_text

        texts = [constant_text(name[1:], place) for place, name in self._names.items()]
        return "\n".join([*texts, f'!{self.weights} = !{{!"branch_weights", i32 1048575, i32 1}}', ""])
