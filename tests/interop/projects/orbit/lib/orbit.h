struct body { double at[3], speed[3]; };
double norm(const double *v);
void advance(struct body *b, double mass, double dt, int steps);
double miss(const double *speed, const double *target, double mass);
