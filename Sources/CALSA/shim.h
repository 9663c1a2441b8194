#pragma once
#include <alsa/asoundlib.h>

// The library prints its errors on stderr through a variadic handler, which Swift cannot write.
// Every error also comes back as a return code, and we report that one.
static void tutti_alsa_ignore(
    const char *file, int line, const char *function, int err, const char *fmt, ...) {
    (void)file; (void)line; (void)function; (void)err; (void)fmt;
}
static inline void tutti_alsa_silence(void) { snd_lib_error_set_handler(tutti_alsa_ignore); }
