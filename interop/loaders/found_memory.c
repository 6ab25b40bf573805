// What a program's variables lead to when it calls a derivative: which allocation an address lies in, how many bytes it
// has, and the shadow that a derivative keeps beside it. The allocations of a program tell of themselves here, by the
// functions `irgrad_found_by_malloc`, ... that take the place of the program's (interop/loaders/found_memory.py; what asks: engine/enzyme/found_memory.py).
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef char byte;
typedef struct { byte *base; u64 alive, bytes, call, group; } entry;
// A block of the list of memory that lives from call to call (engine/runtime/persistent_memory.ll); its memory follows.
typedef struct block { struct block *next; u64 bytes; void *start, *owner, *fields; byte *base; const void *tag; u64 lane; } block;

// `irgrad_kept_x` is `irgrad.kept.x` in the program.
extern block *irgrad_kept_first;
extern int irgrad_kept_held;
void irgrad_kept_hold(void);
void *irgrad_kept_new(void *owner, void *fields, u64 bytes, u64 align);
void irgrad_kept_free(void *memory);
void irgrad_tape_free_later(void *tape, void *memory);

// One for all objects of a program: a table of open addressing, and the allocation that was asked for last.
__attribute__((weak)) entry *irgrad_found_entries;
__attribute__((weak)) u64 irgrad_found_room, irgrad_found_used, irgrad_found_calls;
__attribute__((weak)) byte *irgrad_found_last;

static void let(void) { __atomic_store_n(&irgrad_kept_held, 0, __ATOMIC_RELEASE); }

// The entry of an address, or the empty one that it would get.
static entry *place(const void *base) {
  for (u64 i = ((u64)base >> 4) * 0x9E3779B97F4A7C15u >> 32;; i++) {
    entry *e = irgrad_found_entries + (i & (irgrad_found_room - 1));
    if (!e->base || e->base == base) return e;
  }
}

static void *record(void *base) {
  if (!base) return base;
  irgrad_kept_hold();
  if (2 * irgrad_found_used >= irgrad_found_room) {
    entry *old = irgrad_found_entries;
    u64 count = irgrad_found_room;
    irgrad_found_room = count ? 2 * count : 1024;
    irgrad_found_entries = calloc(irgrad_found_room, sizeof(entry));
    if (!irgrad_found_entries) abort();
    for (u64 i = 0; i < count; i++)
      if (old[i].base) *place(old[i].base) = old[i];
    free(old);
  }
  entry *e = place(base);
  irgrad_found_used += !e->base;
  *e = (entry){base, 1, malloc_usable_size(base), 0, 0};
  let();
  return base;
}

static void forget(const void *base) {
  irgrad_kept_hold();
  if (base && irgrad_found_room) place(base)->alive = 0;
  let();
}

static int covers(const entry *e, const byte *p) {
  return e->base && e->alive && e->base <= p && p <= e->base + e->bytes;
}

// The allocation that an address lies in, and its bytes. 0: it was freed; -1: nobody allocated it. A block of another
// size than was told is another one: code that tells of nothing has freed the first.
static byte *around(byte *p, u64 *bytes) {
  int freed = 0;
  if (irgrad_found_room) {
    entry *e = place(p);
    freed = e->base != 0;
    if (!covers(e, p)) e = place(irgrad_found_last);
    for (u64 i = 0; !covers(e, p) && i < irgrad_found_room; i++) e = irgrad_found_entries + i;
    if (covers(e, p)) {
      *bytes = malloc_usable_size(e->base);
      return *bytes == e->bytes ? irgrad_found_last = e->base : (byte *)-1;
    }
  }
  for (block *b = irgrad_kept_first; b; b = b->next)
    if ((byte *)(b + 1) <= p && p <= (byte *)(b + 1) + b->bytes) return *bytes = b->bytes, (byte *)(b + 1);
  return freed ? 0 : (byte *)-1;
}

static void fail(const char *name, const char *what) {
  fprintf(stderr, "irgrad: %s %s\n", name ? name : "a pointer in memory behind a variable", what);
  abort();
}

u64 irgrad_found_begin(void) {
  irgrad_kept_hold();
  u64 call = ++irgrad_found_calls;
  let();
  return call;
}

// No name: a pointer in memory, where what was never written looks like one.
u64 irgrad_found_bytes(byte *p, const char *name) {
  u64 bytes = 0;
  if (!p) return 0;
  irgrad_kept_hold();
  byte *base = around(p, &bytes);
  let();
  if (base == (byte *)-1 && name)
    fail(name, "is the address of memory that no allocation of this program returned, so that its derivatives have no "
               "place; allocate it with malloc, realloc or new in code that irgrad compiles with the derivative "
               "(-flto for several files)");
  return base && base != (byte *)-1 ? bytes : 0;
}

// The start of the allocation; the address itself where it leads nowhere. No bytes: memory without active floats, which
// may be anybody's.
byte *irgrad_found_memory(byte *p, u64 size, u64 call, u64 group, const char *name) {
  u64 bytes;
  if (!p) return p;
  irgrad_kept_hold();
  byte *base = around(p, &bytes);
  int known = base && base != (byte *)-1, shared = 0;
  entry *e = known && irgrad_found_room ? place(base) : 0;
  if (e && e->base) {
    shared = e->call == call && e->group != group;
    e->call = call, e->group = group;
  }
  let();
  if (shared)
    fail(name, "leads into memory that another variable has for values of another kind, so that it is not known which "
               "of its bytes have derivatives; allocate the two apart");
  return size && known ? base : p;
}

byte *irgrad_found_table(byte *p, u64 size, u64 call, u64 group, const char *name) {
  return irgrad_found_memory(p, size, call, group, name);
}

// A variable that would lead to a list or a tree.
void irgrad_found_nothing(byte *p, const char *name) {
  if (p)
    fail(name, "leads to a list or a tree that was made before the derivative is called, whose derivatives have no "
               "place; let it be null there, and make the list in the function that is differentiated, or hand it over "
               "as an argument with its shadow");
}

// How many elements lie before an address.
u64 irgrad_found_index(byte *p, byte *base, u64 period, const char *name) {
  if ((u64)(p - base) % period)
    fail(name, "leads to the middle of an element, so that it is not known which of its bytes have derivatives; let it "
               "be the address of an element");
  return (u64)(p - base) / period;
}

// The same of an address alone.
u64 irgrad_found_before(byte *p, u64 period) {
  u64 bytes;
  if (!p) return 0;
  irgrad_kept_hold();
  byte *base = around(p, &bytes);
  let();
  return base && base != (byte *)-1 ? (p - base) / period : 0;
}

// A block of the list is the shadow of an allocation.
void irgrad_found_shadow(void *memory, const void *tag, byte *base, u64 lane) {
  block *b = (block *)memory - 1;
  b->base = base, b->tag = tag, b->lane = lane;
}

// The shadow that a derivative (`tag`) keeps beside an allocation: zeros.
void *irgrad_found_beside(const void *tag, void *owner, void *fields, byte *base, u64 bytes, u64 align, u64 lane) {
  if (!bytes) return 0;
  irgrad_kept_hold();
  block *b = irgrad_kept_first;
  while (b && !(b->base == base && b->tag == tag && b->lane == lane)) b = b->next;
  let();
  if (b && b->bytes == bytes) return memset(b + 1, 0, bytes);
  if (b) irgrad_kept_free(b + 1);
  void *made = irgrad_kept_new(owner, fields, bytes, align);
  irgrad_found_shadow(made, tag, base, lane);
  return made;
}

void *irgrad_found_by_malloc(u64 n) { return record(malloc(n)); }
void *irgrad_found_by_calloc(u64 n, u64 size) { return record(calloc(n, size)); }
void *irgrad_found_by_aligned_alloc(u64 align, u64 n) { return record(aligned_alloc(align, n)); }
void *irgrad_found_by_memalign(u64 align, u64 n) { return record(memalign(align, n)); }
void irgrad_found_by_free(void *p) { forget(p), free(p); }
void *irgrad_found_by_realloc(void *p, u64 n) {
  forget(p);
  void *made = realloc(p, n);
  if (!made && n) record(p);
  return record(made);
}
int irgrad_found_by_posix_memalign(void **p, u64 align, u64 n) {
  int failed = posix_memalign(p, align, n);
  if (!failed) record(*p);
  return failed;
}
void irgrad_found_by_tape_free_later(void *tape, void *p) { forget(p), irgrad_tape_free_later(tape, p); }

void *_Znwm(u64), *_Znam(u64), *_ZnwmSt11align_val_t(u64, u64), *_ZnamSt11align_val_t(u64, u64);
void *_ZnwmRKSt9nothrow_t(u64, const void *), *_ZnamRKSt9nothrow_t(u64, const void *);
void _ZdlPv(void *), _ZdaPv(void *), _ZdlPvm(void *, u64), _ZdaPvm(void *, u64);
void _ZdlPvSt11align_val_t(void *, u64), _ZdaPvSt11align_val_t(void *, u64);
void _ZdlPvmSt11align_val_t(void *, u64, u64), _ZdaPvmSt11align_val_t(void *, u64, u64);

void *irgrad_found_by__Znwm(u64 n) { return record(_Znwm(n)); }
void *irgrad_found_by__Znam(u64 n) { return record(_Znam(n)); }
void *irgrad_found_by__ZnwmSt11align_val_t(u64 n, u64 a) { return record(_ZnwmSt11align_val_t(n, a)); }
void *irgrad_found_by__ZnamSt11align_val_t(u64 n, u64 a) { return record(_ZnamSt11align_val_t(n, a)); }
void *irgrad_found_by__ZnwmRKSt9nothrow_t(u64 n, const void *t) { return record(_ZnwmRKSt9nothrow_t(n, t)); }
void *irgrad_found_by__ZnamRKSt9nothrow_t(u64 n, const void *t) { return record(_ZnamRKSt9nothrow_t(n, t)); }
void irgrad_found_by__ZdlPv(void *p) { forget(p), _ZdlPv(p); }
void irgrad_found_by__ZdaPv(void *p) { forget(p), _ZdaPv(p); }
void irgrad_found_by__ZdlPvm(void *p, u64 n) { forget(p), _ZdlPvm(p, n); }
void irgrad_found_by__ZdaPvm(void *p, u64 n) { forget(p), _ZdaPvm(p, n); }
void irgrad_found_by__ZdlPvSt11align_val_t(void *p, u64 a) { forget(p), _ZdlPvSt11align_val_t(p, a); }
void irgrad_found_by__ZdaPvSt11align_val_t(void *p, u64 a) { forget(p), _ZdaPvSt11align_val_t(p, a); }
void irgrad_found_by__ZdlPvmSt11align_val_t(void *p, u64 n, u64 a) { forget(p), _ZdlPvmSt11align_val_t(p, n, a); }
void irgrad_found_by__ZdaPvmSt11align_val_t(void *p, u64 n, u64 a) { forget(p), _ZdaPvmSt11align_val_t(p, n, a); }
