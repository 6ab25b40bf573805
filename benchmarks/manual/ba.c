/* The 2 x 15 blocks of kernels/ba.c, derived by hand, one adjoint of the rotated point per row.
 *
 * g . R(r) m = c g.m + s k.(m x g) + (1 - c) (k.m)(g.k) with k = r / angle, so that
 *   d/d angle = -s g.m + c k.(m x g) + s (k.m)(g.k),   d/dk = s (m x g) + (1 - c) (m (g.k) + g (k.m)),
 *   d/dr = k d/d angle + (I - k k^T) (d/dk) / angle,   R^T g = c g - s k x g + (1 - c) k (k.g). */
#include <math.h>

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double *a, const double *b, double *o)
{
    o[0] = a[1] * b[2] - a[2] * b[1];
    o[1] = a[2] * b[0] - a[0] * b[2];
    o[2] = a[0] * b[1] - a[1] * b[0];
}

void ba_rows(const double *cameras, const double *points, const double *weights, const double *features, long p,
             double *jcameras, double *jpoints, double *jweights)
{
    for (long o = 0; o < p; o++) {
        const double *cam = cameras + 11 * o;
        double m[3], k[3] = {0, 0, 0}, km[3], seen[3], angle = sqrt(dot(cam, cam)), c = cos(angle), s = sin(angle);
        for (int i = 0; i < 3; i++) {
            m[i] = points[3 * o + i] - cam[3 + i];
            k[i] = angle > 0 ? cam[i] / angle : 0.0;
        }
        cross(k, m, km);
        double along = dot(k, m);
        for (int i = 0; i < 3; i++)
            seen[i] = c * m[i] + s * km[i] + (1 - c) * along * k[i];
        double iz = 1.0 / seen[2], x = seen[0] * iz, y = seen[1] * iz, r = x * x + y * y, w = weights[o], f = cam[6];
        double factor = 1.0 + r * (cam[9] + r * cam[10]), slope = 2.0 * (cam[9] + 2.0 * cam[10] * r);
        double at[2] = {x, y};
        for (int e = 0; e < 2; e++) {
            double *jc = jcameras + (e * p + o) * 11, *jp = jpoints + (e * p + o) * 3;
            /* image_e = at_e factor(r) f + centre_e; gx, gy: its derivatives by x and y */
            double gx = w * f * (at[e] * slope * x + (e == 0 ? factor : 0.0));
            double gy = w * f * (at[e] * slope * y + (e == 1 ? factor : 0.0));
            double g[3] = {gx * iz, gy * iz, -(gx * x + gy * y) * iz}, mg[3], kg[3], dk[3];
            cross(m, g, mg);
            cross(k, g, kg);
            double gk = dot(g, k), gm = dot(g, m), turn = dot(k, mg);
            double dangle = -s * gm + c * turn + s * along * gk;
            for (int i = 0; i < 3; i++)
                dk[i] = s * mg[i] + (1 - c) * (m[i] * gk + g[i] * along);
            double kdk = dot(k, dk);
            for (int i = 0; i < 3; i++) {
                jc[i] = angle > 0 ? k[i] * dangle + (dk[i] - k[i] * kdk) / angle : mg[i];
                jp[i] = c * g[i] - s * kg[i] + (1 - c) * k[i] * gk;
                jc[3 + i] = -jp[i];
            }
            jc[6] = w * at[e] * factor;
            jc[7] = e == 0 ? w : 0.0;
            jc[8] = e == 1 ? w : 0.0;
            jc[9] = w * f * at[e] * r;
            jc[10] = w * f * at[e] * r * r;
            jweights[e * p + o] = at[e] * factor * f + cam[7 + e] - features[2 * o + e];
        }
    }
}
