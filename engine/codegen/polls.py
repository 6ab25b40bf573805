"""Loops that can be stopped: optimised code asks a flag of the process at the heads of its long loops.

The flag is nought but for an instant ten times a second (`interrupts.py`), so that a head costs one load and a branch
that is always predicted; it is put in when LLVM has optimised, and hinders no vectorisation. Asked are the loops that
have loops inside, and outermost loops that call something or carry a floating-point number from one iteration to the
next. What is left are loops over memory, which end when the memory does, and jobs of a team of threads, which end when
all of their parts do.

Where the flag is set, a function that the unit was told lets Python's handlers of signals run. If one of them raises,
the tape is given back, control returns to the entry, and the entry returns the record of a failure (`arena.ll`).

A handler of XLA's runs on any thread, so that its guard is found by thread (`interrupts.py`). It returns an error of
XLA's, and the scratch memory of that call is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from irgrad.engine.codegen.symbols import MEET
from irgrad.engine.ir.text.flow import blocks_of, loops_of
from irgrad.engine.ir.text.outline import calls_of, function_bodies

__all__ = ["ASKS", "CANCELLED", "HANDLER", "STATE", "WANTED", "asking_text", "with_polls"]

HANDLER = "handler"
"""Kind of a module whose entry is a handler of XLA's: it takes a call frame and returns null or an error."""
ASKS = "asks"
"""Kind of a module that asks by itself (`asking_text`)."""
WANTED = "irgrad.stop.wanted"
CANCELLED = 1
"""The code of XLA's error for a call that a signal stopped."""

STATE = "irgrad.stop.state"
"""The address of the words that `interrupts.py` describes."""
_HEAD = re.compile(r'\ndefine\b[^\n]*?@(?P<name>"[^"\n]*"|[-\w$.]+)\([^\n]*\{\n')
_CALL = re.compile(r"\b(?:call|invoke)\b[^\n]* (?:@(?!\"?llvm\.)|%)")
_CARRIED = re.compile(r"  \S+ = phi (?:\w+ )*?(?:double|float) ")
_CAME = re.compile(r', %("[^"\n]*"|[-\w$.]+) \]')
_AT = re.compile(r"!dbg !(\d+)")
_SCOPE = re.compile(r"^!(\d+) = (?:distinct )?!DI(?:Location|LexicalBlock(?:File)?|Subprogram|File)\(([^\n]*)\)$", re.M)
_OWN = "irgrad."
_ENTRY = "irgrad.entry."
_TEAM = "irgrad.team."
_WORDS = f"""
@irgrad.stop.alone = internal global [8 x i64] zeroinitializer, align 64
@{STATE} = internal global ptr @irgrad.stop.alone, align 8
@irgrad.stop.tick = internal global ptr null, align 8
@irgrad.stop.record = internal constant [5 x i64] [i64 0, i64 0, i64 -3, i64 0, i64 0]
define void @{MEET}(ptr %state, ptr %tick) {{
  store ptr %state, ptr @{STATE}, align 8
  store ptr %tick, ptr @irgrad.stop.tick, align 8
  ret void
}}
"""
_RUNTIME = f"""{_WORDS}
%DECLARED%
define internal void @irgrad.stop.poll(ptr %place) noinline cold nounwind {{
  %tick = load ptr, ptr @irgrad.stop.tick, align 8
  %guard = call ptr %tick(ptr %place)
  %none = icmp eq ptr %guard, null
  br i1 %none, label %out, label %stop
stop:
  %TAPE%
  call void @longjmp(ptr %guard, i32 1)
  unreachable
out:
  ret void
}}
"""
_RUN = f"""
define ptr @%ENTRY%(ptr %frame) noinline nounwind {{
  %guard = alloca [256 x i8], align 16
  %saved = alloca ptr, align 8
  %me = call i64 @pthread_self()
  %state = load ptr, ptr @{STATE}, align 8
  %mainp = getelementptr i8, ptr %state, i64 8
  %main = load i64, ptr %mainp, align 8
  %waits = icmp eq i64 %me, %main
  br i1 %waits, label %guarded, label %plain
plain:
  %given = call ptr @%INNER%(ptr %frame)
  ret ptr %given
guarded:
  %nowp = getelementptr i8, ptr %state, i64 40
  %before = load ptr, ptr %nowp, align 8
  store ptr %before, ptr %saved, align 8
  %came = call i32 @_setjmp(ptr %guard) returns_twice
  %first = icmp eq i32 %came, 0
  br i1 %first, label %run, label %stopped
run:
  store ptr %guard, ptr %nowp, align 8
  %countp = getelementptr i8, ptr %state, i64 24
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
_RUN_HANDLER = f"""
@irgrad.stop.text = private constant [%LENGTH% x i8] c"%TEXT%\\00"
define ptr @%ENTRY%(ptr %call) noinline nounwind {{
  %guard = alloca [256 x i8], align 16
  %saved = alloca ptr, align 8
  %state = load ptr, ptr @{STATE}, align 8
  %enterp = getelementptr i8, ptr %state, i64 48
  %enter = load ptr, ptr %enterp, align 8
  %none = icmp eq ptr %enter, null
  br i1 %none, label %plain, label %guarded
plain:
  %given = call ptr @%INNER%(ptr %call)
  ret ptr %given
guarded:
  %leavep = getelementptr i8, ptr %state, i64 56
  %leave = load ptr, ptr %leavep, align 8
  store ptr null, ptr %saved, align 8
  %came = call i32 @_setjmp(ptr %guard) returns_twice
  %first = icmp eq i32 %came, 0
  br i1 %first, label %run, label %stopped
run:
  %place = call ptr %enter(ptr %guard)
  store volatile ptr %place, ptr %saved, align 8
  %got = call ptr @%INNER%(ptr %call)
  call void %leave(ptr %place)
  ret ptr %got
stopped:
  %last = load volatile ptr, ptr %saved, align 8
  call void %leave(ptr %last)
  %words = alloca [4 x i64], align 8
  store i64 28, ptr %words
  %w1 = getelementptr i64, ptr %words, i64 1
  store i64 0, ptr %w1
  %w2 = getelementptr i64, ptr %words, i64 2
  store ptr @irgrad.stop.text, ptr %w2
  %w3 = getelementptr i64, ptr %words, i64 3
  store i32 {CANCELLED}, ptr %w3
  %apip = getelementptr i8, ptr %call, i64 16
  %api = load ptr, ptr %apip
  %createp = getelementptr i8, ptr %api, i64 48
  %create = load ptr, ptr %createp
  %error = call ptr %create(ptr %words)
  ret ptr %error
}}
"""
_DECLARED = {
    "pthread_self": "declare i64 @pthread_self()",
    "_setjmp": "declare i32 @_setjmp(ptr) returns_twice",
    "longjmp": "declare void @longjmp(ptr, i32) noreturn",
}


def with_polls(text: str, entries: Sequence[str], kind: str = "") -> str:
    """The optimised text of a program (its entry is the first that is named) with polls in its loops; the same string
    where no loop wants one. kind: `HANDLER`, or nothing for a program that Python calls."""
    entry = entries[0]
    if kind == ASKS:
        return text
    if kind == HANDLER:
        turned = f"{entry}.in_turn"
        entry = turned if f'@"{turned}"(' in text or f"@{turned}(" in text else entry
    elif not entry.startswith(_ENTRY):
        return text
    if "br label" not in text:
        return text
    places, parts = _Places(text), _parts_of_jobs(text)
    pieces, end, number = [], 0, 0
    for found in _HEAD.finditer(text):
        name, start = found["name"].strip('"'), found.end()
        own = name.startswith(_OWN) and not name.startswith(_ENTRY) and name != entry
        if own or name in parts:
            continue
        finish = text.index("\n}", start) + 1
        polled, count = _polled(text[start:finish], number, places)
        if count:
            pieces += [text[end:start], polled]
            end, number = finish, number + count
    if not number:
        return text
    return _guarded("".join([*pieces, text[end:]]), entry, kind) + places.constants()


def asking_text(call: str, name: str) -> str:
    """Functions for a module that can be told of signals as one with polls is: `irgrad.stop.wanted()`, whose result is
    null, or a record where a signal ends the call of this thread; and `name`, which does what the function `call` does
    (it takes and returns pointers, six of them) as a call that is asked for."""
    arguments = ", ".join(f"ptr %a{number}" for number in range(6))
    return f"""{_WORDS}
define internal ptr @{WANTED}() alwaysinline nounwind {{
  %state = load ptr, ptr @{STATE}, align 8
  %flag = load atomic i32, ptr %state monotonic, align 8
  %none = icmp eq i32 %flag, 0
  br i1 %none, label %on, label %ask
ask:
  %tick = load ptr, ptr @irgrad.stop.tick, align 8
  %known = icmp ne ptr %tick, null
  br i1 %known, label %call, label %on
call:
  %guard = call ptr %tick(ptr null)
  %ends = icmp ne ptr %guard, null
  %record = select i1 %ends, ptr @irgrad.stop.record, ptr null
  ret ptr %record
on:
  ret ptr null
}}
define internal ptr @{name}({arguments}) noinline nounwind {{
  %guard = alloca i64, align 8
  %state = load ptr, ptr @{STATE}, align 8
  %enterp = getelementptr i8, ptr %state, i64 48
  %enter = load ptr, ptr %enterp, align 8
  %none = icmp eq ptr %enter, null
  br i1 %none, label %plain, label %known
plain:
  %given = call ptr @{call}({arguments})
  ret ptr %given
known:
  %leavep = getelementptr i8, ptr %state, i64 56
  %leave = load ptr, ptr %leavep, align 8
  %place = call ptr %enter(ptr %guard)
  %got = call ptr @{call}({arguments})
  call void %leave(ptr %place)
  ret ptr %got
}}
"""


def _parts_of_jobs(text: str) -> set[str]:
    """Functions that a team of threads may run: nobody leaves a job before all of its parts have ended."""
    if f"@{_TEAM}" not in text:
        return set()
    calls = {name: calls_of(body) for name, body in function_bodies(text).items()}
    found = {name for name in calls if name.startswith(_TEAM)}
    while more := {called for name in found for called in calls.get(name, ())} & calls.keys() - found:
        found |= more
    return found


def _guarded(text: str, entry: str, kind: str) -> str:
    """The entry under another name, behind one that can be stopped."""
    name, inner = (f'"{word}"' for word in (entry, f"{entry}.polled"))
    head = re.compile(rf'^define (?P<how>[^\n@]*)@"?{re.escape(entry)}"?\(', re.M)
    how = head.search(text)
    text = head.sub(lambda m: f"define internal {m['how'].replace('internal ', '')}@{inner}(", text, count=1)
    declared = [line for name_, line in _DECLARED.items() if f" @{name_}(" not in text]
    tape = "call void @irgrad_tape_stop()" if "@irgrad_tape_stop(" in text else ""
    runtime = _RUNTIME.replace("%DECLARED%", "\n".join(declared)).replace("%TAPE%", tape)
    run = _RUN
    if kind == HANDLER:
        words = entry.split(".")
        said = f"KeyboardInterrupt: a call of `{words[1] if len(words) > 1 else entry}` was stopped by a signal"
        run = _RUN_HANDLER.replace("%LENGTH%", str(len(said.encode()) + 1)).replace("%TEXT%", said)
        if how is not None and "internal " in how["how"]:  # LLVM may have given it and its calls another convention
            fast = "fastcc " if "fastcc " in how["how"] else ""
            run = run.replace("define ptr @%ENTRY%", f"define internal {fast}ptr @%ENTRY%")
            run = run.replace("call ptr @%INNER%", f"call {fast}ptr @%INNER%")
    runtime += run
    return text + runtime.replace("@%ENTRY%", f"@{name}").replace("@%INNER%", f"@{inner}")


def _polled(body: str, number: int, places: _Places) -> tuple[str, int]:
    """The body of a function with its polls, numbered from `number`, and how many they are."""
    blocks = blocks_of(body)
    heads = [head for head in _long_loops(blocks) if not any(" landingpad " in line for line in blocks[head])]
    if not heads:
        return body, 0
    ends = {head: f"irgrad.on.{at}" for at, head in enumerate(heads, number)}

    def renamed(came: re.Match[str]) -> str:  # what came from a head comes from its end
        return f", %{ends.get(came[1], came[1])} ]"

    for lines in blocks.values():
        for at in _phis(lines):
            lines[at] = _CAME.sub(renamed, lines[at])
    for at, head in enumerate(heads, number):
        lines = blocks[head]
        start = _phis(lines).stop
        place = places.name(lines)
        lines[start:start] = (
            f"  %irgrad.flag.{at} = load atomic i32, ptr %irgrad.state monotonic, align 8\n",
            f"  %irgrad.none.{at} = icmp eq i32 %irgrad.flag.{at}, 0\n",
            f"  br i1 %irgrad.none.{at}, label %irgrad.on.{at}, label %irgrad.tick.{at}, !prof !{places.weights}\n",
            f"irgrad.tick.{at}:\n  call void @irgrad.stop.poll(ptr {place})\n",
            f"  br label %irgrad.on.{at}\nirgrad.on.{at}:\n",
        )
    first = next(iter(blocks))
    blocks[first].insert(1 if first else 0, f"  %irgrad.state = load ptr, ptr @{STATE}, align 8\n")
    return "".join("".join(lines) for lines in blocks.values()), len(heads)


def _phis(lines: list[str]) -> range:
    """Where the phis of a block stand: its first lines, behind the label."""
    end = 1
    while end < len(lines) and " = phi " in lines[end]:
        end += 1
    return range(1, end)


def _long_loops(blocks: dict[str, list[str]]) -> list[str]:
    """The heads of loops that are asked."""
    loops = loops_of(blocks)
    nested = {head: loops.keys() & inside - {head} for head, inside in loops.items()}
    within = {head for heads in nested.values() for head in heads}
    return [
        head for head, inside in loops.items()
        if nested[head] or (head not in within and _slow(blocks[head], (blocks[label] for label in inside)))
    ]  # fmt: skip


def _slow(head: list[str], inside: Iterable[list[str]]) -> bool:
    """Whether a loop without loops can take long: it calls something, or waits for the iteration before."""
    return any(map(_CARRIED.match, head)) or any(
        ("call " in line or "invoke " in line) and _CALL.search(line) for lines in inside for line in lines
    )


class _Places:
    """Names of places in the source, as constants of the module."""

    def __init__(self, text: str) -> None:
        metadata = text[text.find("\n!") + 1 :]
        self._rows = dict(_SCOPE.findall(metadata))
        self.weights = 1 + max(map(int, re.findall(r"^!(\d+) = ", metadata, re.M)), default=0)
        self._names: dict[str, str] = {}

    def name(self, block: Iterable[str]) -> str:
        """The constant that tells where a block comes from, `null` where that is not known."""
        at = next((found for line in block if (found := _AT.search(line))), None)
        place = self._place(at[1]) if at else ""
        return self._names.setdefault(place, f"@irgrad.place.{len(self._names)}") if place else "null"

    def _place(self, number: str) -> str:
        row = self._rows.get(number, "")
        line, file = re.search(r"\bline: (\d+)", row), None
        while row and not (file := re.search(r"\bfile: !(\d+)", row)):
            scope = re.search(r"\bscope: !(\d+)", row)
            row = self._rows.get(scope[1], "") if scope else ""
        name = re.search(r'\bfilename: "([^"]*)"', self._rows.get(file[1], "")) if file else None
        return f"{name[1]}:{line[1]}" if name and line else ""

    def constants(self) -> str:
        """Their definitions, and the weights of a branch that is not taken."""
        from irgrad.engine.runtime.ir_writer import constant_text

        texts = [constant_text(name[1:], place) for place, name in self._names.items()]
        return "\n".join([*texts, f'!{self.weights} = !{{!"branch_weights", i32 1048575, i32 1}}', ""])
