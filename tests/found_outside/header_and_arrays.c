// One malloc holds a header of ints and pointers and, behind it, the doubles that the pointers name.
#include <stdlib.h>
#include <string.h>
#include <math.h>
typedef struct { int inputs, total; double *weight, *output; } net;
__attribute__((noinline)) net *net_new(int inputs, int total) {
    net *p = malloc(sizeof(net) + sizeof(double) * (total + inputs));
    p->inputs = inputs; p->total = total;
    p->weight = (double *)((char *)p + sizeof(net));
    p->output = p->weight + p->total;
    return p;
}
__attribute__((noinline)) static const double *run(const net *p, const double *in) {
    memcpy(p->output, in, sizeof(double) * p->inputs);
    double s = 0;
    for (int i = 0; i < p->inputs; i++) s += p->output[i] * p->weight[i];
    p->output[0] = tanh(s);
    return p->output;
}
double loss(const double *w, long n) {
    double in[7] = {1, .5, .25, .1, .2, .3, .4};
    net *p = net_new((int)n, (int)n);
    memcpy(p->weight, w, n * sizeof(double));
    double s = *run(p, in);
    free(p);
    return s;
}
