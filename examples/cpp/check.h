/* What the programs here check themselves with: the first wrong number is printed, and main returns `wrong()`. */
#pragma once
#include <math.h>
#include <stdio.h>
#ifdef __cplusplus
#include <cstdio>
#endif

static int wrong_numbers;

static inline void expect(const char *what, double got, double want, double tolerance) {
  if (!(fabs(got - want) <= tolerance * (1 + fabs(want)))) {
    printf("WRONG %s: %.15g, not %.15g\n", what, got, want);
    wrong_numbers++;
  }
}

static inline int wrong(void) {
  puts(wrong_numbers ? "some numbers are wrong" : "all right");
  return wrong_numbers != 0;
}
