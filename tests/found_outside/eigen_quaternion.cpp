// A product of quaternions: a partial sign flip as an xor of bits.
#include <Eigen/Geometry>
extern "C" double loss(const double *x, long n) {
    Eigen::Quaterniond a(x[0], x[1], x[2], x[3]), b(x[4], x[5], x[6], 0.5);
    Eigen::Quaterniond c = a * b;
    return c.w() * 1 + c.x() * c.y() + c.z();
}
