"""Types of random C++ programs: how a value of a type is made, read, changed and summed, as source text. A number inside
a value is a pair (guards, lvalue): the lvalue is read or written only where all guards hold."""

# ruff: noqa: E501  (C++ sources read better unbroken)
from __future__ import annotations

import random
from typing import Any

Number = tuple[list[str], str]
LETTERS = ("a", "bc", "longer than a short string")


class Writer:
    """The text of a program: declarations at its top, and lines of the function that is being written."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.top: list[str] = []
        self.lines: list[str] = []
        self.variables: list[tuple[str, Kind]] = []
        self.taken = 0
        self.index: str | None = None

    def name(self, start: str) -> str:
        self.taken += 1
        return f"{start}{self.taken}"

    def small(self) -> str:
        return f"{self.r.uniform(0.2, 1.1):.3f}"

    def entry(self) -> str:
        """An element of x."""
        k = self.r.randrange(6)
        return f"x[({self.index} + {k}) % n]" if self.index and self.r.random() < 0.7 else f"x[{k}]"

    def any_number(self) -> str:
        """A number from some variable."""
        if not self.variables or self.r.random() < 0.3:
            return self.entry()
        place, kind = self.r.choice(self.variables)
        return kind.read(self, place)

    def expression(self) -> str:
        """A smooth function of numbers, of a size like theirs."""
        one, two = self.entry(), self.any_number()
        return self.r.choice([
            f"{one} * {self.small()} + 0.5 * {two}", f"std::sin({two} + {one})", f"{one} * std::tanh({two})",
            f"0.5 * {two} * std::cos({one})", f"std::exp(-{one}) * 0.3 + 0.2 * {two}", f"std::sqrt(1 + {two} * {two}) * {one}",
        ])  # fmt: skip

    def guarded(self, guards: list[str], text: str) -> None:
        self.lines.append((f"if ({' && '.join(guards)}) " if guards else "") + text)

    def other(self, place: str, kind: Kind) -> str | None:
        """Another variable of this type."""
        same = [p for p, k in self.variables if k is kind and p != place]
        return self.r.choice(same) if same else None


class Kind:
    """One type. `copies`: values can be copied; `single`: holds a float; `empty`: `T()` is a value to work with."""

    spell = ""
    copies = True
    single = False
    empty = True
    depth = 0

    def declare(self, w: Writer, name: str) -> None:
        w.lines.append(f"{self.spell} {name} = {self.fresh(w)};")

    def fresh(self, w: Writer) -> str:
        """An expression of a new value, after the lines that it needs."""
        name = w.name("t")
        self.declare(w, name)
        return name if self.copies and w.r.random() < 0.5 else f"std::move({name})"

    def number(self, w: Writer, place: str, const: bool = False) -> Number | None:
        """A number that is in it, if any; const: by what a constant value allows, the same one for every value."""
        raise NotImplementedError

    def read(self, w: Writer, place: str, const: bool = False) -> str:
        found = self.number(w, place, const)
        if found is None:
            return "0.3"
        guards, text = found
        return f"({' && '.join(guards)} ? {text} : 0.3)" if guards else f"{text}"

    def total(self, w: Writer, place: str) -> None:
        """Lines that add all that is in it to s."""
        raise NotImplementedError

    def change(self, w: Writer, place: str) -> None:
        """Lines that change it."""
        other, what = w.other(place, self), w.r.randrange(5)
        if what == 0 and other:
            w.lines.append(w.r.choice([f"std::swap({place}, {other});", *([f"{place} = {other};"] * self.copies)]))
        elif what == 1:
            w.lines.append(f"{place} = {self.fresh(w)};")
        elif what == 2 and self.copies:
            name = w.name("c")
            w.lines.append(f"auto {name} = {place};")
            self.change_inside(w, name)
            w.lines.append(f"{place} = {w.r.choice(['', 'std::move'])}({name});")
        else:
            self.change_inside(w, place)

    def change_inside(self, w: Writer, place: str) -> None:
        self.change_number(w, place)

    def change_number(self, w: Writer, place: str) -> None:
        found = self.number(w, place)
        if found is not None:
            text = w.r.choice([f"= {w.expression()}", f"+= {w.small()} * {w.entry()}", "*= 0.7"])
            w.guarded(found[0], f"{found[1]} {text};")


class Scalar(Kind):
    """double or float."""

    def __init__(self, spell: str) -> None:
        self.spell, self.single = spell, spell == "float"

    def fresh(self, w: Writer) -> str:
        return f"({self.spell})({w.expression()})"

    def number(self, w: Writer, place: str, const: bool = False) -> Number:
        return [], place

    def total(self, w: Writer, place: str) -> None:
        w.lines.append(w.r.choice([f"s += {w.small()} * std::sin({place});", f"s = 0.9 * s + {place} * {w.entry()};"]))

    def change(self, w: Writer, place: str) -> None:
        self.change_number(w, place)


class Integer(Kind):
    """int, long, char, bool, or a string."""

    def __init__(self, spell: str) -> None:
        self.spell = spell

    def fresh(self, w: Writer) -> str:
        if self.spell == "std::string":
            return f'std::string("{w.r.choice(LETTERS)}")'
        return f"({self.spell}){w.r.randrange(1, 4)}"

    def number(self, w: Writer, place: str, const: bool = False) -> None:
        return None

    def total(self, w: Writer, place: str) -> None:
        value = f"{place}.size()" if self.spell == "std::string" else place
        w.lines.append(f"s += 0.01 * {value};")

    def change(self, w: Writer, place: str) -> None:
        if self.spell == "std::string":
            w.lines.append(f'{place} {w.r.choice(["=", "+="])} "{w.r.choice(LETTERS)}";')
        elif self.spell == "bool":
            w.lines.append(f"{place} = !{place};")
        else:
            w.guarded([f"{place} < 9"], f"{place} += 1;")


class Struct(Kind):
    """Fields of other types, and a member function."""

    def __init__(self, w: Writer, fields: list[Kind]) -> None:
        self.spell = w.name("S")
        self.fields = [(f"f{i}", kind) for i, kind in enumerate(fields)]
        self.copies = all(kind.copies for kind in fields)
        self.single = any(kind.single for kind in fields)
        self.depth = 1 + max(kind.depth for kind in fields)
        kept, w.lines, w.variables, kept_index, w.index = w.lines, [], [], w.index, None
        inside = " ".join(f"{kind.spell} {name}{{}};" for name, kind in self.fields)
        read = self.read(w, "(*this)", True)
        w.top.append(f"struct {self.spell} {{ {inside} double value() const {{ return {read}; }} }};")
        w.lines, w.index = kept, kept_index

    def declare(self, w: Writer, name: str) -> None:
        if w.r.random() < 0.5:
            values = ", ".join(kind.fresh(w) for _, kind in self.fields)
            w.lines.append(f"{self.spell} {name}{{{values}}};")
            return
        w.lines.append(f"{self.spell} {name};")
        for field, kind in self.fields:
            w.lines.append(f"{name}.{field} = {kind.fresh(w)};")

    def number(self, w: Writer, place: str, const: bool = False) -> Number | None:
        for field, kind in w.r.sample(self.fields, len(self.fields)):
            found = kind.number(w, f"{place}.{field}", const)
            if found is not None:
                return found
        return None

    def total(self, w: Writer, place: str) -> None:
        for field, kind in self.fields:
            kind.total(w, f"{place}.{field}")
        if w.r.random() < 0.3:
            w.lines.append(f"s += 0.3 * {place}.value();")

    def change_inside(self, w: Writer, place: str) -> None:
        field, kind = w.r.choice(self.fields)
        kind.change(w, f"{place}.{field}")


class Sequence(Kind):
    """vector, deque, list or array of another type."""

    def __init__(self, container: str, kind: Kind) -> None:
        self.container, self.kind, self.count = container, kind, 3
        self.spell = f"std::{container}<{kind.spell}{', 3' if container == 'array' else ''}>"
        self.copies, self.single, self.depth = kind.copies, kind.single, kind.depth + 1

    def declare(self, w: Writer, name: str) -> None:
        if self.container != "array" and self.kind.spell == "double" and w.r.random() < 0.4:
            w.lines.append(f"{self.spell} {name}({w.r.choice(['x, x + n', '4, ' + w.expression()])});")
            return
        w.lines.append(f"{self.spell} {name}{{}};")
        if self.container == "array":
            for i in range(3):
                w.lines.append(f"{name}[{i}] = {self.kind.fresh(w)};")
        else:
            self.push_in_loop(w, name, w.r.choice(["3", "n"]))

    def push_in_loop(self, w: Writer, place: str, count: str) -> None:
        kept, w.index = w.index, w.name("i")
        w.lines.append(f"for (int {w.index} = 0; {w.index} < {count}; {w.index}++) {{")
        self.push(w, place)
        w.lines.append("}")
        w.index = kept

    def push(self, w: Writer, place: str) -> None:
        how = ["push_back", "push_back", "emplace_back"] + ["push_front"] * (self.container != "vector")
        w.lines.append(f"{place}.{w.r.choice(how)}({self.kind.fresh(w)});")

    def element(self, w: Writer, place: str) -> str:
        at = w.r.randrange(3)
        if self.container == "array":
            return f"{place}[{at if w.index is None else f'({w.index} + {at}) % 3'}]"
        if self.container == "list":
            return w.r.choice([f"{place}.front()", f"{place}.back()", f"(*std::next({place}.begin(), {at} % {place}.size()))"])
        which = str(at) if w.index is None else f"({w.index} + {at})"
        return w.r.choice([f"{place}[{which} % {place}.size()]", f"{place}.back()", f"{place}.front()"])

    def number(self, w: Writer, place: str, const: bool = False) -> Number | None:
        found = self.kind.number(w, self.element(w, place), const)
        if found is None:
            return None
        return ([*([] if self.container == "array" else [f"!{place}.empty()"]), *found[0]], found[1])

    def total(self, w: Writer, place: str) -> None:
        e = w.name("e")
        if self.container in ("vector", "deque") and w.r.random() < 0.4:
            w.lines.append(f"for (size_t {e} = 0; {e} < {place}.size(); {e}++) {{")
            self.kind.total(w, f"{place}[{e}]")
        else:
            w.lines.append(f"for (const auto &{e} : {place}) {{")
            self.kind.total(w, e)
        w.lines.append("}")

    def change_inside(self, w: Writer, place: str) -> None:
        r, what, e = w.r, w.r.randrange(10), w.name("e")
        grows = self.container != "array"
        if what <= 1 and grows:
            w.lines.append(f"if ({place}.size() < 12) {{")
            self.push(w, place)
            w.lines.append("}")
        elif what == 2 and grows:
            ways = ["pop_back()", f"erase({place}.begin())", "resize(2)"] + ["pop_front()"] * (self.container != "vector")
            w.guarded([f"{place}.size() > 2"], f"{place}.{r.choice(ways)};")
        elif what == 3 and grows:
            w.lines.append(f"if ({place}.size() < 12) {{")
            w.lines.append(f"{place}.insert(std::next({place}.begin(), {place}.size() / 2), {self.kind.fresh(w)});")
            w.lines.append("}")
        elif what == 4 and (key := self.kind.read(w, "a", True)) != "0.3" and w.index is None:
            w.lines.append(f"auto {e} = [&](const auto &a) {{ return {key}; }};")
            order = f"[&](const auto &a, const auto &b) {{ return {e}(a) < {e}(b); }}"
            w.lines.append(f"{place}.sort({order});" if self.container == "list" else f"std::sort({place}.begin(), {place}.end(), {order});")
        elif what == 5:
            w.lines.append(f"{place}.reverse();" if self.container == "list" else f"std::reverse({place}.begin(), {place}.end());")
        elif what == 6 and self.container in ("vector", "deque"):
            how, end = r.choice(["rotate", "rotate", "swap_ranges"]), r.choice([".end()", ".begin() + 2"])
            end = ".end() - 1" if (how, end) == ("swap_ranges", ".end()") else end  # it writes behind its last iterator
            w.guarded([f"{place}.size() > 2"], f"std::{how}({place}.begin(), {place}.begin() + 1, {place}{end});"
                      if r.random() < 0.5 else f"std::swap({place}[0], {place}[{place}.size() - 1]);")
        elif what == 7:
            w.lines.append(f"for (auto &{e} : {place}) {{")
            self.kind.change_inside(w, e) if isinstance(self.kind, Struct) else self.kind.change_number(w, e)
            w.lines.append("}")
        elif what == 8 and grows and self.kind.copies:
            w.lines.append(f"if (!{place}.empty() && {place}.size() < 12) {place}.push_back({self.element(w, place)});")
        else:
            self.change_number(w, place)


class Map(Kind):
    """map or unordered_map from ints or strings."""

    def __init__(self, container: str, key: str, kind: Kind) -> None:
        self.container, self.key, self.kind = container, key, kind
        self.spell = f"std::{container}<{key}, {kind.spell}>"
        self.copies, self.single, self.depth = kind.copies, kind.single, kind.depth + 1

    def some_key(self, w: Writer) -> str:
        if self.key == "int":
            return str(w.r.randrange(4)) if w.index is None else f"({w.index} * {w.r.randrange(1, 4)}) % 4"
        names = ", ".join(f'"{letters}"' for letters in LETTERS)
        return f'"{w.r.choice(LETTERS)}"' if w.index is None else f"std::vector<std::string>{{{names}}}[{w.index} % 3]"

    def declare(self, w: Writer, name: str) -> None:
        w.lines.append(f"{self.spell} {name};")
        kept, w.index = w.index, w.name("i")
        w.lines.append(f"for (int {w.index} = 0; {w.index} < {w.r.choice(['3', 'n'])}; {w.index}++) {{")
        self.put(w, name)
        w.lines.append("}")
        w.index = kept

    def put(self, w: Writer, place: str) -> None:
        key, value = self.some_key(w), self.kind.fresh(w)
        ways = [f"{place}[{key}] = {value};", f"{place}.emplace({key}, {value});", f"{place}.insert({{{key}, {value}}});",
                f"{place}.insert_or_assign({key}, {value});"]  # fmt: skip
        w.lines.append(w.r.choice(ways if self.kind.copies else ways[:2]))

    def number(self, w: Writer, place: str, const: bool = False) -> Number | None:
        key = self.some_key(w)
        ways = [([f"{place}.count({key})"], f"{place}.at({key})"), ([f"!{place}.empty()"], f"{place}.begin()->second")]
        if not const:
            ways += [([f"{place}.find({key}) != {place}.end()"], f"{place}.find({key})->second"), ([], f"{place}[{key}]")]
        guards, element = w.r.choice(ways[:1] if self.container == "unordered_map" and not const else ways)
        found = self.kind.number(w, element, const)
        return None if found is None else ([*guards, *found[0]], found[1])

    def total(self, w: Writer, place: str) -> None:
        e = w.name("e")
        if w.r.random() < 0.5:
            w.lines.append(f"for (const auto &[k{e}, {e}] : {place}) {{")
            self.kind.total(w, e)
            w.lines.append(f"s += 0.01 * k{e}{'' if self.key == 'int' else '.size()'};")
        else:
            w.lines.append(f"for (auto {e} = {place}.begin(); {e} != {place}.end(); ++{e}) {{")
            self.kind.total(w, f"{e}->second")
        w.lines.append("}")

    def change_inside(self, w: Writer, place: str) -> None:
        what = w.r.randrange(5)
        if what == 0:
            w.lines.append("{")
            self.put(w, place)
            w.lines.append("}")
        elif what == 1:
            w.lines.append(f"{place}.erase({self.some_key(w)});")
        elif what == 2:
            e = w.name("e")
            w.lines.append(f"for (auto &{e} : {place}) {{")
            self.kind.change_number(w, f"{e}.second")
            w.lines.append("}")
        else:
            self.change_number(w, place)


class Product(Kind):
    """pair or tuple."""

    def __init__(self, kinds: list[Kind]) -> None:
        self.kinds, self.container = kinds, "pair" if len(kinds) == 2 else "tuple"
        self.spell = f"std::{self.container}<{', '.join(kind.spell for kind in kinds)}>"
        self.copies, self.single = all(k.copies for k in kinds), any(k.single for k in kinds)
        self.depth = 1 + max(kind.depth for kind in kinds)

    def fresh(self, w: Writer) -> str:
        return f"{self.spell}({', '.join(kind.fresh(w) for kind in self.kinds)})"

    def part(self, place: str, i: int) -> str:
        return f"{place}.{('first', 'second')[i]}" if self.container == "pair" else f"std::get<{i}>({place})"

    def number(self, w: Writer, place: str, const: bool = False) -> Number | None:
        for i in w.r.sample(range(len(self.kinds)), len(self.kinds)):
            found = self.kinds[i].number(w, self.part(place, i), const)
            if found is not None:
                return found
        return None

    def total(self, w: Writer, place: str) -> None:
        for i, kind in enumerate(self.kinds):
            kind.total(w, self.part(place, i))

    def change_inside(self, w: Writer, place: str) -> None:
        i = w.r.randrange(len(self.kinds))
        self.kinds[i].change(w, self.part(place, i))


class Optional(Kind):
    """optional of another type."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.spell = kind, f"std::optional<{kind.spell}>"
        self.copies, self.single, self.depth = kind.copies, kind.single, kind.depth + 1

    def declare(self, w: Writer, name: str) -> None:
        w.lines.append(f"{self.spell} {name};")
        w.lines.append(f"if (n > {w.r.choice([2, 2, 9])}) {{")
        w.lines.append(f"{name} = {self.kind.fresh(w)};")
        w.lines.append("}")

    def number(self, w: Writer, place: str, const: bool = False) -> Number | None:
        found = self.kind.number(w, f"(*{place})", const)
        return None if found is None else ([f"{place}.has_value()", *found[0]], found[1])

    def total(self, w: Writer, place: str) -> None:
        w.lines.append(f"if ({place}) {{")
        self.kind.total(w, f"(*{place})")
        w.lines.append("}")

    def change_inside(self, w: Writer, place: str) -> None:
        if w.r.random() < 0.2:
            w.lines.append(f"{place}.reset();")
        elif w.r.random() < 0.3:
            w.lines.append(f"if (!{place}) {{")
            w.lines.append(f"{place} = {self.kind.fresh(w)};")
            w.lines.append("}")
        else:
            self.change_number(w, place)


class Variant(Kind):
    """variant of different types."""

    def __init__(self, kinds: list[Kind]) -> None:
        self.kinds, self.spell = kinds, f"std::variant<{', '.join(kind.spell for kind in kinds)}>"
        self.copies, self.single = all(k.copies for k in kinds), any(k.single for k in kinds)
        self.depth = 1 + max(kind.depth for kind in kinds)

    def declare(self, w: Writer, name: str) -> None:
        w.lines.append(f"{self.spell} {name};")
        self.replace(w, name)

    def replace(self, w: Writer, place: str) -> None:
        one, two = w.r.choice(self.kinds), w.r.choice(self.kinds)
        w.lines.append(f"if ({w.index or 3} % 2) {{")
        w.lines.append(f"{place} = {one.fresh(w)};")
        w.lines.append("} else {")
        w.lines.append(f"{place} = {two.fresh(w)};")
        w.lines.append("}")

    def number(self, w: Writer, place: str, const: bool = False) -> Number | None:
        for i in w.r.sample(range(len(self.kinds)), len(self.kinds)):
            found = self.kinds[i].number(w, f"std::get<{i}>({place})", const)
            if found is not None:
                return [f"{place}.index() == {i}", *found[0]], found[1]
        return None

    def total(self, w: Writer, place: str) -> None:
        for i, kind in enumerate(self.kinds):
            w.lines.append(f"if ({place}.index() == {i}) {{")
            kind.total(w, f"std::get<{i}>({place})")
            w.lines.append("}")

    def change_inside(self, w: Writer, place: str) -> None:
        if w.r.random() < 0.4:
            self.replace(w, place)
        else:
            self.change_number(w, place)


class Owner(Kind):
    """unique_ptr or shared_ptr to another type, or a plain pointer that is never freed."""

    def __init__(self, container: str, kind: Kind) -> None:
        self.container, self.kind = container, kind
        self.spell = f"std::{container}_ptr<{kind.spell}>" if container != "plain" else f"{kind.spell} *"
        self.copies, self.single, self.depth = container != "unique", kind.single, kind.depth + 1

    def fresh(self, w: Writer) -> str:
        value = self.kind.fresh(w)
        return f"std::make_{self.container}<{self.kind.spell}>({value})" if self.container != "plain" else f"new {self.kind.spell}({value})"

    def number(self, w: Writer, place: str, const: bool = False) -> Number | None:
        found = self.kind.number(w, f"(*{place})", const)
        return None if found is None else ([f"{place} != nullptr", *found[0]], found[1])

    def total(self, w: Writer, place: str) -> None:
        w.lines.append(f"if ({place}) {{")
        self.kind.total(w, f"(*{place})")
        w.lines.append("}")

    def change_inside(self, w: Writer, place: str) -> None:
        if w.r.random() < 0.2 and self.container != "plain":
            w.lines.append(f"{place}.reset();")
        else:
            w.lines.append(f"if ({place}) {{")
            self.kind.change_inside(w, f"(*{place})")
            w.lines.append("}")


def with_numbers(kind: Any) -> bool:
    """Whether numbers can be in it."""
    parts = getattr(kind, "kinds", None) or [k for _, k in getattr(kind, "fields", [])] or [k for k in [getattr(kind, "kind", None)] if k]
    return any(with_numbers(part) for part in parts) if parts else not isinstance(kind, Integer)
