// What Swift's Glibc module does not give: kernel headers, a variadic call, a large stack frame.
#pragma once
#include <link.h>
#include <malloc.h>
#include <poll.h>
#include <time.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>

// prctl is variadic, pthread_setname_np is hidden. Up to 15 bytes of name for the calling thread.
static inline int tutti_set_thread_name(const char *name) {
    return prctl(PR_SET_NAME, name, 0, 0, 0);
}

// Nice 10, and the lowest of the best-effort classes of the disk, for the calling thread. The second has
// no function in the C library, and syscall is variadic: IOPRIO_WHO_PROCESS is 1, the class 2.
static inline void tutti_stand_back(void) {
    extern long syscall(long number, ...);
    setpriority(PRIO_PROCESS, 0, 10);
    syscall(SYS_ioprio_set, 1, 0, (2 << 13) | 7);
}

// The timer slack of the calling thread; wake-ups may be this late.
static inline int tutti_set_timer_slack(unsigned long nanoseconds) {
    return prctl(PR_SET_TIMERSLACK, nanoseconds, 0, 0, 0);
}

// The timer slack of the calling thread as it is; -1 where the kernel does not tell.
static inline long tutti_timer_slack(void) { return prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); }

// Touches the pages below the caller's frame. Swift puts large temporaries on the heap.
__attribute__((noinline)) static void tutti_touch_stack(void) {
    enum { bytes = 128 * 1024, page = 4096 };
    volatile char frame[bytes];
    for (int i = 0; i < bytes; i += page) frame[i] = 0;
}

typedef ElfW(Dyn) tutti_dynamic;

// dl_iterate_phdr and the beginning of its struct dl_phdr_info, which need _GNU_SOURCE.
struct tutti_loaded_object {
    ElfW(Addr) address;
    const char *name;
    const ElfW(Phdr) *headers;
    ElfW(Half) header_count;
};
int tutti_each_loaded_object(
    int (*body)(struct tutti_loaded_object *, size_t, void *), void *context)
    __asm__("dl_iterate_phdr");

// poll.h declares it for _GNU_SOURCE only. Precise to the timer slack, where poll counts milliseconds.
static inline int tutti_poll(
    struct pollfd *descriptors, unsigned long count, const struct timespec *timeout) {
    extern int ppoll(
        struct pollfd *, nfds_t, const struct timespec *, const __sigset_t *);
    return ppoll(descriptors, count, timeout, 0);
}
