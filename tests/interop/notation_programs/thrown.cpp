// Exceptions that leave a differentiated function: the caller catches them, nothing leaks, and what follows is right.
#include <cmath>
#include <cstdio>
#include <exception>
#include <malloc.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

int enzyme_dup, enzyme_const, enzyme_width;
template <typename R, typename... T> R __enzyme_autodiff(void *, T...);
template <typename R, typename... T> R __enzyme_fwddiff(void *, T...);

static int failures, alive;
static void check(bool holds, const char *what) {
  if (!holds) { std::printf("wrong: %s\n", what); ++failures; }
}
static bool near(double a, double b) { return std::fabs(a - b) < 1e-12; }

namespace {
struct Note {  // its string may lie within itself: the object must not move
  std::string text;
  int code;
  Note(const char *said, int c) : text(said), code(c) { ++alive; }
  Note(const Note &o) : text(o.text), code(o.code) { ++alive; }
  ~Note() { --alive; }
};
struct Guard { Guard() { ++alive; } ~Guard() { --alive; } };
}

__attribute__((noinline)) static double root(double x) {
  if (x < 0) throw std::runtime_error("negative");
  return std::sqrt(x);
}
double nested(double x) { return root(x) * x; }
double number(double x) { if (x > 10) throw 42; return x * x * x; }
double note(double x) {
  Guard guard;
  if (x > 10) throw Note("far", 7);
  return x * x;
}
double inside(double x) {  // one is caught, another one leaves
  double r = x;
  for (int i = 0; i < 3; i++)
    try { if (i == 1) throw i; r *= x; } catch (int) { r += x * x; }
  try { if (x > 10) throw Note("again", 9); } catch (Note &n) { n.code++; throw; }
  return r;
}
void partly(double *a, double *out, int n) {  // what was reached before the exception counts
  std::vector<double> kept;
  for (int i = 0; i < n; i++) {
    kept.push_back(a[i] * a[i]);
    *out += kept[i] * a[i];
    if (a[i] > 10) throw std::out_of_range("a");
  }
}

struct Product { double value; };
double kept(const double *x, int n) {  // exceptions that hold active values wait in pointers to them
  std::exception_ptr waiting[4];
  double s = 0;
  for (int i = 0; i < n; i++)
    if (x[i] < 1) waiting[i] = std::make_exception_ptr(Product{x[i] * x[0]}); else s += x[i];
  for (int i = 0; i < n; i++)
    if (waiting[i])
      try { std::rethrow_exception(waiting[i]); } catch (const Product &p) { s += p.value * p.value * x[1]; }
  return s;
}

struct Carries { double value; int code; };
double carries(double x) {  // the exception holds an active value
  std::unique_ptr<double> square(new double(x * x));
  if (x > 10) throw Carries{*square * x, 3};
  return *square * x;
}
struct Law {
  virtual ~Law() {}
  virtual double at(double x) const { return 2 * x; }
};
struct Bounded : Law {
  double at(double x) const override { if (x > 10) throw std::domain_error("far"); return x * x * x; }
};
double law(const Law *l, double x) { return l->at(x) * x; }
double slope_of_number(double x) { return __enzyme_autodiff<double>((void *)number, x); }
double guarded(double x) { try { return slope_of_number(x); } catch (int i) { return i * x; } }
struct Pair { double a, b; };

template <typename F> static void leaves(F call, const char *said, const char *what) {
  bool caught = false;
  try { call(); } catch (const std::exception &e) { caught = std::string(e.what()) == said; }
  check(caught, what);
}

int main() {
  auto slope = [](double x) { return __enzyme_autodiff<double>((void *)nested, x); };
  auto tangent = [](double x) { return __enzyme_fwddiff<double>((void *)nested, x, 1.0); };
  leaves([&] { slope(-1); }, "negative", "a nested function throws, reverse");
  leaves([&] { tangent(-1); }, "negative", "a nested function throws, forward");
  check(near(slope(4), 3) && near(tangent(4), 3), "the gradient after it");

  int got = 0;
  try { __enzyme_autodiff<double>((void *)number, 11.0); } catch (int i) { got += i; }
  try { __enzyme_fwddiff<double>((void *)number, 11.0, 1.0); } catch (int i) { got += i; }
  check(got == 84, "an int is thrown");
  check(near(__enzyme_autodiff<double>((void *)number, 2.0), 12), "the gradient after an int");

  for (bool forward : {false, true}) {
    double value = 0;
    try {
      if (forward) __enzyme_fwddiff<double>((void *)carries, 11.0, 1.0);
      else __enzyme_autodiff<double>((void *)carries, 11.0);
    } catch (const Carries &c) { value = c.value * c.code; }
    check(near(value, 3993), "an active value is thrown");
  }
  check(near(__enzyme_autodiff<double>((void *)carries, 2.0), 12), "the gradient after an active value");
  Law plain;
  Bounded bounded;
  auto bend = [](const Law *l, double x) { return __enzyme_autodiff<double>((void *)law, enzyme_const, l, x); };
  leaves([&] { bend(&bounded, 11); }, "far", "a virtual function throws");
  check(near(bend(&bounded, 2), 32) && near(bend(&plain, 2), 8), "virtual functions");
  auto twice = [](double x) { return __enzyme_fwddiff<double>((void *)slope_of_number, x, 1.0); };
  got = 0;
  try { twice(11); } catch (int i) { got = i; }
  check(got == 42 && near(twice(2), 12), "a derivative of a derivative");
  check(near(__enzyme_autodiff<double>((void *)guarded, 11.0), 42), "what leaves a derivative is caught inside another");
  check(near(__enzyme_autodiff<double>((void *)guarded, 2.0), 12), "nothing leaves it");
  got = 0;
  auto lanes = [](double x) { return __enzyme_fwddiff<Pair>((void *)number, enzyme_width, 2, x, 1.0, 2.0); };
  try { lanes(11); } catch (int i) { got = i; }
  Pair both = lanes(2);
  check(got == 42 && near(both.a, 12) && near(both.b, 24), "several lanes");

  size_t used = 0;
  for (int i = 0; i < 3000; i++) {
    if (i == 10) used = mallinfo2().uordblks;
    double x[2] = {2, 11}, dx[2] = {}, y = 0, dy = 1;
    leaves([&] { __enzyme_autodiff<void>((void *)partly, x, dx, &y, &dy, enzyme_const, 2); }, "a", "in a loop");
    leaves([&] { tangent(-1); }, "negative", "forward in a loop");
    try { __enzyme_autodiff<double>((void *)note, 11.0); check(false, "a note is thrown"); }
    catch (const Note &n) { check(n.text == "far" && n.code == 7 && alive == 1, "a note of its own type"); }
    try { __enzyme_autodiff<double>((void *)inside, 11.0); check(false, "thrown again"); }
    catch (const Note &n) { check(n.text == "again" && n.code == 10, "changed, then thrown again"); }
  }
  check(mallinfo2().uordblks == used, "as much memory as after ten");
  check(alive == 0, "destructors ran as often as constructors");
  check(near(__enzyme_autodiff<double>((void *)note, 3.0), 6), "the gradient after notes");
  check(near(__enzyme_autodiff<double>((void *)inside, 3.0), 54), "the gradient where one is caught inside");

  double x[3] = {0.5, 3, 0.25}, dx[3] = {}, v[3] = {1, 0.5, -2}, u[3] = {0, 1, 0};
  __enzyme_autodiff<void>((void *)kept, x, dx, enzyme_const, 3);
  check(near(dx[0], 4 * 0.125 * 3 + 2 * 0.5 * 0.0625 * 3) && near(dx[1], 1 + 0.0625 + 0.015625)
        && near(dx[2], 2 * 0.25 * 0.25 * 3), "exceptions that are kept");
  const double along = dx[0] + 0.5 * dx[1] - 2 * dx[2];
  check(near(__enzyme_fwddiff<double>((void *)kept, x, v, enzyme_const, 3), along), "kept, forward");
  both = __enzyme_fwddiff<Pair>((void *)kept, enzyme_width, 2, x, v, u, enzyme_const, 3);
  check(near(both.a, along) && near(both.b, dx[1]), "kept, in lanes");

  double a[4] = {1, 2, 11, 5}, da[4] = {}, out = 0, dout = 1;
  auto sweep = [&] { __enzyme_autodiff<void>((void *)partly, a, da, &out, &dout, enzyme_const, 4); };
  leaves(sweep, "a", "after a part of the work");
  check(near(out, 1 + 8 + 1331), "the part of the work is done");
  check(near(da[0], 3) && near(da[1], 12) && near(da[2], 363) && near(da[3], 0), "shadows follow the path taken");
  a[2] = 3; out = 0; dout = 1;
  for (double &d : da) d = 0;
  sweep();
  check(near(da[0], 3) && near(da[1], 12) && near(da[2], 27) && near(da[3], 75), "all of it afterwards");
  if (!failures) std::printf("all right\n");
  return failures;
}
