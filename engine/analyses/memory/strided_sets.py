"""Sets of integers of the form  start + sum(stride_k * [0 .. count_k]):  what an index or a byte offset may be.

A term with `count` None has no upper bound; with `below` the set reaches below `start` as well (by multiples of its
strides). The strides are what tells the fields of an array of structs apart once LLVM has turned every getelementptr
into byte arithmetic. Domain: P. Granger's congruences (1989), with the bounded terms kept apart so that an array inside
a struct stays inside it.

A few numbers that lie anyhow (the members of a structure to which one function is applied) are a term that spans them,
with the `members` of it that are meant.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from math import gcd

_MAX_TERMS = 4
_MAX_EXPANSION = 512
_MOST_MEMBERS = 24

Term = tuple[int, int | None]


class Offsets:
    """An immutable set of offsets. Terms are sorted by stride, largest first; strides are positive and differ. members:
    the only ones of a bounded set, as distances from the start; none where it is all of them."""

    __slots__ = ("below", "exact", "members", "start", "stride", "terms")

    def __init__(
        self, start: int, terms: tuple[Term, ...] = (), below: bool = False, members: tuple[int, ...] = ()
    ) -> None:
        self.start = start
        self.terms = terms
        self.below = below
        self.members = members
        self.exact = not terms
        """A single number."""
        self.stride = unbounded(terms) if terms else 0
        """Greatest common divisor of the unbounded strides; 0 when there is none."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Offsets)
            and self.start == other.start
            and self.terms == other.terms
            and self.below == other.below
            and self.members == other.members
        )

    def __hash__(self) -> int:
        return hash((self.start, self.terms, self.below, self.members))

    def __repr__(self) -> str:
        parts = [str(self.start), *(f"{s}*[0..{'' if n is None else n}]" for s, n in self.terms)]
        if self.members:
            return "{" + ", ".join(map(str, self.expand())) + "}"
        return " + ".join(parts) + (" (both ways)" if self.below else "")

    def shift(self, by: int) -> Offsets:
        """The set moved by a constant."""
        return Offsets(self.start + by, self.terms, self.below, self.members) if by else self

    def expand(self) -> tuple[int, ...]:
        """The set modulo `stride`: every start that the bounded terms give, each then repeats with `stride`."""
        start = self.start
        return tuple([start + x for x in self.members or _bounded(self.terms)]) if self.terms else (start,)


def unbounded(terms: tuple[Term, ...]) -> int:
    """Greatest common divisor of the strides without a bound."""
    out = 0
    for stride, count in terms:
        if count is None:
            out = gcd(out, stride)
    return out


@lru_cache(4096)
def _bounded(terms: tuple[Term, ...]) -> tuple[int, ...]:
    """What the bounded terms add to the start, in order."""
    out = {0}
    for stride, count in terms:
        if count is not None:
            out = {x + stride * k for x in out for k in range(count + 1)}
    return tuple(sorted(out))


ZERO = Offsets(0)
TOP = Offsets(0, ((1, None),), True)
NATURAL = Offsets(0, ((1, None),))


def make(start: int, terms: list[Term], below: bool) -> Offsets:
    """Normalise: merge equal strides, drop empty terms, collapse what would be too large to expand."""
    kept, unbounded = _normal(tuple(terms))
    return Offsets(start, kept, below and unbounded)


@lru_cache(1 << 13)
def _normal(terms: tuple[Term, ...]) -> tuple[tuple[Term, ...], bool]:
    """The terms in normal form, and whether there is one without a bound."""
    merged: dict[int, int | None] = {}
    for stride, count in terms:
        if stride == 0 or count == 0:
            continue
        if stride in merged:
            old = merged[stride]
            merged[stride] = None if old is None or count is None else old + count
        else:
            merged[stride] = count
    unbounded = 0
    for stride, count in merged.items():
        if count is None:
            unbounded = gcd(unbounded, stride)
    kept: list[Term] = []
    size = 1
    for stride, count in sorted(merged.items()):
        if count is None or (unbounded and stride % unbounded == 0):
            continue
        if size * (count + 1) > _MAX_EXPANSION or len(kept) >= _MAX_TERMS:
            unbounded = gcd(unbounded, stride)
            continue
        size *= count + 1
        kept.append((stride, count))
    if unbounded:
        kept = [(s, n) for s, n in kept if s % unbounded]
        kept.append((unbounded, None))
    return tuple(sorted(kept, reverse=True, key=lambda t: t[0])), unbounded != 0


def add(a: Offsets, b: Offsets) -> Offsets:
    """All sums."""
    if b.exact and not a.below:
        return a.shift(b.start)
    if a.exact and b.members:
        return b.shift(a.start)
    return make(a.start + b.start, [*a.terms, *b.terms], a.below or b.below)


def scale(a: Offsets, factor: int) -> Offsets:
    """All products with a constant."""
    if factor == 1:
        return a
    if factor == 0:
        return ZERO
    if factor > 0:
        return make(a.start * factor, [(s * factor, n) for s, n in a.terms], a.below)
    start, below = a.start * factor, False
    for stride, count in a.terms:
        if count is None:
            below = True
        else:
            start += factor * stride * count
    return make(start, [(-s * factor, n) for s, n in a.terms], below)


def multiply(a: Offsets, b: Offsets) -> Offsets:
    """All products."""
    if b.exact:
        return scale(a, b.start)
    if a.exact:
        return scale(b, a.start)
    stride = 0
    for s, _ in a.terms:
        stride = gcd(stride, s * b.start)
        for t, _ in b.terms:
            stride = gcd(stride, s * t)
    for t, _ in b.terms:
        stride = gcd(stride, t * a.start)
    signed = a.below or b.below or a.start < 0 or b.start < 0
    return make(a.start * b.start, [(stride or 1, None)], signed)


def multiples(a: Offsets, of: int) -> Offsets | None:
    """The members that a number divides (all of them, where that is not easily said); None where there is none."""
    shared = gcd(of, *(stride for stride, _ in a.terms))
    if a.start % shared:
        return None
    if shared == of or len(a.terms) != 1:
        return a
    ((stride, count),) = a.terms
    step = of // shared
    first = next(k for k in range(step) if not (a.start + k * stride) % of)
    if count is not None and count < first:
        return None
    count = None if count is None else (count - first) // step
    return make(a.start + first * stride, [(stride * step, count)], a.below)


def highest(a: Offsets) -> int | None:
    """The largest member; None when there is none."""
    out = a.start
    for stride, count in a.terms:
        if count is None:
            return None
        out += stride * count
    return out


def contains(a: Offsets, b: Offsets) -> bool:
    """Every member of `b` is certainly one of `a`."""
    if not a.terms:
        return not b.terms and a.start == b.start
    if a.members or b.members:
        return _contains(a, b)
    return _contains_at(a.terms, a.below, b.start - a.start, b.terms, b.below)


@lru_cache(1 << 15)
def _contains_at(terms: tuple[Term, ...], below: bool, at: int, others: tuple[Term, ...], both: bool) -> bool:
    """`contains`, which depends on the distance of the two starts alone: there are far fewer pairs than questions."""
    return _contains(Offsets(0, terms, below), Offsets(at, others, both))


def _contains(a: Offsets, b: Offsets) -> bool:
    if a == b:
        return True
    period = a.stride
    if period == 0:
        return b.stride == 0 and set(b.expand()) <= set(a.expand())
    if b.stride % period or (b.below and not a.below) or (b.start < a.start and not a.below):
        return False
    return {x % period for x in b.expand()} <= {x % period for x in a.expand()} and (
        a.below or not any(n is not None for _, n in a.terms) or b.start >= a.expand()[-1] or _same_bounded(a, b)
    )


def contains_moved(a: Offsets, b: Offsets, lowest: int, limit: int) -> bool:
    """Whether `a` contains `b` moved by some distance in [lowest, limit)."""
    if len(a.terms) != 1 or a.terms[0][1] is not None or len(b.terms) > 1 or any(n is not None for _, n in b.terms):
        return any(contains(a, b.shift(at)) for at in range(lowest, limit))
    period = a.terms[0][0]
    if b.terms and (b.terms[0][0] % period or (b.below and not a.below)):
        return False
    last = limit - 1 - (limit - 1 + b.start - a.start) % period  # the furthest move to one of the places of `a`
    return last >= lowest and (a.below or b.start + last >= a.start)


def _same_bounded(a: Offsets, b: Offsets) -> bool:
    """Both have the same bounded part, at starts that the period of `a` joins."""
    bounded = [t for t in a.terms if t[1] is not None]
    return bounded == [t for t in b.terms if t[1] is not None] and (b.start - a.start) % a.stride == 0


def join(a: Offsets, b: Offsets, widen: bool = False, *, apart: bool = False) -> Offsets:
    """A set that holds both; with `widen` one without bounds, so that repeated joins come to rest. apart: a few numbers
    that lie anyhow are told apart."""
    if contains(a, b):
        return a
    grows = not b.stride or (b.start < a.start and not b.below)
    if contains(b, a) and not (widen and grows):
        return b
    stride = abs(a.start - b.start)
    for s, _ in (*a.terms, *b.terms):
        stride = gcd(stride, s)
    top_a, top_b = highest(a), highest(b)
    if top_a is not None and top_b is not None and not widen:
        low = min(a.start, b.start)
        if apart and (few := _few(a, b, stride)) is not None:
            return few
        if a.terms and a.terms == b.terms:  # the same, elsewhere: the elements of an array, of structs in an array
            both = make(low, [*a.terms, (abs(a.start - b.start), 1)], False)
            if highest(both) is not None:
                return both
        return make(low, [(stride, (max(top_a, top_b) - low) // stride)], False)
    below = a.below or b.below or (widen and b.start < a.start)
    return make(min(a.start, b.start), [(stride, None)], below)


def join_numbers(numbers: Iterable[int]) -> Offsets | None:
    """A set that holds these numbers, told apart where they are few; None where there is none."""
    out: Offsets | None = None
    for number in numbers:
        out = Offsets(number) if out is None else join(out, Offsets(number), apart=True)
    return out


def _few(a: Offsets, b: Offsets, stride: int) -> Offsets | None:
    """Both of two bounded sets, number by number; None where they are many, or all that there are at such steps."""
    if not all(x.exact or x.members or x.terms[1:] == () for x in (a, b)):
        return None
    found = sorted({*a.expand(), *b.expand()})
    count = (found[-1] - found[0]) // stride
    if len(found) > _MOST_MEMBERS or not len(found) <= count < _MAX_EXPANSION:
        return None
    return Offsets(found[0], ((stride, count),), False, tuple(x - found[0] for x in found))


def meets(a: Offsets, b: Offsets, lowest: int, limit: int) -> list[int]:
    """The differences y - x in [lowest, limit) for x in `a` and y in `b`, in order."""
    if a.exact and b.exact:
        difference = b.start - a.start
        return [difference] if lowest <= difference < limit else []
    starts, others = a.expand(), b.expand()
    period = gcd(a.stride, b.stride)
    if period == 0:
        return _meets_bounded(starts, others, lowest, limit)
    grows = b.stride != 0 or (a.stride != 0 and a.below)
    shrinks = a.stride != 0 or (b.stride != 0 and b.below)
    if len(starts) == len(others) == 1:
        difference = others[0] - starts[0]
        first = lowest + (difference - lowest) % period
        start, end = (first, limit) if shrinks else (max(first, difference), limit)
        return list(range(start, end if grows else min(end, difference + 1), period))
    if min(limit - lowest, period) <= len(starts):
        return _meets_within(starts, others, range(lowest, limit), period, grows=grows, shrinks=shrinks)
    out: set[int] = set()
    if grows and shrinks:  # from each difference the whole period can be reached
        for rest in {(y - x - lowest) % period for x in starts for y in others}:
            out.update(range(lowest + rest, limit, period))
        return sorted(out)
    for difference in {y - x for x in starts for y in others}:
        first = lowest + (difference - lowest) % period
        out.update(range(max(first, difference), limit, period) if grows
                   else range(first, min(limit, difference + 1), period))  # fmt: skip
    return sorted(out)


def _meets_within(
    starts: tuple[int, ...], others: tuple[int, ...], wanted: range, period: int, *, grows: bool, shrinks: bool
) -> list[int]:
    """`meets` where few differences are of interest: each is asked for, with the starts by what is left of a period."""
    if grows and shrinks:
        rests = {x % period for x in starts}
        places = {y % period for y in others}
        met = [d for d in wanted[:period] if any((y - d) % period in rests for y in places)]
        return sorted(e for d in met for e in range(d, wanted.stop, period))
    best: dict[int, int] = {}  # the difference grows from the largest start, falls from the smallest
    for x in starts:
        rest = x % period
        best[rest] = x if rest not in best else max(best[rest], x) if grows else min(best[rest], x)
    if grows:
        return [d for d in wanted if any(best.get((y - d) % period, y - d - 1) >= y - d for y in others)]
    return [d for d in wanted if any(best.get((y - d) % period, y - d + 1) <= y - d for y in others)]


def touches(a: Offsets, b: Offsets, lowest: int, limit: int) -> bool:
    """Whether `meets` finds any."""
    if a.exact and b.exact:
        return lowest <= b.start - a.start < limit
    if a.stride and b.stride and limit - lowest >= gcd(a.stride, b.stride):
        return True  # either may move freely past the other
    if a.members or b.members:
        return _touch(a, b, lowest, limit)
    return _touch_at(a.terms, a.below, b.start - a.start, b.terms, b.below, lowest, limit)


@lru_cache(1 << 15)
def _touch_at(
    terms: tuple[Term, ...], below: bool, at: int, others: tuple[Term, ...], both: bool, lowest: int, limit: int
) -> bool:
    """`touches`, by the distance of the two starts, as `_contains_at`."""
    return _touch(Offsets(0, terms, below), Offsets(at, others, both), lowest, limit)


def _touch(a: Offsets, b: Offsets, lowest: int, limit: int) -> bool:
    if a.stride or b.stride:
        return bool(meets(a, b, lowest, limit))
    starts = a.expand()
    return any(bisect_right(starts, y - limit) < bisect_right(starts, y - lowest) for y in b.expand())


def _meets_bounded(starts: tuple[int, ...], others: tuple[int, ...], lowest: int, limit: int) -> list[int]:
    """The differences of two sets of numbers, both in order."""
    if len(starts) == 1:
        x = starts[0]
        return [y - x for y in others[bisect_left(others, x + lowest) : bisect_left(others, x + limit)]]
    out: set[int] = set()
    for y in others:
        out.update([y - x for x in starts[bisect_right(starts, y - limit) : bisect_right(starts, y - lowest)]])
    return sorted(out)


def off_end(places: Offsets) -> int:
    """The largest offset that the bounded terms reach."""
    return places.start + sum(stride * count for stride, count in places.terms if count is not None)
