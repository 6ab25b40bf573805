// A solver with a registered derivative: Kepler's equation by Newton's method, differentiated by the implicit function
// theorem in place of its iterations.
#include "check.h"
#include <cmath>

extern int enzyme_const, enzyme_dup, enzyme_out;
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);

static int runs_of_the_rule;

// E - e sin E = M, for the eccentric anomaly E.
__attribute__((noinline)) static double anomaly(double mean, double eccentricity) {
  double e = mean;
  for (int i = 0; i < 50; i++) {
    const double step = (e - eccentricity * std::sin(e) - mean) / (1 - eccentricity * std::cos(e));
    e -= step;
    if (std::fabs(step) < 1e-15) break;
  }
  return e;
}

struct Augmented {
  void *tape;
  double result;
};
static Augmented anomaly_forward(double mean, double eccentricity) {
  const double e = anomaly(mean, eccentricity);
  return {new double(e), e};
}

struct Slopes {
  double mean, eccentricity;
};
static Slopes anomaly_reverse(double, double eccentricity, double cotangent, void *tape) {
  auto *e = static_cast<double *>(tape);
  const double scale = cotangent / (1 - eccentricity * std::cos(*e));
  const Slopes slopes{scale, scale * std::sin(*e)};
  delete e;
  runs_of_the_rule++;
  return slopes;
}

__attribute__((used)) void *__enzyme_register_gradient_anomaly[] = {
    reinterpret_cast<void *>(anomaly), reinterpret_cast<void *>(anomaly_forward),
    reinterpret_cast<void *>(anomaly_reverse)};

// Distance to a planet at some time, of an orbit with a half axis and an eccentricity.
static double distance(double time, double half_axis, double eccentricity) {
  const double mean = time / (half_axis * std::sqrt(half_axis));
  const double e = anomaly(mean, eccentricity);
  const double x = half_axis * (std::cos(e) - eccentricity);
  const double y = half_axis * std::sqrt(1 - eccentricity * eccentricity) * std::sin(e);
  return std::hypot(x, y);
}

struct Gradient {
  double time, half_axis, eccentricity;
};

int main() {
  const double times[] = {0.5, 1.5, 4.0};
  for (double time : times) {
    const auto g = __enzyme_autodiff<Gradient>((void *)distance, time, 1.3, 0.4);
    const double h = 1e-6;
    expect("time", g.time, (distance(time + h, 1.3, 0.4) - distance(time - h, 1.3, 0.4)) / (2 * h), 1e-8);
    expect("half axis", g.half_axis, (distance(time, 1.3 + h, 0.4) - distance(time, 1.3 - h, 0.4)) / (2 * h), 1e-8);
    expect("eccentricity", g.eccentricity, (distance(time, 1.3, 0.4 + h) - distance(time, 1.3, 0.4 - h)) / (2 * h), 1e-8);
    std::printf("t = %.1f: r = %.6f, dr/dt = %.6f\n", time, distance(time, 1.3, 0.4), g.time);
  }
  expect("the rule was used", runs_of_the_rule, 3, 0);
  return wrong();
}
