/* Products of pairs, as the SLP vectoriser writes them. */
void __enzyme_autodiff(void *, ...);
double g(const double *p) { double a = p[0] * p[1], b = p[2] * p[3]; return a * b; }
int main(void) {
  double p[4] = {2, 3, 5, 7}, d[4] = {0};
  __enzyme_autodiff((void *)g, p, d);
  return !(d[0] == 105 && d[1] == 70 && d[2] == 42 && d[3] == 30);
}
