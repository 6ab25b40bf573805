// Four wind speeds at once: a batch of runs, each with its gradient, of a small aerodynamic model.
#include "check.h"
#include <cmath>

extern int enzyme_const, enzyme_dup, enzyme_width, enzyme_vector, enzyme_scalar;
template <typename R, typename... A> R __enzyme_batch(void *, A...);
template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
template <typename R, typename... A> R __enzyme_fwddiff(void *, A...);

struct Four {
  double values[4];
};

// Power of a rotor: the induced flow is found by a fixed point of its momentum balance.
static double power(double wind, double pitch, double radius) {
  double induced = 0.2;
  for (int i = 0; i < 60; i++) {
    const double flow = wind * (1 - induced), angle = std::atan2(flow, 0.6 * radius * (1 + 0.1 * wind)) - pitch;
    const double lift = 2 * M_PI * std::sin(angle) / std::sqrt(1 + angle * angle);
    const double thrust = 0.25 * lift * lift;
    induced = 0.5 * induced + 0.5 * thrust / (1 + thrust) * (1 - induced);
  }
  return 0.5 * 1.2 * M_PI * radius * radius * wind * wind * wind * 4 * induced * (1 - induced) * (1 - induced);
}

static double slope_of_pitch(double wind, double pitch, double radius) {
  return __enzyme_autodiff<double>((void *)power, enzyme_const, wind, pitch, enzyme_const, radius);
}

int main() {
  const double wind[4] = {4, 6, 8, 11}, pitch = 0.08, radius = 1.5;
  const Four run = __enzyme_batch<Four>((void *)power, enzyme_width, 4, enzyme_vector, wind[0], wind[1], wind[2],
                                        wind[3], enzyme_scalar, pitch, enzyme_scalar, radius);
  const Four slope = __enzyme_batch<Four>((void *)slope_of_pitch, enzyme_width, 4, enzyme_vector, wind[0], wind[1],
                                          wind[2], wind[3], enzyme_scalar, pitch, enzyme_scalar, radius);
  for (int i = 0; i < 4; i++) {
    expect("power", run.values[i], power(wind[i], pitch, radius), 1e-14);
    const double h = 1e-6;
    expect("slope", slope.values[i],
           (power(wind[i], pitch + h, radius) - power(wind[i], pitch - h, radius)) / (2 * h), 1e-7);
    expect("forward", __enzyme_fwddiff<double>((void *)power, enzyme_const, wind[i], enzyme_dup, pitch, 1.0,
                                               enzyme_const, radius), slope.values[i], 1e-11);
    std::printf("wind %4.1f: power %9.4f, per radian of pitch %10.4f\n", wind[i], run.values[i], slope.values[i]);
  }
  return wrong();
}
