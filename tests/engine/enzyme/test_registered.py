"""What programs say about their functions: found in every form, and refused where it has no meaning."""

from __future__ import annotations

import pytest

from irgrad.engine.enzyme.lower import lower
from irgrad.engine.enzyme.registered import said_about, speaks
from irgrad.interop.loaders import load
from irgrad.rules.errors import IRGradError, RuleError, Unsupported

HEAD = """extern int enzyme_const, enzyme_dup;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
typedef struct { void *tape; double value; } Kept;
double f(double x, int n) { return x * n; }
Kept f_aug(double x, int n) { return (Kept){0, x * n}; }
double f_rev(double x, int n, double dy, void *tape) { return dy * n; }
double g(const double *x) { return *x; }
Kept g_aug(const double *x, double *dx) { return (Kept){0, *x}; }
void g_rev(const double *x, double *dx, double dy, void *tape) { *dx += dy; }
double use(double x) { return f(x, 3); }
double slope(double x) { return __enzyme_autodiff((void *)use, x); }
"""


def _compiled(body: str, language: str = "c") -> str:
    return load(HEAD + body, language=language, flags=["-fkeep-persistent-storage-variables"]).text


def test_a_program_that_says_nothing() -> None:
    text = load(HEAD).text
    assert not speaks(text)
    assert not said_about(text).rules


@pytest.mark.parametrize("body", [
    "void *__enzyme_register_gradient_f[] = {(void *)f, (void *)f_aug, (void *)f_rev};",
    "static void *my__enzyme_register_gradient[3] = {f, f_aug, f_rev};",
    "struct { double (*a)(double, int); Kept (*b)(double, int); double (*c)(double, int, double, void *); }"
    "__enzyme_register_gradient = {f, f_aug, f_rev};",
])  # fmt: skip
def test_registrations_are_found(body: str) -> None:
    said = said_about(_compiled(body))
    (rule,) = said.rules
    assert (str(rule.key), rule.form, str(rule.mode)) == ("f", "registered", "Reverse")
    assert said.apart == {"f"}
    assert said.visible == {"f_aug", "f_rev"}
    assert "@f_rev(" in lower(_compiled(body))


def test_an_array_that_is_filled_when_the_program_starts() -> None:
    text = load("""
double f(double x) { return x; }
void *__enzyme_register_derivative_f[] = {(void *)f, (void *)+[](double x, double dx) { return dx; }};
""", language="c++").text  # fmt: skip
    (rule,) = said_about(text).rules
    assert "__invoke" in rule.options["forward"].name


def test_properties() -> None:
    said = said_about(_compiled("""
double quiet(double x) { return x; }
void *__enzyme_inactivefn[] = {(void *)f, (void *)g};
__attribute__((annotate("enzyme_inactive"))) double level;
double other; void *__enzyme_inactive_global_other = &other;
__attribute__((annotate("enzyme_function_like=exp"))) double grow(double x) { return x; }
void *pool(int n); void back(int k, void *p);
void *__enzyme_allocation_like[4] = {(void *)pool, 0, "0,-1", (void *)back};
void *__enzyme_nofree_f = (void *)f;
__attribute__((annotate("enzyme_shouldrecompute"))) double again(double x) { return x; }
"""))  # fmt: skip
    forms = {str(rule.key): rule.form for rule in said.rules}
    assert forms == {"f": "inactive", "g": "inactive", "grow": "partials", "pool": "allocator", "back": "allocator"}
    assert said.inactive == {"level", "other"}
    by_name = {str(rule.key): rule for rule in said.rules}
    assert by_name["pool"].options["sizes"] == (0,)
    assert by_name["back"].options["pointer"] == 1


def test_attributes_of_other_front_ends() -> None:
    text = 'define double @f(double %x) #0 {\n  ret double %x\n}\nattributes #0 = { "enzyme_inactive" }\n'
    (rule,) = said_about(text).rules
    assert (str(rule.key), rule.form) == ("f", "inactive")
    (like,) = said_about(text.replace('"enzyme_inactive"', '"enzyme_math"="sin"')).rules
    assert like.row is not None
    assert like.row.key == "sin"


@pytest.mark.parametrize(("body", "error", "what", "because"), [
    ("void *__enzyme_register_gradient_f[] = {(void *)f, (void *)f_aug};", RuleError,
     "is not an array of {f, augmented, reverse}", "when the program is compiled"),
    ("double v; void *__enzyme_inactivefn_f = (void *)&v;", RuleError, "is not a function", "when the program"),
    ("void *__enzyme_inactive_global_f = (void *)f;", RuleError, "is not a variable", "when the program"),
    ('void *__enzyme_function_like[] = {(void *)f, "nothing_known"};', Unsupported,
     "`f` is said to be like `nothing_known`", "no derivative"),
    ('void *__enzyme_function_like[] = {(void *)f, "exp"};', RuleError, "`f` is said to be like `exp`",
     "takes other arguments: f"),
    ("void *__enzyme_allocation_like[] = {(void *)f, (void *)9, \"-1\", (void *)g};", RuleError,
     "is not {allocate", "when the program"),
    ("void *__enzyme_sparse_solver = (void *)f;", Unsupported, "`__enzyme_sparse_solver` is not supported",
     "which would be ignored"),
    ('__attribute__((annotate("enzyme_elsewhere"))) double h(double x) { return x; }', Unsupported,
     "the annotation `enzyme_elsewhere` is not supported", "which would be ignored"),
    ('double h(double x) { __attribute__((annotate("enzyme_inactive"))) double y = x; return y * x; }', Unsupported,
     "the annotation `enzyme_inactive` of a local variable", "it would be ignored"),
    ("typedef struct { double a, b, c; } Big; Big big(double x) { return (Big){x, x, x}; }\n"
     "void *__enzyme_register_derivative_big[] = {(void *)big, (void *)big};", Unsupported,
     "a derivative is registered for `big`", "a struct through a hidden pointer"),
])  # fmt: skip
def test_what_has_no_meaning(body: str, error: type[IRGradError], what: str, because: str) -> None:
    with pytest.raises(error) as caught:
        said_about(_compiled(body))
    assert what in caught.value.what
    assert because in caught.value.because
    assert caught.value.fix


def test_no_optimiser_looks_into_what_was_spoken_of() -> None:
    text = _compiled("""
__attribute__((always_inline)) inline double h(double x) { return x; }
extern inline double h(double x);
double level;
void *__enzyme_inactivefn_h = (void *)h, *__enzyme_inactive_global = &level;
double k(double x) { level = h(x); return level; }
""")  # fmt: skip
    clean = said_about(text).untouched(text)
    assert "store volatile double" in clean
    assert "load volatile double, ptr @level" in clean
    (head,) = [line for line in clean.splitlines() if line.startswith("define") and "@h(" in line]
    number = head.rsplit("#", 1)[1].split()[0]
    group = next(line for line in clean.splitlines() if line.startswith(f"attributes #{number} "))
    assert "alwaysinline" not in group
