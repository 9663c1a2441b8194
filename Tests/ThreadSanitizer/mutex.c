// Tells the thread sanitizer of locks that it does not see; `deploy/sanitize` loads it before others.
//
// `Mutex` of Swift's Synchronization takes a free lock by an atomic in our code, which is watched, and
// waits for a taken one in the standard library, which is not: whatever is guarded by a lock that two
// threads wanted at once would be reported as a race. This stands before those two functions of the
// library and says what they do. What no lock guards is reported as ever.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

extern void __tsan_acquire(void *address);
extern void __tsan_release(void *address);

// Swift passes `self`, by its address, in a register of its own.
#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *

SWIFT void lockSlow(uint32_t thread, SELF mutex) __asm__(LOCK);
SWIFT void unlockSlow(SELF mutex) __asm__(UNLOCK);

typedef SWIFT void Lock(uint32_t, SELF);
typedef SWIFT void Unlock(SELF);

// Programs that a test starts have no sanitizer.
__attribute__((constructor)) static void keepToThisProcess(void) { unsetenv("LD_PRELOAD"); }

static void *next(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

SWIFT void lockSlow(uint32_t thread, SELF mutex) {
  ((Lock *)next(LOCK))(thread, mutex);
  __tsan_acquire(mutex);
}

SWIFT void unlockSlow(SELF mutex) {
  __tsan_release(mutex);
  ((Unlock *)next(UNLOCK))(mutex);
}
