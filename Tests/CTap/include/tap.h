/// Ethernet adapters whose wire is a descriptor, so that a test can carry the frames itself; and what
/// else Swift does not see of Linux.
#pragma once

/// Makes a tap device (Linux, Documentation/networking/tuntap.rst) in the network namespace of a
/// process: one frame a read or write, non-blocking, closed on exec. It goes when it is closed.
///
/// Returns its descriptor; −1 with errno when there can be none. The calling thread is back in its
/// own namespace then.
int openTap(int process, const char *name);

/// Keeps the calling thread on a processor, from 0 (sched_setaffinity(2), which Swift does not see).
///
/// Returns 0; −1 with errno when that may not be.
int stayOnProcessor(int processor);

/// Moves the calling thread into the network namespace of a process, for good: for a thread of its own.
/// What it opens there stays there, whoever uses it later.
///
/// Returns 0; −1 with errno when that may not be.
int enterNetwork(int process);

/// A TCP connection to an IPv4 address, from the network of the calling thread; closed on exec.
///
/// Returns its descriptor; −1 with errno when there is none.
int connectTo(const char *host, int port);

/// Listens for TCP at an IPv4 address of the network of the calling thread; closed on exec.
///
/// Returns its descriptor; −1 with errno when that cannot be.
int listenAt(const char *host, int port);
