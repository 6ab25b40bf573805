/* Bundle adjustment: weighted reprojection errors of p observations.
 *
 * Camera (11): Rodrigues rotation vector (3), centre (3), focal length, principal point (2), radial distortion (2).
 * Every observation carries its own copy of camera, point and weight, so that the Jacobian is p blocks of 2 x 15. */
#include <math.h>
#include <stdlib.h>

static void cross(const double *a, const double *b, double *out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static double dot3(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void rotate(const double *r, const double *v, double *out)
{
    double squared = dot3(r, r);
    if (squared > 0.0) {
        double angle = sqrt(squared), c = cos(angle), s = sin(angle);
        double axis[3], turned[3];
        for (int i = 0; i < 3; i++)
            axis[i] = r[i] / angle;
        cross(axis, v, turned);
        double along = dot3(axis, v) * (1.0 - c);
        for (int i = 0; i < 3; i++)
            out[i] = v[i] * c + turned[i] * s + axis[i] * along;
    } else {
        cross(r, v, out);
        for (int i = 0; i < 3; i++)
            out[i] += v[i];
    }
}

static void project(const double *camera, const double *point, double *image)
{
    double moved[3], seen[3];
    for (int i = 0; i < 3; i++)
        moved[i] = point[i] - camera[3 + i];
    rotate(camera, moved, seen);
    double x = seen[0] / seen[2], y = seen[1] / seen[2];
    double radius = x * x + y * y;
    double factor = 1.0 + camera[9] * radius + camera[10] * radius * radius;
    image[0] = x * factor * camera[6] + camera[7];
    image[1] = y * factor * camera[6] + camera[8];
}

void ba(const double *cameras, const double *points, const double *weights, const double *features, double *errors, long p)
{
    for (long i = 0; i < p; i++) {
        double image[2];
        project(cameras + 11 * i, points + 3 * i, image);
        errors[2 * i] = weights[i] * (image[0] - features[2 * i]);
        errors[2 * i + 1] = weights[i] * (image[1] - features[2 * i + 1]);
    }
}

/* half the squared norm of the errors */
double ba_cost(const double *cameras, const double *points, const double *weights, const double *features, long p)
{
    double *errors = malloc(2 * p * sizeof(double)), s = 0.0;
    ba(cameras, points, weights, features, errors, p);
    for (long i = 0; i < 2 * p; i++)
        s += errors[i] * errors[i];
    free(errors);
    return 0.5 * s;
}
