#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  FILE *out = argc == 3 ? fopen(argv[1], "w") : NULL;
  if (!out) return 1;
  int n = atoi(argv[2]);
  fprintf(out, "enum { POINTS = %d };\nstatic const double table[] = {", n);
  for (int i = 0; i < n; i++) fprintf(out, "%a,%s", exp(-0.05 * i) * cos(0.3 * i), i % 4 == 3 ? "\n" : " ");
  fprintf(out, "};\n");
  return fclose(out);
}
