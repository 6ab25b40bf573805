/* Hand tracking: half the squared distance between measured points and a skinned hand; definitions as in
 * kernels/hand.cpp. Maps are three rows of four numbers: a rotation and a translation. */
#include "spelling.h"

#if SPELLING == VECTORS
template <class T> struct Affine {
    T m[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
    Affine operator*(const Affine &o) const {
        Affine out;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++)
                out.m[i][j] = m[i][0] * o.m[0][j] + m[i][1] * o.m[1][j] + m[i][2] * o.m[2][j] + (j == 3 ? m[i][3] : T(0));
        return out;
    }
};
template <class T> static Affine<T> about(int axis, const T &angle) {
    Affine<T> a;
    int j = (axis + 1) % 3, k = (axis + 2) % 3;
    a.m[j][j] = a.m[k][k] = cos(angle);
    a.m[k][j] = sin(angle);
    a.m[j][k] = -a.m[k][j];
    return a;
}
template <class T> static Affine<T> rigid(const std::vector<T> &theta) {
    Affine<T> a;
    T square = theta[0] * theta[0] + theta[1] * theta[1] + theta[2] * theta[2];
    if (square > 1e-30) {
        T angle = sqrt(square), c = cos(angle), s = sin(angle);
        for (int i = 0; i < 3; i++) {
            int j = (i + 1) % 3, k = (i + 2) % 3;
            a.m[i][i] = theta[i] * theta[i] / square * (1 - c) + c;
            a.m[i][j] = theta[i] * theta[j] / square * (1 - c) - theta[k] / angle * s;
            a.m[i][k] = theta[i] * theta[k] / square * (1 - c) + theta[j] / angle * s;
        }
    }
    for (int i = 0; i < 3; i++) a.m[i][3] = theta[3 + i];
    return a;
}
template <class T> static Affine<T> joint(const std::vector<T> &theta, int bone) {
    int finger = (bone - 2) / 4, segment = (bone - 2) % 4;
    if (bone < 2 || segment == 0) return {};
    if (segment == 1) return about(0, theta[7 + 4 * finger]) * about(2, theta[6 + 4 * finger]);
    return about(0, theta[6 + 4 * finger + segment]);
}
template <class T> static Affine<T> map(const Matrix<double> &m, int row) {
    Affine<T> a;
    for (int i = 0; i < 12; i++) a.m[i / 4][i % 4] = m(row, i);
    return a;
}
template <class T> static T hand(const std::vector<T> &theta, const Matrix<double> &relative, const std::vector<int> &parents,
                                 const Matrix<double> &inverse_rest, const Matrix<double> &rest,
                                 const Matrix<double> &weights, const Matrix<double> &points,
                                 const std::vector<int> &nearest) {
    std::vector<Affine<T>> absolute, skin;
    Affine<T> global = rigid(theta);
    for (int b = 0; b < relative.rows; b++) {
        Affine<T> own = map<T>(relative, b) * joint(theta, b);
        absolute.push_back(parents[b] < 0 ? own : absolute[parents[b]] * own);
        skin.push_back(global * (absolute[b] * map<T>(inverse_rest, b)));
    }
    Matrix<T> posed{std::vector<T>(rest.rows * 3, T(0)), rest.rows, 3};
    for (int v = 0; v < rest.rows; v++)
        for (int b = 0; b < weights.cols; b++)
            for (int i = 0; i < 3; i++) {
                const T *row = skin[b].m[i];
                posed(v, i) += weights(v, b) * (row[0] * rest(v, 0) + row[1] * rest(v, 1) + row[2] * rest(v, 2) + row[3]);
            }
    T s = 0;
    for (int p = 0; p < points.rows; p++)
        for (int i = 0; i < 3; i++) {
            T error = points(p, i) - posed(nearest[p], i);
            s += error * error;
        }
    return 0.5 * s;
}
double primal() {
    return hand<double>(in[0].vec(), in[1].matrix, in[2].whole, in[3].matrix, in[4].matrix, in[5].matrix, in[6].matrix,
                        in[7].whole);
}
void gradient() {
    __enzyme_autodiff((void *)hand<double>, enzyme_dup, &in[0].vec(), &grad[0].vec(), enzyme_const, &in[1].matrix,
                      enzyme_const, &in[2].whole, enzyme_const, &in[3].matrix, enzyme_const, &in[4].matrix, enzyme_const,
                      &in[5].matrix, enzyme_const, &in[6].matrix, enzyme_const, &in[7].whole);
}

#elif SPELLING == STRUCTS
struct Vec {
    double x, y, z;
    double dot(const Vec &o) const { return x * o.x + y * o.y + z * o.z; }
};
struct Row {
    Vec turn;
    double shift;
    Row times(const Row *o) const {
        Row out = {{0, 0, 0}, shift};
        const double by[3] = {turn.x, turn.y, turn.z};
        for (int k = 0; k < 3; k++) {
            out.turn.x += by[k] * o[k].turn.x, out.turn.y += by[k] * o[k].turn.y, out.turn.z += by[k] * o[k].turn.z;
            out.shift += by[k] * o[k].shift;
        }
        return out;
    }
};
struct Pose {
    Row row[3];
    Pose times(const Pose &o) const { return {{row[0].times(o.row), row[1].times(o.row), row[2].times(o.row)}}; }
};
struct Angles {
    Vec turn, shift;
    double finger[5][4];
    static Pose about_x(double a) { return {{{{1, 0, 0}, 0}, {{0, cos(a), -sin(a)}, 0}, {{0, sin(a), cos(a)}, 0}}}; }
    static Pose about_z(double a) { return {{{{cos(a), -sin(a), 0}, 0}, {{sin(a), cos(a), 0}, 0}, {{0, 0, 1}, 0}}}; }
    Pose global() const {
        double square = turn.dot(turn);
        if (square <= 1e-30) return {{{{1, 0, 0}, shift.x}, {{0, 1, 0}, shift.y}, {{0, 0, 1}, shift.z}}};
        double angle = sqrt(square), c = cos(angle), s = sin(angle), v = 1 - c;
        double x = turn.x / angle, y = turn.y / angle, z = turn.z / angle;
        return {{{{x * x * v + c, x * y * v - z * s, x * z * v + y * s}, shift.x},
                 {{x * y * v + z * s, y * y * v + c, y * z * v - x * s}, shift.y},
                 {{x * z * v - y * s, y * z * v + x * s, z * z * v + c}, shift.z}}};
    }
    Pose bent(const Pose &pose, int bone) const {
        int segment = (bone - 2) % 4;
        if (bone < 2 || segment == 0) return pose;
        const double *angle = finger[(bone - 2) / 4];
        if (segment == 1) return pose.times(about_x(angle[1])).times(about_z(angle[0]));
        return pose.times(about_x(angle[segment]));
    }
};
struct Skeleton {
    const Pose *relative, *inverse_rest;
    const int *parent;
    int bones;
    void pose(const Angles &angles, Pose *absolute, Pose *skin) const {
        Pose global = angles.global();
        for (int b = 0; b < bones; b++) {
            absolute[b] = angles.bent(relative[b], b);
            if (parent[b] >= 0) absolute[b] = absolute[parent[b]].times(absolute[b]);
            skin[b] = global.times(absolute[b].times(inverse_rest[b]));
        }
    }
};
struct Mesh {
    const Vec *rest, *points;
    const double *weight;
    const int *nearest;
    int vertices, count;
    Vec moved(int v, const Pose *skin, int bones) const {
        Vec out = {0, 0, 0};
        for (int b = 0; b < bones; b++) {
            double w = weight[(size_t)v * bones + b];
            const Row *row = skin[b].row;
            out.x += w * (row[0].turn.dot(rest[v]) + row[0].shift);
            out.y += w * (row[1].turn.dot(rest[v]) + row[1].shift);
            out.z += w * (row[2].turn.dot(rest[v]) + row[2].shift);
        }
        return out;
    }
};
static double hand(const Angles *angles, const Skeleton *skeleton, const Mesh *mesh) {
    Pose *absolute = new Pose[skeleton->bones], *skin = new Pose[skeleton->bones];
    Vec *posed = new Vec[mesh->vertices];
    double s = 0;
    skeleton->pose(*angles, absolute, skin);
    for (int v = 0; v < mesh->vertices; v++) posed[v] = mesh->moved(v, skin, skeleton->bones);
    for (int p = 0; p < mesh->count; p++) {
        const Vec &at = mesh->points[p], &to = posed[mesh->nearest[p]];
        Vec error = {at.x - to.x, at.y - to.y, at.z - to.z};
        s += error.dot(error);
    }
    delete[] absolute;
    delete[] skin;
    delete[] posed;
    return 0.5 * s;
}
static Skeleton skeleton() { return {(Pose *)in[1].flat(), (Pose *)in[3].flat(), in[2].whole.data(), size[0]}; }
static Mesh mesh() {
    return {(Vec *)in[4].flat(), (Vec *)in[6].flat(), in[5].flat(), in[7].whole.data(), size[1], size[2]};
}
double primal() {
    Skeleton bones = skeleton();
    Mesh skin = mesh();
    return hand((Angles *)in[0].flat(), &bones, &skin);
}
void gradient() {
    Skeleton bones = skeleton();
    Mesh skin = mesh();
    __enzyme_autodiff((void *)hand, enzyme_dup, FLAT(0), enzyme_const, &bones, enzyme_const, &skin);
}

#else
static void rigid(const double *r, const double *t, double *out) {
    double square = 0;
    for (int i = 0; i < 3; i++) square += r[i] * r[i];
    for (int i = 0; i < 12; i++) out[i] = i % 5 == 0;
    if (square > 1e-30) {
        double angle = sqrt(square), c = cos(angle), s = sin(angle), v = 1 - c;
        double x = r[0] / angle, y = r[1] / angle, z = r[2] / angle;
        out[0] = x * x * v + c, out[1] = x * y * v - z * s, out[2] = x * z * v + y * s;
        out[4] = x * y * v + z * s, out[5] = y * y * v + c, out[6] = y * z * v - x * s;
        out[8] = x * z * v - y * s, out[9] = y * z * v + x * s, out[10] = z * z * v + c;
    }
    for (int i = 0; i < 3; i++) out[4 * i + 3] = t[i];
}

#if SPELLING == CELLS
static void compose(const double *a, const double *b, double *out) {
    for (int i = 2; i >= 0; i--)
        for (int j = 3; j >= 0; j--) {
            double *to = out + 4 * i + j;
            *to = j == 3 ? a[4 * i + 3] : 0;
            for (int k = 2; k >= 0; k--) *to += a[4 * i + k] * b[4 * k + j];
        }
}
#else
static void compose(const double *a, const double *b, double *out) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) {
            double s = j == 3 ? a[4 * i + 3] : 0;
            for (int k = 0; k < 3; k++) s += a[4 * i + k] * b[4 * k + j];
            out[4 * i + j] = s;
        }
}
#endif
/* out = a, then the rotation by an angle about x (axis 0) or z (axis 2) */
static void turned(const double *a, int axis, double angle, double *out) {
    double turn[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, c = cos(angle), s = sin(angle);
    int j = (axis + 1) % 3, k = (axis + 2) % 3;
    turn[5 * j] = turn[5 * k] = c, turn[4 * j + k] = -s, turn[4 * k + j] = s;
    compose(a, turn, out);
}
static void bend(const double *theta, const double *relative, int bone, double *out) {
    const double *angles = theta + 6 + 4 * ((bone - 2) / 4);
    int segment = (bone - 2) % 4;
    if (bone < 2 || segment == 0) memcpy(out, relative, 12 * sizeof(double));
    else if (segment == 1) {
        double first[12];
        turned(relative, 0, angles[1], first);
        turned(first, 2, angles[0], out);
    } else turned(relative, 0, angles[segment], out);
}

#if SPELLING == PLAIN
static double hand(const double *theta, const double *relative, const int *parents, const double *inverse_rest,
                   const double *rest, const double *weights, const double *points, const int *nearest, int bones,
                   int vertices, int n) {
    double *absolute = (double *)malloc(12 * bones * sizeof(double)), *skin = (double *)malloc(12 * bones * sizeof(double));
    double *posed = (double *)malloc(3 * vertices * sizeof(double)), global[12], s = 0;
    rigid(theta, theta + 3, global);
    for (int b = 0; b < bones; b++) {
        double own[12], local[12];
        bend(theta, relative + 12 * b, b, own);
        if (parents[b] < 0) memcpy(absolute + 12 * b, own, sizeof own);
        else compose(absolute + 12 * parents[b], own, absolute + 12 * b);
        compose(absolute + 12 * b, inverse_rest + 12 * b, local);
        compose(global, local, skin + 12 * b);
    }
    for (int v = 0; v < vertices; v++)
        for (int i = 0; i < 3; i++) {
            double sum = 0;
            for (int b = 0; b < bones; b++) {
                const double *row = skin + 12 * b + 4 * i;
                sum += weights[v * bones + b] *
                       (row[0] * rest[3 * v] + row[1] * rest[3 * v + 1] + row[2] * rest[3 * v + 2] + row[3]);
            }
            posed[3 * v + i] = sum;
        }
    for (int p = 0; p < n; p++)
        for (int i = 0; i < 3; i++) {
            double error = points[3 * p + i] - posed[3 * nearest[p] + i];
            s += error * error;
        }
    free(absolute), free(skin), free(posed);
    return 0.5 * s;
}
double primal() {
    return hand(in[0].flat(), in[1].flat(), in[2].whole.data(), in[3].flat(), in[4].flat(), in[5].flat(), in[6].flat(),
                in[7].whole.data(), size[0], size[1], size[2]);
}
void gradient() {
    __enzyme_autodiff((void *)hand, enzyme_dup, FLAT(0), enzyme_const, in[1].flat(), enzyme_const, in[2].whole.data(),
                      enzyme_const, in[3].flat(), enzyme_const, in[4].flat(), enzyme_const, in[5].flat(), enzyme_const,
                      in[6].flat(), enzyme_const, in[7].whole.data(), enzyme_const, size[0], enzyme_const, size[1],
                      enzyme_const, size[2]);
}

#elif SPELLING == ROWS
static double **table(int rows, int cols) {
    double **out = (double **)malloc(rows * sizeof(double *));
    for (int i = 0; i < rows; i++) out[i] = (double *)malloc(cols * sizeof(double));
    return out;
}
static void discard(double **rows, int count) {
    for (int i = 0; i < count; i++) free(rows[i]);
    free(rows);
}
static double hand(const double *theta, double **relative, const int *parents, double **inverse_rest, double **rest,
                   double **weights, double **points, const int *nearest, int bones, int vertices, int n) {
    double **absolute = table(bones, 12), **skin = table(bones, 12), **posed = table(vertices, 3), global[12], s = 0;
    rigid(theta, theta + 3, global);
    for (int b = 0; b < bones; b++) {
        double own[12], local[12];
        bend(theta, relative[b], b, own);
        if (parents[b] < 0) memcpy(absolute[b], own, sizeof own);
        else compose(absolute[parents[b]], own, absolute[b]);
        compose(absolute[b], inverse_rest[b], local);
        compose(global, local, skin[b]);
    }
    for (int v = 0; v < vertices; v++) {
        for (int i = 0; i < 3; i++) posed[v][i] = 0;
        for (int b = 0; b < bones; b++)
            for (int i = 0; i < 3; i++) {
                double *row = skin[b] + 4 * i;
                posed[v][i] += weights[v][b] * (row[0] * rest[v][0] + row[1] * rest[v][1] + row[2] * rest[v][2] + row[3]);
            }
    }
    for (int p = 0; p < n; p++)
        for (int i = 0; i < 3; i++) {
            double error = points[p][i] - posed[nearest[p]][i];
            s += error * error;
        }
    discard(absolute, bones), discard(skin, bones), discard(posed, vertices);
    return 0.5 * s;
}
double primal() {
    return hand(in[0].flat(), in[1].rows(), in[2].whole.data(), in[3].rows(), in[4].rows(), in[5].rows(), in[6].rows(),
                in[7].whole.data(), size[0], size[1], size[2]);
}
void gradient() {
    __enzyme_autodiff((void *)hand, enzyme_dup, FLAT(0), enzyme_const, in[1].rows(), enzyme_const, in[2].whole.data(),
                      enzyme_const, in[3].rows(), enzyme_const, in[4].rows(), enzyme_const, in[5].rows(), enzyme_const,
                      in[6].rows(), enzyme_const, in[7].whole.data(), enzyme_const, size[0], enzyme_const, size[1],
                      enzyme_const, size[2]);
}

#elif SPELLING == CELLS
static void hand(const double *theta, const double *relative, const int *parents, const double *inverse_rest,
                 const double *rest, const double *weights, const double *points, const int *nearest, int bones,
                 int vertices, int n, double *out) {
    double *absolute = (double *)malloc(12 * bones * sizeof(double)), *skin = (double *)malloc(12 * bones * sizeof(double));
    double *posed = (double *)calloc(3 * vertices, sizeof(double)), global[12];
    rigid(theta, theta + 3, global);
    for (int b = 0; b < bones; b++) {
        double own[12], *mine = absolute + 12 * b;
        bend(theta, relative + 12 * b, b, own);
        memcpy(mine, own, sizeof own);
        if (parents[b] >= 0) compose(absolute + 12 * parents[b], own, mine);
        compose(mine, inverse_rest + 12 * b, own);
        compose(global, own, skin + 12 * b);
    }
    while (vertices-- > 0)
        for (int b = bones - 1; b >= 0; b--) {
            double w = weights[vertices * bones + b];
            if (w == 0) continue;
            for (int i = 2; i >= 0; i--) {
                const double *row = skin + 12 * b + 4 * i;
                posed[3 * vertices + i] += w * row[3];
                for (int k = 2; k >= 0; k--) posed[3 * vertices + i] += w * row[k] * rest[3 * vertices + k];
            }
        }
    *out = 0;
    for (int p = n - 1; p >= 0; p--)
        for (int i = 2; i >= 0; i--) {
            double error = points[3 * p + i] - posed[3 * nearest[p] + i];
            *out += 0.5 * error * error;
        }
    free(absolute), free(skin), free(posed);
}
double primal() {
    double out;
    hand(in[0].flat(), in[1].flat(), in[2].whole.data(), in[3].flat(), in[4].flat(), in[5].flat(), in[6].flat(),
         in[7].whole.data(), size[0], size[1], size[2], &out);
    return out;
}
void gradient() {
    double out, seed = 1;
    __enzyme_autodiff((void *)hand, enzyme_dup, FLAT(0), enzyme_const, in[1].flat(), enzyme_const, in[2].whole.data(),
                      enzyme_const, in[3].flat(), enzyme_const, in[4].flat(), enzyme_const, in[5].flat(), enzyme_const,
                      in[6].flat(), enzyme_const, in[7].whole.data(), enzyme_const, size[0], enzyme_const, size[1],
                      enzyme_const, size[2], enzyme_dupnoneed, &out, &seed);
}
#endif
#endif
