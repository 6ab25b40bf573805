#include <vector>
#include <cmath>
double norm_of(const std::vector<double> &v) { double s = 0; for (double d : v) s += d * d; return std::sqrt(s); }
