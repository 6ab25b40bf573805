"""Element types of signatures: their names, sizes, LLVM types and NumPy dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

__all__ = ["DTYPES", "HINTS", "DType"]


@dataclass(frozen=True, slots=True)
class DType:
    """One element type. `ir` is the type of a scalar argument, `memory` the type in memory (they differ for bool)."""

    name: str
    numpy_name: str
    ir: str
    size: int
    kind: str  # "f" float, "i" signed, "u" unsigned, "b" bool

    @property
    def is_float(self) -> bool:
        """Whether it carries derivatives."""
        return self.kind == "f"

    @property
    def memory(self) -> str:
        """The LLVM type of an element in memory."""
        return "i8" if self.kind == "b" else self.ir

    @property
    def c_name(self) -> str:
        """The C spelling, for headers."""
        return _C_NAMES[self.name]

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; bf16 comes from ml_dtypes, which JAX brings along."""
        import numpy as np

        if self.name == "bf16":
            import ml_dtypes

            bfloat: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat
        return np.dtype(self.numpy_name)

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        bits = 1 if self.kind == "b" else 8 * self.size
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if self.kind == "i" else (0, (1 << bits) - 1)

    def __str__(self) -> str:
        return self.name


DTYPES: Final[dict[str, DType]] = {
    row.name: row
    for row in (
        DType("f16", "float16", "half", 2, "f"),
        DType("bf16", "bfloat16", "bfloat", 2, "f"),
        DType("f32", "float32", "float", 4, "f"),
        DType("f64", "float64", "double", 8, "f"),
        DType("i8", "int8", "i8", 1, "i"),
        DType("i16", "int16", "i16", 2, "i"),
        DType("i32", "int32", "i32", 4, "i"),
        DType("i64", "int64", "i64", 8, "i"),
        DType("u8", "uint8", "i8", 1, "u"),
        DType("u16", "uint16", "i16", 2, "u"),
        DType("u32", "uint32", "i32", 4, "u"),
        DType("u64", "uint64", "i64", 8, "u"),
        DType("bool", "bool", "i1", 1, "b"),
    )
}

HINTS: Final[dict[str, str]] = {
    "double": "f64", "float": "f32", "float64": "f64", "float32": "f32", "float16": "f16", "half": "f16",
    "bfloat16": "bf16", "int": "i32", "long": "i64", "int32": "i32", "int64": "i64", "int32_t": "i32",
    "int64_t": "i64", "size_t": "u64", "uint64_t": "u64", "uint32_t": "u32", "char": "i8", "short": "i16",
    "unsigned": "u32", "int8": "i8", "uint8": "u8", "int8_t": "i8", "uint8_t": "u8", "_Bool": "bool",
}  # fmt: skip
"""What users of C, Rust and NumPy type by habit, and the name meant."""

_C_NAMES: Final[dict[str, str]] = {
    "f16": "_Float16", "bf16": "__bf16", "f32": "float", "f64": "double",
    "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "bool": "bool",
}  # fmt: skip
