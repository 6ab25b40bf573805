"""Batched values and derivatives of random kernels against single calls, sample by sample.

For each number of samples in `SIZES`, with the batch axis first or last: values, tangents and pullbacks against single
calls; results in arrays that are passed in; sums over the samples; any number of threads to the bit; a NaN in one
sample. Every second kernel shares one of its float arguments, every third has indices of each sample's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

SIZES = (0, 1, 7, 64)
THREADS = (2, 3)


class Comparison:
    """What is compared for one kernel; `found` are the differences beyond the tolerance, one line each.

    Differences are relative to the size of each result, and at least to one.
    """

    def __init__(
        self, kernel: Any, inputs: Mapping[str, Any], wrt: Iterable[str], tolerance: float, seed: int, width: int | str
    ) -> None:
        self.kernel, self.inputs, self.tolerance, self.width = kernel, inputs, tolerance, width
        self.wrt = tuple(wrt)
        self.names = [p.name for p in kernel.signature.arguments]
        self.rng = np.random.default_rng(seed)
        shared = self.wrt[seed // 2 % len(self.wrt)] if seed % 2 and len(self.wrt) > 1 else ""
        indices = ("idx",) if seed % 3 == 0 and "idx" in self.names else ()
        self.batched = (*(n for n in self.wrt if n != shared), *indices)
        self.found: list[str] = []
        self.how = ""

    def samples(self, n: int, layout: str) -> None:
        """All comparisons for n samples."""
        from irgrad import engine

        self.what = f"{n} samples, {layout}"
        self.last = layout == "soa"
        data = [self._spread(name, n) for name in self.names]
        rows = [self._one(data, i) for i in range(n)]
        self.options: dict[str, Any] = {"in_axes": dict.fromkeys(self.batched, -1 if self.last else 0),
                                        "width": self.width, "layout": layout}  # fmt: skip
        given = [self._turned(name, x) for name, x in zip(self.names, data, strict=True)]
        made = engine.batch(self.kernel, threads=1, **self.options)
        values = _parts(made(*given))
        self._judge("value", values, [_parts(self.kernel(*row)) for row in rows])
        out = [np.full_like(v, 7) for v in values]
        made(*given, out=out[0] if len(out) == 1 else tuple(out))
        self._same("out", out, values)
        self._sum("sum of values", engine.batch(self.kernel, reduce="sum", **self.options)(*given), values)
        self._forward(given, rows, values)
        self._reverse(given, rows, values, n)
        if self.kernel.signature.returns is not None:
            self._gradient(given)
        self.how = engine.explain_batch(made, *given)

    def _one(self, data: list[Any], i: int) -> list[Any]:
        """Sample i of the batched arguments, and the others as they are."""
        return [x[i] if name in self.batched else x for name, x in zip(self.names, data, strict=True)]

    def _spread(self, name: str, n: int) -> Any:
        x = np.asarray(self.inputs[name])
        if name not in self.batched:
            return self.inputs[name]
        if x.dtype.kind == "i":  # the same numbers for each sample, in another order
            return self.rng.permuted(np.broadcast_to(x, (n, *x.shape)), axis=-1)
        return (x * self.rng.uniform(0.9, 1.1, (n, *x.shape))).astype(x.dtype)

    def _turned(self, name: str, x: Any) -> Any:
        """The argument with its batch axis where the layout has it."""
        return np.ascontiguousarray(np.moveaxis(x, 0, -1)) if self.last and name in self.batched else x

    def _first(self, x: Any) -> Any:
        return np.moveaxis(x, -1, 0) if self.last else x

    # -- derivatives ---------------------------------------------------------------------------------------------------

    def _forward(self, given: list[Any], rows: list[list[Any]], values: list[Any]) -> None:
        from irgrad import engine

        tangents = [self.rng.uniform(-1, 1, np.shape(x)).astype(np.asarray(x).dtype) if name in self.wrt else None
                    for name, x in zip(self.names, given, strict=True)]  # fmt: skip
        again, moved = map(_parts, engine.batch_jvp(self.kernel, given, tangents, **self.options))
        self._near("value beside the tangent", again, values)
        singles = []
        for i, row in enumerate(rows):
            one = [t if t is None or name not in self.batched else self._first(t)[i]
                   for name, t in zip(self.names, tangents, strict=True)]  # fmt: skip
            singles.append(_parts(engine.jvp(self.kernel, row, one)[1]))
        self._judge("tangent", moved, singles)
        self.floats = [m is not None for m in moved]

    def _reverse(self, given: list[Any], rows: list[list[Any]], values: list[Any], n: int) -> None:
        from irgrad import engine

        weights = [self.rng.uniform(-1, 1, v.shape).astype(v.dtype) if f else None
                   for v, f in zip(values, self.floats, strict=True)]  # fmt: skip
        out, pullback = engine.batch_vjp(self.kernel, *given, wrt=self.wrt, threads=1, **self.options)
        self._same("value beside the pullback", _parts(out), values)
        got = _parts(pullback(_packed(weights)))
        singles = []
        for i, row in enumerate(rows):
            one = [None if w is None else self._first(w)[i] for w in weights]
            singles.append(_parts(engine.vjp(self.kernel, *row, wrt=self.wrt)[1](_packed(one))))
        for k, name in enumerate(self.wrt):
            column = [single[k] for single in singles]
            if name in self.batched:
                self._judge(f"gradient of {name}", [got[k]], [[x] for x in column])
            else:
                self._near(f"gradient of {name}, shared", [got[k]], [sum(column, np.zeros_like(got[k]))])
        for threads in THREADS:
            again = engine.batch_vjp(self.kernel, *given, wrt=self.wrt, threads=threads, **self.options)[1]
            self._same(f"{threads} threads", _parts(again(_packed(weights))), got)
        if n > 1:
            self._nan(given, weights, got, n // 2)

    def _nan(self, given: list[Any], weights: list[Any], good: list[Any], bad: int) -> None:
        """A NaN in one sample leaves the others alone, to the bit."""
        from irgrad import engine

        at = self.names.index(self.batched[0])
        poisoned = [x.copy() if k == at else x for k, x in enumerate(given)]
        self._first(poisoned[at])[(bad, *[0] * (poisoned[at].ndim - 1))] = np.nan
        got = _parts(engine.batch_vjp(self.kernel, *poisoned, wrt=self.wrt, **self.options)[1](_packed(weights)))
        for name, a, b in zip(self.wrt, got, good, strict=True):
            if name in self.batched:
                kept = [np.delete(self._first(x), bad, 0) for x in (a, b)]
                self._same(f"gradient of {name} beside a NaN", kept[:1], kept[1:])

    def _gradient(self, given: list[Any]) -> None:
        """Kernels with one result: gradients into given arrays, and their sums."""
        from irgrad import engine

        made = engine.batch_value_and_grad(self.kernel, wrt=self.wrt, **self.options)
        value, gradients = made(*given)
        out = np.full_like(value, 7), tuple(np.full_like(g, 7) for g in gradients)
        made(*given, out=out)
        self._same("gradients to given arrays", [out[0], *out[1]], [value, *gradients])
        self._near("gradient without value",
                   _parts(engine.batch_grad(self.kernel, wrt=self.wrt, **self.options)(*given)), gradients)
        rows = []
        for threads in (1, *THREADS):
            total = engine.batch_value_and_grad(self.kernel, wrt=self.wrt, reduce="sum", **self.options)
            total.threads = threads
            rows.append(total(*given))
            self._same(f"sums on {threads} threads", [rows[-1][0], *rows[-1][1]], [rows[0][0], *rows[0][1]])
        self._sum("sum of values beside gradients", rows[0][0], [value])
        for name, a, b in zip(self.wrt, rows[0][1], gradients, strict=True):
            if name in self.batched:
                self._near(f"gradient of {name} beside a sum", [a], [b])
            else:
                self._sum(f"summed gradient of {name}", a, [b])

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def _judge(self, what: str, got: list[Any], singles: list[list[Any]]) -> None:
        """Batched results against those of single calls."""
        for k, a in enumerate(got):
            if a is None or not singles:
                continue
            rows = [(self._first(a)[i], np.asarray(single[k])) for i, single in enumerate(singles)]
            self._near(what, [r for r, _ in rows], [s for _, s in rows])

    def _near(self, what: str, got: list[Any], want: list[Any]) -> None:
        for a, b in zip(got, want, strict=True):
            if a is None:
                continue
            x, y = np.asarray(a, float), np.asarray(b, float)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            scale = np.abs(y[np.isfinite(y)]).max(initial=1.0)
            if not (same | (np.abs(np.where(same, 0, x - y)) <= self.tolerance * scale)).all():
                self.found.append(f"{self.what}, {what}: got {x}, want {y}")

    def _same(self, what: str, got: list[Any], want: list[Any]) -> None:
        for a, b in zip(got, want, strict=True):
            if not np.array_equal(np.asarray(a), np.asarray(b), equal_nan=np.asarray(a).dtype.kind == "f"):
                self.found.append(f"{self.what}, {what}: not the same bits: {a}, {b}")

    def _sum(self, what: str, got: Any, each: list[Any]) -> None:
        for a, b in zip(_parts(got), each, strict=True):
            rows = np.asarray(self._first(b), float)
            scale = np.nan_to_num(np.abs(rows).sum(0), posinf=0).max(initial=1.0)
            if not np.allclose(np.asarray(a, float), rows.sum(0), rtol=0, atol=self.tolerance * scale, equal_nan=True):
                self.found.append(f"{self.what}, {what}: got {a}, want {rows.sum(0)}")


def compare(
    kernel: Any, inputs: Mapping[str, Any], wrt: Iterable[str], tolerance: float, seed: int = 0,
    width: int | str = "auto",
) -> tuple[list[str], str]:  # fmt: skip
    """Differences beyond `tolerance` (relative to the size of each result), one line each; and the strategy used."""
    case = Comparison(kernel, inputs, wrt, tolerance, seed, width)
    for k, n in enumerate(SIZES):
        case.samples(n, ("aos", "soa")[(k + seed) % 2])
    how = case.how.split("\n")[1].split(":")[0].strip()
    return case.found, how + "|" + case.how.split("because ")[1].split("\n")[0][:90]


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


def _packed(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else tuple(parts)
