/* Reads and writes the state file; see stub_state.h. */
#define _GNU_SOURCE
#include "stub_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

typedef struct {
    State state;
    FILE *file;
} Held;

#define NEXT(list, count) (state->count < (int)(sizeof state->list / sizeof *state->list) \
                           ? &state->list[state->count++] : NULL)

static int read_gpu(State *state, const char *line) {
    Gpu *gpu = NEXT(gpus, gpu_count);
    return gpu && 17 == sscanf(line,
        "%95s %u %31s %x %x %llu %llu %d %d %d %d %u %u %u %u %u %95[^\n]",
        gpu->uuid, &gpu->minor, gpu->bus_id, &gpu->pci_device, &gpu->pci_subsystem, &gpu->memory,
        &gpu->reserved, &gpu->mig, &gpu->pending, &gpu->change, &gpu->lost, &gpu->most_mig_devices,
        &gpu->engines[0], &gpu->engines[1], &gpu->engines[2], &gpu->engines[3], gpu->name);
}

static int read_profile(State *state, const char *line) {
    Profile *p = NEXT(profiles, profile_count);
    char places[256];
    if (!p || 15 != sscanf(line, "%u %u %u %u %u %u %u %u %u %u %u %llu %u %255s %95s",
        &p->gpu, &p->index, &p->id, &p->slices, &p->most, &p->processors, &p->copy,
        &p->engines[0], &p->engines[1], &p->engines[2], &p->engines[3], &p->memory_mib, &p->size,
        places, p->name))
        return 0;
    for (char *rest = NULL, *item = strtok_r(places, ",", &rest); item;
         item = strtok_r(NULL, ",", &rest)) {
        if (p->place_count == MOST_PLACEMENTS) return 0;
        Place *place = &p->places[p->place_count++];
        if (2 != sscanf(item, "%u:%u", &place->start, &place->instance_id)) return 0;
    }
    return 1;
}

static int read_compute_profile(State *state, const char *line) {
    ComputeProfile *p = NEXT(compute_profiles, compute_profile_count);
    char starts[256];
    if (!p || 7 != sscanf(line, "%u %u %u %u %u %u %255s", &p->gpu, &p->profile, &p->index, &p->id,
        &p->slices, &p->processors, starts))
        return 0;
    for (char *rest = NULL, *item = strtok_r(starts, ",", &rest); item;
         item = strtok_r(NULL, ",", &rest)) {
        if (p->start_count == MOST_PLACEMENTS) return 0;
        p->starts[p->start_count++] = (unsigned)strtoul(item, NULL, 10);
    }
    return 1;
}

static int read_instance(State *state, const char *line) {
    Instance *i = NEXT(instances, instance_count);
    return i && 6 == sscanf(line, "%u %u %u %u %u %u", &i->serial, &i->gpu, &i->id, &i->profile,
                            &i->start, &i->size);
}

static int read_compute(State *state, const char *line) {
    ComputeInstance *c = NEXT(compute, compute_count);
    return c && 8 == sscanf(line, "%u %u %u %u %u %u %u %95s", &c->serial, &c->instance, &c->slot,
                            &c->id, &c->profile, &c->start, &c->size, c->uuid);
}

static int read_process(State *state, const char *line) {
    Process *p = NEXT(processes, process_count);
    return p && 6 == sscanf(line, "%u %u %u %u %llu %c", &p->gpu, &p->instance, &p->compute,
                            &p->pid, &p->memory, &p->kind);
}

static int read_event(State *state, const char *line) {
    Event *e = NEXT(events, event_count);
    return e && 6 == sscanf(line, "%u %u %llu %llu %u %u", &e->number, &e->gpu, &e->type, &e->data,
                            &e->instance, &e->compute);
}

static int read_reading(State *state, const char *line) {
    Reading *r = NEXT(readings, reading_count);
    return r && 3 == sscanf(line, "%u %95s %llu", &r->gpu, r->name, &r->value);
}

static int read_sample(State *state, const char *line) {
    Sample *s = NEXT(samples, sample_count);
    return s && 4 == sscanf(line, "%u %95s %llu %llu", &s->gpu, s->name, &s->microseconds,
                            &s->value);
}

static int read_process_sample(State *state, const char *line) {
    ProcessSample *s = NEXT(process_samples, process_sample_count);
    return s && 7 == sscanf(line, "%u %u %llu %u %u %u %u", &s->gpu, &s->pid, &s->microseconds,
                            &s->processors, &s->memory, &s->encoder, &s->decoder);
}

static int read_injected(State *state, const char *line) {
    Injected *i = NEXT(injected, injected_count);
    return i && 3 == sscanf(line, "%95s %d %d", i->call, &i->code, &i->times);
}

static int read_client(State *state, const char *line) {
    int *client = NEXT(clients, client_count);
    return client && 1 == sscanf(line, "%d", client);
}

static int read_driver(State *state, const char *line) {
    return 3 == sscanf(line, "%95s %d %u", state->driver, &state->cuda, &state->serial);
}

static const struct {
    const char *word;
    int (*read)(State *, const char *);
} readers[] = {
    {"driver ", read_driver}, {"gpu ", read_gpu}, {"profile ", read_profile},
    {"compute-profile ", read_compute_profile}, {"instance ", read_instance},
    {"compute-instance ", read_compute}, {"process ", read_process}, {"event ", read_event},
    {"reading ", read_reading}, {"sample ", read_sample},
    {"process-sample ", read_process_sample}, {"error ", read_injected}, {"client ", read_client},
};

static int read_line(State *state, const char *line) {
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        size_t length = strlen(readers[i].word);
        if (!strncmp(line, readers[i].word, length)) return readers[i].read(state, line + length);
    }
    return *line == '\n' || *line == '#';
}

/* What the file said when it was last read; the lock on the file guards it. A text that is the same
 * byte for byte is not taken apart again: that is most of what a call costs. */
enum { MOST_BYTES = 1 << 20 };
static char known_text[MOST_BYTES];
static size_t known_size;
static State known_state;
static int is_known;

static int recall(Held *held) {
    static char text[MOST_BYTES];
    size_t size = fread(text, 1, sizeof text, held->file);
    rewind(held->file);
    if (is_known && size == known_size && !memcmp(text, known_text, size)) {
        held->state = known_state;
        return 1;
    }
    is_known = 0;
    known_size = size;
    memcpy(known_text, text, size);
    return 0;
}

State *state_open(void) {
    const char *path = getenv("PARTITA_NVML_STATE");
    int number = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    Held *held = number >= 0 ? calloc(1, sizeof *held) : NULL;
    if (!held || flock(number, LOCK_EX) || !(held->file = fdopen(number, "r+"))) {
        if (number >= 0) close(number);
        free(held);
        return NULL;
    }
    if (recall(held)) return &held->state;
    char line[1024];
    while (fgets(line, sizeof line, held->file)) {
        if (!read_line(&held->state, line)) {
            fprintf(stderr, "stub libnvidia-ml: %s: cannot understand: %s", path, line);
            state_close(&held->state, 0);
            return NULL;
        }
    }
    known_state = held->state;
    is_known = 1;
    return &held->state;
}

static void write_facts(const State *s, FILE *f) {
    fprintf(f, "driver %s %d %u\n", s->driver, s->cuda, s->serial);
    for (int i = 0; i < s->gpu_count; i++) {
        const Gpu *g = &s->gpus[i];
        fprintf(f, "gpu %s %u %s %x %x %llu %llu %d %d %d %d %u %u %u %u %u %s\n", g->uuid,
                g->minor, g->bus_id, g->pci_device, g->pci_subsystem, g->memory, g->reserved,
                g->mig, g->pending, g->change, g->lost, g->most_mig_devices, g->engines[0],
                g->engines[1], g->engines[2], g->engines[3], g->name);
    }
    for (int i = 0; i < s->profile_count; i++) {
        const Profile *p = &s->profiles[i];
        fprintf(f, "profile %u %u %u %u %u %u %u %u %u %u %u %llu %u ", p->gpu, p->index, p->id,
                p->slices, p->most, p->processors, p->copy, p->engines[0], p->engines[1],
                p->engines[2], p->engines[3], p->memory_mib, p->size);
        for (int k = 0; k < p->place_count; k++)
            fprintf(f, "%s%u:%u", k ? "," : "", p->places[k].start, p->places[k].instance_id);
        fprintf(f, " %s\n", p->name);
    }
    for (int i = 0; i < s->compute_profile_count; i++) {
        const ComputeProfile *p = &s->compute_profiles[i];
        fprintf(f, "compute-profile %u %u %u %u %u %u ", p->gpu, p->profile, p->index, p->id,
                p->slices, p->processors);
        for (int k = 0; k < p->start_count; k++) fprintf(f, "%s%u", k ? "," : "", p->starts[k]);
        fputc('\n', f);
    }
}

static void write_measured(const State *s, FILE *f) {
    for (int i = 0; i < s->reading_count; i++) {
        const Reading *r = &s->readings[i];
        fprintf(f, "reading %u %s %llu\n", r->gpu, r->name, r->value);
    }
    for (int i = 0; i < s->sample_count; i++) {
        const Sample *p = &s->samples[i];
        fprintf(f, "sample %u %s %llu %llu\n", p->gpu, p->name, p->microseconds, p->value);
    }
    for (int i = 0; i < s->process_sample_count; i++) {
        const ProcessSample *p = &s->process_samples[i];
        fprintf(f, "process-sample %u %u %llu %u %u %u %u\n", p->gpu, p->pid, p->microseconds,
                p->processors, p->memory, p->encoder, p->decoder);
    }
}

static void write_standing(const State *s, FILE *f) {
    for (int i = 0; i < s->instance_count; i++) {
        const Instance *n = &s->instances[i];
        fprintf(f, "instance %u %u %u %u %u %u\n", n->serial, n->gpu, n->id, n->profile, n->start,
                n->size);
    }
    for (int i = 0; i < s->compute_count; i++) {
        const ComputeInstance *c = &s->compute[i];
        fprintf(f, "compute-instance %u %u %u %u %u %u %u %s\n", c->serial, c->instance, c->slot,
                c->id, c->profile, c->start, c->size, c->uuid);
    }
    for (int i = 0; i < s->process_count; i++) {
        const Process *p = &s->processes[i];
        fprintf(f, "process %u %u %u %u %llu %c\n", p->gpu, p->instance, p->compute, p->pid,
                p->memory, p->kind);
    }
    for (int i = 0; i < s->event_count; i++) {
        const Event *e = &s->events[i];
        fprintf(f, "event %u %u %llu %llu %u %u\n", e->number, e->gpu, e->type, e->data,
                e->instance, e->compute);
    }
    write_measured(s, f);
    for (int i = 0; i < s->injected_count; i++)
        fprintf(f, "error %s %d %d\n", s->injected[i].call, s->injected[i].code,
                s->injected[i].times);
    for (int i = 0; i < s->client_count; i++) fprintf(f, "client %d\n", s->clients[i]);
}

void state_close(State *state, int changed) {
    Held *held = (Held *)state;
    if (changed) {
        rewind(held->file);
        if (!ftruncate(fileno(held->file), 0)) {
            write_facts(state, held->file);
            write_standing(state, held->file);
        }
    }
    fclose(held->file); /* closes, and so unlocks, after writing */
    free(held);
}
