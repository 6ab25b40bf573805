/* The functions and types of OpenMP 5.2's interface for C and C++, as irgrad gives them (docs/openmp.md). */
#ifndef IRGRAD_OMP_H
#define IRGRAD_OMP_H

#include <stddef.h>
#include <stdint.h>

typedef struct { int held; } omp_lock_t;
typedef struct { int count; } omp_nest_lock_t;
typedef enum {
  omp_sync_hint_none = 0, omp_sync_hint_uncontended = 1, omp_sync_hint_contended = 2,
  omp_sync_hint_nonspeculative = 4, omp_sync_hint_speculative = 8,
  omp_lock_hint_none = 0, omp_lock_hint_uncontended = 1, omp_lock_hint_contended = 2,
  omp_lock_hint_nonspeculative = 4, omp_lock_hint_speculative = 8
} omp_sync_hint_t;
typedef omp_sync_hint_t omp_lock_hint_t;
typedef enum {
  omp_sched_static = 1, omp_sched_dynamic = 2, omp_sched_guided = 3, omp_sched_auto = 4,
  omp_sched_monotonic = (int)0x80000000u
} omp_sched_t;
typedef enum {
  omp_proc_bind_false = 0, omp_proc_bind_true = 1, omp_proc_bind_master = 2, omp_proc_bind_primary = 2,
  omp_proc_bind_close = 3, omp_proc_bind_spread = 4
} omp_proc_bind_t;
typedef enum { omp_pause_soft = 1, omp_pause_hard = 2, omp_pause_stop_tool = 3 } omp_pause_resource_t;
typedef uintptr_t omp_allocator_handle_t;
#define omp_null_allocator ((omp_allocator_handle_t)0)
#define omp_default_mem_alloc ((omp_allocator_handle_t)1)
#define omp_large_cap_mem_alloc ((omp_allocator_handle_t)2)
#define omp_const_mem_alloc ((omp_allocator_handle_t)3)
#define omp_high_bw_mem_alloc ((omp_allocator_handle_t)4)
#define omp_low_lat_mem_alloc ((omp_allocator_handle_t)5)
#define omp_cgroup_mem_alloc ((omp_allocator_handle_t)6)
#define omp_pteam_mem_alloc ((omp_allocator_handle_t)7)
#define omp_thread_mem_alloc ((omp_allocator_handle_t)8)

#ifdef __cplusplus
extern "C" {
#define IRGRAD_NOEXCEPT noexcept
#define IRGRAD_ALLOCATOR(name) omp_allocator_handle_t name = omp_null_allocator
#else
#define IRGRAD_NOEXCEPT
#define IRGRAD_ALLOCATOR(name) omp_allocator_handle_t name
#endif

void omp_set_num_threads(int) IRGRAD_NOEXCEPT;
int omp_get_num_threads(void) IRGRAD_NOEXCEPT;
int omp_get_max_threads(void) IRGRAD_NOEXCEPT;
int omp_get_thread_num(void) IRGRAD_NOEXCEPT;
int omp_get_num_procs(void) IRGRAD_NOEXCEPT;
int omp_in_parallel(void) IRGRAD_NOEXCEPT;
void omp_set_dynamic(int) IRGRAD_NOEXCEPT;
int omp_get_dynamic(void) IRGRAD_NOEXCEPT;
void omp_set_nested(int) IRGRAD_NOEXCEPT;
int omp_get_nested(void) IRGRAD_NOEXCEPT;
int omp_get_cancellation(void) IRGRAD_NOEXCEPT;
void omp_set_schedule(omp_sched_t, int) IRGRAD_NOEXCEPT;
void omp_get_schedule(omp_sched_t *, int *) IRGRAD_NOEXCEPT;
int omp_get_thread_limit(void) IRGRAD_NOEXCEPT;
int omp_get_supported_active_levels(void) IRGRAD_NOEXCEPT;
void omp_set_max_active_levels(int) IRGRAD_NOEXCEPT;
int omp_get_max_active_levels(void) IRGRAD_NOEXCEPT;
int omp_get_level(void) IRGRAD_NOEXCEPT;
int omp_get_ancestor_thread_num(int) IRGRAD_NOEXCEPT;
int omp_get_team_size(int) IRGRAD_NOEXCEPT;
int omp_get_active_level(void) IRGRAD_NOEXCEPT;
int omp_in_final(void) IRGRAD_NOEXCEPT;
omp_proc_bind_t omp_get_proc_bind(void) IRGRAD_NOEXCEPT;
int omp_get_num_places(void) IRGRAD_NOEXCEPT;
int omp_get_place_num(void) IRGRAD_NOEXCEPT;
int omp_get_num_teams(void) IRGRAD_NOEXCEPT;
int omp_get_team_num(void) IRGRAD_NOEXCEPT;
int omp_get_max_teams(void) IRGRAD_NOEXCEPT;
void omp_set_num_teams(int) IRGRAD_NOEXCEPT;
void omp_set_teams_thread_limit(int) IRGRAD_NOEXCEPT;
int omp_get_teams_thread_limit(void) IRGRAD_NOEXCEPT;
int omp_get_num_devices(void) IRGRAD_NOEXCEPT;
int omp_get_default_device(void) IRGRAD_NOEXCEPT;
void omp_set_default_device(int) IRGRAD_NOEXCEPT;
int omp_get_initial_device(void) IRGRAD_NOEXCEPT;
int omp_get_device_num(void) IRGRAD_NOEXCEPT;
int omp_is_initial_device(void) IRGRAD_NOEXCEPT;
int omp_get_max_task_priority(void) IRGRAD_NOEXCEPT;
int omp_pause_resource(omp_pause_resource_t, int) IRGRAD_NOEXCEPT;
int omp_pause_resource_all(omp_pause_resource_t) IRGRAD_NOEXCEPT;
void omp_display_env(int) IRGRAD_NOEXCEPT;

double omp_get_wtime(void) IRGRAD_NOEXCEPT;
double omp_get_wtick(void) IRGRAD_NOEXCEPT;

void omp_init_lock(omp_lock_t *) IRGRAD_NOEXCEPT;
void omp_init_lock_with_hint(omp_lock_t *, omp_sync_hint_t) IRGRAD_NOEXCEPT;
void omp_destroy_lock(omp_lock_t *) IRGRAD_NOEXCEPT;
void omp_set_lock(omp_lock_t *) IRGRAD_NOEXCEPT;
void omp_unset_lock(omp_lock_t *) IRGRAD_NOEXCEPT;
int omp_test_lock(omp_lock_t *) IRGRAD_NOEXCEPT;
void omp_init_nest_lock(omp_nest_lock_t *) IRGRAD_NOEXCEPT;
void omp_init_nest_lock_with_hint(omp_nest_lock_t *, omp_sync_hint_t) IRGRAD_NOEXCEPT;
void omp_destroy_nest_lock(omp_nest_lock_t *) IRGRAD_NOEXCEPT;
void omp_set_nest_lock(omp_nest_lock_t *) IRGRAD_NOEXCEPT;
void omp_unset_nest_lock(omp_nest_lock_t *) IRGRAD_NOEXCEPT;
int omp_test_nest_lock(omp_nest_lock_t *) IRGRAD_NOEXCEPT;

void *omp_alloc(size_t, IRGRAD_ALLOCATOR(allocator)) IRGRAD_NOEXCEPT;
void *omp_calloc(size_t, size_t, IRGRAD_ALLOCATOR(allocator)) IRGRAD_NOEXCEPT;
void omp_free(void *, IRGRAD_ALLOCATOR(allocator)) IRGRAD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#undef IRGRAD_NOEXCEPT
#undef IRGRAD_ALLOCATOR
#endif
