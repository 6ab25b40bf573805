#ifdef __cplusplus
extern "C" {
#endif
typedef double (*model)(const double *parameters, double t);
void add_model(const char *name, model f);
model find_model(const char *name);
double misfit(const char *name, const double *parameters);
#ifdef __cplusplus
}
#endif
