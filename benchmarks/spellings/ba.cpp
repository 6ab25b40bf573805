/* Bundle adjustment: half the squared norm of weighted reprojection errors; the camera's numbers as in kernels/ba.c. */
#include "spelling.h"

#if SPELLING == PLAIN || SPELLING == CELLS
static void cross(const double *a, const double *b, double *out) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}
#endif

#if SPELLING == PLAIN
static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
static void rotate(const double *r, const double *v, double *out) {
    double square = dot(r, r), axis[3], turned[3];
    if (square > 0) {
        double angle = sqrt(square), c = cos(angle), s = sin(angle);
        for (int i = 0; i < 3; i++) axis[i] = r[i] / angle;
        cross(axis, v, turned);
        double along = dot(axis, v) * (1 - c);
        for (int i = 0; i < 3; i++) out[i] = v[i] * c + turned[i] * s + axis[i] * along;
    } else {
        cross(r, v, out);
        for (int i = 0; i < 3; i++) out[i] += v[i];
    }
}
static void project(const double *camera, const double *point, double *image) {
    double moved[3], seen[3];
    for (int i = 0; i < 3; i++) moved[i] = point[i] - camera[3 + i];
    rotate(camera, moved, seen);
    double x = seen[0] / seen[2], y = seen[1] / seen[2], radius = x * x + y * y;
    double factor = 1 + camera[9] * radius + camera[10] * radius * radius;
    image[0] = x * factor * camera[6] + camera[7];
    image[1] = y * factor * camera[6] + camera[8];
}
static double ba(const double *cameras, const double *points, const double *weights, const double *features, int p) {
    double *errors = (double *)malloc(2 * p * sizeof(double)), s = 0;
    for (int i = 0; i < p; i++) {
        double image[2];
        project(cameras + 11 * i, points + 3 * i, image);
        for (int j = 0; j < 2; j++) errors[2 * i + j] = weights[i] * (image[j] - features[2 * i + j]);
    }
    for (int i = 0; i < 2 * p; i++) s += errors[i] * errors[i];
    free(errors);
    return 0.5 * s;
}
double primal() { return ba(in[0].flat(), in[1].flat(), in[2].flat(), in[3].flat(), size[0]); }
void gradient() {
    __enzyme_autodiff((void *)ba, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_dup, FLAT(2), enzyme_const,
                      in[3].flat(), enzyme_const, size[0]);
}

#elif SPELLING == VECTORS
template <class T> struct Vec {
    T x, y, z;
};
template <class T> static Vec<T> operator+(const Vec<T> &a, const Vec<T> &b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
template <class T> static Vec<T> operator-(const Vec<T> &a, const Vec<T> &b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
template <class T> static Vec<T> operator*(const Vec<T> &a, const T &by) { return {a.x * by, a.y * by, a.z * by}; }
template <class T> static T dot(const Vec<T> &a, const Vec<T> &b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
template <class T> static Vec<T> cross(const Vec<T> &a, const Vec<T> &b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class T> static Vec<T> rotate(const Vec<T> &r, const Vec<T> &v) {
    T square = dot(r, r);
    if (!(square > 0)) return v + cross(r, v);
    T angle = sqrt(square), c = cos(angle);
    Vec<T> axis = r * (1 / angle);
    return v * c + cross(axis, v) * T(sin(angle)) + axis * (dot(axis, v) * (1 - c));
}
template <class T> static Vec<T> vec(const Matrix<T> &m, int row, int from) {
    return {m(row, from), m(row, from + 1), m(row, from + 2)};
}
template <class T> static T ba(const Matrix<T> &cameras, const Matrix<T> &points, const std::vector<T> &weights,
                               const Matrix<double> &features) {
    std::vector<T> errors;
    errors.reserve(2 * weights.size());
    for (int i = 0; i < points.rows; i++) {
        Vec<T> seen = rotate(vec(cameras, i, 0), vec(points, i, 0) - vec(cameras, i, 3));
        T x = seen.x / seen.z, y = seen.y / seen.z, radius = x * x + y * y;
        T factor = (1 + cameras(i, 9) * radius + cameras(i, 10) * radius * radius) * cameras(i, 6);
        errors.push_back(weights[i] * (x * factor + cameras(i, 7) - features(i, 0)));
        errors.push_back(weights[i] * (y * factor + cameras(i, 8) - features(i, 1)));
    }
    T s = 0;
    for (const T &error : errors) s += error * error;
    return 0.5 * s;
}
double primal() { return ba<double>(in[0].matrix, in[1].matrix, in[2].vec(), in[3].matrix); }
void gradient() {
    __enzyme_autodiff((void *)ba<double>, enzyme_dup, &in[0].matrix, &grad[0].matrix, enzyme_dup, &in[1].matrix,
                      &grad[1].matrix, enzyme_dup, &in[2].vec(), &grad[2].vec(), enzyme_const, &in[3].matrix);
}

#elif SPELLING == STRUCTS
struct Point {
    double x, y, z;
    double dot(const Point &o) const { return x * o.x + y * o.y + z * o.z; }
    Point cross(const Point &o) const { return {y * o.z - z * o.y, z * o.x - x * o.z, x * o.y - y * o.x}; }
    void add(const Point &o, double by) { x += by * o.x, y += by * o.y, z += by * o.z; }
};
struct Pixel {
    double x, y;
};
struct Camera {
    Point rotation, centre;
    double focal;
    Pixel principal;
    double distortion[2];
    Point rotated(const Point &v) const {
        double square = rotation.dot(rotation);
        Point out = v;
        if (square > 0) {
            double angle = sqrt(square), c = cos(angle), s = sin(angle);
            Point axis = {rotation.x / angle, rotation.y / angle, rotation.z / angle};
            out = {c * v.x, c * v.y, c * v.z};
            out.add(axis.cross(v), s);
            out.add(axis, axis.dot(v) * (1 - c));
        } else out.add(rotation.cross(v), 1);
        return out;
    }
    Pixel project(Point point) const {
        point.add(centre, -1);
        Point seen = rotated(point);
        double x = seen.x / seen.z, y = seen.y / seen.z, radius = x * x + y * y;
        double factor = focal * (1 + distortion[0] * radius + distortion[1] * radius * radius);
        return {x * factor + principal.x, y * factor + principal.y};
    }
};
struct Problem {
    const Camera *camera;
    const Point *point;
    const double *weight;
    int count;
    double cost(const Pixel *measured) const {
        double s = 0;
        for (int i = 0; i < count; i++) {
            Pixel image = camera[i].project(point[i]);
            double dx = weight[i] * (image.x - measured[i].x), dy = weight[i] * (image.y - measured[i].y);
            s += dx * dx + dy * dy;
        }
        return 0.5 * s;
    }
};
static double ba(const Problem *problem, const Pixel *measured) { return problem->cost(measured); }
static Problem make(Array *from) {
    return {(const Camera *)from[0].flat(), (const Point *)from[1].flat(), from[2].flat(), size[0]};
}
double primal() {
    Problem problem = make(in);
    return ba(&problem, (Pixel *)in[3].flat());
}
void gradient() {
    Problem problem = make(in), shadow = make(grad);
    __enzyme_autodiff((void *)ba, enzyme_dup, &problem, &shadow, enzyme_const, (Pixel *)in[3].flat());
}

#elif SPELLING == ROWS
static void rotate(const double *r, const double *v, double *out) {
    double square = 0, along = 0;
    for (int i = 0; i < 3; i++) square += r[i] * r[i], along += r[i] * v[i];
    double angle = sqrt(square), c = square > 0 ? cos(angle) : 1, s = square > 0 ? sin(angle) / angle : 1;
    double by = square > 0 ? along * (1 - c) / square : 0;
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        out[i] = v[i] * c + (r[j] * v[k] - r[k] * v[j]) * s + r[i] * by;
    }
}
static double ba(double **cameras, double **points, const double *weights, double **features, int p) {
    double **errors = (double **)malloc(2 * sizeof(double *)), s = 0;
    for (int j = 0; j < 2; j++) errors[j] = (double *)malloc(p * sizeof(double));
    for (int i = 0; i < p; i++) {
        double *camera = cameras[i], moved[3], seen[3], radius = 0;
        for (int j = 0; j < 3; j++) moved[j] = points[i][j] - camera[3 + j];
        rotate(camera, moved, seen);
        for (int j = 0; j < 2; j++) seen[j] /= seen[2], radius += seen[j] * seen[j];
        double factor = 1 + camera[9] * radius + camera[10] * radius * radius;
        for (int j = 0; j < 2; j++)
            errors[j][i] = weights[i] * (seen[j] * factor * camera[6] + camera[7 + j] - features[i][j]);
    }
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < p; i++) s += errors[j][i] * errors[j][i];
    free(errors[0]), free(errors[1]), free(errors);
    return 0.5 * s;
}
double primal() { return ba(in[0].rows(), in[1].rows(), in[2].flat(), in[3].rows(), size[0]); }
void gradient() {
    __enzyme_autodiff((void *)ba, enzyme_dup, in[0].rows(), grad[0].rows(), enzyme_dup, in[1].rows(), grad[1].rows(),
                      enzyme_dup, FLAT(2), enzyme_const, in[3].rows(), enzyme_const, size[0]);
}

#elif SPELLING == CELLS
static void add_dot(const double *a, const double *b, double *out) {
    for (int i = 2; i >= 0; i--) *out += a[i] * b[i];
}
static void rotate(const double *r, const double *v, double *out) {
    double square = 0, along = 0;
    add_dot(r, r, &square);
    cross(r, v, out);
    if (square <= 0) {
        for (int i = 2; i >= 0; i--) out[i] += v[i];
        return;
    }
    double angle = sqrt(square), c = cos(angle), s = sin(angle);
    add_dot(r, v, &along);
    for (int i = 2; i >= 0; i--) {
        out[i] *= s / angle;
        out[i] += v[i] * c;
        out[i] += r[i] * along * (1 - c) / square;
    }
}
static void ba(const double *camera, const double *point, const double *weight, const double *feature, int p, double *cost) {
    *cost = 0;
    while (p-- > 0) {
        double moved[3], seen[3], radius = 0, factor = 1;
        for (int i = 2; i >= 0; i--) moved[i] = point[i], moved[i] -= camera[3 + i];
        rotate(camera, moved, seen);
        for (int j = 1; j >= 0; j--) {
            seen[j] /= seen[2];
            radius += seen[j] * seen[j];
        }
        factor += camera[9] * radius;
        factor += camera[10] * radius * radius;
        for (int j = 1; j >= 0; j--) {
            double error = *weight * (seen[j] * factor * camera[6] + camera[7 + j] - feature[j]);
            *cost += 0.5 * error * error;
        }
        camera += 11, point += 3, feature += 2, weight++;
    }
}
double primal() {
    double out;
    ba(in[0].flat(), in[1].flat(), in[2].flat(), in[3].flat(), size[0], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)ba, enzyme_dup, FLAT(0), enzyme_dup, FLAT(1), enzyme_dup, FLAT(2), enzyme_const,
                      in[3].flat(), enzyme_const, size[0], enzyme_dupnoneed, &out, &seed);
}
#endif
