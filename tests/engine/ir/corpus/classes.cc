// C++: templates, virtual calls, exceptions, containers, lambdas. They bring some hundreds of functions.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace irgrad_corpus {
struct Shape { virtual ~Shape() {} virtual double area() const = 0; };
struct Circle : Shape { double r; explicit Circle(double v) : r(v) {} double area() const override { return 3.141592653589793 * r * r; } };
struct Square : Shape { double a; explicit Square(double v) : a(v) {} double area() const override { return a * a; } };
struct Named { std::string name; virtual ~Named() {} virtual size_t length() const { return name.size(); } };
struct Both : Circle, virtual Named { Both(double v) : Circle(v) { name = "both"; } double area() const override { return Circle::area() + double(length()); } };

template <class T, int N> struct Vec {
  T data[N];
  T &operator[](int i) { return data[i]; }
  Vec operator+(const Vec &o) const { Vec r; for (int i = 0; i < N; i++) r.data[i] = data[i] + o.data[i]; return r; }
  T dot(const Vec &o) const { T s{}; for (int i = 0; i < N; i++) s += data[i] * o.data[i]; return s; }
};
template <class T> T accumulate_all(const std::vector<T> &v) { return std::accumulate(v.begin(), v.end(), T{}); }
struct Error : std::runtime_error { using std::runtime_error::runtime_error; };
double checked(double x) { if (x < 0) throw Error("negative"); return std::sqrt(x); }
enum class Mode : unsigned char { a, b, c };
double mode(Mode m, double x) { switch (m) { case Mode::a: return x; case Mode::b: return -x; default: return 0; } }
static int initialised = [] { return static_cast<int>(std::string("abc").size()); }();
}  // namespace irgrad_corpus
using namespace irgrad_corpus;

extern "C" double areas(int n) {
  std::vector<std::unique_ptr<Shape>> v;
  for (int i = 0; i < n; i++) { if (i % 2) v.push_back(std::make_unique<Circle>(i)); else v.emplace_back(new Square(i)); }
  v.emplace_back(new Both(2));
  double s = 0; for (auto &p : v) s += p->area(); return s;
}
extern "C" double guarded(double x) {
  try { return checked(x) + checked(x - 1); } catch (const Error &e) { return e.what()[0]; } catch (...) { return -1; }
}
extern "C" double containers(int n) {
  std::vector<double> v(n); for (int i = 0; i < n; i++) v[i] = std::cos(i * 1.7);
  std::sort(v.begin(), v.end()); std::sort(v.begin(), v.end(), [](double a, double b) { return a > b; });
  std::map<int, double> m; for (int i = 0; i < n; i++) m[i % 7] += v[i];
  std::map<std::string, std::vector<int>> names; names["x"].push_back(n);
  double s = accumulate_all(v); for (auto &[k, x] : m) s += k * x; return s + names["x"][0];
}
extern "C" double lambdas(double x, int n) {
  std::function<double(double)> f = [=](double y) { return x * y + n; };
  auto twice = [&](auto g, double y) { return g(g(y)); };
  return twice(f, x) + Vec<double, 3>{{1, 2, 3}}.dot(Vec<double, 3>{{x, x, x}} + Vec<double, 3>{{1, 1, 1}});
}
extern "C" float templates(float x) { Vec<float, 4> a{{x, x, 1, 2}}; a[1] = 3; return (a + a).dot(a) + static_cast<float>(initialised) + static_cast<float>(mode(Mode::b, x)); }
