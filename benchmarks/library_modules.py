"""The modules that a generated library is made of: C in the styles of libraries, each made new with a random choice.

In the text of a module (`library/*.c`, templates and not yet C), `@` is its number, `{a|b|c}!` one of several, `<t,u>`
a smooth expression of these names, and `[a; b; c]!` the members of a struct in some order, with members that nothing
needs between them. Each module has `double run@(struct engine *, const double *x, long n)`; `CALL(t)` is a call of some
module before it.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

_FOLDER = Path(__file__).parent / "library"


def _text(name: str) -> str:
    return (_FOLDER / f"{name}.c").read_text(encoding="utf-8")


ENGINE = _text("engine")
NAMES = ("thing", "list", "map", "callbacks", "sparse", "shapes", "tree", "vectors", "solver", "parser", "dense")
KINDS = ["\n" + _text(name) for name in NAMES]
FILLERS = (
    "int spare", "double unused[2]", "char label_of[12]", "long stamp", "float ratio", "void *user", "short marks[3]",
)


def library(lines: int, seed: int = 1) -> str:
    """The source of a library of about so many lines; `double loss(const double *x, long n)` reaches all of it."""
    random = Random(seed)
    parts, names, length = [ENGINE], list[str](), ENGINE.count("\n")
    while length < lines or not names:
        parts.append(module(len(names), random, names[-20:]))
        names.append(f"run{len(names)}")
        length += parts[-1].count("\n") + 1
    listed = [name for name in names if random.random() < 0.4]
    called = "".join(f"  s += {name}(&e, x, n);\n" for name in names if name not in listed)
    table = ", ".join([*listed, names[0]])
    parts.append(f"""
static double (*const registry[])(struct engine *, const double *, long) = {{{table}}};
double loss(const double *x, long n) {{
  struct engine e = {{.scale = 0.5 + 0.25 * x[0]}};
  double s = 0;
  for (size_t i = 0; i < sizeof registry / sizeof *registry; i++) s += registry[i](&e, x, n);
{called}  s += engine_energy(&e, 0.125);
  engine_clear(&e);
  return s;
}}
""")
    return "".join(parts)


def module(number: int, random: Random, earlier: list[str]) -> str:
    """The C of one module; `earlier`: the functions that it may call."""
    text = random.choice(KINDS)
    text = re.sub(r"\{([^{}]*)\}!", lambda m: random.choice(m[1].split("|")), text)
    text = re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]!", lambda m: _members(m[1], random), text)
    text = re.sub(r"<(\w+),(\w+)>", lambda m: _expression(m[1], m[2], random, 3), text)
    text = re.sub(r"CALL\((\w+)\)", lambda m: _call(m[1], random, earlier), text)
    return text.replace("@", str(number))


def _members(text: str, random: Random) -> str:
    """The members of a struct in some order, with others that nothing needs."""
    members = [part.strip() for part in text.split(";")]
    members += random.sample(FILLERS, random.randrange(3))
    random.shuffle(members)
    return "".join(f"{member}; " for member in members).strip()


def _expression(t: str, u: str, random: Random, depth: int) -> str:
    """A smooth expression of two names whose values and slopes stay small."""
    if depth == 0 or random.random() < 0.2:
        return random.choice([t, u, f"0.5 * {t}", f"({t} - {u})", f"0.25 * {t} * {u}"])
    a, b = _expression(t, u, random, depth - 1), _expression(u, t, random, depth - 1)
    return random.choice([
        f"soft({a} + {b})", f"sin({a})", f"0.5 * ({a} - {b})", f"bump({a}, {b})", f"{a} / (2 + cos({b}))",
        f"tanh({a}) * {b}", f"log(1.5 + ({a}) * ({a}))", f"(({a}) > 0.25 ? {b} : 0.5 * ({a}))", f"soft({b}) * ({a})",
    ])  # fmt: skip


def _call(value: str, random: Random, earlier: list[str]) -> str:
    """What a module returns: its value, perhaps with that of another module."""
    if not earlier or random.random() < 0.5:
        return f"soft({value})"
    return f"soft({value} + 0.25 * {random.choice(earlier)}(e, x, n))"
