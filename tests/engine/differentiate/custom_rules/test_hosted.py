"""What the IR of a host rule says: one call, a frame, a description."""

from __future__ import annotations

import json
import re
from typing import Any

import irgrad
from irgrad.engine.differentiate.custom_rules.hosted import PREFIX
from irgrad.rules import layer, rule

SOURCE = "void squares(const double *x, long n, double *out) { for (long i = 0; i < n; i++) out[i] = x[i] * x[i]; }"


def test_the_description_names_every_slot(tmp_path: Any) -> None:
    path = tmp_path / "squares.c"
    path.write_text(SOURCE)
    squares = irgrad.load(path).kernel("squares", "void(f64[n] x, i64 n, out f64[n] out)")
    with layer():

        @rule(squares, mode="reverse", host=True)
        def _(ctx, x, n, out):  # type: ignore[no-untyped-def]
            pass

        text = squares.primal.vjp((0, 2)).stage.text
    assert text.count(f"call void @{PREFIX}") == 1
    found = re.search(r'constant \[\d+ x i8\] c"(\{.*?)\\00"', text)
    assert found is not None
    row = json.loads(found[1].replace("\\22", '"'))
    assert row["mode"] == "reverse"
    assert [a["name"] for a in row["arguments"]] == ["x", "n", "out"]
    x, n, out = row["arguments"]
    assert set(x) == {"name", "active", "kind", "dtype", "shape", "value", "d", "saved"}
    assert set(out) == {"name", "active", "kind", "dtype", "shape", "value", "d", "result"}
    assert n["dtype"] == "i64"
    slots = [*x["shape"], x["value"], x["d"], x["saved"], n["value"]]
    slots += [*out["shape"], out["value"], out["d"], out["result"]]
    assert sorted(slots) == list(range(len(slots)))
