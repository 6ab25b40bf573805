/* Loops by goto. */
double loss(const double *x, long n) {
  double s = 0, a = 1;
  long i = 0;
  int k = 0;
again:
  if (i >= n) goto out;
  a = a * x[i] + k;
  if (a > 1.5) {
    a -= 1;
    k = 1;
    s += a;
    goto next;
  }
  k = 0;
  s += a * a;
next:
  i++;
  goto again;
out:
  return s + a;
}
