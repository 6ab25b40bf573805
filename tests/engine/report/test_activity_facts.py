"""Active values, by line, with the chains that make them so."""

from __future__ import annotations

from explained import SOURCE, kernel, line

from irgrad.engine import explain


def _lines(name: str, wrt: str | None, derivative: str = "vjp") -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for value in explain(kernel(name), derivative, wrt, lanes=False).active:
        found.setdefault(value.place.line, set()).add(value.opcode)
    return found


def test_active_lines() -> None:
    active = _lines("nested", "x")
    assert {"sin", "fmul"} <= active[line("s = sin(s * w[j]) + 0.5 * s;")]
    assert active[line("double s = x[i];")] == {"load"}
    assert line("return total;") not in active


def test_what_is_not_asked_for_is_not_active() -> None:
    weights = line("s = sin(s * w[j]) + 0.5 * s;")
    assert "load" not in _lines("nested", "x")[weights]  # of w
    assert "load" in _lines("nested", "w")[weights]
    assert line("double s = x[i];") not in _lines("nested", "w")


def test_why() -> None:
    for value in explain(kernel("nested"), "grad", "x", lanes=False).active:
        assert value.origin[0].name == "x"
        assert value.target[-1].name == "return"
        assert value.why.startswith("x ")
        assert value.why.endswith("return")
        assert value.origin[-1] == value.target[0]
    sine = next(v for v in explain(kernel("nested"), "grad", "w", lanes=False).active if v.opcode == "sin")
    assert sine.origin[0].name == "w"
    assert f"line {line('total += s * s')}" in sine.why
    assert sine.type == "double"
    assert sine.function == "nested"


def test_active_in_both_modes() -> None:
    assert _lines("heat", None, "vjp") == _lines("heat", None, "jvp")


def test_roles_of_arguments() -> None:
    roles = {a.name: (a.role, a.output) for a in explain(kernel("nested"), "grad", "x", lanes=False).arguments}
    assert roles == {
        "x": ("differentiated", False), "w": ("constant", False), "n": ("constant", False),
        "m": ("constant", False), "return": ("output", True),
    }  # fmt: skip
    inout = {a.name: (a.role, a.output) for a in explain(kernel("heat"), lanes=False).arguments}
    assert inout["u"] == ("differentiated", True)
    assert explain(kernel("stencil"), lanes=False).arguments[1].role == "output"


def test_every_place_is_in_the_source() -> None:
    last = len(SOURCE.splitlines())
    for value in explain(kernel("heat"), lanes=False).active:
        assert value.place.file == "<string>"
        assert 0 < value.place.line <= last
