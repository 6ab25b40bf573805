// What flang leaves to its run-time library: the functions that compiled Fortran calls (`_FortranA*`) for arrays that are
// allocated, assigned, packed and built, for derived types with allocatable components, and for numbers. Written from
// the Fortran standard, from the descriptors and type tables that flang 22 writes, and from the calls that it makes.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;
enum { POINTER = 1, ALLOCATABLE = 2, ADDENDUM = 1, INTEGER = 9, LONG = 10, SINGLE = 27, DOUBLE = 28, COMPLEX4 = 34, COMPLEX8 = 35, CHARACTER = 40, STRUCT = 42, VERSION = 20240719 };

typedef struct { i64 lower, extent, stride; } Dim;

#define HEAD void *base; i64 size; int32_t version; uint8_t rank; int8_t type; uint8_t attribute, extra
typedef struct { HEAD; Dim dim[15]; } Array;
// The beginning of what flang writes about a derived type.
typedef struct { HEAD; Dim dim[1]; void *type_; i64 length; } Bindings;
typedef struct { HEAD; } Name;
typedef struct { Bindings bindings; Name name; i64 size; } Derived;
enum { DATA = 1, OWNED = 3 };
_Noreturn void _FortranAStopStatementText(const char *text, i64 length, int error, int quiet);
static const char _QQmemory[] = "there is no memory for an array";
static const char _QQfinal[] = "a derived type with a final procedure or an assignment of its own is copied, created or left, which the run-time library of irgrad does not follow: call the procedure where it is to run";
static const char _QQdynamic[] = "a component of another type than it is declared with is copied: `class` components are not followed in assignments";
static const char _QQtwice[] = "an array is allocated that is allocated already";
static const char _QQfreed[] = "an array is deallocated that is not allocated";
static const char _QQshape[] = "a number is assigned to an array that is not allocated";
static const char _QQshapes[] = "an array is assigned to one of another shape";
static const char _QQkind[] = "an intrinsic function along an axis has an array of a kind that the run-time library of irgrad has not";
static const char _QQtypes[] = "an array is assigned to one of another type";
#define FAIL(name) _FortranAStopStatementText(_QQ##name, sizeof _QQ##name, 1, 0);

#define ALWAYS __attribute__((always_inline))
#define INLINE ALWAYS static inline

static void destroy_all(const Array *array);
static void initialise_all(const Array *array);

// Descriptors.

INLINE const Derived **place_of_type(const Array *array) { return (const Derived **)&array->dim[array->rank]; }
INLINE const Derived *type_of(const Array *array) { return array->extra & ADDENDUM ? *place_of_type(array) : 0; }

INLINE i64 elements(const Array *array) {
  i64 n = 1;
  for (int k = 0; k < array->rank; k++) n *= array->dim[k].extent > 0 ? array->dim[k].extent : 0;
  return n;
}

// Bytes between the first element and the first of a row, rows counted in the array's own order.
INLINE i64 row(const Array *array, const Dim *shape, i64 number) {
  i64 at = 0;
  for (int k = 1; k < array->rank; k++) {
    at += number % shape[k].extent * array->dim[k].stride;
    number /= shape[k].extent;
  }
  return at;
}

INLINE char *element(const Array *array, const Dim *shape, i64 number) {
  if (array->rank == 0) return array->base;
  i64 n = shape[0].extent;
  return (char *)array->base + number % n * array->dim[0].stride + row(array, shape, number / n);
}

INLINE int dense(const Array *array) {
  i64 stride = array->size;
  for (int k = 0; k < array->rank; k++) {
    if (array->dim[k].extent != 1 && array->dim[k].stride != stride) return 0;
    stride *= array->dim[k].extent;
  }
  return 1;
}

INLINE void set_strides(Array *array) {
  i64 stride = array->size;
  for (int k = 0; k < array->rank; k++) {
    array->dim[k].stride = stride;
    stride *= array->dim[k].extent;
  }
}

INLINE void *memory(i64 bytes) {
  void *made = malloc(bytes > 0 ? bytes : 1);
  if (!made) FAIL(memory)
  return made;
}

INLINE void make(Array *array) {
  set_strides(array);
  array->base = memory(elements(array) * array->size);
  initialise_all(array);
}

// An allocatable array without memory: of the type of another one.
INLINE void establish(Array *array, const Array *like, int rank) {
  const Derived *type = type_of(like);
  array->base = 0;
  array->size = like->size;
  array->version = VERSION;
  array->rank = rank;
  array->type = like->type;
  array->attribute = ALLOCATABLE;
  array->extra = type ? ADDENDUM : 0;
  if (type) *place_of_type(array) = type;
}

INLINE void set_extent(Array *array, int axis, i64 extent) {
  array->dim[axis].lower = 1;
  array->dim[axis].extent = extent;
}

// Elements. Of types with pointers, allocatable components, or components that begin with a value, the compiler is told
//   TYPES(T)     T(number, symbol) ...
//   PARTS_n(P)   P(genre, offset, bytes of all its elements, elements, rank, code of its type, its type, initial value,
//                  the number of its type among OWNERS, or none)
// For components that are pointers or allocatable the bytes are those of one element.
// OWNERS(T) are those of them with allocatable components, T(number, symbol) ...: a copy has memory of its own.
// FINALS(T) are types whose elements are not followed, T(symbol) ...

#ifndef TYPES
#define TYPES(T)
#endif
#ifndef OWNERS
#define OWNERS(T)
#endif
#ifndef FINALS
#define FINALS(T)
#endif
#define DECLARE(n, symbol) extern const Derived symbol; static void initialise_##n(char *);
#define DECLARE_OWNER(n, symbol) static void copy_##n(char *, const char *); static void destroy_##n(char *);
#define DECLARE_FINAL(symbol) extern const Derived symbol;
TYPES(DECLARE)
OWNERS(DECLARE_OWNER)
FINALS(DECLARE_FINAL)

INLINE void refuse(const Derived *type) {
#define REFUSE(symbol) \
  if (type == &symbol) FAIL(final)
  FINALS(REFUSE)
}

INLINE void initialise(char *at, const Derived *type) {
#define INITIALISE(n, symbol) if (type == &symbol) initialise_##n(at);
  TYPES(INITIALISE)
  refuse(type);
}

INLINE void destroy(char *at, const Derived *type) {
#define DESTROY(n, symbol) if (type == &symbol) destroy_##n(at);
  OWNERS(DESTROY)
  refuse(type);
}

#define copy_two(type, to, from) \
  do { \
    type one = ((const type *)(from))[0], two = ((const type *)(from))[1]; \
    ((type *)(to))[0] = one; \
    ((type *)(to))[1] = two; \
  } while (0)
INLINE void copy_sized(char *to, const char *from, const Array *like, i64 size) {
  const Derived *type = type_of(like);
#define COPY(n, symbol) if (type == &symbol) { copy_##n(to, from); return; }
  OWNERS(COPY)
  refuse(type);
  // So that their bytes are floats, whatever is known.
  if (like->type == DOUBLE) *(double *)to = *(const double *)from;
  else if (like->type == COMPLEX8) copy_two(double, to, from);
  else if (like->type == COMPLEX4) copy_two(float, to, from);
  else memcpy(to, from, size);
}
INLINE void copy(char *to, const char *from, const Array *like) { copy_sized(to, from, like, like->size); }

// The same where the type is known beforehand; `each` copies an element of one with allocatable components.
typedef void Each(char *, const char *);
INLINE void copy_value(char *to, const char *from, i64 size, int code, Each *each) {
  if (each) each(to, from);
  else switch (code) {
    case DOUBLE: *(double *)to = *(const double *)from; break;
    case SINGLE: *(float *)to = *(const float *)from; break;
    case COMPLEX8: copy_two(double, to, from); break;
    case COMPLEX4: copy_two(float, to, from); break;
    case INTEGER: *(int32_t *)to = *(const int32_t *)from; break;
    case LONG: *(i64 *)to = *(const i64 *)from; break;
    default: memcpy(to, from, size);
  }
}

INLINE void initialise_part(char *at, int genre, i64 bytes, i64 many, int rank, int code, const Derived *type,
                            const void *initial) {
  if (initial) {
    memcpy(at, initial, genre == DATA ? bytes : (i64)sizeof(Name) + rank * (i64)sizeof(Dim) + (type ? 16 : 0));
  } else if (genre == DATA) {
    for (i64 k = 0; type && k < many; k++) initialise(at + k * (bytes / many), type);
  } else {
    Array *array = (Array *)at;
    array->base = 0;
    array->size = bytes;
    array->version = VERSION;
    array->rank = rank;
    array->type = code;
    array->attribute = genre == OWNED ? ALLOCATABLE : POINTER;
    array->extra = type ? ADDENDUM : 0;
    if (type) *place_of_type(array) = type;
  }
}

#define INITIALISE_PART(genre, offset, bytes, many, rank, code, type, initial, owner) \
  initialise_part(at + offset, genre, bytes, many, rank, code, type, initial);
#define DEFINE(n, symbol) static void initialise_##n(char *at) { PARTS_##n(INITIALISE_PART) }
TYPES(DEFINE)

// Components. What they are is known here, so that no other type is looked for in them.
INLINE void destroy_part(char *at, int genre, i64 bytes, i64 many, const Derived *type) {
  if (genre == OWNED) {
    Array *array = (Array *)at;
    if (!array->base) return;
    i64 n = type ? elements(array) : 0;
    for (i64 k = 0; k < n; k++) destroy((char *)array->base + k * bytes, type);
    free(array->base);
    array->base = 0;
  } else if (genre == DATA) {
    for (i64 k = 0; type && k < many; k++) destroy(at + k * (bytes / many), type);
  }
}

INLINE void copy_part(char *to, const char *from, int genre, i64 bytes, i64 many, int rank, int code,
                      const Derived *type, Each *each) {
  refuse(type);
  if (genre == OWNED) {
    const Array *source = (const Array *)from;
    Array *target = (Array *)to;
    destroy_part(to, genre, bytes, many, type);
    if (!source->base) return;
    if (type && type_of(source) != type) FAIL(dynamic)
    i64 n = 1, stride = bytes;
    for (int k = 0; k < rank; k++) {
      target->dim[k].lower = source->dim[k].lower;
      target->dim[k].extent = source->dim[k].extent;
      target->dim[k].stride = stride;
      stride *= source->dim[k].extent;
      n *= source->dim[k].extent;
    }
    char *made = memory(n * bytes);
    target->base = made;
    for (i64 k = 0; k < n; k++) {
      if (type) initialise(made + k * bytes, type);
      copy_value(made + k * bytes, (const char *)source->base + k * bytes, bytes, code, each);
    }
  } else if (genre == DATA) {
    i64 size = bytes / many;
    for (i64 k = 0; k < many; k++) copy_value(to + k * size, from + k * size, size, code, each);
  } else {
    memcpy(to, from, (i64)sizeof(Name) + rank * (i64)sizeof(Dim) + (type ? 16 : 0));
  }
}

#define copy_none 0
#define COPY_PART(genre, offset, bytes, many, rank, code, type, initial, owner) \
  copy_part(to + offset, from + offset, genre, bytes, many, rank, code, type, copy_##owner);
#define DESTROY_PART(genre, offset, bytes, many, rank, code, type, initial, owner) \
  destroy_part(at + offset, genre, bytes, many, type);
#define DEFINE_OWNER(n, symbol) \
  static void copy_##n(char *to, const char *from) { if (to != from) { PARTS_##n(COPY_PART) } } \
  static void destroy_##n(char *at) { PARTS_##n(DESTROY_PART) }
OWNERS(DEFINE_OWNER)

INLINE void initialise_all(const Array *array) {
  const Derived *type = type_of(array);
  if (!type) return;
  i64 n = elements(array);
  for (i64 k = 0; k < n; k++) initialise(element(array, array->dim, k), type);
}

INLINE void destroy_all(const Array *array) {
  const Derived *type = type_of(array);
  if (!type || !array->base) return;
  i64 n = elements(array);
  for (i64 k = 0; k < n; k++) destroy(element(array, array->dim, k), type);
}

ALWAYS void _FortranAInitialize(const Array *array, const char *file, int line) { initialise_all(array); }
ALWAYS void _FortranADestroy(const Array *array) { destroy_all(array); }
ALWAYS void _FortranADestroyWithoutFinalization(const Array *array) { destroy_all(array); }

// Allocation.

ALWAYS void _FortranAAllocatableSetBounds(Array *array, int axis, i64 lower, i64 upper) {
  array->dim[axis].lower = lower;
  array->dim[axis].extent = upper >= lower ? upper - lower + 1 : 0;
}

ALWAYS void _FortranAAllocatableApplyMold(Array *array, const Array *mold, int rank) {
  if (!array->base) establish(array, mold, rank);
}

ALWAYS void _FortranAAllocatableInitDerivedForAllocate(Array *array, const Derived *type, int rank, int corank) {
  if (array->base) return;
  array->size = type->size;
  array->version = VERSION;
  array->rank = rank;
  array->type = STRUCT;
  array->attribute = ALLOCATABLE;
  array->extra = ADDENDUM;
  *place_of_type(array) = type;
}

ALWAYS int _FortranAAllocatableAllocate(Array *array, i64 *queue, _Bool has_status, const Array *message, const char *file,
                                 int line, void *source) {
  if (array->base) {
    if (has_status) return 1;
    FAIL(twice)
  }
  make(array);
  return 0;
}

// The type is that of `from`, which flang writes where it calls: of `to` it may be in memory alone.
INLINE void fill(Array *to, const Array *from) {
  if (to->rank == 0) { copy_sized(to->base, from->base, from, to->size); return; }
  i64 n = to->dim[0].extent, rows = n > 0 ? elements(to) / n : 0, step = from->rank ? from->dim[0].stride : 0;
  for (i64 r = 0; r < rows; r++) {
    char *target = (char *)to->base + row(to, to->dim, r);
    const char *source = (const char *)from->base + (from->rank ? row(from, to->dim, r) : 0);
    for (i64 k = 0; k < n; k++) copy_sized(target + k * to->dim[0].stride, source + k * step, from, to->size);
  }
}

ALWAYS int _FortranAAllocatableAllocateSource(Array *array, const Array *source, _Bool has_status, const Array *message,
                                       const char *file, int line) {
  int status = _FortranAAllocatableAllocate(array, 0, has_status, message, file, line, 0);
  if (!status) fill(array, source);
  return status;
}

ALWAYS int _FortranAAllocatableDeallocate(Array *array, _Bool has_status, const Array *message, const char *file, int line) {
  if (!array->base) {
    if (has_status) return 1;
    FAIL(freed)
  }
  destroy_all(array);
  free(array->base);
  array->base = 0;
  return 0;
}

ALWAYS int _FortranAAllocatableDeallocatePolymorphic(Array *array, const Derived *declared, _Bool has_status, const Array *message,
                                              const char *file, int line) {
  int status = _FortranAAllocatableDeallocate(array, has_status, message, file, line);
  if (!status) *place_of_type(array) = declared;
  return status;
}

ALWAYS void _FortranAPointerSetBounds(Array *array, int axis, i64 lower, i64 upper) {
  _FortranAAllocatableSetBounds(array, axis, lower, upper);
}

ALWAYS int _FortranAPointerAllocate(Array *array, _Bool has_status, const Array *message, const char *file, int line,
                             void *source) {
  make(array);
  return 0;
}

ALWAYS int _FortranAPointerAllocateSource(Array *array, const Array *source, _Bool has_status, const Array *message,
                                   const char *file, int line) {
  make(array);
  fill(array, source);
  return 0;
}

ALWAYS int _FortranAPointerDeallocate(Array *array, _Bool has_status, const Array *message, const char *file, int line) {
  return _FortranAAllocatableDeallocate(array, has_status, message, file, line);
}

ALWAYS int _FortranAMoveAlloc(Array *to, Array *from, Derived *type, _Bool has_status, const Array *message, const char *file,
                       int line) {
  if (to->base) { destroy_all(to); free(to->base); }
  to->base = from->base;
  to->size = from->size;
  for (int k = 0; k < from->rank; k++) to->dim[k] = from->dim[k];
  if (type_of(from) && to->extra & ADDENDUM) *place_of_type(to) = type_of(from);
  from->base = 0;
  return 0;
}

// Assignment.

INLINE int same_shape(const Array *to, const Array *from) {
  for (int k = 0; k < to->rank; k++)
    if (to->dim[k].extent != from->dim[k].extent) return 0;
  return 1;
}

// Whether what lies between the first and the last byte of two arrays has a byte in common.
INLINE int overlap(const Array *a, const Array *b) {
  const char *low[2], *high[2];
  for (int n = 0; n < 2; n++) {
    const Array *array = n ? b : a;
    low[n] = high[n] = array->base;
    for (int k = 0; k < array->rank; k++) {
      i64 length = (array->dim[k].extent - 1) * array->dim[k].stride;
      if (length < 0) low[n] += length; else high[n] += length;
    }
    high[n] += array->size;
  }
  return low[0] < high[1] && low[1] < high[0];
}

// A dense copy.
INLINE void temporary(Array *made, const Array *of) {
  establish(made, of, of->rank);
  for (int k = 0; k < of->rank; k++) set_extent(made, k, of->dim[k].extent);
  make(made);
  fill(made, of);
}

// Only a polymorphic array may have held a type where it is assigned what has none.
INLINE void assign(Array *to, const Array *from, int polymorphic) {
  const Derived *type = type_of(from);
  int typed = type || polymorphic;
  if (to->attribute == ALLOCATABLE && !(to->base && to->size == from->size && (!typed || type_of(to) == type) &&
                                        (from->rank == 0 || same_shape(to, from)))) {
    if (!to->base && to->rank && !from->rank) FAIL(shape)
    Array made;
    establish(&made, from, to->rank);
    for (int k = 0; k < to->rank; k++) {
      made.dim[k].lower = from->rank ? from->dim[k].lower : to->dim[k].lower;
      made.dim[k].extent = from->rank ? from->dim[k].extent : to->dim[k].extent;
    }
    make(&made);
    fill(&made, from);
    if (to->base) {
      if (typed) destroy_all(to);
      free(to->base);
    }
    to->base = made.base;
    to->size = made.size;
    for (int k = 0; k < to->rank; k++) to->dim[k] = made.dim[k];
    if (type && to->extra & ADDENDUM) *place_of_type(to) = type;
    return;
  }
  if (from->rank && !same_shape(to, from)) FAIL(shapes)
  if (to->size != from->size && to->type != CHARACTER) FAIL(types)
  if (!overlap(to, from)) { fill(to, from); return; }
  Array kept;
  temporary(&kept, from);
  fill(to, &kept);
  destroy_all(&kept);
  free(kept.base);
}

ALWAYS void _FortranAAssign(Array *to, const Array *from, const char *file, int line) { assign(to, from, 0); }
ALWAYS void _FortranAAssignPolymorphic(Array *to, const Array *from, const char *file, int line) { assign(to, from, 1); }

ALWAYS void _FortranAAssignTemporary(Array *to, const Array *from, const char *file, int line) {
  if (to->attribute != ALLOCATABLE) initialise_all(to);
  assign(to, from, 0);
}

ALWAYS _Bool _FortranAIsContiguous(const Array *array) { return dense(array); }

ALWAYS void _FortranACopyInAssign(Array *made, const Array *from, const char *file, int line) { temporary(made, from); }

ALWAYS void _FortranACopyOutAssign(Array *to, Array *made, const char *file, int line) {
  if (to) fill(to, made);
  destroy_all(made);
  free(made->base);
  made->base = 0;
}

// Array constructors: values are appended. flang gives 80 bytes for this.
typedef struct { Array *to; i64 count, room; int grows; } Constructor;

ALWAYS void _FortranAInitArrayConstructorVector(Constructor *made, Array *to, _Bool lengths, const char *file, int line) {
  made->to = to;
  made->count = made->room = 0;
  made->grows = !to->base;
  if (made->grows) {
    set_extent(to, 0, 0);
    set_strides(to);
    to->base = memory(0);
  }
}

INLINE char *appended(Constructor *made, i64 more) {
  Array *to = made->to;
  i64 at = made->count;
  made->count += more;
  if (made->grows) {
    if (made->count > made->room) {
      made->room = made->count > 2 * made->room ? made->count : 2 * made->room;
      to->base = realloc(to->base, made->room * to->size);
    }
    to->dim[0].extent = made->count;
  }
  return (char *)to->base + at * to->size;
}

ALWAYS void _FortranAPushArrayConstructorValue(Constructor *made, const Array *from) {
  i64 n = elements(from);
  if (made->grows && !made->count && made->to->type == CHARACTER) made->to->size = from->size;
  char *to = appended(made, n);
  const Derived *type = type_of(from);
  for (i64 k = 0; type && k < n; k++) initialise(to + k * from->size, type);
  for (i64 k = 0; k < n; k++) copy(to + k * from->size, element(from, from->dim, k), from);
}

ALWAYS void _FortranAPushArrayConstructorSimpleScalar(Constructor *made, const char *from) {
  copy(appended(made, 1), from, made->to);
}

// Arrays from arrays.

INLINE i64 integer_at(const Array *array, i64 k) {
  const char *at = element(array, array->dim, k);
  return array->size == 8 ? *(const i64 *)at : array->size == 4 ? *(const int32_t *)at
       : array->size == 2 ? *(const int16_t *)at : *(const int8_t *)at;
}

// Random numbers: a counter, mixed (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014). The
// counter is a variable as any other: a derivative that runs code again finds the numbers that it found before.

static uint64_t random_state = 42;

INLINE uint64_t random_bits(void) {
  uint64_t z = random_state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

ALWAYS void _FortranARandomNumber(const Array *harvest, const char *file, int line) {
  i64 n = elements(harvest);
  for (i64 k = 0; k < n; k++) {
    char *at = element(harvest, harvest->dim, k);
    uint64_t bits = random_bits();
    if (harvest->type == DOUBLE) *(double *)at = (bits >> 11) * 0x1p-53;
    else if (harvest->type == SINGLE) *(float *)at = (bits >> 40) * 0x1p-24f;
    else memcpy(at, &bits, harvest->size);
  }
}

INLINE void set_integer(const Array *array, i64 k, i64 value) {
  char *at = element(array, array->dim, k);
  if (array->size == 8) *(i64 *)at = value;
  else *(int32_t *)at = value;
}

void _FortranARandomSeedDefaultPut(void) { random_state = 42; }
void _FortranARandomInit(_Bool repeatable, _Bool distinct) { if (repeatable) random_state = 42; }
ALWAYS void _FortranARandomSeedSize(const Array *size, const char *file, int line) { if (size) set_integer(size, 0, 2); }

ALWAYS void _FortranARandomSeedPut(const Array *put, const char *file, int line) {
  if (put) random_state = (uint64_t)integer_at(put, 0) << 32 | (uint32_t)integer_at(put, 1);
}

ALWAYS void _FortranARandomSeedGet(const Array *get, const char *file, int line) {
  if (!get) return;
  set_integer(get, 0, (int32_t)(random_state >> 32));
  set_integer(get, 1, (int32_t)random_state);
}

ALWAYS void _FortranARandomSeed(const Array *size, const Array *put, const Array *get, const char *file, int line) {
  if (!size && !put && !get) _FortranARandomSeedDefaultPut();
  _FortranARandomSeedSize(size, file, line);
  _FortranARandomSeedPut(put, file, line);
  _FortranARandomSeedGet(get, file, line);
}

// Elements of `from`, and then those of `rest` again and again; the axis order[0] varies fastest.
ALWAYS void _FortranAReshape(Array *result, const Array *from, const Array *shape, const Array *rest, const Array *order,
                             const char *file, int line) {
  int rank = elements(shape);
  i64 step[15], count = elements(from), more = rest ? elements(rest) : 0, stride = 1;
  establish(result, from, rank);
  for (int k = 0; k < rank; k++) set_extent(result, k, integer_at(shape, k));
  make(result);
  for (int k = 0; k < rank; k++) {
    int axis = order ? integer_at(order, k) - 1 : k;
    step[axis] = stride;
    stride *= result->dim[axis].extent;
  }
  i64 all = elements(result);
  for (i64 n = 0; n < all; n++) {
    i64 left = n, at = 0;
    for (int k = 0; k < rank; k++) {
      at += left % result->dim[k].extent * step[k];
      left /= result->dim[k].extent;
    }
    char *to = (char *)result->base + n * result->size;
    if (at < count) copy(to, element(from, from->dim, at), from);
    else copy(to, element(rest, rest->dim, (at - count) % more), from);
  }
}

// The bytes of one array as elements of another type: `size` of them, or as many as they fill.
INLINE void transfer(Array *result, const Array *from, const Array *mold, i64 size) {
  i64 n = elements(from);
  establish(result, mold, size < 0 ? mold->rank : 1);
  if (size >= 0) set_extent(result, 0, size);
  else if (mold->rank) {
    result->rank = 1;
    set_extent(result, 0, mold->size ? (n * from->size + mold->size - 1) / mold->size : 0);
  }
  make(result);
  i64 room = elements(result) * result->size;
  for (i64 k = 0; k < n; k++) {
    i64 left = room - k * from->size;
    if (left <= 0) break;
    char *to = (char *)result->base + k * from->size;
    if (left >= from->size) copy(to, element(from, from->dim, k), from);
    else memcpy(to, element(from, from->dim, k), left);
  }
}

ALWAYS void _FortranATransfer(Array *result, const Array *from, const Array *mold, const char *file, int line) {
  transfer(result, from, mold, -1);
}

ALWAYS void _FortranATransferSize(Array *result, const Array *from, const Array *mold, const char *file, int line, i64 size) {
  transfer(result, from, mold, size);
}

INLINE int true_at(const Array *mask, const Dim *shape, i64 number) {
  const char *at = element(mask, shape, number);
  return mask->size == 4 ? *(const int32_t *)at != 0 : mask->size == 8 ? *(const i64 *)at != 0 : *at != 0;
}

ALWAYS void _FortranAPack(Array *result, const Array *from, const Array *mask, const Array *rest, const char *file, int line) {
  i64 n = elements(from), count = 0, at = 0;
  for (i64 k = 0; k < n; k++) count += true_at(mask, from->dim, k);
  establish(result, from, 1);
  set_extent(result, 0, rest ? rest->dim[0].extent : count);
  make(result);
  char *to = result->base;
  for (i64 k = 0; k < n; k++)
    if (true_at(mask, from->dim, k)) copy(to + at++ * from->size, element(from, from->dim, k), from);
  if (rest)
    for (; at < rest->dim[0].extent; at++) copy(to + at * from->size, element(rest, rest->dim, at), from);
}

ALWAYS void _FortranAUnpack(Array *result, const Array *from, const Array *mask, const Array *field, const char *file,
                     int line) {
  i64 n = elements(mask), at = 0;
  establish(result, from, mask->rank);
  for (int k = 0; k < mask->rank; k++) set_extent(result, k, mask->dim[k].extent);
  make(result);
  char *to = result->base;
  for (i64 k = 0; k < n; k++) {
    const char *value = true_at(mask, mask->dim, k) ? element(from, from->dim, at++) : element(field, mask->dim, k);
    copy(to + k * from->size, value, from);
  }
}

ALWAYS void _FortranASpread(Array *result, const Array *from, int axis, i64 copies, const char *file, int line) {
  establish(result, from, from->rank + 1);
  for (int k = 0, j = 0; k <= from->rank; k++)
    set_extent(result, k, k == axis - 1 ? copies > 0 ? copies : 0 : from->dim[j++].extent);
  make(result);
  i64 inner = 1, n = elements(result);
  for (int k = 0; k < axis - 1; k++) inner *= result->dim[k].extent;
  for (i64 k = 0; k < n; k++) {
    i64 source = k % inner + k / (inner * result->dim[axis - 1].extent) * inner;
    copy((char *)result->base + k * from->size, element(from, from->dim, source), from);
  }
}

ALWAYS double _FortranANorm2_8(const Array *array, const char *file, int line, int axis) {
  double sum = 0;
  i64 n = elements(array);
  for (i64 k = 0; k < n; k++) {
    double x = *(double *)element(array, array->dim, k);
    sum += x * x;
  }
  return sqrt(sum);
}

ALWAYS float _FortranANorm2_4(const Array *array, const char *file, int line, int axis) {
  double sum = 0;
  i64 n = elements(array);
  for (i64 k = 0; k < n; k++) {
    double x = *(float *)element(array, array->dim, k);
    sum += x * x;
  }
  return sqrt(sum);
}

ALWAYS void _FortranANorm2Dim(Array *result, const Array *array, int axis, const char *file, int line) {
  establish(result, array, array->rank - 1);
  for (int k = 0, j = 0; k < array->rank; k++)
    if (k != axis - 1) set_extent(result, j++, array->dim[k].extent);
  make(result);
  i64 inner = 1, n = elements(result), many = array->dim[axis - 1].extent;
  for (int k = 0; k < axis - 1; k++) inner *= array->dim[k].extent;
  for (i64 k = 0; k < n; k++) {
    double sum = 0;
    for (i64 j = 0; j < many; j++) {
      char *at = element(array, array->dim, k % inner + (j + k / inner * many) * inner);
      double x = array->type == DOUBLE ? *(double *)at : *(float *)at;
      sum += x * x;
    }
    if (array->type == DOUBLE) ((double *)result->base)[k] = sqrt(sum);
    else ((float *)result->base)[k] = sqrt(sum);
  }
}

// Reductions along an axis that is known when the program runs.

INLINE i64 without(Array *result, const Array *like, const Array *array, int axis) {
  establish(result, like, array->rank - 1);
  i64 inner = 1;
  for (int k = 0, j = 0; k < array->rank; k++)
    if (k != axis - 1) set_extent(result, j++, array->dim[k].extent);
  for (int k = 0; k < axis - 1; k++) inner *= array->dim[k].extent;
  make(result);
  return inner;
}

INLINE i64 along(i64 k, i64 j, i64 inner, i64 many) { return k % inner + (j + k / inner * many) * inner; }

INLINE int counted(const Array *mask, const Array *array, i64 at) {
  return !mask || true_at(mask, mask->rank ? array->dim : mask->dim, mask->rank ? at : 0);
}

#define REDUCE(real, first, step) { \
    real value = first; \
    for (i64 j = 0; j < many; j++) { \
      i64 at = along(k, j, inner, many); \
      if (!counted(mask, array, at)) continue; \
      real x = *(const real *)element(array, array->dim, at); \
      step; \
    } \
    ((real *)result->base)[k] = value; \
  }
#define ALONG_AXIS(name, first, first_integer, step) \
  ALWAYS void name(Array *result, const Array *array, int axis, const char *file, int line, const Array *mask) { \
    i64 inner = without(result, array, array, axis), n = elements(result), many = array->dim[axis - 1].extent; \
    for (i64 k = 0; k < n; k++) { \
      if (array->type == DOUBLE) REDUCE(double, first, step) \
      else if (array->type == SINGLE) REDUCE(float, first, step) \
      else if (array->type == INTEGER) REDUCE(int32_t, first_integer(INT32), step) \
      else if (array->type == LONG) REDUCE(i64, first_integer(INT64), step) \
      else FAIL(kind) \
    } \
  }
#define ZERO(kind) 0
#define ONE(kind) 1
#define LEAST(kind) kind##_MIN
#define MOST(kind) kind##_MAX
ALONG_AXIS(_FortranASumDim, 0, ZERO, value += x)
ALONG_AXIS(_FortranAProductDim, 1, ONE, value *= x)
ALONG_AXIS(_FortranAMaxvalDim, -INFINITY, LEAST, if (x > value) value = x)
ALONG_AXIS(_FortranAMinvalDim, INFINITY, MOST, if (x < value) value = x)

#define FOUND(real, better) { \
    real best = 0; \
    for (i64 j = 0; j < many; j++) { \
      i64 at = along(k, j, inner, many); \
      if (!counted(mask, array, at)) continue; \
      real x = *(const real *)element(array, array->dim, at); \
      if (!place || better || (back && x == best)) { best = x; place = j + 1; } \
    } \
  }
#define PLACE_ALONG_AXIS(name, better) \
  ALWAYS void name(Array *result, const Array *array, int kind, int axis, const char *file, int line, const Array *mask, \
                   _Bool back) { \
    Array like = {0}; \
    like.size = kind; \
    like.type = kind == 8 ? LONG : INTEGER; \
    if (kind != 8 && kind != 4) FAIL(kind) \
    i64 inner = without(result, &like, array, axis), n = elements(result), many = array->dim[axis - 1].extent; \
    for (i64 k = 0; k < n; k++) { \
      i64 place = 0; \
      if (array->type == DOUBLE) FOUND(double, better) \
      else if (array->type == SINGLE) FOUND(float, better) \
      else if (array->type == INTEGER) FOUND(int32_t, better) \
      else if (array->type == LONG) FOUND(i64, better) \
      else FAIL(kind) \
      if (kind == 8) ((i64 *)result->base)[k] = place; \
      else ((int32_t *)result->base)[k] = place; \
    } \
  }
PLACE_ALONG_AXIS(_FortranAMaxlocDim, x > best)
PLACE_ALONG_AXIS(_FortranAMinlocDim, x < best)

#define REDUCTION(name, real) \
  ALWAYS real name(const Array *array, real (*step)(const real *, const real *), const char *file, int line, int axis, \
                   const Array *mask, const real *identity, _Bool ordered) { \
    i64 n = elements(array), any = 0; \
    real value = identity ? *identity : 0; \
    for (i64 k = 0; k < n; k++) { \
      if (!counted(mask, array, k)) continue; \
      real x = *(const real *)element(array, array->dim, k), before = value; \
      value = any ? step(&before, &x) : x; \
      any = 1; \
    } \
    return value; \
  }
REDUCTION(_FortranAReduceReal8Ref, double)
REDUCTION(_FortranAReduceReal4Ref, float)

// Strings.

void _FortranATrim(Array *result, const Array *from, const char *file, int line) {
  i64 n = from->size;
  const char *text = from->base;
  while (n > 0 && text[n - 1] == ' ') n--;
  establish(result, from, 0);
  result->size = n;
  result->base = memory(n);
  memcpy(result->base, text, n);
}

i64 _FortranALenTrim1(const char *text, i64 n) {
  while (n > 0 && text[n - 1] == ' ') n--;
  return n;
}

int _FortranACharacterCompareScalar1(const char *x, const char *y, i64 nx, i64 ny) {
  for (i64 k = 0; k < nx || k < ny; k++) {
    unsigned char a = k < nx ? x[k] : ' ', b = k < ny ? y[k] : ' ';
    if (a != b) return a < b ? -1 : 1;
  }
  return 0;
}

// Numbers.

INLINE int bounded(i64 n) { return n > 5000 ? 5000 : n < -5000 ? -5000 : n; }

double _FortranAModReal8(double x, double p, const char *file, int line) { return fmod(x, p); }
float _FortranAModReal4(float x, float p, const char *file, int line) { return fmodf(x, p); }

double _FortranAModuloReal8(double x, double p, const char *file, int line) {
  double r = fmod(x, p);
  return r != 0 && (r < 0) != (p < 0) ? r + p : r;
}

float _FortranAModuloReal4(float x, float p, const char *file, int line) {
  float r = fmodf(x, p);
  return r != 0 && (r < 0) != (p < 0) ? r + p : r;
}

INLINE int exponent(double x) {
  int e = 0;
  if (x != 0 && isfinite(x)) frexp(x, &e);
  return e;
}

double _FortranAScale8(double x, i64 n) { return ldexp(x, bounded(n)); }
float _FortranAScale4(float x, i64 n) { return ldexpf(x, bounded(n)); }
double _FortranAFraction8(double x) { return ldexp(x, -exponent(x)); }
float _FortranAFraction4(float x) { return ldexpf(x, -exponent(x)); }
int _FortranAExponent8_4(double x) { return exponent(x); }
int _FortranAExponent4_4(float x) { return exponent(x); }
i64 _FortranAExponent8_8(double x) { return exponent(x); }
i64 _FortranAExponent4_8(float x) { return exponent(x); }
double _FortranASetExponent8(double x, i64 n) { return ldexp(x, bounded(n) - exponent(x)); }
float _FortranASetExponent4(float x, i64 n) { return ldexpf(x, bounded(n) - exponent(x)); }

double _FortranASpacing8(double x) {
  int e = exponent(x) - 53;
  return ldexp(1.0, x == 0 || e < -1022 ? -1022 : e);
}

float _FortranASpacing4(float x) {
  int e = exponent(x) - 24;
  return ldexpf(1.0f, x == 0 || e < -126 ? -126 : e);
}

double _FortranAErfcScaled8(double x) {  // exp(x * x) * erfc(x); far out by its asymptotic series
  if (x < 12) return exp(x * x) * erfc(x);
  double sum = 1, term = 1, square = 2 * x * x;
  for (int k = 1; k <= 11; k++) sum += term *= -(2 * k - 1) / square;
  return sum / (x * 1.7724538509055160273);
}

float _FortranAErfcScaled4(float x) { return _FortranAErfcScaled8(x); }

#define POWER(name, real, integer) \
  real name(real x, integer n) { \
    real power = 1, base = n < 0 ? 1 / x : x; \
    for (uint64_t m = n < 0 ? -(uint64_t)n : (uint64_t)n; m; m >>= 1) { \
      if (m & 1) power *= base; \
      if (m > 1) base *= base; \
    } \
    return power; \
  }
POWER(_FortranAFPow8i, double, int32_t)
POWER(_FortranAFPow8k, double, i64)
POWER(_FortranAFPow4i, float, int32_t)
POWER(_FortranAFPow4k, float, i64)

// Powers of complex numbers.
#define COMPLEX_POWER(name, real, integer) \
  typedef struct { real re, im; } name##_result; \
  name##_result name(real re, real im, integer n) { \
    name##_result power = {1, 0}, base = {re, im}; \
    if (n < 0) { \
      real square = re * re + im * im; \
      base.re = re / square; \
      base.im = -im / square; \
    } \
    for (uint64_t m = n < 0 ? -(uint64_t)n : (uint64_t)n; m; m >>= 1) { \
      if (m & 1) { \
        real x = power.re * base.re - power.im * base.im; \
        power.im = power.re * base.im + power.im * base.re; \
        power.re = x; \
      } \
      if (m > 1) { \
        real x = base.re * base.re - base.im * base.im; \
        base.im = 2 * base.re * base.im; \
        base.re = x; \
      } \
    } \
    return power; \
  }
COMPLEX_POWER(_FortranAzpowi, double, int32_t)
COMPLEX_POWER(_FortranAzpowk, double, i64)
