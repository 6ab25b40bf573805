// std::cin in the differentiated function: what is read is constant.
#include <cstdio>
#include <iostream>
#include <unistd.h>
extern int enzyme_dup;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
double f(double x) {
  double by = 0, sum = 0;
  int n = 0;
  std::cin >> by >> n;
  for (int i = 0; i < n; i++) sum += by * x * x;
  return sum;
}
int main() {
  int ends[2];
  const char given[] = "2.5 4\n1.5 2\n";
  if (pipe(ends) || write(ends[1], given, sizeof given - 1) < 0 || close(ends[1]) || dup2(ends[0], 0) < 0) return 3;
  double d = __enzyme_autodiff((void *)f, 3.0), t = __enzyme_fwddiff((void *)f, 3.0, 1.0);
  bool right = d == 60 && t == 18;
  if (right) std::puts("all right");
  else std::printf("%g %g\n", d, t);
  return !right;
}
