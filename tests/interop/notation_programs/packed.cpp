// results that compilers pack: numbers inside of integers, structs of numbers and tags, unions, pointers with numbers
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>
extern int enzyme_dup, enzyme_const, enzyme_const_return, enzyme_tape;
template <class R, class... A> R __enzyme_autodiff(void *, A...);
template <class R, class... A> R __enzyme_fwddiff(void *, A...);
template <class R, class... A> R __enzyme_augmentfwd(void *, A...);
template <class R, class... A> R __enzyme_reverse(void *, A...);
static int bad;
static void near(const char *what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-6 * (1 + std::fabs(want)))) { std::printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
struct FI { float x; int n; };
struct FIFD { float x; int n; double y; };
struct F3 { float x, y, z; };
struct DI { double x; int n; };
struct D2 { double x, y; };
struct D3 { double x, y, z; };
struct PD { double *p; double x; };
struct PP { double *p, *q; };
union Bits { double d; int64_t n; };
static FI fi(double *x) { return {float(x[0] * x[0]), 3}; }
static FIFD fifd(double *x) { return {float(x[0] * x[0]), 3, x[1] * x[0]}; }
static F3 f3(double *x) { return {float(x[0]), float(x[1] * x[0]), float(x[0] * x[0])}; }
static DI di(double *x) { return {x[0] * x[1], 3}; }
static D2 d2(double *x) { return {x[0] * x[1], x[0] * x[0]}; }
static D3 d3(double *x) { return {x[0] * x[1], x[0] * x[0], x[1]}; }
static PD pd(double *x) { return {x + 1, x[0] * x[0]}; }
static PP pp(double *x) { x[0] *= x[1]; return {x + 1, x}; }
static std::complex<float> cf(double *x) { return {float(x[0] * x[0]), float(x[0])}; }
static std::pair<float, int> pr(double *x) { return {float(x[0] * x[1]), int(x[0])}; }
static std::optional<float> of(double *x) { if (x[0] > 100) return {}; return float(x[0] * x[0]); }
static std::optional<double> od(double *x) { if (x[0] > 100) return {}; return x[0] * x[0]; }
static std::variant<double, int> vd(double *x) { if (x[0] > 100) return 5; return x[0] * x[0]; }
static Bits un(double *x) { Bits u; if (x[0] > 100) u.n = 3; else u.d = x[0] * x[0]; return u; }
static uint64_t bits(double *x) { double y = x[0] * x[0]; uint64_t u; std::memcpy(&u, &y, 8); return u; }
// integers that carry nothing have no cotangent
static int sign(double *x) { x[1] *= x[0]; return x[0] > 2 ? 1 : x[0] < 1 ? -1 : 0; }
static uint64_t hash(double *x) { uint64_t u; std::memcpy(&u, x, 8); u ^= u >> 33; u *= 0xff51afd7ed558ccdULL; x[1] *= x[0]; return u; }
static FI by_value(float x) { return {x * x * x, 7}; }

// the sum of all numbers of a result is what reverse mode differentiates
#define REVERSE(f, d0, d1) { double x[2] = {3, 4}, d[2] = {0, 0}; __enzyme_autodiff<void>((void *)f, x, d); near(#f " x0", d[0], d0); near(#f " x1", d[1], d1); }
#define FORWARD(f, ...) { double x[2] = {3, 4}, d[2] = {1, 2}; auto t = __enzyme_fwddiff<decltype(f(x))>((void *)f, x, d); __VA_ARGS__ }
template <class R> struct Taped { void *tape; R value; };
struct Shadowed { void *tape; PP value, shadow; };
// both halves, and the cotangent 2 for the first number of the result
#define SPLIT(f, cotangent, d0, d1) { \
  using R = decltype(f(nullptr)); double x[2] = {3, 4}, d[2] = {0, 0}; \
  auto t = __enzyme_augmentfwd<Taped<R>>((void *)f, x, d); x[0] = x[1] = 0; \
  R seed = cotangent; __enzyme_reverse<void>((void *)f, x, d, seed, t.tape); near(#f " split x0", d[0], d0); near(#f " split x1", d[1], d1); }

// not inlined: the struct travels through calls and returns
__attribute__((noinline)) static std::optional<double> power(double x, int n) {
  if (x > 100) return {};
  if (n == 0) return 1.0;
  auto rest = power(x, n - 1);
  return rest ? std::optional<double>(*rest * x) : std::nullopt;
}
static double cube(double x) { auto r = power(x, 3); return r ? *r : 0; }
static void store(double *x, std::optional<double> *to) { *to = power(x[0], 2); }
static double stored(double *x) { std::optional<double> o; store(x, &o); return *o * x[1]; }

int main() {
  REVERSE(fi, 6, 0) REVERSE(fifd, 10, 3) REVERSE(f3, 11, 3) REVERSE(di, 4, 3) REVERSE(d2, 10, 3) REVERSE(d3, 10, 4)
  REVERSE(pd, 6, 0) REVERSE(cf, 7, 0) REVERSE(pr, 4, 3) REVERSE(of, 6, 0) REVERSE(od, 6, 0) REVERSE(vd, 6, 0) REVERSE(un, 6, 0)
  REVERSE(bits, 6, 0) REVERSE(sign, 0, 0) REVERSE(hash, 0, 0)
  FORWARD(fi, near("fi'", t.x, 6);) FORWARD(fifd, near("fifd' x", t.x, 6); near("fifd' y", t.y, 10);)
  FORWARD(f3, near("f3' z", t.z, 6);) FORWARD(di, near("di'", t.x, 10);) FORWARD(d3, near("d3' z", t.z, 2);)
  FORWARD(pd, near("pd' x", t.x, 6); near("pd' p", *t.p, 2);) FORWARD(pp, near("pp' p", *t.p, 2); near("pp' q", *t.q, 10);)
  FORWARD(od, near("od'", *(double *)&t, 6);) FORWARD(of, near("of'", *(float *)&t, 6);) FORWARD(pr, near("pr'", t.first, 10);)
  SPLIT(fi, (R{2, 9}), 12, 0) SPLIT(fifd, (R{2, 0, 0}), 12, 0) SPLIT(f3, (R{0, 0, 2}), 12, 0) SPLIT(di, (R{2, 0}), 8, 6)
  SPLIT(d2, (R{2, 0}), 8, 6) SPLIT(d3, (R{2, 0, 1}), 8, 7) SPLIT(cf, (R{2, 0}), 12, 0) SPLIT(od, (R{2.0}), 12, 0)
  near("by value", __enzyme_autodiff<float>((void *)by_value, 2.0f), 12);
  near("cube", __enzyme_autodiff<double>((void *)cube, 3.0), 27); near("cube'", __enzyme_fwddiff<double>((void *)cube, 3.0, 1.0), 27);
  REVERSE(stored, 24, 9)
  { // a number in an integer that is a mark only
    double x[2] = {3, 4}, d[2] = {0, 0};
    __enzyme_autodiff<void>((void *)bits, enzyme_const_return, x, d); near("const result", d[0], 0);
  }
  { // the shadow of each pointer of a result
    double x[2] = {3, 4}, d[2] = {0, 0};
    auto t = __enzyme_augmentfwd<Shadowed>((void *)pp, x, d);
    near("pp", t.value.p == x + 1 && t.shadow.p == d + 1 && t.shadow.q == d, 1);
    t.shadow.q[0] = 2; __enzyme_reverse<void>((void *)pp, x, d, t.tape); near("pp", d[0], 8); near("pp", d[1], 6);
  }
  if (!bad) std::puts("all right");
  return bad;
}
