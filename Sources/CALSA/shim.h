#pragma once
#include <alsa/asoundlib.h>
#include <stdlib.h>

// The library prints its errors on stderr through a variadic handler, which Swift cannot write.
// Every error also comes back as a return code, and we report that one.
static void tutti_alsa_ignore(
    const char *file, int line, const char *function, int err, const char *fmt, ...) {
    (void)file; (void)line; (void)function; (void)err; (void)fmt;
}
// The configuration is a global variable, which Swift calls unsafe; the reference keeps it meanwhile.
static inline int tutti_alsa_defines(const char *key) {
    snd_config_t *top = NULL, *found = NULL;
    if (snd_config_update_ref(&top) < 0) return 0;
    int code = snd_config_search(top, key, &found);
    snd_config_unref(top);
    return code >= 0;
}
// A copy of a part of it, to be given to snd_config_delete; NULL where there is none of that name.
static inline snd_config_t *tutti_alsa_definition(const char *key) {
    snd_config_t *top = NULL, *found = NULL, *copy = NULL;
    if (snd_config_update_ref(&top) < 0) return NULL;
    if (snd_config_search(top, key, &found) < 0 || snd_config_copy(&copy, found) < 0) copy = NULL;
    snd_config_unref(top);
    return copy;
}
// Where the loudspeakers of an open card stand, at most `most`; 0 where it does not say. The map ends
// with an array of no length, which Swift cannot read.
static inline unsigned tutti_alsa_channel_map(snd_pcm_t *pcm, unsigned *positions, unsigned most) {
    snd_pcm_chmap_t *map = snd_pcm_get_chmap(pcm);
    if (!map) return 0;
    unsigned count = map->channels < most ? map->channels : most;
    for (unsigned i = 0; i < count; i++) positions[i] = map->pos[i] & SND_CHMAP_POSITION_MASK;
    free(map);
    return count;
}
static inline void tutti_alsa_silence(void) { snd_lib_error_set_handler(tutti_alsa_ignore); }
