/* Doubles in words that are integers by name: exchanged by bits, replaced by the bits of a constant, looked at. */
#include <stdint.h>
#include <string.h>

double loss(const double *x, long n) {
  uint64_t words[8];
  double product = 1;
  for (int i = 0; i < n; i++) {
    double square = x[i] * x[i];
    memcpy(&words[i], &square, 8);
  }
  words[0] ^= words[5];
  words[5] ^= words[0];
  words[0] ^= words[5];
  words[3] = 0x4000000000000000u; /* 2.0 */
  words[7] = 5;
  int exponent = (int)(words[4] >> 52) - 1020;
  for (int i = 0; i < n; i++) {
    double d;
    memcpy(&d, &words[i], 8);
    product *= d * x[i] + 0.1 * (i + 1);
  }
  return product * words[7] * exponent;
}
