// Rounded products before sums: fused operations, which the baseline CPU has not, would give other digits.
#include "config.h"
#include <stdio.h>
#include <string.h>
static volatile double a = 1 + 0x1p-30, b = 1 - 0x1p-30;
int main(void) {
  double product = a * b, difference = a * b - 1;
  float sum = 0;
  for (int i = 1; i <= 1000; i++) sum += 1.0f / (float)i * (1.0f + (float)i);
  printf("%s %a %a %a\n", HEAT_VERSION, product, difference, sum);
  return product != 1 || difference != 0 || strcmp(HEAT_VERSION, "1.2") || !HAVE_HYPOT;
}
