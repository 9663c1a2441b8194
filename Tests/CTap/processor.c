#define _GNU_SOURCE
#include "tap.h"

#include <sched.h>

int stayOnProcessor(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return sched_setaffinity(0, sizeof set, &set);
}
