// The C module that reaches `timespec` first owns its members, so both are imported.
import CTuttiFFmpeg
import Glibc

/// A value that threads wait for changes of.
@safe
final class ConditionMutex<Value>: @unchecked Sendable {
    // All access to the value happens with the mutex held; both are where they were made until
    // `deinit`, which nobody else can run beside.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var value: Value

    init(_ value: Value) {
        self.value = value
        unsafe pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(condition, &attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return body(&value)
    }

    func change(_ body: (inout Value) -> Void) {
        withLock(body)
        unsafe pthread_cond_broadcast(condition)
    }

    /// A change between a look at the value and this call is not noticed: the wait is short.
    func wait(milliseconds: Int) {
        var until = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &until)
        until.tv_nsec += milliseconds * 1_000_000
        until.tv_sec += until.tv_nsec / 1_000_000_000
        until.tv_nsec %= 1_000_000_000
        unsafe pthread_mutex_lock(mutex)
        unsafe pthread_cond_timedwait(condition, mutex, &until)
        unsafe pthread_mutex_unlock(mutex)
    }
}
