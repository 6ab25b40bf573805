#ifdef __cplusplus
extern "C" {
#endif
double dot(const double *a, const double *b, int n);
double grad_norm(double *x, int n);
#ifdef __cplusplus
}
#endif
