/// Counts what a thread takes from the heap, so that a test can show that some code takes nothing.
#pragma once

/// Calls of malloc and its kin by this thread since it began; 0 where they are not counted.
unsigned long allocationsOfThisThread(void);

/// Calls of free by this thread since it began.
unsigned long releasesOfThisThread(void);

/// From now on ``heldMostByThisThread`` counts from zero.
void watchHeldByThisThread(void);

/// Bytes of the heap that this thread had taken and not given back, at most, since it was watched;
/// what another thread gives back counts as held. 0 where nothing is counted.
long heldMostByThisThread(void);

/// Whether this build counts: glibc, and no sanitizer that has put its own malloc there.
int countsAllocations(void);
