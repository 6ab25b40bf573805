// Sparse Hessians of meshes of triangles, as triplets in a vector: templates, float and double, forward over reverse.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern int enzyme_const, enzyme_dup, enzyme_dupnoneed;
template <typename R, typename... T> R __enzyme_autodiff(void *, T...);
template <typename R, typename... T> R __enzyme_fwddiff(void *, T...);
template <typename R, typename... T> R __enzyme_todense(T...) noexcept;

static int bad;
static void near(const char *what, double a, double b, double close) {
  if (!(std::fabs(a - b) < close * (1 + std::fabs(b)))) { std::printf("%s: %.12g, not %.12g\n", what, a, b); bad = 1; }
}

template <typename T> struct Triple {
  size_t row, column;
  T value;
};
struct Mesh {
  size_t vertices;
  std::vector<int> corners;
};

template <typename T> static void cross(const T *a, const T *b, const T *c, T *out) {
  T u[3], v[3];
  for (int k = 0; k < 3; k++) { u[k] = b[k] - a[k]; v[k] = c[k] - a[k]; }
  for (int k = 0; k < 3; k++) out[k] = u[(k + 1) % 3] * v[(k + 2) % 3] - u[(k + 2) % 3] * v[(k + 1) % 3];
}
// The area of all triangles, and a volume that they enclose with the origin.
template <typename T> static T energy(const Mesh *mesh, const T *pos) {
  T sum = 0;
  for (size_t t = 0; t < mesh->corners.size(); t += 3) {
    const T *p[3];
    for (int k = 0; k < 3; k++) p[k] = &pos[3 * mesh->corners[t + k]];
    T n[3], square = T(1e-3), volume = 0;
    cross(p[0], p[1], p[2], n);
    for (int k = 0; k < 3; k++) { square += n[k] * n[k]; volume += n[k] * p[0][k]; }
    sum += std::sqrt(square) / 2 + volume * volume * T(0.3);
  }
  return sum;
}
template <typename T> static void gradient(const Mesh *mesh, const T *pos, T *out) {
  __enzyme_autodiff<void>((void *)energy<T>, enzyme_const, mesh, enzyme_dup, pos, out);
}

template <typename T> static T unit_load(unsigned long long byte, size_t column) { return T(byte / sizeof(T) == column); }
template <typename T> static void unit_store(T, unsigned long long, size_t) { std::abort(); }
template <typename T> static T zero_load(unsigned long long, size_t, std::vector<Triple<T>> &) { return T(0); }
template <typename T>
__attribute__((enzyme_sparse_accumulate)) void add(size_t row, size_t column, T value, std::vector<Triple<T>> &into) {
  into.push_back(Triple<T>{row, column, value});
}
template <typename T> __attribute__((always_inline))
static void entry_store(T value, unsigned long long byte, size_t column, std::vector<Triple<T>> &into) {
  if (value == T(0)) return;
  add(byte / sizeof(T), column, value, into);
}
template <typename T> __attribute__((noinline))
static std::vector<Triple<T>> hessian(const Mesh &mesh, const T *pos) {
  std::vector<Triple<T>> found;
  for (size_t c = 0; c < 3 * mesh.vertices; c++)
    __enzyme_fwddiff<void>((void *)gradient<T>, enzyme_const, &mesh,
                           enzyme_dup, pos, __enzyme_todense<T *>(unit_load<T>, unit_store<T>, c),
                           enzyme_dupnoneed, nullptr, __enzyme_todense<T *>(zero_load<T>, entry_store<T>, c, &found));
  return found;
}

// A strip of triangles: every vertex has few neighbours.
static Mesh strip(int length) {
  Mesh mesh{size_t(length) + 2, {}};
  for (int i = 0; i < length; i++)
    for (int k = 0; k < 3; k++) mesh.corners.push_back(i % 2 ? i + 2 - k : i + k);
  return mesh;
}
template <typename T> static void compare(double step, double close) {
  Mesh mesh = strip(9);
  size_t n = 3 * mesh.vertices;
  std::vector<T> pos(n);
  for (size_t i = 0; i < n; i++) pos[i] = std::sin(T(2.3) * i) + T(0.2) * (i / 3);
  std::vector<double> dense(n * n);
  for (const auto &t : hessian<T>(mesh, pos.data())) dense[t.row * n + t.column] += t.value;
  for (size_t c = 0; c < n; c++) {
    std::vector<double> up(n), down(n), at(pos.begin(), pos.end());
    at[c] = pos[c] + step; gradient<double>(&mesh, at.data(), up.data());
    at[c] = pos[c] - step; gradient<double>(&mesh, at.data(), down.data());
    for (size_t r = 0; r < n; r++) {
      near("entry", dense[r * n + c], (up[r] - down[r]) / (2 * step), close);
      bool neighbours = (r / 3 > c / 3 ? r / 3 - c / 3 : c / 3 - r / 3) <= 2;
      if (!neighbours) near("far apart", dense[r * n + c], 0, 1e-300);
    }
  }
}

int main() {
  compare<double>(1e-5, 1e-7);
  compare<float>(1e-4, 1e-5);
  if (!bad) std::puts("all right");
  return bad;
}
