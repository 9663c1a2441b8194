#define _GNU_SOURCE
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int enterNetwork(int process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/net", process);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    if (there < 0) return -1;
    int result = setns(there, CLONE_NEWNET);
    int reason = errno;
    close(there);
    errno = reason;
    return result;
}

static int streamTo(const char *host, int port, struct sockaddr_in *address) {
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &address->sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int keep(int descriptor, int isGood) {
    if (isGood || descriptor < 0) return descriptor;
    int reason = errno;
    close(descriptor);
    errno = reason;
    return -1;
}

int connectTo(const char *host, int port) {
    struct sockaddr_in address;
    int stream = streamTo(host, port, &address);
    return keep(
        stream,
        stream >= 0 && connect(stream, (struct sockaddr *)&address, sizeof address) == 0);
}

int listenAt(const char *host, int port) {
    struct sockaddr_in address;
    int stream = streamTo(host, port, &address);
    return keep(
        stream,
        stream >= 0 && bind(stream, (struct sockaddr *)&address, sizeof address) == 0
            && listen(stream, 8) == 0);
}
