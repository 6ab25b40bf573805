/* Structs, unions, constants of every kind, varargs, atomics, narrow and wide floats. */
#include <complex.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct { double x, y, z; } vec3;
typedef struct node { struct node *next; double value; int tag; char name[7]; } node;
typedef struct __attribute__((packed)) { char c; double d; short s; } packed;
typedef union { double d; uint64_t u; float f[2]; } bits;
typedef struct { unsigned a : 3, b : 7; int c : 12; } fields;
typedef struct { double m[4][4]; int n; } big;
typedef float f4 __attribute__((vector_size(16)));
typedef double d8 __attribute__((vector_size(64)));
typedef int i4 __attribute__((vector_size(16)));

double table[5] = {1.0, 0.1, -0.0, 1e308, 5e-324};
float ftable[] = {0.1f, 3.14159274f, 1e-40f, -1.0f};
const char text[] = "quote \" backslash \\ newline \n end";
double specials[] = {__builtin_inf(), -__builtin_inf(), __builtin_nan(""), 0.0};
float nanf_table[] = {__builtin_nanf("0x123"), __builtin_inff()};
long double wide = 1.1L;
_Float16 narrow = 0.1f16;
__int128 huge = ((__int128)0x1234567890abcdefLL << 64) | 0xfedcba0987654321ULL;
static node tail = {0, 2.5, 3, "tail"};
node list = {&tail, 1.5, -1, "head"};
double *inner = &table[3];
ptrdiff_t difference = offsetof(node, tag);
char *middle = (char *)&list + 8;
vec3 points[2] = {{1, 2, 3}, {4, 5, 6}};
packed pk = {'x', 2.0, -3};
bits un = {.d = 1.5};
fields fl = {1, 2, -3};
_Thread_local int counter_tls;
__attribute__((weak)) int weak_value = 4;
__attribute__((section(".data.irgrad"), aligned(64))) double sectioned = 2;
static const vec3 zero3;
extern double outside;
extern int outside_call(double, ...);
int aliased(void) { return 3; }
int alias_of(void) __attribute__((alias("aliased")));

vec3 add(vec3 a, vec3 b) { return (vec3){a.x + b.x, a.y + b.y, a.z + b.z}; }
double norm2(const vec3 *v) { return v->x * v->x + v->y * v->y + v->z * v->z; }
double walk(const node *n) { double s = 0; for (; n; n = n->next) s += n->value * n->tag; return s; }
uint64_t pun(double d) { bits b; b.d = d; return b.u ^ (1ull << 63); }
double unpun(uint64_t u) { bits b; b.u = u; return b.d; }
float halves(double d) { bits b = {d}; return b.f[0] + b.f[1]; }
int get_fields(fields f) { return f.a + f.b * f.c; }
void set_fields(fields *f, int v) { f->c = v; f->a = v >> 2; }
double packed_sum(const packed *p) { return p->c + p->d + p->s; }
big by_value(big b) { b.m[1][2] += b.n; return b; }
double trace(big b) { double t = 0; for (int i = 0; i < 4; i++) t += b.m[i][i]; return t; }
int logf_(const char *fmt, ...) { va_list ap; va_start(ap, fmt); int r = va_arg(ap, int); double d = va_arg(ap, double); va_end(ap); return r + (int)d; }
int say(double x) { return printf("%f %d\n", x, (int)x); }
int call_outside(double x) { return outside_call(x, 1, 2.5) + (int)outside; }
long double ext(long double a, double b) { return a * b + 1.0L / 3; }
__int128 mul128(__int128 a, long b) { return a * b / 7; }
_Float16 half_sum(_Float16 a, _Float16 b) { return a * b + (_Float16)0.5; }
double complex cmul(double complex a, double complex b) { return a * b; }
double complex cdiv(double complex a, double complex b) { return a / b; }
float complex cfma(float complex a, float complex b) { return a * b + 1.0f; }
f4 vadd(f4 a, f4 b) { return a * b + (f4){1, 2, 3, 4}; }
d8 vmul(d8 a, double s) { return a * s; }
i4 vcmp(f4 a, f4 b) { return a < b; }
float lane(f4 a, int i) { a[i] = 2; return a[(i + 1) & 3]; }
f4 shuffle(f4 a, f4 b) { return __builtin_shufflevector(a, b, 0, 5, 2, 7); }
i4 convert(f4 a) { return __builtin_convertvector(a, i4); }
double reduce(d8 a) { return __builtin_reduce_max(__builtin_elementwise_abs((d8)a)); }
int atomic_ops(_Atomic int *p, int v) { atomic_fetch_add(p, v); atomic_store_explicit(p, v, memory_order_release); int e = v; atomic_compare_exchange_weak(p, &e, 2); atomic_thread_fence(memory_order_acquire); return atomic_load_explicit(p, memory_order_relaxed); }
double atomic_double(_Atomic double *p) { return *p += 1.5; }
int volatile_read(volatile int *p) { *p = 4; return *p + *p; }
int tls_use(void) { return ++counter_tls; }
double constants(int i) { return table[i] + specials[i & 3] + ftable[1] + (double)narrow + (double)wide + points[1].y; }
const char *string(int i) { static const char *names[] = {"zero", "one", "two"}; return names[i]; }
int64_t sat(double x) { return (int64_t)x + (uint8_t)x + (int16_t)(float)x; }
void barrier(void) { __asm__ volatile("" ::: "memory"); }
_Bool logic(_Bool a, _Bool b) { return (a && !b) || (a ^ b); }
double select_(int c, double a, double b) { return c ? a : b; }
int goto_computed(int k) { static void *where[] = {&&a, &&b}; goto *where[k & 1]; a: return 1; b: return 2; }
