"""What texts of strings take along of the objects that they lie in: no member beside them."""

from __future__ import annotations

import numpy as np
import pytest
from analysed import facts_of, named

import irgrad
from irgrad.engine import grad, jvp

PARSER = r"""
#include <cctype>
#include <cmath>
#include <map>
#include <memory>
#include <string>
using Env = std::map<std::string, double>;
struct Node { virtual ~Node() = default; virtual double eval(const Env &env) const = 0; };
using Tree = std::shared_ptr<Node>;
struct Number : Node {
  double v;
  explicit Number(double v) : v(v) {}
  double eval(const Env &) const override { return v; }
};
struct Name : Node {
  std::string n;
  explicit Name(std::string n) : n(std::move(n)) {}
  double eval(const Env &env) const override { return env.at(n); }
};
struct Pair : Node {
  char op;
  Tree a, b;
  Pair(char op, Tree a, Tree b) : op(op), a(a), b(b) {}
  double eval(const Env &env) const override {
    double x = a->eval(env), y = b->eval(env);
    return op == '+' ? x + y : op == '*' ? x * y : x / y;
  }
};
struct Sine : Node {
  Tree a;
  explicit Sine(Tree a) : a(a) {}
  double eval(const Env &env) const override { return std::sin(a->eval(env)); }
};
struct Parser {
  const char *s;
  char peek() { while (*s == ' ') s++; return *s; }
  Tree sum() {
    Tree t = product();
    while (peek() == '+') { s++; t = std::make_shared<Pair>('+', t, product()); }
    return t;
  }
  Tree product() {
    Tree t = atom();
    while (peek() == '*' || peek() == '/') { char op = *s++; t = std::make_shared<Pair>(op, t, atom()); }
    return t;
  }
  Tree atom() {
    char c = peek();
    if (c == '(') { s++; Tree t = sum(); peek(); s++; return t; }
    if (std::isdigit(c)) {
      double v = 0;
      while (std::isdigit(*s)) v = 10 * v + (*s++ - '0');
      return std::make_shared<Number>(v);
    }
    std::string name;
    while (std::isalpha(*s)) name += *s++;
    if (name != "sin") return std::make_shared<Name>(name);
    s++;
    Tree t = sum();
    peek();
    s++;
    return std::make_shared<Sine>(t);
  }
};
extern "C" double loss(const double *x) {
  Parser parser{"sin(alpha * beta) + gamma / (2 + alpha) * 3"};
  Tree tree = parser.sum();
  Env env{{"alpha", x[0]}, {"beta", x[1]}, {"gamma", x[2]}};
  return tree->eval(env);
}
"""

POINTERS = r"""
#include <cstring>
#include <string>
extern "C" double loss(const double *x) {
  double own[2] = {0, 0}, *p = own, *q;
  std::string text = "a text that is too long to be kept in place ";
  text.append((const char *)&p, sizeof p);
  std::string end = text.substr(44), other(end);
  std::memcpy(&q, other.data(), sizeof q);
  q[1] = x[0] * x[1];
  return own[1] * x[2];
}
"""
X = np.array([0.7, 1.3, -0.4])

STRING = """
declare ptr @malloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
define void @_ZNSt3__112basic_stringIcE4copyEPcm(ptr %from, ptr %to, i64 %n) {
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  ret void
}
define double @f(ptr noalias %x, i64 %n) {
  %text = call ptr @malloc(i64 32)
  %other = call ptr @malloc(i64 32)
  %s = alloca [24 x i8], align 8
  %copy = alloca [24 x i8], align 8
  %at = getelementptr i8, ptr %s, i64 16
  store ptr %text, ptr %at, align 8
  MORE
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %copy, ptr align 8 %s, i64 24, i1 false)
  %short = getelementptr i8, ptr %copy, i64 1
  %to = call ptr @malloc(i64 32)
  call void @_ZNSt3__112basic_stringIcE4copyEPcm(ptr %short, ptr %to, i64 %n)
  %q = load ptr, ptr %to
  %v = load double, ptr %x
  ret double %v
}
"""
PUT = {
    "nothing": ("", set()),
    "between words": ("%b = getelementptr i8, ptr %s, i64 9\n store ptr %other, ptr %b, align 1", {"other"}),
    "somewhere": ("%b = getelementptr i8, ptr %s, i64 %n\n store ptr %other, ptr %b, align 1", {"other"}),
    "at some word": ("%b = getelementptr i8, ptr %s, i64 %n\n store ptr %other, ptr %b, align 8", set()),
    "by a copy": (
        """%p = alloca ptr, align 8
  store ptr %other, ptr %p, align 8
  %b = getelementptr i8, ptr %s, i64 1
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr align 8 %p, i64 16, i1 false)""", {"other"}),
    "by a move within": (
        """%b = getelementptr i8, ptr %s, i64 3
  call void @llvm.memmove.p0.p0.i64(ptr %b, ptr %s, i64 8, i1 false)""", {"text"}),
}  # fmt: skip


@pytest.mark.parametrize("put", PUT)
def test_a_text_takes_along_what_lies_between_words(put: str) -> None:
    more, want = PUT[put]
    facts = facts_of(STRING.replace("MORE", more), "f", {0})
    fn = facts.root
    mask = facts.pointers.of(named(fn, "q"))
    assert {o.site.name for o in facts.pointers.objects if mask >> o.index & 1 and o.site is not None} == want
    held = facts.pointers.contents(facts.pointers.object_of[named(fn, "s")])
    assert held >> facts.pointers.object_of[named(fn, "text")].index & 1


@pytest.mark.parametrize("level", ["-O2", pytest.param("-O1", marks=pytest.mark.long)])
def test_a_parser_of_names(level: str) -> None:
    loss, h = irgrad.load(PARSER, language="c++", flags=[level]).kernel("loss", "f64(f64[3] x)"), 1e-6
    want = [(loss(X + h * e) - loss(X - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(grad(loss)(X), want, rtol=1e-7)
    np.testing.assert_allclose(jvp(loss, (X,), (X,))[1], np.dot(want, X), rtol=1e-7)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_addresses_kept_as_text(level: str) -> None:
    """The bytes of an address go through two strings, and lead where they did."""
    loss = irgrad.load(POINTERS, language="c++", flags=[level]).kernel("loss", "f64(f64[3] x)")
    np.testing.assert_allclose(grad(loss)(X), [X[1] * X[2], X[0] * X[2], X[0] * X[1]])
