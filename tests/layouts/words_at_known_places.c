/* Doubles lie among words that are integers by name: written by an index, moved from and to places that are known. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t kept[8];

static double number(const uint64_t *word) {
  double d;
  memcpy(&d, word, 8);
  return d;
}

double loss(const double *x, long n) {
  int64_t *block = malloc(8 * (n + 2));
  uint64_t words[6];
  double sum = 0;
  block[0] = n;
  block[1] = 2;
  for (int i = 0; i < block[0]; i++) {
    double square = x[i] * x[i], triple = 3 * x[i];
    memcpy(&block[i + 2], &square, 8);
    memcpy(&words[i], &triple, 8);
    memcpy(&kept[i], &square, 8);
  }
  uint64_t t = words[0];
  words[0] = words[5];
  words[5] = t;
  int64_t u = block[2];
  block[2] = block[7];
  block[7] = u;
  kept[6] = kept[2];
  kept[2] = kept[3];
  for (int i = 0; i < block[0]; i++)
    sum += number((uint64_t *)&block[i + 2]) * number(&words[i]) * (i + 1) + number(&kept[i + 1]) * block[1];
  free(block);
  return sum;
}
