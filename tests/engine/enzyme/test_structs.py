"""Structs by value: where their bytes are, and programs with structs of many shapes that check themselves."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from shares import fast

from irgrad.engine.enzyme.structs import begins_with_pointer, bytes_of, held, offsets, pointee, spread, together
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.text.reader import read
from irgrad.interop.cli import main

MODULE = read("""
%struct.big = type { i64, [2 x double], float }
%struct.slice = type { { ptr, i64 }, i64 }
declare double @f(i64 %a.coerce0, double %a.coerce1, i64 %b.coerce, ptr byval(%struct.big) align 8 %c, i64 %.coerce0,
  float %.coerce1, i64 %.coerce02, float %.coerce13)
declare double @g(i64, float, double)
""".replace(",\n  ", ", "), [])


def test_registers_of_one_struct() -> None:
    args = MODULE.functions["f"].args
    assert [len(together(args, at, 0)) for at in (0, 2, 3, 4, 6)] == [2, 1, 1, 2, 2]


def test_without_names_the_bytes_of_the_call_say_what_is_one_struct() -> None:
    args = MODULE.functions["g"].args
    assert [len(together(args, at, size)) for at, size in ((0, 0), (0, 8), (0, 12), (0, 16), (1, 16), (2, 16))] == [
        1, 1, 2, 2, 2, 1]  # fmt: skip


def test_where_registers_are_in_a_struct() -> None:
    kinds = [ty.vector(2, ty.F32), ty.F32]
    assert (offsets(kinds), bytes_of(kinds), spread(kinds)) == ([0, 8], 12, 16)
    assert spread([ty.int_(40)]) == 8


def test_what_is_held_in_memory() -> None:
    assert held(MODULE, MODULE.functions["f"].args[3]) is MODULE.types["%struct.big"]
    assert held(MODULE, MODULE.functions["f"].args[0]) is None
    assert str(pointee(MODULE, "noalias sret({ double, i32 }) align 8", "sret")) == "{ double, i32 }"
    assert begins_with_pointer(MODULE.types["%struct.slice"])
    assert not begins_with_pointer(MODULE.types["%struct.big"])


_SIZES = {"float": 4, "double": 8, "int": 4, "long": 8, "short": 2, "char": 1}
_HEAD = """#include <math.h>
#include <stdio.h>
extern int enzyme_const, enzyme_dup, enzyme_out, enzyme_primal_return, enzyme_dupnoneed;
static int bad;
static void near(const char *what, double a, double b) {
  if (!(fabs(a - b) < 1e-6 * (1 + fabs(b)))) { printf("%s: %.9g is not %.9g\\n", what, a, b); bad = 1; }
}
"""


class Shape:
    """A random struct: its definition, and the numbers and integers in it."""

    def __init__(self, rng: Random, name: str, most: int) -> None:
        self.name = name
        self.numbers: list[str] = []
        self.integers: list[str] = []
        self.before, self.size = "", 0
        while not self.numbers:
            self.numbers, self.integers, self.before = [], [], ""
            body = self._members(rng, name, rng.randint(4, most), "")
        self.text = f"{self.before}typedef struct {{ {body} }} {name};\n"

    def _members(self, rng: Random, name: str, most: int, prefix: str) -> str:
        size, members = 0, ""
        kinds = rng.choice([["float"], ["double"], ["float", "int"], ["double", "float"], list(_SIZES), list(_SIZES)])
        for n in range(12):
            kind, count = rng.choice(kinds), rng.choice([0, 0, 0, 2, 3])
            own = _SIZES[kind] * (count or 1)
            if size + own > most:
                break
            size += own
            path = f"{prefix}m{n}"
            if not prefix and rng.random() < 0.15 and not count and size + 8 <= most:
                inner = f"{name}{n}"
                self.before += f"typedef struct {{ {self._members(rng, inner, 8, f'{path}.')} }} {inner};\n"
                members += f"{inner} m{n}; "
                continue
            members += f"{kind} m{n}{f'[{count}]' if count else ''}; "
            leaves = [f"{path}[{i}]" for i in range(count)] or [path]
            (self.numbers if kind in ("float", "double") else self.integers).extend(leaves)
        return members

    def sum(self, v: str) -> str:
        """A number that depends on all members of a variable."""
        own = [f"(double){v}.{leaf}" for leaf in self.numbers]
        return " + ".join(
            f"{i + 1.5} * {x} * {own[(i + 1) % len(own)]}"
            + (f" * {v}.{self.integers[i % len(self.integers)]}" if self.integers else "") for i, x in enumerate(own))

    def filled(self, v: str, start: float) -> str:
        """A variable of it with a value in each member."""
        sets = [f"{v}.{leaf} = {start + i * 0.75};" for i, leaf in enumerate(self.numbers)]
        sets += [f"{v}.{leaf} = {2 + i % 3};" for i, leaf in enumerate(self.integers)]
        return f"  {self.name} {v}; memset(&{v}, 0, sizeof {v}); {' '.join(sets)}\n"


def program(seed: int) -> str:
    """Two structs among other arguments, which leave few registers or none; every gradient and tangent is compared with
    a central difference, which is exact: each function is quadratic in each number."""
    rng = Random(seed)
    s, t = Shape(rng, "S", rng.choice([8, 16, 16, 16, 24, 64])), Shape(rng, "T", rng.choice([8, 16, 16, 40]))
    ints, doubles = rng.choice([0, 0, 3, 4, 5, 6]), rng.choice([0, 0, 2, 7, 8])
    params = [*(f"int i{k}" for k in range(ints)), *(f"double c{k}" for k in range(doubles))]
    plain = [*(f"{k + 2}" for k in range(ints)), *(f"{k}.5" for k in range(doubles))]
    const = [*(f"{k + 2}" for k in range(ints)), *(f"enzyme_const, {k}.5" for k in range(doubles))]
    outside = "".join(f" + i{k}" for k in range(ints)) + "".join(f" * c{k}" for k in range(doubles))
    text = f"""{_HEAD}#include <string.h>
{s.text}{t.text}typedef struct {{ S v; float g; T w; }} R;
typedef struct {{ T w; S v; }} P;
typedef struct {{ double value; P d; }} Q;
static double f({', '.join([*params, 'S v', 'float g', 'T w'])}) {{
  return g * (1{outside} + ({s.sum('v')}) * ({t.sum('w')}));
}}
static S made({', '.join([*params, 'S v', 'double z'])}) {{
  {''.join(f'v.{leaf} *= z * z{outside}; ' for leaf in s.numbers)}
  return v;
}}
double __enzyme_fwddiff(void *, ...);
S __enzyme_fwddiff_s(void *, ...);
P __enzyme_fwddiff_p(void *, ...);
R __enzyme_autodiff(void *, ...);
S __enzyme_autodiff_s(void *, ...);
void __enzyme_autodiff_to(void *, ...);
typedef struct {{ double value; R d; }} Valued;
Valued __enzyme_autodiff_valued(void *, ...);
"""
    call = ", ".join(["(void *)f", *const])
    at = ", ".join([*plain, "v", "g", "w"])
    differences, checks = "", ""
    for who, shape, other in (("v", s, "w"), ("w", t, "v")):
        for leaf in shape.numbers:
            member = f"{who}.{leaf}"
            spread_ = f"{member} += 0.125; up = f({at}); {member} -= 0.25; down = f({at}); {member} += 0.125;"
            checks += f"""  {spread_} want = (up - down) / 0.25;
  near("gradient {member}", r.{member}, want); near("beside the value {member}", q.d.{member}, want);
  near("by address {member}", d{member}, want);
  {f'near("alone {member}", only.{leaf}, want);' if who == 'v' else ''}
"""
        leaf = shape.numbers[rng.randrange(len(shape.numbers))]
        member = f"{who}.{leaf}"
        tangent = f"t{who}"
        given = {who: f"{who}, {tangent}", other: f"enzyme_const, {other}"}
        differences += f"""  {{ {shape.name} {tangent}; memset(&{tangent}, 0, sizeof {tangent}); {tangent}.{leaf} = 1;
  {member} += 0.125; up = f({at}); {member} -= 0.25; down = f({at}); {member} += 0.125; want = (up - down) / 0.25;
  near("tangent {member}", __enzyme_fwddiff({call}, {given['v']}, enzyme_const, g, {given['w']}), want);
  near("dup {member}", __enzyme_fwddiff({call}, enzyme_dup, v, {tangent if who == 'v' else '(S){0}'},
       enzyme_dup, g, 0.0, enzyme_dup, w, {tangent if who == 'w' else '(T){0}'}), want); }}
"""
    text += f"""int main(void) {{
  double up, down, want;
  float g = 1.5f;
{s.filled('v', 1.25)}{t.filled('w', 0.5)}{differences}
  R r = __enzyme_autodiff({call}, v, g, w);
  Valued q = __enzyme_autodiff_valued({call}, enzyme_primal_return, enzyme_out, v, enzyme_out, g, enzyme_out, w);
  S only = __enzyme_autodiff_s({call}, v, enzyme_const, g, enzyme_const, w);
  S dv; T dw; memset(&dv, 0, sizeof dv); memset(&dw, 0, sizeof dw);
  __enzyme_autodiff_to({call}, enzyme_dup, v, &dv, enzyme_const, g, w, &dw);
  near("value", q.value, f({at})); near("number", r.g, q.value / g);
{checks}"""
    leaf = s.numbers[-1]
    made = ", ".join([*plain, "v", "2.0"])
    text += f"""  {{ S t; memset(&t, 0, sizeof t); t.{leaf} = 1;
  S m = __enzyme_fwddiff_s({', '.join(['(void *)made', *const])}, v, t, enzyme_const, 2.0);
  v.{leaf} += 0.125; up = made({made}).{leaf}; v.{leaf} -= 0.25; down = made({made}).{leaf}; v.{leaf} += 0.125;
  near("result", m.{leaf}, (up - down) / 0.25); }}
  if (!bad) puts("all right");
  return bad;
}}
"""
    return text


@pytest.mark.parametrize(("seed", "level"), fast(5, (
    (seed, f"-O{(seed + level) % 4}") for level in range(4) for seed in range(48)), most=48))  # fmt: skip
def test_structs_of_many_shapes(seed: int, level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "shapes.c"
    path.write_text(program(seed))
    status = main(["run", level, str(path)])
    output = capfd.readouterr()
    assert status == 0, path.read_text() + output.out + output.err
    assert output.out == "all right\n"
