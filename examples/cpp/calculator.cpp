// A calculator for formulas in text: a recursive-descent parser that computes while it reads, differentiated as it is.
#include "check.h"
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>

template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);
extern int enzyme_const, enzyme_out, enzyme_dup;

struct Parser {
  const char *at;
  double x, y;

  void blanks() {
    while (std::isspace(static_cast<unsigned char>(*at))) at++;
  }
  bool accept(char c) {
    blanks();
    if (*at != c) return false;
    at++;
    return true;
  }
  double number() {
    double value = 0, scale = 1;
    for (; std::isdigit(static_cast<unsigned char>(*at)); at++) value = 10 * value + (*at - '0');
    if (*at == '.')
      for (at++; std::isdigit(static_cast<unsigned char>(*at)); at++) value += (scale /= 10) * (*at - '0');
    return value;
  }
  double atom() {
    blanks();
    if (accept('(')) {
      const double value = sum();
      accept(')');
      return value;
    }
    if (accept('-')) return -power();
    if (std::isdigit(static_cast<unsigned char>(*at))) return number();
    const char *word = at;
    while (std::isalpha(static_cast<unsigned char>(*at))) at++;
    const auto length = static_cast<std::size_t>(at - word);
    auto is = [&](const char *name) { return std::strlen(name) == length && std::strncmp(word, name, length) == 0; };
    if (is("x")) return x;
    if (is("y")) return y;
    accept('(');
    const double value = sum();
    accept(')');
    if (is("sin")) return std::sin(value);
    if (is("exp")) return std::exp(value);
    if (is("log")) return std::log(value);
    if (is("sqrt")) return std::sqrt(value);
    return NAN;
  }
  double power() {
    const double base = atom();
    return accept('^') ? std::pow(base, power()) : base;
  }
  double product() {
    double value = power();
    for (;;) {
      if (accept('*')) value *= power();
      else if (accept('/')) value /= power();
      else return value;
    }
  }
  double sum() {
    double value = product();
    for (;;) {
      if (accept('+')) value += product();
      else if (accept('-')) value -= product();
      else return value;
    }
  }
};

static double evaluate(const char *text, double x, double y) {
  Parser parser{text, x, y};
  return parser.sum();
}

struct Slopes {
  double dx, dy;
};
static Slopes slopes(const char *text, double x, double y) {
  return __enzyme_autodiff<Slopes>((void *)evaluate, enzyme_const, text, enzyme_out, x, enzyme_out, y);
}

int main() {
  const double x = 1.3, y = 0.7;
  auto check = [&](const char *text, double dx, double dy) {
    const Slopes got = slopes(text, x, y);
    expect(text, got.dx, dx, 1e-13);
    expect(text, got.dy, dy, 1e-13);
    std::printf("%-28s %10.6f %10.6f\n", text, got.dx, got.dy);
  };
  check("x", 1, 0);
  check("2 * x * y - x / y", 2 * y - 1 / y, 2 * x + x / (y * y));
  check("sin(x ^ 2) * exp(-y)", 2 * x * std::cos(x * x) * std::exp(-y), -std::sin(x * x) * std::exp(-y));
  check("sqrt(x^2 + y^2)", x / std::hypot(x, y), y / std::hypot(x, y));
  check("x ^ y ^ 2 - 3.25", y * y * std::pow(x, y * y - 1), std::pow(x, y * y) * std::log(x) * 2 * y);
  check("((1 + log(x * y)))", 1 / x, 1 / y);
  expect("forward", __enzyme_fwddiff<double>((void *)evaluate, enzyme_const, "x * x * y", enzyme_dup, x, 1.0, y, 0.0),
         2 * x * y, 1e-14);
  return wrong();
}
