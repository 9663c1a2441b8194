#define _GNU_SOURCE
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int networkOf(const char *process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/net", process);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int tapHere(const char *name) {
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device < 0) return -1;
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(device, TUNSETIFF, &request) == 0) return device;
    int reason = errno;
    close(device);
    errno = reason;
    return -1;
}

int openTap(int process, const char *name) {
    char other[16];
    snprintf(other, sizeof other, "%d", process);
    int home = networkOf("thread-self");
    int there = networkOf(other);
    int device = -1;
    if (home >= 0 && there >= 0 && setns(there, CLONE_NEWNET) == 0) {
        device = tapHere(name);
        int reason = errno;
        // A thread in the wrong network would make every later test fail for another reason.
        if (setns(home, CLONE_NEWNET) != 0) abort();
        errno = reason;
    }
    int reason = errno;
    if (home >= 0) close(home);
    if (there >= 0) close(there);
    errno = reason;
    return device;
}
