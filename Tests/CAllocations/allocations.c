// A function of the executable stands before one of a shared library: these are what the test
// program, the Swift runtime and the C library itself call. Each counts and passes on to glibc's own.
//
// The hooks that glibc once had for this are gone (2.34), and its statistics tell what is held and
// not what was taken and given back.
#include "allocations.h"

#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

static __thread unsigned long allocations;
static __thread unsigned long releases;
static __thread long held;
static __thread long heldMost;

unsigned long allocationsOfThisThread(void) { return allocations; }
unsigned long releasesOfThisThread(void) { return releases; }
void watchHeldByThisThread(void) { held = heldMost = 0; }
long heldMostByThisThread(void) { return heldMost; }

#if defined(__GLIBC__) && !defined(IS_SANITIZED)

int countsAllocations(void) { return 1; }

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static void *taken(void *memory) {
    allocations++;
    held += (long)malloc_usable_size(memory);
    if (held > heldMost) heldMost = held;
    return memory;
}

void *malloc(size_t size) { return taken(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) { return taken(__libc_calloc(count, size)); }

void *realloc(void *old, size_t size) {
    long before = (long)malloc_usable_size(old);
    void *memory = __libc_realloc(old, size);
    // The old block is gone, unless there was no room for the new one.
    if (memory || size == 0) held -= before;
    return taken(memory);
}

void *memalign(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }

void *aligned_alloc(size_t alignment, size_t size) {
    return taken(__libc_memalign(alignment, size));
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    *result = taken(__libc_memalign(alignment, size));
    return *result ? 0 : ENOMEM;
}

void free(void *memory) {
    releases++;
    held -= (long)malloc_usable_size(memory);
    __libc_free(memory);
}

#else

int countsAllocations(void) { return 0; }

#endif
