// A function of the executable stands before one of a shared library: these are what the test
// program, the Swift runtime and the C library itself call. Each counts and passes on to glibc's own.
//
// The hooks that glibc once had for this are gone (2.34), and its statistics tell what is held and
// not what was taken and given back.
#include "allocations.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

static __thread unsigned long allocations;
static __thread unsigned long releases;

unsigned long allocationsOfThisThread(void) { return allocations; }
unsigned long releasesOfThisThread(void) { return releases; }

#if defined(__GLIBC__) && !defined(IS_SANITIZED)

int countsAllocations(void) { return 1; }

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    allocations++;
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    allocations++;
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    allocations++;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    allocations++;
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : ENOMEM;
}

void free(void *memory) {
    releases++;
    __libc_free(memory);
}

#else

int countsAllocations(void) { return 0; }

#endif
