/* A struct of 24 bytes by value in reverse mode: its gradient is returned. */
typedef struct { double x, y, z; } V;
V __enzyme_autodiff(void *, ...);
double f(V v) { return v.x * v.x * v.y * v.z; }
int main(void) { V v = {2, 3, 5}, r = __enzyme_autodiff((void *)f, v); return !(r.x == 60 && r.y == 20 && r.z == 12); }
