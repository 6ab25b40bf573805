/* The call ran out of registers, the function did not. */
double __enzyme_fwddiff(void *, ...);
typedef struct { long k; double y; } V;
double f(int a, int b, int c, int d, V v, double z) { return v.k * v.y * v.y * z; }
int main(void) { V v = {3, 5}, t = {0, 1}; return __enzyme_fwddiff((void *)f, 1, 2, 3, 4, v, t, 2., 1.) != 135; }
