/* One function moves a word, whatever it is: pairs of floats, or doubles. */

struct pair {
  float a, b;
};

static __attribute__((noinline)) long take(const void *from) { return *(const long *)from; }
static __attribute__((noinline)) void give(void *to, long word) { *(long *)to = word; }

double loss(const double *x, long n) {
  struct pair pairs[6], turned[6];
  double numbers[6], backwards[6], sum = 0;
  for (int i = 0; i < n; i++) {
    pairs[i] = (struct pair){(float)(x[i] * x[i]), (float)(3 * x[i])};
    numbers[i] = x[i] * (i + 1);
  }
  for (int i = 0; i < n; i++) {
    give(&turned[i], take(&pairs[n - 1 - i]));
    give(&backwards[i], take(&numbers[n - 1 - i]));
  }
  for (int i = 0; i < n; i++)
    sum += turned[i].a * x[i] + 0.25 * turned[i].b + backwards[(i + 1) % n] * backwards[i] * x[0];
  return sum;
}
