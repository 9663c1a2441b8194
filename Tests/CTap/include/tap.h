/// Ethernet adapters whose wire is a descriptor, so that a test can carry the frames itself.
#pragma once

/// Makes a tap device (Linux, Documentation/networking/tuntap.rst) in the network namespace of a
/// process: one frame a read or write, non-blocking, closed on exec. It goes when it is closed.
///
/// Returns its descriptor; −1 with errno when there can be none. The calling thread is back in its
/// own namespace then.
int openTap(int process, const char *name);
