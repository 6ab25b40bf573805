// A struct of two floats is copied as one i64, which is then used in parts.
#include <stdlib.h>
typedef struct { float r, i; } cpx;
float loss(const float *x, long n) {
    int p = (int)n / 2;
    cpx *F = malloc(p * sizeof *F), *scratch = malloc(p * sizeof *scratch);
    for (int q = 0; q < p; q++) F[q] = ((const cpx *)x)[q];
    for (int q = 0; q < p; q++) scratch[q] = F[q];
    for (int k = 0; k < p; k++) {
        F[k] = scratch[0];
        for (int q = 1; q < p; q++) { F[k].r += scratch[q].r * (k + q); F[k].i += scratch[q].i * (k - q); }
    }
    float s = 0;
    for (int k = 0; k < p; k++) s += F[k].r * F[k].r + F[k].i * F[k].i * k;
    free(F); free(scratch); return s;
}
