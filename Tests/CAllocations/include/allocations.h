/// Counts what a thread takes from the heap, so that a test can show that some code takes nothing.
#pragma once

/// Calls of malloc and its kin by this thread since it began; 0 where they are not counted.
unsigned long allocationsOfThisThread(void);

/// Calls of free by this thread since it began.
unsigned long releasesOfThisThread(void);

/// Whether this build counts: glibc, and no sanitizer that has put its own malloc there.
int countsAllocations(void);
