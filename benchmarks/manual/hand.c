/* Jacobian of kernels/hand.cpp, derived by hand: the derivative of each bone's map by the angles above it, then skinning
 * of the needed vertices only. Errors are minus the posed vertices, so every column changes sign. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef double map[12];

static void compose(const double *a, const double *b, double *out)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            out[4 * i + j] = a[4 * i] * b[j] + a[4 * i + 1] * b[4 + j] + a[4 * i + 2] * b[8 + j] + (j == 3 ? a[4 * i + 3] : 0);
}

/* Rotation about a coordinate axis and its derivative by the angle, as affine maps. */
static void about(int axis, double angle, double *rotation, double *slope)
{
    double c = cos(angle), s = sin(angle);
    int p = (axis + 1) % 3, q = (axis + 2) % 3;
    memset(rotation, 0, sizeof(map));
    memset(slope, 0, sizeof(map));
    rotation[5 * axis] = 1.0;
    rotation[5 * p] = rotation[5 * q] = c;
    rotation[4 * p + q] = -s, rotation[4 * q + p] = s;
    slope[5 * p] = slope[5 * q] = -s;
    slope[4 * p + q] = -c, slope[4 * q + p] = c;
}

static void transform(const double *a, const double *v, double one, double *out)
{
    for (int i = 0; i < 3; i++)
        out[i] = a[4 * i] * v[0] + a[4 * i + 1] * v[1] + a[4 * i + 2] * v[2] + a[4 * i + 3] * one;
}

/* R and its derivatives by the three entries of the rotation vector r. */
static void rodrigues(const double *r, const double *t, double *global, map *slopes)
{
    double angle = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]), c = cos(angle), s = sin(angle);
    double k[3] = {r[0] / angle, r[1] / angle, r[2] / angle};
    double turn[9] = {0, -k[2], k[1], k[2], 0, -k[0], -k[1], k[0], 0};
    memset(slopes, 0, 3 * sizeof(map));
    for (int a = 0; a < 3; a++) {
        global[4 * a + 3] = t[a];
        for (int b = 0; b < 3; b++)
            global[4 * a + b] = (a == b) * c + s * turn[3 * a + b] + (1 - c) * k[a] * k[b];
    }
    for (int j = 0; j < 3; j++) {
        double dk[3];
        for (int a = 0; a < 3; a++)
            dk[a] = ((a == j) - k[a] * k[j]) / angle;
        double dturn[9] = {0, -dk[2], dk[1], dk[2], 0, -dk[0], -dk[1], dk[0], 0};
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                slopes[j][4 * a + b] = -s * k[j] * (a == b) + c * k[j] * turn[3 * a + b] + s * dturn[3 * a + b] +
                                       s * k[j] * k[a] * k[b] + (1 - c) * (dk[a] * k[b] + k[a] * dk[b]);
    }
}

/* Absolute maps of one finger's four bones, and of those below the derivatives by its four angles. */
static void pose_finger(const double *angles, const map *local, const double *wrist, map *absolute, map slopes[4][4])
{
    map x1, dx1, z, dz, rotation, slope, joint, posed, moved;
    memset(slopes, 0, 16 * sizeof(map));
    compose(wrist, local[0], absolute[0]);
    about(0, angles[1], x1, dx1);
    about(2, angles[0], z, dz);
    compose(absolute[0], local[1], moved);
    compose(x1, z, joint);
    compose(moved, joint, absolute[1]);
    compose(x1, dz, joint);
    compose(moved, joint, slopes[0][1]);
    compose(dx1, z, joint);
    compose(moved, joint, slopes[1][1]);
    for (int a = 0; a < 2; a++)
        for (int i = 0; i < 3; i++)
            slopes[a][1][4 * i + 3] = 0.0; /* the joint's derivative moves no origin */
    for (int segment = 2; segment < 4; segment++) {
        about(0, angles[segment], rotation, slope);
        compose(local[segment], rotation, posed);
        compose(absolute[segment - 1], posed, absolute[segment]);
        compose(local[segment], slope, joint);
        for (int i = 0; i < 3; i++)
            joint[4 * i + 3] = 0.0;
        for (int a = 0; a < segment; a++)
            compose(slopes[a][segment - 1], posed, slopes[a][segment]);
        memcpy(moved, absolute[segment - 1], sizeof(map));
        moved[3] = moved[7] = moved[11] = 0.0;
        compose(moved, joint, slopes[segment][segment]);
    }
}

/* bones = 22 with the parents of the model: wrist under forearm, metacarpals under the wrist, each phalanx under the last. */
void hand_jacobian(const double *theta, const double *relative, const double *inverse_rest, const double *rest,
                   const double *weights, const int *nearest, long bones, long n, double *jacobian)
{
    const map *local = (const map *)relative, *inverse = (const map *)inverse_rest;
    map *absolute = malloc(bones * sizeof(map)), *skin = malloc(bones * sizeof(map));
    map(*slopes)[4][4] = malloc(5 * sizeof(*slopes)), global, turns[3], full;
    rodrigues(theta, theta + 3, global, turns);
    memcpy(absolute[0], local[0], sizeof(map));
    compose(absolute[0], local[1], absolute[1]);
    for (int f = 0; f < 5; f++) {
        pose_finger(theta + 6 + 4 * f, local + 2 + 4 * f, absolute[1], absolute + 2 + 4 * f, slopes[f]);
        for (int a = 0; a < 4; a++)
            for (int segment = 1; segment < 4; segment++) {
                map turned, g;
                memcpy(g, global, sizeof(map));
                g[3] = g[7] = g[11] = 0.0;
                compose(slopes[f][a][segment], inverse[2 + 4 * f + segment], turned);
                compose(g, turned, slopes[f][a][segment]);
            }
    }
    for (long b = 0; b < bones; b++)
        compose(absolute[b], inverse[b], skin[b]);
    memset(jacobian, 0, n * 3 * 26 * sizeof(double));
    for (long p = 0; p < n; p++) {
        const double *v = rest + 3 * nearest[p], *w = weights + nearest[p] * bones;
        double blended[3] = {0, 0, 0}, total = 0.0, moved[3], *rows = jacobian + p * 3 * 26;
        for (long b = 0; b < bones; b++) {
            transform(skin[b], v, 1.0, moved);
            total += w[b];
            for (int i = 0; i < 3; i++)
                blended[i] += w[b] * moved[i];
        }
        for (int j = 0; j < 3; j++) {
            memcpy(full, turns[j], sizeof(map));
            transform(full, blended, 0.0, moved);
            for (int i = 0; i < 3; i++)
                rows[26 * i + j] = -moved[i];
            rows[26 * j + 3 + j] = -total;
        }
        for (int f = 0; f < 5; f++)
            for (int a = 0; a < 4; a++)
                for (int segment = a < 2 ? 1 : a; segment < 4; segment++) {
                    transform(slopes[f][a][segment], v, 1.0, moved);
                    for (int i = 0; i < 3; i++)
                        rows[26 * i + 6 + 4 * f + a] -= w[2 + 4 * f + segment] * moved[i];
                }
    }
    free(absolute), free(skin), free(slopes);
}
