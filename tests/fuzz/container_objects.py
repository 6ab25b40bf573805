"""Types of random C++ programs that compute by themselves: functions, classes with virtual members, trees, queues."""

# ruff: noqa: E501  (C++ sources read better unbroken)
from __future__ import annotations

from .container_kinds import Kind, Number, Struct, Writer


class Function(Kind):
    """std::function<double(double)> from lambdas that keep values."""

    spell = "std::function<double(double)>"

    def fresh(self, w: Writer) -> str:
        kept = w.name("kept")
        kind = None
        if w.variables and w.r.random() < 0.5:
            place, kind = w.r.choice(w.variables)
        if kind is not None and kind.copies and not isinstance(kind, Function):
            inside = kind.read(w, kept, True)
            inside = inside if w.index is None or w.index not in inside else "0.5"
            return f"[{kept} = {place}](double y) {{ return {w.small()} * y + std::sin({inside}); }}"
        return f"[{kept} = {w.expression()}](double y) {{ return {w.r.choice([f'{kept} * y', f'std::tanh({kept} + y)', f'{kept} / (1 + y * y)'])}; }}"

    def number(self, w: Writer, place: str, const: bool = False) -> None:
        return None

    def read(self, w: Writer, place: str, const: bool = False) -> str:
        return f"({place} ? {place}({w.small() if const else w.entry()}) : 0.3)"

    def total(self, w: Writer, place: str) -> None:
        w.lines.append(f"if ({place}) s += 0.3 * {place}({w.entry()});")

    def change_inside(self, w: Writer, place: str) -> None:
        if w.r.random() < 0.3:
            w.lines.append(f"if ({place}) {place} = [inner = {place}](double y) {{ return 0.5 * inner(y * y); }};")
        else:
            w.lines.append(f"{place} = {self.fresh(w)};")


class Shape(Kind):
    """unique_ptr or shared_ptr to a base class with virtual members."""

    def __init__(self, w: Writer, owner: str) -> None:
        self.base, self.owner, self.copies = w.name("Base"), owner, owner == "shared"
        self.spell = f"std::{owner}_ptr<{self.base}>"
        self.parts: list[tuple[str, int]] = []
        w.top.append(f"struct {self.base} {{ virtual ~{self.base}() = default; virtual double value(double y) const = 0; virtual void move(double d) {{ (void)d; }} }};")
        for _ in range(w.r.randint(2, 3)):
            name, count = w.name("Part"), w.r.randint(1, 3)
            fields = [f"a{i}" for i in range(count)]
            given, kept = ", ".join(f"double {f}_" for f in fields), ", ".join(f"{f}({f}_)" for f in fields)
            value = w.r.choice([f"{fields[0]} * y + {fields[-1]}", f"std::sin({fields[-1]} + y * k)", f"{fields[0]} * std::tanh(y) * k"])
            move = f"void move(double d) override {{ {fields[-1]} = 0.5 * {fields[-1]} + d; k++; }}" if w.r.random() < 0.6 else ""
            w.top.append(f"struct {name} : {self.base} {{ {w.r.choice(['int k = 1;', 'char k = 1;', 'long k = 1;'])} double {', '.join(fields)}; {name}({given}) : {kept} {{}} double value(double y) const override {{ return {value}; }} {move} }};")
            self.parts.append((name, count))

    def declare(self, w: Writer, name: str) -> None:
        w.lines.append(f"{self.spell} {name};")
        self.replace(w, name)

    def one(self, w: Writer) -> str:
        part, count = w.r.choice(self.parts)
        return f"std::make_{self.owner}<{part}>({', '.join(w.expression() for _ in range(count))})"

    def replace(self, w: Writer, place: str) -> None:
        w.lines.append(f"if ({w.index or 3} % 2) {place} = {self.one(w)}; else {place} = {self.one(w)};")

    def number(self, w: Writer, place: str, const: bool = False) -> None:
        return None

    def read(self, w: Writer, place: str, const: bool = False) -> str:
        return f"({place} ? {place}->value({w.small() if const else w.entry()}) : 0.3)"

    def total(self, w: Writer, place: str) -> None:
        w.lines.append(f"if ({place}) s += {w.small()} * {place}->value({w.entry()});")

    def change_inside(self, w: Writer, place: str) -> None:
        part = self.parts[0][0]
        what = w.r.randrange(4)
        if what == 0:
            self.replace(w, place)
        elif what == 1:
            w.lines.append(f"if (auto *p = dynamic_cast<{part} *>({place}.get())) p->a0 = {w.expression()};")
        else:
            w.lines.append(f"if ({place}) {place}->move({w.expression()});")


class Tree(Kind):
    """A tree of nodes behind smart pointers, evaluated by recursion."""

    def __init__(self, w: Writer, owner: str) -> None:
        self.node, self.owner, self.copies = w.name("Node"), owner, owner == "shared"
        self.spell = f"std::{owner}_ptr<{self.node}>"
        w.top.append(f"struct {self.node} {{ int op; double v; {self.spell} l, r; {self.node}(int op, double v) : op(op), v(v) {{}} }};")
        w.top.append(f"static double eval(const {self.spell} &p) {{ if (!p) return 0.1; if (p->op == 0) return p->v; double l = eval(p->l), r = eval(p->r); return p->op == 1 ? l + p->v * r : p->op == 2 ? l * r + p->v : std::sin(l * p->v + r); }}")

    def declare(self, w: Writer, name: str) -> None:
        w.lines.append(f"{self.spell} {name} = std::make_{self.owner}<{self.node}>({w.r.randrange(1, 4)}, {w.expression()});")
        for side in "lr":
            w.lines.append(f"{name}->{side} = std::make_{self.owner}<{self.node}>({w.r.randrange(4)}, {w.expression()});")
            for leaf in "lr" * w.r.randrange(2):
                w.lines.append(f"{name}->{side}->{leaf} = std::make_{self.owner}<{self.node}>(0, {w.expression()});")

    def number(self, w: Writer, place: str, const: bool = False) -> Number:
        return w.r.choice([([f"{place}"], f"{place}->v"), ([f"{place}", f"{place}->l"], f"{place}->l->v")])

    def read(self, w: Writer, place: str, const: bool = False) -> str:
        return f"eval({place})" if w.r.random() < 0.5 else super().read(w, place, const)

    def total(self, w: Writer, place: str) -> None:
        w.lines.append(f"s += {w.small()} * eval({place});")

    def change_inside(self, w: Writer, place: str) -> None:
        what = w.r.randrange(4)
        if what == 0:
            w.lines.append(f"if ({place}) std::swap({place}->l, {place}->r);")
        elif what == 1:
            w.lines.append(f"if ({place} && {place}->l) {{ auto old = std::move({place}->l); {place}->l = std::make_{self.owner}<{self.node}>(2, {w.expression()}); {place}->l->r = std::move(old); }}")
        elif what == 2:
            w.lines.append(f"for (auto *p = {place}.get(); p; p = p->r.get()) p->v = 0.5 * p->v + 0.2 * {w.entry()};")
        else:
            self.change_number(w, place)


class Chain(Kind):
    """A list of nodes of its own, freed by its destructor."""

    def __init__(self, w: Writer) -> None:
        self.spell, self.copies = w.name("Chain"), False
        w.top.append(f"struct {self.spell} {{ struct Link {{ double v; int k; Link *next; }}; Link *head = nullptr; int count = 0; {self.spell}() = default;"
                     f" {self.spell}({self.spell} &&o) noexcept : head(o.head), count(o.count) {{ o.head = nullptr; o.count = 0; }}"
                     f" {self.spell} &operator=({self.spell} &&o) noexcept {{ std::swap(head, o.head); std::swap(count, o.count); return *this; }}"
                     f" ~{self.spell}() {{ while (head) pop(); }} void pop() {{ Link *l = head; head = l->next; delete l; count--; }}"
                     " void push(double v) { head = new Link{v, count++, head}; }"
                     " void turn() { Link *r = nullptr; while (head) { Link *l = head->next; head->next = r; r = head; head = l; } head = r; }"
                     " double sum() const { double s = 0; for (Link *l = head; l; l = l->next) s = 0.7 * s + l->v * (1 + l->k); return s; } };")  # fmt: skip

    def declare(self, w: Writer, name: str) -> None:
        w.lines.append(f"{self.spell} {name}; for (int i = 0; i < 3; i++) {name}.push(x[i] * {w.expression()});")

    def number(self, w: Writer, place: str, const: bool = False) -> Number:
        return w.r.choice([([f"{place}.head"], f"{place}.head->v"), ([f"{place}.head", f"{place}.head->next"], f"{place}.head->next->v")])

    def total(self, w: Writer, place: str) -> None:
        w.lines.append(f"s += {w.small()} * std::tanh({place}.sum());")

    def change_inside(self, w: Writer, place: str) -> None:
        w.lines.append(w.r.choice([f"{place}.turn();", f"if ({place}.count > 1) {place}.pop();", f"if ({place}.count < 9) {place}.push({w.expression()});"]))


class Indices(Kind):
    """std::set<int>, or vector<int>: places in x."""

    def __init__(self, container: str) -> None:
        self.container, self.spell = container, f"std::{container}<int>"

    def declare(self, w: Writer, name: str) -> None:
        w.lines.append(f"{self.spell} {name}{{{', '.join(str(w.r.randrange(6)) for _ in range(3))}}};")

    def number(self, w: Writer, place: str, const: bool = False) -> None:
        return None

    def read(self, w: Writer, place: str, const: bool = False) -> str:
        return "0.3" if const else f"({place}.empty() ? 0.3 : x[*{place}.begin()])"

    def total(self, w: Writer, place: str) -> None:
        e = w.name("e")
        w.lines.append(f"for (int {e} : {place}) s += {w.small()} * x[{e}] * x[{e}];")

    def change_inside(self, w: Writer, place: str) -> None:
        key = w.index or str(w.r.randrange(6))
        grown = f"{place}.insert({key} % 6);" if self.container == "set" else f"if ({place}.size() < 9) {place}.push_back({key} % 6);"
        less = f"{place}.erase({key});" if self.container == "set" else f"std::sort({place}.begin(), {place}.end());"
        w.lines.append(w.r.choice([grown, less]))


class Queue(Kind):
    """priority_queue of (number, int) pairs, or a queue or a stack of structs."""

    def __init__(self, w: Writer, container: str) -> None:
        self.container = container
        self.element: Struct | None = None
        if container == "priority_queue":
            self.spell = f"std::priority_queue<std::pair<double, int>{w.r.choice(['', ', std::vector<std::pair<double, int>>, std::greater<>'])}>"
        else:
            self.spell = f"std::{container}<std::pair<double, int>>"
        self.top_of = "front" if container == "queue" else "top"

    def declare(self, w: Writer, name: str) -> None:
        w.lines.append(f"{self.spell} {name}; for (int i = 0; i < n; i++) {name}.push({{x[i] * {w.small()} + {w.any_number()} * 0.1, i}});")

    def number(self, w: Writer, place: str, const: bool = False) -> None:
        return None

    def read(self, w: Writer, place: str, const: bool = False) -> str:
        return f"({place}.empty() ? 0.3 : {place}.{self.top_of}().first)"

    def total(self, w: Writer, place: str) -> None:
        e = w.name("e")
        w.lines.append(f"for (auto {e} = {place}; !{e}.empty(); {e}.pop()) s = 0.9 * s + {e}.{self.top_of}().first * (1 + 0.1 * {e}.{self.top_of}().second);")

    def change_inside(self, w: Writer, place: str) -> None:
        e = w.name("e")
        w.lines.append(w.r.choice([
            f"if ({place}.size() < 12) {place}.push({{{w.expression()}, 2}});", f"if ({place}.size() > 2) {place}.pop();",
            f"if (!{place}.empty()) {{ auto {e} = {place}.{self.top_of}(); {place}.pop(); {e}.first = 0.5 * {e}.first + 0.3 * {w.entry()}; {place}.push({e}); }}",
        ]))  # fmt: skip
