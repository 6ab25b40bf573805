"""Numbers keep their identity through bytes, packed integers and sign tricks."""

from __future__ import annotations

import pytest

from irgrad.engine.ir import types as ty
from oracle.memory import Bits, Fault, Memory, bits, combine, scalar_bytes, scalar_from
from oracle.numbers import Dual, DualDomain, FloatDomain

SIGN = 1 << 63


def test_a_number_copied_by_bytes_is_the_same_number() -> None:
    """Eight loads and stores of i8."""
    domain = DualDomain()
    memory = Memory(domain)
    a, b = memory.allocate(8), memory.allocate(8)
    memory.store(a, ty.F64, Dual(1.5, 2.0))
    for i in range(8):
        memory.store(b + i, ty.I8, memory.load(a + i, ty.I8))
    assert memory.load(b, ty.F64).t == 2.0
    memory.store(b + 7, ty.I8, 0xBF)  # now the bytes say something else
    assert memory.load(b, ty.F64) == -0.00586700439453125 or memory.load(b, ty.F64) < 0


def test_sign_tricks() -> None:
    """and, or, xor with the sign bit are fabs, -fabs, negation, also of a float in half of an i64."""
    domain = DualDomain()
    x = Dual(-1.5, 2.0)
    word = bits(scalar_bytes(ty.F64, x), domain)
    assert type(word) is Bits

    def back(w: int) -> Dual:
        return scalar_from(ty.F64, scalar_bytes(ty.I64, w), domain)

    assert back(combine("and", word, SIGN - 1, 64, domain)).t == -2.0
    assert back(combine("xor", SIGN, word, 64, domain)).v == 1.5
    assert back(combine("or", word, SIGN, 64, domain)).t == 2.0
    assert type(combine("and", word, SIGN, 64, domain)) is int
    pair = bits(scalar_bytes(ty.F32, Dual(0.5, 1.0)) + scalar_bytes(ty.I32, 7), domain)
    flipped = combine("xor", pair, 1 << 31, 64, domain)
    assert scalar_from(ty.F32, scalar_bytes(ty.I64, flipped)[:4], domain).t == -1.0
    assert scalar_from(ty.I32, scalar_bytes(ty.I64, flipped)[4:], domain) == 7


def test_overlapping_stores_keep_the_rest() -> None:
    """A store into the middle of a wider cell leaves the other bytes."""
    memory = Memory(FloatDomain())
    p = memory.allocate(16)
    memory.store(p, ty.I64, 0x1122334455667788)
    memory.store(p + 8, ty.I64, 0x99AABBCCDDEEFF00)
    memory.store(p + 6, ty.I32, 0xDEADBEEF)
    assert memory.load(p, ty.I64) == 0xBEEF334455667788
    assert memory.load(p + 8, ty.I64) == 0x99AABBCCDDEEDEAD
    memory.copy(p + 2, p, 8)
    assert memory.load(p + 2, ty.I64) == 0xBEEF334455667788


def test_wide_integers() -> None:
    """Wider than any float: each byte is there, also behind the sixteenth."""
    memory = Memory(FloatDomain())
    p = memory.allocate(32)
    memory.store(p, ty.int_(192), 5 | 7 << 128)
    assert [memory.load(p + 8 * k, ty.I64) for k in range(3)] == [5, 0, 7]
    assert memory.load(p, ty.int_(192)) == 5 | 7 << 128
    memory.store(p, ty.int_(200), 9 << 192)
    assert memory.load(p + 24, ty.I8) == 9


def test_fill_and_bounds() -> None:
    """memset of a part, reads outside."""
    memory = Memory(FloatDomain())
    p = memory.allocate(32, heap=True)
    for i in range(4):
        memory.store(p + 8 * i, ty.F64, float(i + 1))
    memory.fill(p + 8, 0, 12)
    assert [memory.load(p + 8 * i, ty.F64) for i in (0, 1, 3)] == [1.0, 0.0, 4.0]
    with pytest.raises(Fault):
        memory.load(p + 28, ty.F64)
    with pytest.raises(Fault, match="4294967296 bytes"):
        memory.allocate(1 << 32)
    memory.free(p)
    with pytest.raises(Fault):
        memory.load(p, ty.F64)
