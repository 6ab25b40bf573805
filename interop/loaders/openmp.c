// What compiled OpenMP calls: the entry points that clang emits (`__kmpc_*`) and the functions of `omp.h`. Written from
// the OpenMP specification and from the calls that clang makes. A construct does what one thread does there: it gets
// every iteration, every section and every task, at once and in the order of the source. Threads that know their numbers
// (engine/parallel/numbered.py) run one after the other, and worksharing loops call `irgrad_omp_team_*`.
#define _GNU_SOURCE
#include "include/openmp/omp.h"
#include <sched.h>
#include <stdlib.h>
#include <time.h>

typedef struct ident ident;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;

// One for all objects of a program.
#ifndef PROGRAM
#define THREADS 1
#else
#define THREADS 0
#endif
// How many threads a region has; 0: as OMP_NUM_THREADS says, or as there are cores.
__attribute__((weak)) int irgrad_omp_max_threads = THREADS, irgrad_omp_level, irgrad_omp_schedule = omp_sched_static,
                          irgrad_omp_chunk, irgrad_omp_levels = 1, irgrad_omp_device;

// Whether tasks of this module have destructors: openmp.py says it.
extern const i32 irgrad_omp_destructors;

// Regions. Calls of `__kmpc_fork_call` have become calls of the region's function (engine/parallel/regions.py).
void irgrad_omp_enter(void) { irgrad_omp_level++; }
void irgrad_omp_leave(void) { irgrad_omp_level--; }
i32 __kmpc_global_thread_num(ident *loc) { return 0; }
i32 __kmpc_bound_thread_num(ident *loc) { return 0; }
void __kmpc_push_num_threads(ident *loc, i32 thread, i32 count) {}
void __kmpc_push_num_teams(ident *loc, i32 thread, i32 teams, i32 threads) {}
void __kmpc_push_num_teams_51(ident *loc, i32 thread, i32 lower, i32 upper, i32 threads) {}
void __kmpc_set_thread_limit(ident *loc, i32 thread, i32 limit) {}
void __kmpc_push_proc_bind(ident *loc, i32 thread, i32 kind) {}
void __kmpc_serialized_parallel(ident *loc, i32 thread) {}
void __kmpc_end_serialized_parallel(ident *loc, i32 thread) {}
void __kmpc_barrier(ident *loc, i32 thread) {}
i32 __kmpc_cancel_barrier(ident *loc, i32 thread) { return 0; }
i32 __kmpc_cancel(ident *loc, i32 thread, i32 kind) { return 0; }
i32 __kmpc_cancellationpoint(ident *loc, i32 thread, i32 kind) { return 0; }
void __kmpc_flush(ident *loc) {}

// Loops: the bounds that the caller stored are those of all iterations. A dispatched loop gets them as one chunk, and
// `last`, which its caller has set to 0, tells that it had them.
#define LOOPS(name, type, step)                                                                                       \
  void __kmpc_for_static_init_##name(ident *loc, i32 thread, i32 schedule, i32 *last, type *lower, type *upper,      \
                                     step *stride, step increment, step chunk) {                                    \
    *last = 1;                                                                                                        \
    *stride = increment > 0 ? (step)(*upper - *lower) + increment : -((step)(*lower - *upper) - increment);          \
  }                                                                                                                   \
  void __kmpc_dist_for_static_init_##name(ident *loc, i32 thread, i32 schedule, i32 *last, type *lower, type *upper, \
                                          type *whole, step *stride, step increment, step chunk) {                  \
    *last = 1, *whole = *upper;                                                                                       \
    *stride = increment > 0 ? (step)(*upper - *lower) + increment : -((step)(*lower - *upper) - increment);          \
  }                                                                                                                   \
  void __kmpc_dispatch_init_##name(ident *loc, i32 thread, i32 schedule, type lower, type upper, step stride,        \
                                   step chunk) {}                                                                     \
  i32 __kmpc_dispatch_next_##name(ident *loc, i32 thread, i32 *last, type *lower, type *upper, step *stride) {       \
    if (*last) return 0;                                                                                              \
    *last = 1;                                                                                                        \
    return 1;                                                                                                         \
  }                                                                                                                   \
  void __kmpc_dispatch_fini_##name(ident *loc, i32 thread) {}                                                          \
  void irgrad_omp_team_for_static_init_##name(ident *loc, i32 thread, i32 schedule, i32 *last, type *lower,          \
                                              type *upper, step *stride, step increment, step chunk, i32 threads) {  \
    int up = increment > 0;                                                                                           \
    *last = 0, *stride = increment;                                                                                   \
    if (up ? *upper < *lower : *lower < *upper) return;                                                               \
    u64 rest = (up ? (u64)*upper - (u64)*lower : (u64)*lower - (u64)*upper) / (u64)(up ? increment : -increment);     \
    u64 first, most, whole = rest + 1;                                                                                \
    if ((schedule & 0xffff) == STATIC_CHUNKED) {                                                                      \
      most = chunk > 0 ? chunk : 1, first = most * thread;                                                            \
      *stride = (step)((u64)increment * most * threads);                                                              \
      *last = rest / most % threads == (u64)thread;                                                                   \
    } else {                                                                                                          \
      u64 all = whole / threads, more = whole % threads, me = thread;                                                 \
      most = all + (me < more), first = all * me + (me < more ? me : more);                                           \
      *last = most > 0 && first + most == whole;                                                                      \
    }                                                                                                                 \
    if (most == 0 || first >= whole) {                                                                                \
      *lower = (type)(*upper + increment);                                                                            \
      return;                                                                                                         \
    }                                                                                                                 \
    *lower = (type)((u64)*lower + first * (u64)increment);                                                            \
    *upper = (type)((u64)*lower + (most - 1) * (u64)increment);                                                       \
  }                                                                                                                   \
  i32 irgrad_omp_team_dispatch_next_##name(ident *loc, i32 thread, i32 *last, type *lower, type *upper,              \
                                           step *stride, i32 threads) {                                               \
    if (*stride == 0 || *upper < *lower) return 0; /* its caller has set it to 1 */                                   \
    irgrad_omp_team_for_static_init_##name(loc, thread, STATIC, last, lower, upper, stride, 1, 1, threads);           \
    *stride = 0;                                                                                                      \
    return *lower <= *upper;                                                                                          \
  }
enum { STATIC_CHUNKED = 33, STATIC = 34 };
LOOPS(4, i32, i32)
LOOPS(4u, u32, i32)
LOOPS(8, i64, i64)
LOOPS(8u, u64, i64)
void __kmpc_for_static_fini(ident *loc, i32 thread) {}
void __kmpc_dispatch_deinit(ident *loc, i32 thread) {}
void __kmpc_ordered(ident *loc, i32 thread) {}
void __kmpc_end_ordered(ident *loc, i32 thread) {}
void __kmpc_doacross_init(ident *loc, i32 thread, i32 count, void *bounds) {}
void __kmpc_doacross_wait(ident *loc, i32 thread, const i64 *at) {}
void __kmpc_doacross_post(ident *loc, i32 thread, const i64 *at) {}
void __kmpc_doacross_fini(ident *loc, i32 thread) {}

// Blocks. A reduction that gets 1 is taken into the shared variables by its caller.
i32 __kmpc_single(ident *loc, i32 thread) { return thread == 0; }
void __kmpc_end_single(ident *loc, i32 thread) {}
i32 __kmpc_master(ident *loc, i32 thread) { return thread == 0; }
void __kmpc_end_master(ident *loc, i32 thread) {}
i32 __kmpc_masked(ident *loc, i32 thread, i32 filter) { return filter == thread; }
void __kmpc_end_masked(ident *loc, i32 thread) {}
void __kmpc_critical(ident *loc, i32 thread, void *lock) {}
void __kmpc_critical_with_hint(ident *loc, i32 thread, void *lock, u32 hint) {}
void __kmpc_end_critical(ident *loc, i32 thread, void *lock) {}
void __kmpc_copyprivate(ident *loc, i32 thread, size_t size, void *data, void (*copy)(void *, void *), i32 done) {}
i32 __kmpc_reduce(ident *loc, i32 thread, i32 count, size_t size, void *data, void (*join)(void *, void *),
                  void *lock) { return 1; }
void __kmpc_end_reduce(ident *loc, i32 thread, void *lock) {}
i32 __kmpc_reduce_nowait(ident *loc, i32 thread, i32 count, size_t size, void *data, void (*join)(void *, void *),
                         void *lock) { return 1; }
void __kmpc_end_reduce_nowait(ident *loc, i32 thread, void *lock) {}

// Tasks run where they are made: what they depend on has run before. A task ends with its private variables and the
// addresses of its shared ones; the compiler's code knows both by their places.
typedef struct task {
  void *shared;
  i32 (*run)(i32, struct task *);
  i32 part;  // of an untied task, which hands itself on at each point where it may be interrupted
  union { i32 (*destroy)(i32, struct task *); i32 priority; } one, two;
} task;

task *__kmpc_omp_task_alloc(ident *loc, i32 thread, i32 flags, size_t size, size_t shared,
                            i32 (*run)(i32, task *)) {
  size_t own = (size + 15) / 16 * 16;
  char *made = malloc(own + shared);
  task *t = (task *)made;
  t->shared = made + own;
  t->run = run;
  t->part = 0;
  t->one.destroy = NULL;
  return t;
}
static void end_task(i32 thread, task *t) {
  if (irgrad_omp_destructors && t->one.destroy) t->one.destroy(thread, t);
  free(t);
}
i32 __kmpc_omp_task(ident *loc, i32 thread, task *t) {
  i32 first = t->part == 0;
  t->run(thread, t);
  if (first) end_task(thread, t);
  return 0;
}
i32 __kmpc_omp_task_with_deps(ident *loc, i32 thread, task *t, i32 count, void *list, i32 more, void *others) {
  return __kmpc_omp_task(loc, thread, t);
}
void __kmpc_omp_task_begin_if0(ident *loc, i32 thread, task *t) {}
void __kmpc_omp_task_complete_if0(ident *loc, i32 thread, task *t) { end_task(thread, t); }
void __kmpc_omp_wait_deps(ident *loc, i32 thread, i32 count, void *list, i32 more, void *others) {}
void __kmpc_omp_taskwait_deps_51(ident *loc, i32 thread, i32 count, void *list, i32 more, void *others, i32 nowait) {}
i32 __kmpc_omp_taskwait(ident *loc, i32 thread) { return 0; }
i32 __kmpc_omp_taskyield(ident *loc, i32 thread, i32 part) { return 0; }
void __kmpc_taskgroup(ident *loc, i32 thread) {}
void __kmpc_end_taskgroup(ident *loc, i32 thread) {}
void __kmpc_taskloop(ident *loc, i32 thread, task *t, i32 wanted, u64 *lower, u64 *upper, i64 stride, i32 nogroup,
                     i32 schedule, u64 grain, void (*copy)(task *, task *, i32)) {
  __kmpc_omp_task(loc, thread, t);  // one task with all iterations: its bounds are those of the loop
}
void *__kmpc_taskred_init(i32 thread, i32 count, void *data) { return NULL; }
void *__kmpc_taskred_modifier_init(ident *loc, i32 thread, i32 loop, i32 count, void *data) { return NULL; }
void __kmpc_task_reduction_modifier_fini(ident *loc, i32 thread, i32 loop) {}
void *__kmpc_task_reduction_get_th_data(i32 thread, void *group, void *shared) { return shared; }

void __kmpc_threadprivate_register(ident *loc, void *data, void *make, void *copy, void *destroy) {}
void *__kmpc_threadprivate_cached(ident *loc, i32 thread, void *data, size_t size, void ***cache) { return data; }
void *__kmpc_alloc(i32 thread, size_t size, omp_allocator_handle_t allocator) { return malloc(size); }
void *__kmpc_aligned_alloc(i32 thread, size_t align, size_t size, omp_allocator_handle_t allocator) {
  return aligned_alloc(align, (size + align - 1) / align * align);
}
void __kmpc_free(i32 thread, void *memory, omp_allocator_handle_t allocator) { free(memory); }

// omp.h
void omp_set_num_threads(int count) { irgrad_omp_max_threads = count > 0 ? count : 1; }
int omp_get_num_threads(void) { return 1; }
#ifdef PROGRAM
__attribute__((const, noinline)) static i32 irgrad_omp_wanted(void) {
  const char *said = getenv("OMP_NUM_THREADS");
  i64 count = said ? strtol(said, NULL, 10) : 0;
  cpu_set_t cores;
  if (count <= 0) count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return count < 1 ? 1 : count > 1024 ? 1024 : (i32)count;
}
int omp_get_max_threads(void) { return irgrad_omp_max_threads > 0 ? irgrad_omp_max_threads : irgrad_omp_wanted(); }
#else
int omp_get_max_threads(void) { return irgrad_omp_max_threads; }
#endif
int omp_get_thread_num(void) { return 0; }
int omp_get_num_procs(void) { return 1; }
int omp_in_parallel(void) { return 0; }
void omp_set_dynamic(int wanted) {}
int omp_get_dynamic(void) { return 0; }
void omp_set_nested(int wanted) {}
int omp_get_nested(void) { return 0; }
int omp_get_cancellation(void) { return 0; }
void omp_set_schedule(omp_sched_t kind, int chunk) { irgrad_omp_schedule = kind, irgrad_omp_chunk = chunk; }
void omp_get_schedule(omp_sched_t *kind, int *chunk) {
  *kind = (omp_sched_t)irgrad_omp_schedule, *chunk = irgrad_omp_chunk;
}
int omp_get_thread_limit(void) { return 2147483647; }
int omp_get_supported_active_levels(void) { return 1; }
void omp_set_max_active_levels(int levels) { irgrad_omp_levels = levels > 0; }
int omp_get_max_active_levels(void) { return irgrad_omp_levels; }
int omp_get_level(void) { return irgrad_omp_level; }
int omp_get_ancestor_thread_num(int level) { return level < 0 || level > irgrad_omp_level ? -1 : 0; }
int omp_get_team_size(int level) { return level < 0 || level > irgrad_omp_level ? -1 : 1; }
int omp_get_active_level(void) { return 0; }
int omp_in_final(void) { return 0; }
omp_proc_bind_t omp_get_proc_bind(void) { return omp_proc_bind_false; }
int omp_get_num_places(void) { return 0; }
int omp_get_place_num(void) { return -1; }
int omp_get_num_teams(void) { return 1; }
int omp_get_team_num(void) { return 0; }
int omp_get_max_teams(void) { return 1; }
void omp_set_num_teams(int count) {}
void omp_set_teams_thread_limit(int count) {}
int omp_get_teams_thread_limit(void) { return 1; }
int omp_get_num_devices(void) { return 0; }
int omp_get_default_device(void) { return irgrad_omp_device; }
void omp_set_default_device(int device) { irgrad_omp_device = device; }
int omp_get_initial_device(void) { return 0; }
int omp_get_device_num(void) { return 0; }
int omp_is_initial_device(void) { return 1; }
int omp_get_max_task_priority(void) { return 0; }
int omp_pause_resource(omp_pause_resource_t kind, int device) { return 0; }
int omp_pause_resource_all(omp_pause_resource_t kind) { return 0; }
void omp_display_env(int verbose) {}

double omp_get_wtime(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
double omp_get_wtick(void) { return 1e-9; }

void omp_init_lock(omp_lock_t *lock) { lock->held = 0; }
void omp_init_lock_with_hint(omp_lock_t *lock, omp_sync_hint_t hint) { lock->held = 0; }
void omp_destroy_lock(omp_lock_t *lock) {}
void omp_set_lock(omp_lock_t *lock) { lock->held = 1; }
void omp_unset_lock(omp_lock_t *lock) { lock->held = 0; }
int omp_test_lock(omp_lock_t *lock) {
  int got = !lock->held;
  lock->held = 1;
  return got;
}
void omp_init_nest_lock(omp_nest_lock_t *lock) { lock->count = 0; }
void omp_init_nest_lock_with_hint(omp_nest_lock_t *lock, omp_sync_hint_t hint) { lock->count = 0; }
void omp_destroy_nest_lock(omp_nest_lock_t *lock) {}
void omp_set_nest_lock(omp_nest_lock_t *lock) { lock->count++; }
void omp_unset_nest_lock(omp_nest_lock_t *lock) { lock->count--; }
int omp_test_nest_lock(omp_nest_lock_t *lock) { return ++lock->count; }

void *omp_alloc(size_t size, omp_allocator_handle_t allocator) { return malloc(size); }
void *omp_calloc(size_t count, size_t size, omp_allocator_handle_t allocator) { return calloc(count, size); }
void omp_free(void *memory, omp_allocator_handle_t allocator) { free(memory); }
