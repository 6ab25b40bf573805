/* An int and a float share one register. */
double __enzyme_fwddiff(void *, ...);
typedef struct { int k; float f; } V;
double f(V v) { return (double)v.k * v.f * v.f; }
int main(void) { V v = {3, 5}, t = {0, 2}; return __enzyme_fwddiff((void *)f, v, t) != 60; }
