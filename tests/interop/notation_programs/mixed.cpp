#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>
#include <array>
// the halves of split mode with containers and exceptions; structs as results of several tangents
extern int enzyme_dup, enzyme_const, enzyme_out, enzyme_width, enzyme_tape, enzyme_noret, enzyme_dupnoneed;
template <typename R, typename... A> R __enzyme_augmentfwd(void *, A...);
template <typename R, typename... A> R __enzyme_reverse(void *, A...);
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);
struct aug { void *tape; double v; };
static double energy(const std::vector<double> &x) { std::vector<double> t; for (double e : x) t.push_back(std::exp(e) * e); double s = 0; for (size_t i = 0; i < t.size(); i++) s += t[i] * t[t.size() - 1 - i]; return s; }
struct big { double a[5]; };
static big make(double x) { big b{}; for (int i = 0; i < 5; i++) b.a[i] = std::pow(x, i); return b; }
static double check(double x) { if (x < 0) throw std::runtime_error("neg"); return std::sqrt(x); }
static double guarded(double x, double y) { try { return check(x) * y; } catch (const std::exception &) { return y * y * x; } }
struct three { big b[3]; };
static int bad;
static void near(const char *what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-12 * (1 + std::fabs(want)))) { std::printf("%s: got %.17g, want %.17g\n", what, got, want); bad++; }
}
int main() {
  std::vector<double> x{0.1, 0.2, 0.3}, dx(3), dy(3);
  aug t = __enzyme_augmentfwd<aug>((void *)energy, &x, &dx);
  std::vector<double> copy = x; x.assign(3, 9.0);
  __enzyme_reverse<void>((void *)energy, &x, &dx, 1.0, t.tape);
  __enzyme_autodiff<void>((void *)energy, &copy, &dy);
  for (int i = 0; i < 3; i++) near("energy", dx[i], dy[i]);
  three b = __enzyme_fwddiff<three>((void *)make, enzyme_width, 3, 2.0, 1.0, 2.0, 3.0);
  near("struct", b.b[0].a[4], 32); near("struct", b.b[2].a[4], 96);
  auto g = __enzyme_autodiff<std::array<double, 2>>((void *)guarded, 4.0, 3.0); near("x", g[0], 0.75); near("y", g[1], 2);
  g = __enzyme_autodiff<std::array<double, 2>>((void *)guarded, -4.0, 3.0); near("thrown x", g[0], 9); near("thrown y", g[1], -24);
  t = __enzyme_augmentfwd<aug>((void *)guarded, -4.0, 3.0);
  g = __enzyme_reverse<std::array<double, 2>>((void *)guarded, -4.0, 3.0, 1.0, t.tape); near("thrown x", g[0], 9); near("thrown y", g[1], -24);
  g = __enzyme_fwddiff<std::array<double, 2>>((void *)guarded, enzyme_width, 2, -4.0, 1.0, 0.0, 3.0, 0.0, 1.0); near("thrown x", g[0], 9); near("thrown y", g[1], -24);
  if (!bad) std::puts("all right");
  return bad;
}
