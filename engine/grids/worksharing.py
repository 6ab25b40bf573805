"""Worksharing loops of OpenMP (`#pragma omp for`), marked in the IR that clang writes: iterations are independent.

Such a loop follows a call of `__kmpc_for_static_init_*` or of `__kmpc_dispatch_next_*`, which set its bounds, and is
the one whose condition reads the upper bound. The mark is a node of the loop's metadata, which LLVM keeps: once the
calls are gone, nothing else tells such a loop from another one. It says less than `llvm.loop.parallel_accesses`, since
variables of a thread go from one of its iterations to the next.

Memory that a thread has for itself may go from one of its iterations to the next. There is none where the function of
the region reserves no memory before the loop but scalars that are no arguments of calls: what is read and written there
was reserved outside of the region, for all threads, or in the iteration. The mark of such a loop says that as well.
What functions reserve that run outside of all regions is memory of all threads, and marked too (`!irgrad.shared`).

A loop in which threads wait for each other, in it or in what it calls, is not marked: one thread runs it. One with
critical sections is marked where these are pairs of fences (`parallel/sections.py`), and the mark says so. Atomic
updates change nothing for the rest of a loop: it is marked, and who shares it sees to them. A loop in a region that
asks which thread it is is not marked: it may have memory for each thread. Nor is one in a function that is called
outside of regions as well: the memory that it is given may be that of a thread. One thread runs iterations in order:
none is marked in a region with `num_threads(1)`. The call that sets its bounds has the reason as metadata
(`!irgrad.one_thread`), as has that of a loop with atomic updates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from irgrad.engine.analyses.control.promises import OF_ALL, OF_ALL_CALL, SECTIONS, SHARED_MEMORY, WORKSHARING
from irgrad.engine.ir.text.outline import calls_of, function_bodies
from irgrad.engine.parallel.one_thread import ALONE as _ALONE
from irgrad.engine.parallel.one_thread import ATOMIC, CRITICAL, PLACE, UPDATES
from irgrad.engine.parallel.regions import counts_regions, forks
from irgrad.rules.effects import facts

__all__ = ["mark_worksharing"]

_WHY = (
    ("critical", CRITICAL), ("ordered|doacross", "it has an ordered part"), ("atomic|cmpxchg|fence", ATOMIC),
    ("omp_task|taskloop", "it has tasks"),
    ("@omp_", "it calls functions of omp.h"),
)  # fmt: skip
_ASKED = "threads of its region run one after the other: it depends on their number"
_OUTSIDE = "its function is called outside of parallel regions as well, with what may be memory of one thread"

_ONE = "its region has one thread (`num_threads(1)`)"
_OF_ONE = re.compile(r"@__kmpc_push_num_threads\w*\([^\n]*, i32 1\)[^\n]*\n(?:(?![^\n]*@)[^\n]*\n)*"
                     r"[^\n]*@__kmpc_fork_call(?:_if)?"
                     r"\([^\n,]*, i32 \d+, ptr @(?:\"([^\"\n]*)\"|([-\w$.]+))[,)]")  # fmt: skip

_BLOCK = re.compile(r'^(?:"([^"\n]+)"|([-\w$.]+)):', re.M)
_INIT = re.compile(r"@__kmpc_(?:for_static_init|dispatch_next)_\w+\(([^\n]*)\)")
_BACK = re.compile(r'^  br label %(?:"([^"\n]+)"|([-\w$.]+))([^\n]*)$', re.M)
_TOGETHER = re.compile(r"\bcmpxchg\b|\bfence (?!syncscope\(.singlethread)|= load atomic |^ +store atomic |"
                       r"@__kmpc_(?:critical|ordered|single|master|masked|barrier|cancel|omp_task|taskloop|doacross|"
                       r"reduce|atomic)\w*\(|@omp_\w+\(", re.M)  # fmt: skip
_UPDATE, _SECTION = re.compile(r" atomicrmw |^ +fence syncscope", re.M), re.compile("^ +fence syncscope", re.M)
_ASKS = re.compile(r"@omp_get_(?:thread_num|num_threads|ancestor_thread_num)\(")
_REFERENCE = re.compile(r'@(?:"([^"\n]*)"|([-\w$.]+))')
_LOOP = re.compile(r"!llvm\.loop (!\d+)")
_OF_THREADS = re.compile(r"\bthread_local\b|@__kmpc_threadprivate|@llvm\.threadlocal\.")
_VARIABLE = re.compile(r"^ +(%[-\w$.]+|%\"[^\"\n]+\") = alloca ([^\n,]+)(, i\d+ %)?", re.M)
_GIVES_ADDRESS = re.compile(r"^ +%[^\n]*(?:call|invoke) (?:\w+ )*?ptr (?:\([^\n]*?\) )?[@%]", re.M)
_PLAIN_CALL = re.compile(r" = (?:\w+ )*call (?=(?:noalias |noundef |nonnull |align \d+ )*ptr @)")
_RESERVES = re.compile(r"^ +%[^\n]*(?: = alloca | = (?:\w+ )*call [^\n@]*@([-\w$.]+)\()[^\n]*$", re.M)
_SCALAR = re.compile(r"(?:i\d+|ptr|double|float|half|bfloat)$")
_SUMS = "%.omp.reduction.red_list"
_OF_COMPILER = re.compile(r"%\"?(?:agg\.tmp|ref\.tmp|byval-temp|coerce)")


def mark_worksharing(text: str) -> str:
    """The module's text with a mark at each worksharing loop."""
    if "@__kmpc_" not in text:
        return text
    text = _without_false_promises(text)
    bodies = function_bodies(text)
    together = _together(bodies, counted=counts_regions(text))
    updating = _reaching(bodies, {name for name, body in bodies.items() if _UPDATE.search(body)})
    held_in = _reaching(bodies, {name for name, body in bodies.items() if _SECTION.search(body)})
    made = _Nodes(text)

    forked = {fork.region[1:].strip('"') for fork in forks(text)}
    asking = _asking(bodies, forked)
    inside = forked | _inside(bodies, forked)
    regions = forked if not _OF_THREADS.search(text) else set[str]()
    reached = _users_of(bodies, forked)
    single = _users_of(bodies, {a or b for a, b in _OF_ONE.findall(text)})
    for name, body in bodies.items():
        if not _INIT.search(body):
            continue
        if name in inside and name not in asking | single:
            new = _marked(body, bodies, (together, updating, held_in), made, region=name in regions)
            text = text.replace(body, new, 1)
        elif name in reached:
            why = _ASKED if name in asking else _ONE if name in single else _OUTSIDE
            text = text.replace(body, made.alone(body, _INIT.finditer(body), why), 1)
    if made.marked or made.words:
        for body in _outside(text, reached):
            text = text.replace(body, _RESERVES.sub(made.shared, body), 1)
    return made.written(text)


def _outside(text: str, reached: set[str]) -> list[str]:
    """The bodies of functions that run outside of regions only: neither regions nor what they use, and nobody has their
    address."""
    bodies = function_bodies(text)
    rest = text
    for body in bodies.values():
        rest = rest.replace(body, "", 1)
    known = _references("\n".join(row for row in rest.splitlines() if not row.startswith(("define ", "declare "))))
    for body in bodies.values():
        known |= _references(body) - calls_of(body)
    return [body for name, body in bodies.items() if name not in reached and name not in known]


def _without_false_promises(text: str) -> str:
    """The module's text without clang's word that accesses of loops with schedules like `dynamic` are independent: it
    does not hold of what a thread has for itself, since one array serves all its iterations. Loops that the source
    wants to be vectorised (`simd`) keep theirs, unless they are in a function with such a loop and with arrays."""
    accesses = set(re.findall(r'^(!\d+) = !\{!"llvm\.loop\.parallel_accesses"', text, re.M))
    wished = set(re.findall(r'^(!\d+) = !\{!"llvm\.loop\.vectorize\.enable", i1 true', text, re.M))
    if not accesses:
        return text

    arrays = {loop for body in function_bodies(text).values() if _INIT.search(body) and any(
              sized or not _SCALAR.match(kind.strip()) for _, kind, sized in _VARIABLE.findall(body))
              for loop in _LOOP.findall(body)}  # fmt: skip

    def row(found: re.Match[str]) -> str:
        nodes = found[2].split(", ")
        if not wished & set(nodes) or nodes[0] in arrays:
            nodes = [node for node in nodes if node not in accesses | wished]
        return f"{found[1]}{{{', '.join(nodes)}}}"

    return re.sub(r"^(!\d+ = distinct !)\{(!\d+(?:, !\d+)+)\}", row, text, flags=re.M)


def _together(bodies: dict[str, str], *, counted: bool) -> set[str]:
    """Functions in which threads wait for each other, or change memory together; and those that call them, or have
    regions that are such functions. counted: how many regions are around is state of the program."""
    words = re.compile(f"{_TOGETHER.pattern}|@__kmpc_(?:fork|serialized)_", re.M) if counted else _TOGETHER
    found = {name for name, body in bodies.items() if words.search(body)}
    return _reaching(bodies, found | ({"__kmpc_fork_call", "__kmpc_serialized_parallel"} if counted else set()))


def _reaching(bodies: dict[str, str], found: set[str]) -> set[str]:
    """Some functions and those that use them, directly or through others."""
    uses = {name: _references(body) for name, body in bodies.items()} if found else {}
    while more := {name for name, used in uses.items() if used & found} - found:
        found |= more
    return found


def _asking(bodies: dict[str, str], regions: set[str]) -> set[str]:
    """Functions that may know which thread they are: they ask, are told by who asks, or by what they use. Regions tell
    those who have them run nothing."""
    uses = {name: _references(body) for name, body in bodies.items()}
    found = {name for name, body in bodies.items() if _ASKS.search(body)}
    while more := {name for name, used in uses.items() if (used - regions) & found} - found:
        found |= more
    while more := {name for used in map(uses.get, found) for name in used or () if name in bodies} - found:
        found |= more
    return found


def _inside(bodies: dict[str, str], regions: set[str]) -> set[str]:
    """Functions that nobody but regions uses, and others of these: memory that they are given and that a thread has for
    itself is seen when they are inlined. That of others may be such memory of a caller."""
    users: dict[str, set[str]] = {name: set() for name in bodies}
    for name, body in bodies.items():
        for used in _references(body) & bodies.keys() - {name}:
            users[used].add(name)
    found = {name for name in bodies if users[name]} - regions
    while out := {name for name in found if not users[name] <= found | regions}:
        found -= out
    return found


def _users_of(bodies: dict[str, str], regions: set[str]) -> set[str]:
    """Regions and what they use."""
    found, work = regions & bodies.keys(), [*regions]
    while work:
        more = (_references(bodies.get(work.pop(), "")) & bodies.keys()) - found
        found |= more
        work += more
    return found


def _references(text: str) -> set[str]:
    """The functions and variables that some lines name: also regions, which are handed to the runtime."""
    return {a or b for a, b in _REFERENCE.findall(text)}


class _Nodes:
    """The loops' metadata, as it is added to."""

    def __init__(self, text: str) -> None:
        self.free = 1 + max(map(int, re.findall(r"^!(\d+) =", text, re.M)), default=-1)
        self.rows: list[str] = []
        self.marked: dict[str, str] = {}
        self.words: dict[str, str] = {}

    def _next(self, row: str) -> str:
        name = f"!{self.free}"
        self.free += 1
        self.rows.append(f"{name} = {row.replace('SELF', name)}")
        return name

    def of(self, rest: str, *, shared: bool, sections: bool) -> str:
        """What follows the jump back of a loop that is marked, in place of what did. shared: threads have no memory of
        their own in it; sections: they may wait for each other in it."""
        words = [self._word(WORKSHARING), *([self._word(SHARED_MEMORY)] if shared else []),
                 *([self._word(SECTIONS)] if sections else [])]  # fmt: skip
        found = _LOOP.search(rest)
        if found is None:
            node = self._next(f"distinct !{{SELF, {', '.join(words)}}}")
            return f"{rest}, !llvm.loop {node}"
        self.marked[found[1]] = ", ".join(words)
        return rest

    def _word(self, name: str) -> str:
        if name not in self.words:
            self.words[name] = self._next(f'!{{!"{name}"}}')
        return self.words[name]

    def shared(self, row: re.Match[str]) -> str:
        """A row that reserves memory of all threads, which says so."""
        known = facts(row[1]) if row[1] else None
        if row[1] and not (known is not None and known.allocates):
            return row[0]
        if OF_ALL not in self.words:
            self.words[OF_ALL] = self._next("!{}")
        said = _PLAIN_CALL.sub(lambda call: f"{call[0]}{OF_ALL_CALL} ", row[0], count=1)
        return f"{said}, !{OF_ALL} {self.words[OF_ALL]}"

    def alone(self, body: str, inits: Iterable[re.Match[str]], why: str, place: str = "") -> str:
        """A function's body in which calls that set the bounds of loops say why one thread runs these; place: the node
        of the loop's place."""
        if why not in self.words:
            self.words[why] = self._next(f'!{{!"{why}"}}')
        for init in inits:
            end = body.index("\n", body.index(init[0]))
            row = body[body.rindex("\n", 0, end) + 1 : end]
            if f"!{_ALONE}" not in row:
                said = f"{row}, !{_ALONE} {self.words[why]}"
                body = body.replace(row, f"{said}, !{PLACE} {place}" if place else said)
        return body

    def written(self, text: str) -> str:
        """The text with all nodes."""
        for name, words in self.marked.items():
            text = re.sub(rf"^({name} = distinct !\{{{name}\b)", rf"\1, {words}", text, flags=re.M)
        return text + "\n".join([*self.rows, ""])


def _marked(
    body: str, bodies: dict[str, str], functions: tuple[set[str], set[str], set[str]], made: _Nodes, *, region: bool
) -> str:
    """A function's body with its worksharing loops marked. functions: in which threads wait for each other, which have
    atomic updates, which have sections; region: it is that of a parallel region."""
    together, updating, held_in = functions
    bounds = {pointer for row in _INIT.findall(body) if (pointer := _upper_bound(row))}
    blocks = _blocks(body)
    names = list(blocks)
    heads = {name: bound for name, block in blocks.items() for bound in bounds
             if any(f"load {kind}, ptr {bound}," in block for kind in ("i32", "i64"))}  # fmt: skip
    latches: dict[str, tuple[bool, bool]] = {}
    marked: set[str] = set()
    updated: set[str] = set()
    alone: dict[str, str] = {}
    places: dict[str, str] = {}
    for number, (name, block) in enumerate(blocks.items()):
        back = _BACK.search(block)
        head = (back[1] or back[2]) if back is not None else ""
        if head in heads and names.index(head) <= number:
            between = names[names.index(head) : number + 1]
            if any(other in latches for other in between):
                continue
            inside = "".join(blocks[other] for other in between)
            places.setdefault(heads[head], "".join(re.findall(r" = icmp [^\n]*!dbg (!\d+)", blocks[head])[:1]))
            if _waits(inside, together):
                alone.setdefault(heads[head], _because(inside, bodies, together))
                continue
            outside = "".join(block for other, block in blocks.items() if other not in between)
            held = _SECTION.search(inside) is not None or not _references(inside).isdisjoint(held_in)
            latches[name] = region and not _has_memory(body, outside, inside), held
            marked.add(heads[head])
            if held:
                alone[heads[head]] = CRITICAL
            if held or _UPDATE.search(inside) or not _references(inside).isdisjoint(updating):
                updated.add(heads[head])
    for name, (shared, held) in latches.items():
        own = blocks[name]
        back = _BACK.search(own)
        assert back is not None
        row = back[0].removesuffix(back[3]) + made.of(back[3], shared=shared, sections=held)
        body = body.replace(own, own.replace(back[0], row))
    for init in _INIT.finditer(body):
        bound = _upper_bound(init[1])
        if bound not in marked:
            body = made.alone(body, [init], alone.get(bound, "its form is not known"), places.get(bound, ""))
        elif bound in updated:
            body = made.alone(body, [init], alone.get(bound, UPDATES), places.get(bound, ""))
    return body


def _because(loop: str, bodies: dict[str, str], together: set[str]) -> str:
    """What in a loop, or in what it calls, one thread has to run."""
    text, seen = loop, set[str]()
    while _TOGETHER.search(text) is None and (more := (_references(text) & together & bodies.keys()) - seen):
        seen |= more
        text = "".join(bodies[name] for name in sorted(more))
    found = _TOGETHER.search(text)
    said = (why for words, why in _WHY if found and re.search(words, found[0]))
    return next(said, "its threads may wait for each other")


def _has_memory(body: str, outside: str, inside: str) -> bool:
    """Whether a region has memory besides that of the iterations of a loop."""
    if _GIVES_ADDRESS.search(outside):
        return True
    for name, kind, sized in _VARIABLE.findall(body):
        word = re.compile(rf"{re.escape(name)}(?![-\w$.])")
        begins = re.search(rf"@llvm\.lifetime\.start[^\n(]*\([^\n]*{word.pattern}", inside)
        if begins or (_OF_COMPILER.match(name) and len(word.findall(outside)) == 1):
            continue
        if name == _SUMS:  # the addresses of what is summed up, after the loop
            continue
        rows = [row for row in body.splitlines() if word.search(row)]
        if _SUMS in outside:
            rows = [row for row in rows if row in inside or not re.search(rf"^ +store ptr {word.pattern}", row)]
        if sized or not _SCALAR.match(kind.strip()) or not all(_plain(row, name) for row in rows):
            return True
    return False


def _plain(row: str, name: str) -> bool:
    """Whether a row of a function only reads or writes a variable, or tells OpenMP of it."""
    stored = re.search(rf"store \w+ {re.escape(name)}(?![-\w$.])", row)
    return stored is None and re.search(r"= alloca |= load |^ +store |@llvm\.lifetime\.|@__kmpc_", row) is not None


def _waits(loop: str, together: set[str]) -> bool:
    return _TOGETHER.search(loop) is not None or not _references(loop).isdisjoint(together)


def _upper_bound(arguments: str) -> str:
    """The address at which the runtime has the last iteration: of the addresses of variables that before the step."""
    pointers = re.findall(r"ptr (?:\w+ )*(%[-\w$.\"]+)", arguments)
    return pointers[-2] if len(pointers) >= 4 else ""


def _blocks(body: str) -> dict[str, str]:
    """Blocks by label, each with its label."""
    starts = list(_BLOCK.finditer(body))
    ends = [found.start() for found in starts[1:]] + [len(body)]
    return {found[1] or found[2]: body[found.start() : end] for found, end in zip(starts, ends, strict=True)}
