// Hand tracking: residuals of a skinned skeletal hand against measured points.
//
// theta: global rotation vector (3), global translation (3), then for each of five fingers the spread and flexion of
// the first joint and the flexions of the second and third. Bones: forearm, wrist, and per finger a fixed metacarpal
// and three phalanges. A vertex is the weighted mean of its rest position moved by every bone.
#include <cmath>
#include <cstdlib>

namespace {

template <typename T> struct Vec3 {
    T x, y, z;
};

template <typename T> Vec3<T> operator-(const Vec3<T> &a, const Vec3<T> &b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }

// Affine map: three rows of a rotation, each followed by a translation.
template <typename T> struct Affine {
    T m[3][4];

    static Affine identity()
    {
        Affine a{};
        for (int i = 0; i < 3; i++)
            a.m[i][i] = 1;
        return a;
    }
    Affine operator*(const Affine &other) const
    {
        Affine r;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++) {
                T s = j == 3 ? m[i][3] : T(0);
                for (int k = 0; k < 3; k++)
                    s += m[i][k] * other.m[k][j];
                r.m[i][j] = s;
            }
        return r;
    }
};

template <typename T> class Buffer {
  public:
    explicit Buffer(long n) : data_(static_cast<T *>(std::malloc(n * sizeof(T)))) {}
    ~Buffer() { std::free(data_); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    T &operator[](long i) { return data_[i]; }

  private:
    T *data_;
};

template <typename T> Affine<T> rotation_x(T angle)
{
    Affine<T> a = Affine<T>::identity();
    T c = std::cos(angle), s = std::sin(angle);
    a.m[1][1] = c, a.m[1][2] = -s, a.m[2][1] = s, a.m[2][2] = c;
    return a;
}

template <typename T> Affine<T> rotation_z(T angle)
{
    Affine<T> a = Affine<T>::identity();
    T c = std::cos(angle), s = std::sin(angle);
    a.m[0][0] = c, a.m[0][1] = -s, a.m[1][0] = s, a.m[1][1] = c;
    return a;
}

template <typename T> Affine<T> rigid(const T *r, const T *t)
{
    Affine<T> a = Affine<T>::identity();
    T squared = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    if (squared > T(1e-30)) {
        T angle = std::sqrt(squared), c = std::cos(angle), s = std::sin(angle), v = 1 - c;
        T x = r[0] / angle, y = r[1] / angle, z = r[2] / angle;
        a.m[0][0] = x * x * v + c, a.m[0][1] = x * y * v - z * s, a.m[0][2] = x * z * v + y * s;
        a.m[1][0] = x * y * v + z * s, a.m[1][1] = y * y * v + c, a.m[1][2] = y * z * v - x * s;
        a.m[2][0] = x * z * v - y * s, a.m[2][1] = y * z * v + x * s, a.m[2][2] = z * z * v + c;
    }
    for (int i = 0; i < 3; i++)
        a.m[i][3] = t[i];
    return a;
}

// What a bone's own joint does: identity for forearm, wrist and metacarpals.
template <typename T> Affine<T> joint(const T *theta, long bone)
{
    if (bone < 2)
        return Affine<T>::identity();
    long finger = (bone - 2) / 4, segment = (bone - 2) % 4;
    const T *angles = theta + 6 + 4 * finger;
    if (segment == 0)
        return Affine<T>::identity();
    if (segment == 1)
        return rotation_x(angles[1]) * rotation_z(angles[0]);
    return rotation_x(angles[segment]);
}

} // namespace

extern "C" void hand(const double *theta, const double *relative, const int *parents, const double *inverse_rest,
                     const double *rest, const double *weights, const double *points, const int *nearest, double *errors,
                     long bones, long vertices, long n)
{
    auto *local = reinterpret_cast<const Affine<double> *>(relative);
    auto *inverse = reinterpret_cast<const Affine<double> *>(inverse_rest);
    auto *positions = reinterpret_cast<const Vec3<double> *>(rest);
    auto *measured = reinterpret_cast<const Vec3<double> *>(points);

    Buffer<Affine<double>> absolute(bones), skin(bones);
    Affine<double> global = rigid(theta, theta + 3);
    for (long b = 0; b < bones; b++) {
        Affine<double> posed = local[b] * joint(theta, b);
        absolute[b] = parents[b] < 0 ? posed : absolute[parents[b]] * posed;
        skin[b] = global * (absolute[b] * inverse[b]);
    }
    Buffer<Vec3<double>> posed(vertices);
    for (long v = 0; v < vertices; v++) {
        double sum[3] = {0, 0, 0};
        const Vec3<double> &p = positions[v];
        for (long b = 0; b < bones; b++) {
            double w = weights[v * bones + b];
            for (int i = 0; i < 3; i++) {
                const double *row = skin[b].m[i];
                sum[i] += w * (row[0] * p.x + row[1] * p.y + row[2] * p.z + row[3]);
            }
        }
        posed[v] = {sum[0], sum[1], sum[2]};
    }
    for (long i = 0; i < n; i++) {
        Vec3<double> e = measured[i] - posed[nearest[i]];
        errors[3 * i] = e.x;
        errors[3 * i + 1] = e.y;
        errors[3 * i + 2] = e.z;
    }
}

// Half the squared norm of the residuals.
extern "C" double hand_cost(const double *theta, const double *relative, const int *parents, const double *inverse_rest,
                            const double *rest, const double *weights, const double *points, const int *nearest,
                            long bones, long vertices, long n)
{
    Buffer<double> errors(3 * n);
    hand(theta, relative, parents, inverse_rest, rest, weights, points, nearest, &errors[0], bones, vertices, n);
    double s = 0;
    for (long i = 0; i < 3 * n; i++)
        s += errors[i] * errors[i];
    return 0.5 * s;
}
