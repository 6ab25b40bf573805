"""Facts about well-known callees, and their agreement with the rows."""

from __future__ import annotations

import pytest

from irgrad.rules.effects import cost, facts, lanewise, prints
from irgrad.rules.lookup import spellings
from irgrad.rules.table import rows


@pytest.mark.parametrize(
    ("symbol", "sizes", "zeroed"),
    [
        ("malloc", (0,), False),
        ("calloc", (0, 1), True),
        ("aligned_alloc", (1,), False),
        ("_Znwm", (0,), False),
        ("_ZnamSt11align_val_t", (0,), False),
        ("_ZnwmRKSt9nothrow_t", (0,), False),
        ("__rust_alloc_zeroed", (0,), True),
        ("_RNvCs691rhTbG0Ee_7___rustc12___rust_alloc", (0,), False),
    ],
)
def test_allocators(symbol: str, sizes: tuple[int, ...], zeroed: bool) -> None:
    found = facts(symbol)
    assert found is not None
    assert (found.kind, found.sizes, found.zeroed, found.allocates) == ("allocator", sizes, zeroed, True)


@pytest.mark.parametrize("symbol", ["free", "_ZdlPv", "_ZdlPvm", "_ZdaPvmSt11align_val_t", "__rust_dealloc"])
def test_deallocators(symbol: str) -> None:
    found = facts(symbol)
    assert found is not None
    assert (found.kind, found.frees, found.allocates) == ("deallocator", 0, False)


def test_realloc_moves_its_argument() -> None:
    found = facts("realloc")
    assert found is not None
    assert (found.kind, found.moves, found.frees, found.sizes) == ("reallocator", 0, 0, (1,))


@pytest.mark.parametrize(
    "symbol", ["memcpy", "memmove", "__memcpy_chk", "llvm.memcpy.p0.p0.i64", "llvm.memmove.p0.p0.i32"]
)
def test_copies(symbol: str) -> None:
    found = facts(symbol)
    assert found is not None
    assert found.copy == (0, 1, 2)
    assert (found.reads, found.writes) == ((1,), (0,))
    assert found.returns == (None if symbol.startswith("llvm") else 0)


def test_bcopy_has_its_arguments_the_other_way() -> None:
    assert facts("bcopy").copy == (1, 0, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize("symbol", ["memset", "llvm.memset.p0.i64", "llvm.memset.inline.p0.i64"])
def test_fills(symbol: str) -> None:
    found = facts(symbol)
    assert found is not None
    assert found.fill == (0, 1, 2)


@pytest.mark.parametrize("symbol", ["printf", "puts", "fflush", "clock", "rand", "strlen", "llvm.assume",
                                    "llvm.lifetime.start.p0", "_ZNSolsEd", "__cxa_guard_acquire",
                                    "_ZSt11_Hash_bytesPKvmm"])  # fmt: skip
def test_inactive(symbol: str) -> None:
    found = facts(symbol)
    assert found is not None
    assert found.inactive
    assert not found.noreturn


@pytest.mark.parametrize("symbol", ["abort", "exit", "__assert_fail", "_ZSt20__throw_length_errorPKc", "llvm.trap",
                                    "__cxa_throw"])  # fmt: skip
def test_never_returns(symbol: str) -> None:
    assert facts(symbol).noreturn  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "symbol", ["llvm.ctpop.i64", "llvm.smax.v4i32", "llvm.bswap.i32", "llvm.fshl.i32", "llvm.sadd.with.overflow.i64",
               "llvm.uadd.sat.i8", "llvm.cttz.i64", "llvm.vector.reduce.add.v4i32", "abs"])  # fmt: skip
def test_integer_functions_carry_no_derivative(symbol: str) -> None:
    found = facts(symbol)
    assert found is not None
    assert (found.kind, found.inactive, found.may_write_args) == ("pure", True, False)


@pytest.mark.parametrize(
    "symbol", ["solve", "fread", "scanf", "fgets", "llvm.masked.load.v4f64.p0", "qsort", "llvm.unknown"]
)
def test_unknown_functions_have_no_facts(symbol: str) -> None:
    """What fills memory with data is left out on purpose: no facts, so that an active use of it is refused."""
    assert facts(symbol) is None


def test_functions_with_a_row_are_pure_and_inactive_only_when_constant() -> None:
    for row in rows().values():
        for symbol in spellings(row.key):
            name = symbol + ".f64" if symbol.startswith("llvm.") else symbol
            found = facts(name)
            assert found is not None, name
            assert found.kind == "pure", name
            assert found.inactive == row.constant, name
            assert found.writes == row.pointers, name
    assert facts("sincos").writes == (1, 2)  # type: ignore[union-attr]
    assert facts("sin").writes_errno  # type: ignore[union-attr]
    assert not facts("llvm.sin.f64").writes_errno  # type: ignore[union-attr]
    assert facts("floor").inactive  # type: ignore[union-attr]
    assert not facts("llvm.vector.reduce.fadd.v4f64").inactive  # type: ignore[union-attr]


def test_what_prints() -> None:
    assert prints("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc")
    assert prints("_ZNSt3__14endlB8ne210000IcNS_11char_traitsIcEEEERNS_13basic_ostreamIT_T0_EES7_")
    assert not prints("_ZlsRSoRK6Vector")


@pytest.mark.parametrize(("cheap", "dear"), [
    ("fabs", "sqrt"), ("llvm.fabs.f64", "llvm.sqrt.f64"), ("floorf", "sinf"), ("llvm.nearbyint.f64", "llvm.sin.f64"),
    ("llvm.ctpop.i64", "unknown"), ("irgrad.strong_mul.f64", "fdim"), ("sqrtl", "acospil"),
])  # fmt: skip
def test_costs_are_those_of_the_rows_in_every_spelling(cheap: str, dear: str) -> None:
    assert cost(cheap) < cost(dear)


@pytest.mark.parametrize("name", ["sin", "maximumnum", "fma", "powi", "canonicalize", "smin", "bswap"])
def test_lanewise_intrinsics(name: str) -> None:
    assert lanewise(f"llvm.{name}.f64" if name not in ("smin", "bswap") else f"llvm.{name}.i32")
    assert not lanewise(name) and not lanewise(f"llvm.{name}")


@pytest.mark.parametrize("symbol", ["llvm.lrint.i64.f64", "llvm.scmp.i8.i32", "llvm.vector.reduce.add.v4i32",
                                    "llvm.sadd.sat.i32", "llvm.arithmetic.fence.f64"])  # fmt: skip
def test_intrinsics_whose_vector_form_is_another(symbol: str) -> None:
    assert not lanewise(symbol)


def test_exceptions_copy_their_message() -> None:
    """Nothing of the program's memory changes when one is made: what was read before a throw need not be saved."""
    for name in ("_ZNSt11logic_errorC2EPKc", "_ZNSt13runtime_errorC1EPKc", "_ZNSt12out_of_rangeC1EPKc"):
        found = facts(name)
        assert found is not None and (found.reads, found.writes) == ((0, 1), (0,))
    other = facts("_ZNSt11logic_errorD1Ev")
    assert other is not None and other.reads is None


@pytest.mark.parametrize(
    ("symbol", "known"),
    [
        ("_FortranAioBeginExternalListOutput", True),
        ("_FortranAioBeginInternalFormattedOutput", True),
        ("_FortranAioOutputReal64", True),
        ("_FortranAioEndIoStatement", True),
        ("_FortranAioBeginOpenUnit", True),
        ("_FortranAioBeginExternalListInput", False),
        ("_FortranAioInputReal64", False),
    ],
)
def test_output_of_fortran_has_no_derivative_and_input_is_not_known(symbol: str, known: bool) -> None:
    found = facts(symbol)
    assert (found is not None and found.inactive) == known
