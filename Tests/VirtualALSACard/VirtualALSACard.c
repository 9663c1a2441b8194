// A sound card in software, for ALSA: an external I/O plug-in with a crystal of its own.
//
//     pcm_type.tutti_card { lib "/path/libVirtualALSACard.so" }
//     pcm.kitchen { type tutti_card ppm 80 wander 0.5 step 8 record "/tmp/kitchen" }
//
// Tests need a card whose every frame's instant is known. After t seconds of a run, on
// CLOCK_MONOTONIC_RAW, this one has played
//
//     rate · (t + 10⁻⁶ · (ppm · t + wander · swing / 2π · (1 − cos(2π · t / swing))))
//
// frames exactly: a crystal that is off by `ppm`, and by `wander` more or less as it breathes. The
// position that a player sees is that, rounded down to a multiple of `step` frames (1 where nothing
// is said), whenever it asks; a ring that has run dry is an underrun of that frame.
//
// What has left its ring is heard `extra_delay_ms` later, as behind a DSP or a link over the air: it
// says so (snd_pcm_delay), and its recording tells when each frame was heard. With
// `settling_delay_ms` it is that much more during the first second: a link that finds its place.
//
// While the file of `asleep_while` exists it is suspended, as cards are while their machine or their
// bus sleeps: it stands still, and has to be prepared anew. While that of `gone_while` exists it is
// unplugged: it cannot be opened either.
//
// What was written is kept in memory until the card is closed, because a disk that stalls must not
// make the player late; then it goes to PATH.f32 and PATH.times in the format of the player's own
// virtual card (see CardRecording): float samples, and the instants of frames of every run, dense
// enough that a straight line between two is right to a nanosecond. Opened a second time by the same
// process it is another recording: PATH-2.f32.
#define PIC 1  // alsa/global.h: the plug-in is a shared library of its own
#include <alsa/asoundlib.h>
#include <alsa/pcm_external.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { channels = 2, rate = 48000, seconds_max = 120, runs_max = 256 };

/// An unbroken stretch of sound.
struct run {
    int64_t first;      // number of its first frame among all that ever left
    int64_t count;      // frames that left
    int64_t start_ns;   // when the first one did
    int ran_dry;        // whether it ended in an underrun
};

struct card {
    snd_pcm_ioplug_t io;
    double ppm;
    double wander;          // ppm
    long step;              // frames by which the position moves
    long extra_delay_ms;    // between the ring and the ear
    long settling_delay_ms; // more, in the first second
    char *path;
    char *asleep_while;     // names of files
    char *gone_while;
    int opening;            // by this process, from 1
    int is_running;
    int64_t start_ns;
    int64_t written;        // frames since the card was made ready
    snd_pcm_uframes_t wake_at;
    int32_t *frames;        // all that was written, interleaved; a run begins where the last ended
    int64_t base;           // frames that left in earlier runs
    struct run runs[runs_max];
    int run_count;
};

static const int64_t frames_max = (int64_t)seconds_max * rate;

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/// Seconds of one breath of the crystal.
static const double swing = 20;
/// Between two instants that are recorded; the line is off by wander · 2π/swing · knot²/8 at most.
static const int64_t knot_ns = 50000000;

/// Frames after so many nanoseconds of a run.
static double frames_after(const struct card *card, double ns) {
    double t = ns * 1e-9;
    double breath = card->wander * swing / (2 * M_PI) * (1 - cos(2 * M_PI * t / swing));
    return rate * (t + 1e-6 * (card->ppm * t + breath));
}

/// The inverse. The rate is within some hundred ppm of the nominal one: each turn gains three digits.
static double ns_after(const struct card *card, double frames) {
    double ns = frames / rate * 1e9;
    for (int i = 0; i < 5; i++) ns += (frames - frames_after(card, ns)) / rate * 1e9;
    return ns;
}

/// Frames that the crystal has counted since the start, dry or not.
static int64_t counted(const struct card *card) {
    return (int64_t)floor(frames_after(card, (double)(now_ns() - card->start_ns)));
}

/// Frames between the ring and the ear.
static int64_t behind(const struct card *card) {
    long ms = card->extra_delay_ms;
    if (card->is_running && now_ns() - card->start_ns < 1000000000LL) ms += card->settling_delay_ms;
    return ms * (rate / 1000);
}

static int exists(const char *file) { return file && access(file, F_OK) == 0; }

/// Ends the run that is on, if any, after `count` frames.
static void end_run(struct card *card, int64_t count, int ran_dry) {
    if (!card->is_running) return;
    card->is_running = 0;
    if (card->run_count < runs_max) {
        card->runs[card->run_count++] =
            (struct run){card->base, count, card->start_ns, ran_dry};
    }
    card->base += count;
}

static int card_start(snd_pcm_ioplug_t *io) {
    struct card *card = io->private_data;
    card->start_ns = now_ns();
    card->is_running = 1;
    return 0;
}

static int card_stop(snd_pcm_ioplug_t *io) {
    struct card *card = io->private_data;
    if (!card->is_running) return 0;
    int64_t count = counted(card);
    if (count > card->written) count = card->written;
    end_run(card, count, 0);
    return 0;
}

static int card_resume(snd_pcm_ioplug_t *io) {
    struct card *card = io->private_data;
    // Awake again, like most it has forgotten what it was about to play.
    return exists(card->asleep_while) ? -EAGAIN : -ENOSYS;
}

static int card_prepare(snd_pcm_ioplug_t *io) {
    struct card *card = io->private_data;
    if (exists(card->gone_while)) return -ENODEV;
    card_stop(io);
    card->written = 0;
    return 0;
}

/// The position in the ring, or that it has run dry.
static snd_pcm_sframes_t card_pointer(snd_pcm_ioplug_t *io) {
    struct card *card = io->private_data;
    if (!card->is_running) return 0;
    int64_t count = counted(card);
    int is_gone = exists(card->gone_while);
    if (is_gone || exists(card->asleep_while)) {
        // The library takes an error here for an underrun: it is the state that says what happened.
        card_stop(io);
        snd_pcm_ioplug_set_state(io, is_gone ? SND_PCM_STATE_DISCONNECTED : SND_PCM_STATE_SUSPENDED);
        return (snd_pcm_sframes_t)((count - count % card->step) % (int64_t)io->buffer_size);
    }
    if (count >= card->written) {
        // It is to play all that it holds, and has.
        end_run(card, card->written, io->state != SND_PCM_STATE_DRAINING);
        return -EPIPE;
    }
    count -= count % card->step;
    return (snd_pcm_sframes_t)(count % (int64_t)io->buffer_size);
}

static int card_delay(snd_pcm_ioplug_t *io, snd_pcm_sframes_t *delay) {
    struct card *card = io->private_data;
    int64_t count = card->is_running ? counted(card) : 0;
    count -= count % card->step;
    *delay = (snd_pcm_sframes_t)(card->written - count + behind(card));
    return 0;
}

static snd_pcm_sframes_t card_transfer(
    snd_pcm_ioplug_t *io, const snd_pcm_channel_area_t *areas, snd_pcm_uframes_t offset,
    snd_pcm_uframes_t size) {
    struct card *card = io->private_data;
    // Interleaved access is all that is offered: one area holds both channels.
    const char *from = (const char *)areas[0].addr + (areas[0].first + offset * areas[0].step) / 8;
    int64_t place = card->base + card->written;
    if (place + (int64_t)size <= frames_max)
        memcpy(card->frames + place * channels, from, size * channels * sizeof(int32_t));
    card->written += (int64_t)size;
    return (snd_pcm_sframes_t)size;
}

// A card interrupts at the end of each period; so does this timer.
static void arm(struct card *card) {
    struct itimerspec timer = {{0, 0}, {0, 0}};
    if (card->is_running) {
        int64_t period = (int64_t)card->io.period_size;
        int64_t next = (counted(card) / period + 1) * period;
        int64_t due = card->start_ns + (int64_t)ns_after(card, (double)next);
        int64_t wait = due - now_ns();
        if (wait < 1000) wait = 1000;
        timer.it_value.tv_sec = wait / 1000000000;
        timer.it_value.tv_nsec = wait % 1000000000;
    }
    timerfd_settime(card->io.poll_fd, 0, &timer, NULL);
}

static int card_poll_descriptors(snd_pcm_ioplug_t *io, struct pollfd *pfd, unsigned int space) {
    if (space < 1) return -EINVAL;
    arm(io->private_data);
    pfd[0].fd = io->poll_fd;
    pfd[0].events = POLLIN;
    return 1;
}

static int card_poll_revents(
    snd_pcm_ioplug_t *io, struct pollfd *pfd, unsigned int nfds, unsigned short *revents) {
    struct card *card = io->private_data;
    *revents = 0;
    if (nfds < 1 || !(pfd[0].revents & POLLIN)) return 0;
    uint64_t expirations;
    ssize_t got = read(io->poll_fd, &expirations, sizeof expirations);
    (void)got;
    int64_t queued = card->is_running ? card->written - counted(card) : 0;
    snd_pcm_sframes_t room = (snd_pcm_sframes_t)io->buffer_size - queued;
    if (queued <= 0 || room >= (snd_pcm_sframes_t)card->wake_at)
        *revents = POLLOUT;
    else
        arm(card);
    return 0;
}

static int card_sw_params(snd_pcm_ioplug_t *io, snd_pcm_sw_params_t *params) {
    struct card *card = io->private_data;
    return snd_pcm_sw_params_get_avail_min(params, &card->wake_at);
}

// MARK: - Recording

/// When a frame was heard: so many nanoseconds after an instant.
static void say(FILE *file, const char *what, double frame, int64_t instant_ns, double ns) {
    int64_t whole = (int64_t)floor(ns);
    fprintf(
        file, "%s frame=%.6f raw_ns=%lld.%03d\n", what, frame, (long long)(instant_ns + whole),
        (int)((ns - (double)whole) * 1000));
}

static void write_times(const struct card *card, FILE *file) {
    fprintf(
        file, "TUTTI-CARD 1 rate=%d channels=%d ppm=%.3f wander=%.3f seed=0\n", rate, channels,
        card->ppm, card->wander);
    // What is held back is frames, too, of the same crystal.
    double behind = (double)card->extra_delay_ms * (rate / 1000);
    for (int i = 0; i < card->run_count; i++) {
        const struct run *run = &card->runs[i];
        double begin = ns_after(card, behind);
        double end = ns_after(card, behind + (double)run->count);
        say(file, "START", (double)run->first, run->start_ns, begin);
        // A straight one needs none.
        if (card->wander != 0)
            for (int64_t ns = ((int64_t)begin / knot_ns + 1) * knot_ns; ns < (int64_t)end - 1; ns += knot_ns)
                say(file, "ANCHOR", (double)run->first + frames_after(card, (double)ns) - behind,
                    run->start_ns, (double)ns);
        say(file, run->ran_dry ? "UNDERRUN" : "END", (double)(run->first + run->count),
            run->start_ns, end);
    }
}

static void save(const struct card *card) {
    int64_t count = card->base < frames_max ? card->base : frames_max;
    char name[4096], base[4000];
    if (card->opening > 1) snprintf(base, sizeof base, "%s-%d", card->path, card->opening);
    else snprintf(base, sizeof base, "%s", card->path);
    snprintf(name, sizeof name, "%s.f32", base);
    FILE *file = fopen(name, "wb");
    if (!file) return;
    for (int64_t i = 0; i < count * channels; i++) {
        float sample = (float)((double)card->frames[i] / 2147483648.0);
        fwrite(&sample, sizeof sample, 1, file);
    }
    fclose(file);
    // Last, and by renaming: whoever sees it has all of it.
    char part[4096];
    snprintf(part, sizeof part, "%s.part", base);
    snprintf(name, sizeof name, "%s.times", base);
    file = fopen(part, "w");
    if (!file) return;
    write_times(card, file);
    fclose(file);
    rename(part, name);
}

static void release(struct card *card) {
    free(card->frames);
    free(card->path);
    free(card->asleep_while);
    free(card->gone_while);
    free(card);
}

static int card_close(snd_pcm_ioplug_t *io) {
    struct card *card = io->private_data;
    card_stop(io);
    if (card->path && card->base > 0) save(card);
    close(io->poll_fd);
    release(card);
    return 0;
}

// MARK: - Opening

static const snd_pcm_ioplug_callback_t callbacks = {
    .start = card_start,
    .stop = card_stop,
    .pointer = card_pointer,
    .delay = card_delay,
    .transfer = card_transfer,
    .close = card_close,
    .prepare = card_prepare,
    .resume = card_resume,
    .sw_params = card_sw_params,
    .poll_descriptors = card_poll_descriptors,
    .poll_revents = card_poll_revents,
};

static int constrain(snd_pcm_ioplug_t *io) {
    static const unsigned int access[] = {SND_PCM_ACCESS_RW_INTERLEAVED};
    static const unsigned int formats[] = {SND_PCM_FORMAT_S32_LE};
    const unsigned int frame = channels * sizeof(int32_t);
    int code = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_ACCESS, 1, access);
    if (code >= 0)
        code = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_FORMAT, 1, formats);
    if (code >= 0)
        code = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_CHANNELS, channels, channels);
    if (code >= 0) code = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_RATE, rate, rate);
    if (code >= 0)
        code = snd_pcm_ioplug_set_param_minmax(
            io, SND_PCM_IOPLUG_HW_PERIOD_BYTES, 48 * frame, 4800 * frame);
    if (code >= 0)
        code = snd_pcm_ioplug_set_param_minmax(
            io, SND_PCM_IOPLUG_HW_BUFFER_BYTES, 96 * frame, rate * frame);
    if (code >= 0) code = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_PERIODS, 2, 1024);
    return code;
}

/// Where the name of a file belongs.
static char **named(struct card *card, const char *option) {
    if (!strcmp(option, "record")) return &card->path;
    if (!strcmp(option, "asleep_while")) return &card->asleep_while;
    if (!strcmp(option, "gone_while")) return &card->gone_while;
    return NULL;
}

static int read_options(struct card *card, snd_config_t *conf) {
    snd_config_iterator_t item, next;
    snd_config_for_each(item, next, conf) {
        snd_config_t *entry = snd_config_iterator_entry(item);
        const char *id, *text;
        char **name;
        if (snd_config_get_id(entry, &id) < 0) continue;
        if (!strcmp(id, "ppm")) {
            if (snd_config_get_ireal(entry, &card->ppm) < 0) return -EINVAL;
        } else if (!strcmp(id, "wander")) {
            if (snd_config_get_ireal(entry, &card->wander) < 0) return -EINVAL;
        } else if (!strcmp(id, "step")) {
            if (snd_config_get_integer(entry, &card->step) < 0 || card->step < 1) return -EINVAL;
        } else if (!strcmp(id, "extra_delay_ms")) {
            if (snd_config_get_integer(entry, &card->extra_delay_ms) < 0) return -EINVAL;
        } else if (!strcmp(id, "settling_delay_ms")) {
            if (snd_config_get_integer(entry, &card->settling_delay_ms) < 0) return -EINVAL;
        } else if ((name = named(card, id))) {
            if (snd_config_get_string(entry, &text) < 0) return -EINVAL;
            free(*name);
            *name = strdup(text);
        } else if (strcmp(id, "type") && strcmp(id, "comment") && strcmp(id, "hint")) {
            SNDERR("unknown option %s", id);
            return -EINVAL;
        }
    }
    return 0;
}

/// Openings of this process. In its environment, since the library is unloaded, and its variables are
/// forgotten, when ALSA reads its configuration anew. Under a name of its own: children inherit it.
static int count_opening(void) {
    char name[48];
    snprintf(name, sizeof name, "VIRTUAL_CARD_OPENINGS_%d", (int)getpid());
    const char *before = getenv(name);
    int count = (before ? atoi(before) : 0) + 1;
    char text[16];
    snprintf(text, sizeof text, "%d", count);
    setenv(name, text, 1);
    return count;
}

SND_PCM_PLUGIN_DEFINE_FUNC(tutti_card) {
    (void)root;
    if (stream != SND_PCM_STREAM_PLAYBACK) return -EINVAL;
    struct card *card = calloc(1, sizeof *card);
    if (!card) return -ENOMEM;
    card->step = 1;
    int code = read_options(card, conf);
    if (code >= 0 && exists(card->gone_while)) code = -ENODEV;
    if (code >= 0) card->opening = count_opening();
    size_t bytes = (size_t)frames_max * channels * sizeof(int32_t);
    card->frames = code < 0 ? NULL : malloc(bytes);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (!card->frames || timer < 0) {
        code = code < 0 ? code : -ENOMEM;
        goto failed;
    }
    // Now, not while it plays: a page that is touched first costs the player microseconds.
    memset(card->frames, 0, bytes);
    card->io.version = SND_PCM_IOPLUG_VERSION;
    card->io.name = "Tutti's card for tests";
    card->io.callback = &callbacks;
    card->io.private_data = card;
    card->io.poll_fd = timer;
    card->io.poll_events = POLLIN;
    code = snd_pcm_ioplug_create(&card->io, name, stream, mode);
    if (code < 0) goto failed;
    code = constrain(&card->io);
    if (code < 0) {
        // Closes the card as well, and with it all that it holds.
        snd_pcm_ioplug_delete(&card->io);
        return code;
    }
    *pcmp = card->io.pcm;
    return 0;
failed:
    if (timer >= 0) close(timer);
    release(card);
    return code;
}

SND_PCM_PLUGIN_SYMBOL(tutti_card);
