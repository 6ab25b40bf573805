"""Arguments: what is taken, what is copied, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irgrad.engine.kernel.binding import Binder, address_of
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import DTypeError, ShapeError, SignatureError


def bind(signature: str, *args: Any, **kwargs: Any) -> Any:
    return Binder(Signature(signature)).bind(args, kwargs)


ENERGY = "f64(f64[n,3] pos, f64[n] mass, i64 n)"


def test_good_arrays_are_not_copied_and_sizes_are_filled() -> None:
    pos, mass = np.zeros((4, 3)), np.ones(4)
    bound = bind(ENERGY, pos, mass)
    assert bound.buffers[0] is pos and bound.buffers[1] is mass
    assert int(bound.buffers[2]) == 4 and bound.buffers[2].dtype == np.int64


def test_strided_and_misaligned_arrays_are_copied() -> None:
    pos = np.arange(24.0).reshape(4, 6)[:, ::2]
    raw = np.zeros(33, np.uint8)[1:].view(np.float64)
    bound = bind(ENERGY, pos, raw)
    assert bound.buffers[0].flags.c_contiguous and np.array_equal(bound.buffers[0], pos)
    assert bound.buffers[1].flags.aligned


def test_inout_is_always_a_copy() -> None:
    x = np.ones(3)
    assert not np.shares_memory(bind("void(inout f64[n] x)", x).buffers[0], x)


def test_lists_and_keywords() -> None:
    bound = bind(ENERGY, mass=[1, 2.5], pos=[[0, 0, 0], [1, 1, 1]])
    assert bound.buffers[0].dtype == np.float64 and bound.buffers[1].tolist() == [1, 2.5]


def test_read_only_inputs_are_fine() -> None:
    x = np.ones(3)
    x.flags.writeable = False
    assert bind("f64(f64[n] x)", x).buffers[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [2, 2.0, True, np.float64(2), np.float32(2), np.int32(2), np.array(2.0)])
def test_scalars_of_many_kinds(value: Any) -> None:
    assert bind("f64(f64 x)", value).buffers[0].dtype == np.float64


@pytest.mark.parametrize(
    ("signature", "value", "message"),
    [
        ("f64(f64[n] x)", np.ones(3, np.float32), "`x` has dtype float32, wanted float64"),
        ("f64(f32[n] x)", np.ones(3), "`x` has dtype float64, wanted float32"),
        ("f64(f64[n] x)", np.ones(3, ">f8"), "`x` has dtype >f8, wanted float64"),
        ("f64(i32[n] x)", np.ones(3, np.int64), "`x` has dtype int64, wanted int32"),
        ("f64(f64[n] x)", np.ones(3, complex), "`x` has dtype complex128, wanted float64"),
        ("f64(i32[n] x)", [1 << 40], "`x` does not fit into i32"),
        ("f64(i32[n] x)", [1.5], "`x` has dtype float64, wanted int32"),
        ("f64(f32 x)", np.float64(1), "`x` is a float64, wanted float32"),
        ("f64(i32 k)", 1 << 31, "`k` = 2147483648 does not fit into i32"),
        ("f64(u8 k)", -1, "`k` = -1 does not fit into u8"),
        ("f64(i32 k)", np.int64(1 << 40), "does not fit into i32"),
        ("f64(i32 k)", 1.0, "`k` is a float64, wanted int32"),
        ("f64(f64 x)", "a", "`x` is a str, wanted float64"),
        ("f64(f64 x)", 1j, "`x` is a complex128, wanted float64"),
    ],
)
def test_dtypes_are_never_converted_in_silence(signature: str, value: Any, message: str) -> None:
    with pytest.raises(DTypeError) as caught:
        bind(signature, value)
    assert message in caught.value.what and caught.value.fix


def test_shapes() -> None:
    with pytest.raises(ShapeError, match="wanted rank 2"):
        bind(ENERGY, np.ones(3), np.ones(1))
    with pytest.raises(ShapeError, match="wanted a scalar"):
        bind("f64(f64 x)", np.ones(3))
    with pytest.raises(ShapeError, match="ragged"):
        bind("f64(f64[n,m] x)", [[1.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1.0,), {}, "argument `y` is missing"),
        ((1.0, 2.0, 3.0), {}, "got 3 arguments, wanted 2"),
        ((1.0,), {"z": 1}, "there is no argument `z`"),
        ((1.0,), {"x": 1.0}, "argument `x` is given twice"),
    ],
)
def test_counts_and_names(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        bind("f64(f64 x, f64 y)", *args, **kwargs)


def test_size_arguments_and_outputs_are_explained() -> None:
    with pytest.raises(SignatureError, match="`n` are filled from the shapes"):
        bind(ENERGY, np.ones((2, 3)), np.ones(2), 2)
    with pytest.raises(SignatureError, match="`n` is a size argument"):
        bind(ENERGY, np.ones((2, 3)), mass=np.ones(2), n=2)
    with pytest.raises(SignatureError, match="the outputs `y` are returned"):
        bind("void(f64[n] x, out f64[n] y)", np.ones(2), np.ones(2))
    with pytest.raises(SignatureError, match="did you mean `mass`"):
        bind(ENERGY, np.ones((2, 3)), mas=np.ones(2))


def test_addresses_of_all_kinds_of_arrays() -> None:
    """Also of those without a writable buffer: read-only, empty, strided."""
    fixed = np.ones(3)
    fixed.flags.writeable = False
    whole = np.zeros((4, 6))
    for array in (whole, whole[1:, 2:], whole[::2, ::-1], fixed, np.zeros(0), np.array(2.0), np.ones(4, np.float16)):
        assert address_of(array) == array.ctypes.data


class Exchanged:
    """An array of a library that offers its memory by DLPack, and in no other way."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_are_used_where_they_are() -> None:
    pos, mass = np.arange(12.0).reshape(4, 3), np.ones(4)
    bound = bind(ENERGY, Exchanged(pos), Exchanged(mass))
    assert np.shares_memory(bound.buffers[0], pos) and np.shares_memory(bound.buffers[1], mass)
    strided = bind(ENERGY, Exchanged(np.arange(24.0).reshape(4, 6)[:, ::2]), mass).buffers[0]
    assert strided.flags.c_contiguous and strided[1, 1] == 8
    written = bind("void(inout f64[n] x)", Exchanged(mass)).buffers[0]
    assert not np.shares_memory(written, mass)
    with pytest.raises(DTypeError, match="`mass` has dtype float32, wanted float64"):
        bind(ENERGY, pos, Exchanged(np.ones(4, np.float32)))

    class OnDevice(Exchanged):
        def __dlpack_device__(self) -> Any:
            return 2, 0

        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("the memory is on a device")

    with pytest.raises(DTypeError, match=r"(?s)`mass` is not an array.*the memory is on a device"):
        bind(ENERGY, pos, OnDevice(mass))
