// A struct on the heap with an array of doubles that is indexed by a variable, and ints behind it.
#include <stdlib.h>
struct st { double h, el[14]; double tab[13][14]; int nq, imxer; };
double loss(const double *x, long n) {
    struct st *p = calloc(1, sizeof *p);
    p->h = x[0]; p->nq = 3;
    for (int i = 0; i < n && i < 14; i++) p->el[i] = x[i] * p->h;
    double big = 0; p->imxer = 1;
    for (int i = 1; i < n && i < 14; i++) if (p->el[i] > big) { big = p->el[i]; p->imxer = i; }
    double s = p->el[p->imxer] * p->h;
    free(p);
    return s;
}
