/* One sort for records, numbers, integers and pointers, which swaps words that it calls `long`. */

typedef int (*order)(const void *, const void *);
struct record {
  long key;
  double value;
  double *other;
};

static __attribute__((noinline)) void swap(void *a, void *b, int words) {
  long *p = a, *q = b;
  for (int i = 0; i < words; i++) {
    long t = p[i];
    p[i] = q[i];
    q[i] = t;
  }
}

static __attribute__((noinline)) void sort(void *first, long n, int words, order compare) {
  char *p = first;
  long size = 8 * words;
  for (long i = 1; i < n; i++)
    for (long j = i; j > 0 && compare(p + size * (j - 1), p + size * j) > 0; j--)
      swap(p + size * (j - 1), p + size * j, words);
}

static int by_key(const void *a, const void *b) {
  long x = ((const struct record *)a)->key, y = ((const struct record *)b)->key;
  return (x > y) - (x < y);
}
static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static int by_target(const void *a, const void *b) {
  double x = **(double *const *)a, y = **(double *const *)b;
  return (x > y) - (x < y);
}
static int by_number(const void *a, const void *b) {
  long x = *(const long *)a, y = *(const long *)b;
  return (x > y) - (x < y);
}

double loss(const double *x, long n) {
  struct record records[6];
  double squares[6], products[6], *targets[6], sum = 0;
  long numbers[6];
  for (int i = 0; i < n; i++) {
    squares[i] = x[i] * x[i];
    products[i] = x[i] * x[(i + 1) % n] + 0.013 * i;
    targets[i] = &squares[i];
    numbers[i] = (5 * i + 1) % n;
    records[i] = (struct record){(5 * i + 2) % n, 2 * x[i], &squares[i]};
  }
  sort(records, n, 3, by_key);
  sort(products, n, 1, by_value);
  sort(targets, n, 1, by_target);
  sort(numbers, n, 1, by_number);
  for (int i = 0; i < n; i++)
    sum += records[i].value * *records[i].other * products[i] * (1 + numbers[i]) + *targets[i] * i;
  return sum;
}
