"""Small C++17 programs by what they use: each an `extern "C" double name(double x)` in the source of its group.

They are as people write them, one construct to a function; what a construct does to a derivative is in the tests of the
pass that handles it.
"""

from __future__ import annotations

import re

_COMMON = '#include <cmath>\n#include <vector>\n#define F extern "C" double\n'

_CONTAINERS = r"""
#include <array>
#include <deque>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <unordered_map>
F map_of_sums(double x) {
  std::map<int, double> m;
  for (int i = 0; i < 5; i++) m[i * 7 % 5] += x * i;
  double r = 0;
  for (auto &p : m) r += p.first * p.second * p.second;
  m.erase(2);
  return r + m.begin()->second + m.at(3) * x;
}
struct Row { double a; std::vector<double> v; };
F map_of_structs(double x) {
  std::map<std::string, Row> m;
  m["a"] = {x, {x, 2 * x}}; m["b"].a = x * x; m["b"].v.push_back(m["a"].a * x);
  double r = 0;
  for (auto &[key, row] : m) { r += row.a * key.size(); for (double d : row.v) r += d * d; }
  return r;
}
F hash_of_ints(double x) {
  std::unordered_map<int, double> m;
  for (int i = 0; i < 50; i++) m[i * 7 % 15] += x * i;
  double r = 0;
  for (auto &p : m) r += p.first * p.second * p.second;
  auto it = m.find(3);
  return it != m.end() ? r * it->second : r;
}
F hash_of_strings(double x) {
  std::unordered_map<std::string, double> m;
  m["one"] = x; m["two"] = x * x; m["three"] = m["one"] * m["two"];
  double r = 0;
  for (auto &p : m) r += p.second * p.first.size();
  return r;
}
F set_of_values(double x) {
  std::set<double> s{x, 3 * x, 2 * x, x * x};
  double r = 0; int i = 1;
  for (double d : s) r += d * d * i++;
  return r;
}
F multimap_range(double x) {
  std::multimap<double, double> m;
  for (int i = 0; i < 6; i++) m.emplace(x * (i % 3), x + i);
  double r = 0;
  auto range = m.equal_range(x * 1);
  for (auto i = range.first; i != range.second; ++i) r += i->second * i->first;
  return r;
}
F list_operations(double x) {
  std::list<double> l;
  for (int i = 0; i < 6; i++) l.push_front(x * i);
  l.remove_if([](double d) { return d > 5; }); l.sort(); l.splice(l.end(), std::list<double>{x, x * x}); l.reverse();
  double r = 0; int i = 0;
  for (double d : l) r += d * ++i;
  return r;
}
F deque_both_ends(double x) {
  std::deque<double> d;
  for (int i = 0; i < 700; i++) { d.push_back(x * i); if (i % 3) d.push_front(x + i); if (i % 5 == 0) d.pop_front(); }
  double r = 0;
  for (size_t i = 0; i < d.size(); i++) r += d[i] * (i % 7);
  return r * d.back();
}
F priority_queue(double x) {
  std::priority_queue<double> q;
  for (int i = 0; i < 7; i++) q.push(x * (i * 3 % 7));
  double r = 0; int w = 1;
  while (!q.empty()) { r += w++ * q.top() * q.top(); q.pop(); }
  return r;
}
F stack_of_values(double x) {
  std::stack<double> s;
  for (int i = 0; i < 5; i++) s.push(x + i);
  double r = 1;
  while (!s.empty()) { r *= s.top(); s.pop(); }
  return r;
}
F vector_of_vectors(double x) {
  std::vector<std::vector<double>> m(4, std::vector<double>(4, x));
  for (int i = 0; i < 4; i++) m[i][i] += i * x;
  m.push_back({x, x * x}); m.erase(m.begin() + 1); m.insert(m.begin(), {{x, 2 * x}, {x * x}});
  double r = 0;
  for (auto &row : m) for (double d : row) r += d * d;
  return r;
}
F vector_of_bools(double x) {
  std::vector<bool> b(70);
  for (int i = 0; i < 70; i++) b[i] = i % 3 == 0;
  double r = 0;
  for (int i = 0; i < 70; i++) if (b[i]) r += x * i;
  return r * x;
}
F array_of_pairs(double x) {
  std::array<std::pair<double, int>, 3> a{{{x, 1}, {x * x, 2}, {1, 3}}};
  double r = 0;
  for (auto [v, k] : a) r += v * v * k;
  return r;
}
"""

_ALGORITHMS = r"""
#include <algorithm>
#include <functional>
#include <numeric>
F sorted(double x) {
  std::vector<double> v;
  for (int i = 0; i < 40; i++) v.push_back((i * 7 % 41) * x - i);
  std::sort(v.begin(), v.end());
  double r = 0;
  for (int i = 0; i < 40; i++) r += v[i] * i * x;
  return r;
}
struct Item { double k; int id; double w; };
F sorted_by_comparator(double x) {
  std::vector<Item> v;
  for (int i = 0; i < 30; i++) v.push_back({(i * 7 % 31) * x, i, x + i});
  std::sort(v.begin(), v.end(), [](const Item &a, const Item &b) { return a.k > b.k; });
  std::stable_sort(v.begin(), v.end(), [](const Item &a, const Item &b) { return a.id % 3 < b.id % 3; });
  double r = 0;
  for (int i = 0; i < 30; i++) r += v[i].w * v[i].k * i;
  return r;
}
F median(double x) {
  std::vector<double> v;
  for (int i = 0; i < 20; i++) v.push_back((i * 7 % 21) * x);
  std::nth_element(v.begin(), v.begin() + 10, v.end());
  return v[10] * v[10];
}
F binary_search(double x) {
  std::vector<double> v;
  for (int i = 0; i < 20; i++) v.push_back(i * x);
  auto it = std::lower_bound(v.begin(), v.end(), 7.5);
  return *it * *it + std::distance(v.begin(), it);
}
F numeric(double x) {
  std::vector<double> a(6), b(6), p(6);
  std::iota(a.begin(), a.end(), x);
  std::transform(a.begin(), a.end(), b.begin(), [x](double d) { return d * d * x; });
  std::partial_sum(b.begin(), b.end(), p.begin());
  std::adjacent_difference(p.begin(), p.end(), p.begin());
  return std::inner_product(a.begin(), a.end(), p.begin(), 0.0)
       + std::accumulate(p.begin(), p.end(), 1.0, std::multiplies<>()) * 1e-3;
}
F extremes(double x) {
  std::vector<double> v{x, x * x, 3 - x};
  return *std::max_element(v.begin(), v.end()) * std::min({x, 2.0, x * x}) + std::clamp(x * 3, 0.0, 2.5);
}
F rearranged(double x) {
  std::vector<double> v{x, 2, x * x, 4, x * 3};
  std::rotate(v.begin(), v.begin() + 2, v.end()); std::reverse(v.begin(), v.begin() + 3);
  std::partition(v.begin(), v.end(), [](double d) { return d < 3; });
  v.erase(std::remove(v.begin(), v.end(), 2.0), v.end());
  double r = 0;
  for (size_t i = 0; i < v.size(); i++) r += (i + 1) * v[i] * v[i];
  return r;
}
F functions(double x) {
  std::function<double(double)> f = [x](double y) { return x * y; };
  std::vector<std::function<double(double)>> all{f, [k = x * x](double y) { return k * y * y; },
                                                 [](double y) { return std::sin(y); }};
  double r = x;
  for (auto &g : all) r = g(r) + r;
  return r;
}
template <class G> static double simpson(G g, double a, double b) {
  double s = g(a) + g(b); const int n = 8;
  for (int i = 1; i < n; i++) s += (i % 2 ? 4 : 2) * g(a + i * (b - a) / n);
  return s * (b - a) / (3 * n);
}
F lambdas(double x) { return simpson([x](double t) { return std::exp(-x * t * t); }, 0.0, x); }
F recursive_lambda(double x) {
  std::function<double(int)> power = [&](int n) { return n == 0 ? 1.0 : x * power(n - 1); };
  return power(5) + power(2);
}
"""

_OBJECTS = r"""
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <variant>
#include <array>
F shared_pointers(double x) {
  auto p = std::make_shared<double>(x);
  std::weak_ptr<double> w = p;
  auto q = p;
  *q *= x;
  if (auto s = w.lock()) *s += x;
  return *p * p.use_count();
}
struct Tree {
  double v; std::vector<std::shared_ptr<Tree>> kids;
  double sum() const { double s = v * v; for (auto &k : kids) s += k->sum() * v; return s; }
};
F tree(double x) {
  auto root = std::make_shared<Tree>(); root->v = x;
  for (int i = 0; i < 3; i++) {
    auto k = std::make_shared<Tree>(); k->v = x * (i + 1); root->kids.push_back(k);
    if (i == 1) k->kids.push_back(std::make_shared<Tree>(Tree{x * x, {}}));
  }
  return root->sum();
}
F unique_pointers(double x) {
  std::vector<std::unique_ptr<double>> v;
  for (int i = 0; i < 4; i++) v.push_back(std::make_unique<double>(x * i));
  std::swap(v[1], v[3]);
  double r = 0;
  for (int i = 0; i < 4; i++) r += (i + 1) * *v[i] * *v[i];
  return r;
}
struct Shape { virtual double area() const = 0; virtual ~Shape() = default; };
struct Disc : Shape { double r; Disc(double r) : r(r) {} double area() const override { return 3 * r * r; } };
struct Box : Shape {
  double a, b;
  Box(double a, double b) : a(a), b(b) {}
  double area() const override { return a * b; }
};
struct Cube : Box { Cube(double a) : Box(a, a) {} double area() const override { return 6 * Box::area(); } };
F virtual_on_the_heap(double x) {
  std::vector<std::unique_ptr<Shape>> all;
  all.push_back(std::make_unique<Disc>(x)); all.push_back(std::make_unique<Box>(x, x * x));
  all.push_back(std::make_unique<Cube>(x));
  double r = 1;
  for (auto &s : all) r *= s->area();
  return r;
}
F virtual_on_the_stack(double x) {
  Disc d(x); Cube c(x * 2);
  const Shape *all[] = {&d, &c, &d};
  double r = 0;
  for (auto *s : all) r += s->area() * x;
  return r;
}
F casts(double x) {
  Cube c(x); Shape *s = &c;
  double r = static_cast<Box *>(s)->a;
  if (auto *d = dynamic_cast<Box *>(s)) r += d->b * x;
  if (auto *d = dynamic_cast<Disc *>(s)) r += 100;
  return r;
}
F variants(double x) {
  std::variant<int, double, std::array<double, 2>> v = x * 3;
  double r = 0;
  for (int i = 0; i < 3; i++) {
    r += std::visit([&](auto &a) -> double {
      using T = std::decay_t<decltype(a)>;
      if constexpr (std::is_same_v<T, int>) return a * x;
      else if constexpr (std::is_same_v<T, double>) return a * a;
      else return a[0] * a[1];
    }, v);
    if (i == 0) v = 2; else v = std::array<double, 2>{x, r};
  }
  return r;
}
F optionals(double x) {
  std::optional<double> o;
  if (x > 0) o = x * x;
  std::optional<std::vector<double>> w;
  w.emplace(3, *o);
  return o.value_or(1) * (*w)[2];
}
F tuples(double x) {
  auto t = std::make_tuple(x, 2, x * x, std::string("abc"));
  auto [a, b, c, s] = t;
  std::get<0>(t) *= c;
  return a * b + c * s.size() + std::get<0>(t)
       + std::apply([](auto p, auto q, auto r, auto &) { return p * q * r; }, t);
}
F strings(double x) {
  std::string s = "ab";
  for (int i = 0; i < 30; i++) s += std::to_string(i);
  return x * s.size() * (s.find("27") != std::string::npos ? x : 1);
}
F streams_aside(double x) {
  double r = x * x;
  if (r > 1e9) std::cout << "large " << r << std::endl;
  return r * x;
}
thread_local double per_thread = 1;
static double kept = 2;
F statics(double x) {
  static int calls = 0;
  calls++; per_thread = x * 2; kept = per_thread * x;
  return kept * per_thread;
}
struct V3 {
  double a, b, c;
  V3 operator+(const V3 &o) const { return {a + o.a, b + o.b, c + o.c}; }
  V3 operator*(double k) const { return {a * k, b * k, c * k}; }
  V3 &operator+=(const V3 &o) { return *this = *this + o; }
  double dot(const V3 &o) const { return a * o.a + b * o.b + c * o.c; }
};
F operators(double x) { V3 u{x, 1, 2}, v{x * x, x, 3}; V3 w = u * x + v * 2; w += v; return w.dot(u + v); }
struct Moves {
  std::vector<double> d;
  Moves(double x) : d(3, x) {}
  Moves(Moves &&) = default;
  Moves &operator=(Moves &&) = default;
};
F moves(double x) {
  Moves a(x), b(std::move(a));
  a = Moves(x * x);
  std::vector<Moves> v;
  for (int i = 0; i < 5; i++) v.emplace_back(x * i);
  v.insert(v.begin() + 1, std::move(b));
  return v[1].d[2] * a.d[0] + v[4].d[1];
}
static void scale(double &value, const double &by) { value *= by; }
F references(double x) { double y = x; double &z = y; scale(z, x); scale(y, z); return y; }
template <int N> struct Power { static double of(double x) { return x * Power<N - 1>::of(x); } };
template <> struct Power<0> { static double of(double) { return 1; } };
template <class... T> static double total(T... t) { return (t + ...); }
F templates(double x) { return Power<5>::of(x) + total(x, x * x, 2.0); }
struct Meter { double *to; double at; Meter(double *to, double at) : to(to), at(at) {} ~Meter() { *to += at * at; } };
F destructors(double x) { double sum = 0; { Meter a(&sum, x); Meter b(&sum, x * x); } return sum * x; }
"""

_OWNERS = r"""
#include <any>
#include <map>
#include <memory>
#include <optional>
#include <string>
struct Body { double x[3]; double mass; bool fixed = false; };
struct Force { virtual ~Force() {} virtual void apply(std::vector<Body> &, std::vector<double> &) const = 0; };
struct Spring : Force {
    int a, b; double k;
    Spring(int a, int b, double k) : a(a), b(b), k(k) {}
    void apply(std::vector<Body> &bodies, std::vector<double> &f) const override {
        double d = bodies[b].x[0] - bodies[a].x[0];
        f[a] += k * d; f[b] -= k * d;
    }
};
struct World {
    std::vector<Body> bodies;
    std::vector<std::unique_ptr<Force>> forces;
    std::map<std::string, double> named;
    void step(double h) {
        std::vector<double> f(bodies.size());
        for (auto &q : forces) q->apply(bodies, f);
        for (size_t i = 0; i < bodies.size(); i++)
            if (!bodies[i].fixed) bodies[i].x[0] += h * f[i] / bodies[i].mass;
    }
};
F vector_beside_an_empty_map(double x) {
    World w;
    for (int i = 0; i < 6; i++) w.bodies.push_back({{x * i, x + i, i * 0.5}, 1 + x * x, i == 0});
    double e = 0;
    for (auto &b : w.bodies) e += b.x[0] * b.mass + b.x[1];
    return e;
}
F a_map_by_joined_strings(double x) {
    std::map<std::string, double> m;
    const char *names[] = {"a", "b", "c"};
    for (int i = 0; i < 9; i++) m[std::string("k") + names[i % 3]] += x * i;
    double s = 1;
    for (auto &[k, v] : m) s *= 1 + 0.1 * v * v;
    return s;
}
F values_of_any_type(double x) {
    std::vector<std::any> values;
    for (int i = 0; i < 4; i++) {
        if (i % 2) values.push_back(x * i);
        else values.push_back(std::vector<double>{x, x * i});
    }
    double r = 0;
    for (auto &value : values) {
        if (value.type() == typeid(double)) r += std::any_cast<double>(value) * x;
        else for (double d : std::any_cast<std::vector<double> &>(value)) r += d * d;
    }
    return r;
}
F a_map_by_parts_of_a_string(double x) {
    std::string text = "x=1;y=2;z=3;";
    std::map<std::string, double> m;
    for (size_t at = 0, is, end; at < text.size(); at = end + 1) {
        is = text.find('=', at), end = text.find(';', at);
        m[text.substr(at, is - at)] = x * std::stod(text.substr(is + 1, end - is - 1));
    }
    return m["x"] * m["y"] + m["z"] * x;
}
F vectors_beside_a_map(double x) {
    World w;
    for (int i = 0; i < 5; i++) w.bodies.push_back({{x * i * i, 0, 0}, 1 + x * i, i == 0});
    w.named["stiffness"] = x * x; w.named["length"] = std::exp(-x);
    for (int i = 0; i < 4; i++) w.forces.push_back(std::make_unique<Spring>(i, i + 1, w.named["stiffness"] + i));
    double e = 0;
    for (int s = 0; s < 10; s++) { w.step(0.01); e += w.bodies.back().x[0] * w.named.at("length"); }
    return e;
}
"""
GROUPS: dict[str, str] = {
    "containers": _COMMON + _CONTAINERS, "algorithms": _COMMON + _ALGORITHMS, "objects": _COMMON + _OBJECTS,
    "owners": _COMMON + _OWNERS,
}  # fmt: skip
PROGRAMS: list[tuple[str, str]] = [
    (group, name) for group, source in GROUPS.items() for name in re.findall(r"^F (\w+)\(double x\)", source, re.M)
]
