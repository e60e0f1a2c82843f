/* Event sets. An event reaches every set that had registered for it when it happened. */
#define _DEFAULT_SOURCE
#include "stub_calls.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    unsigned seen[MOST_GPUS]; /* number of the last event that was given or too early */
    unsigned long long types[MOST_GPUS];
} EventSet;

typedef struct {
    Device device;
    unsigned long long type, data;
    unsigned instance, compute;
} EventData;

enum { KNOWN_TYPES = 0xFFFF, PAUSE_MICROSECONDS = 2000 };

EXPORT int nvmlEventSetCreate(EventSet **set) {
    ENTER(state);
    *set = calloc(1, sizeof **set);
    return leave(state, *set ? SUCCESS : UNKNOWN_ERROR, 0);
}

EXPORT int nvmlEventSetFree(EventSet *set) {
    ENTER(state);
    free(set);
    return leave(state, SUCCESS, 0);
}

EXPORT int nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long *types) {
    ENTER(state);
    unsigned gpu;
    ComputeInstance *mig;
    int code = find_device(state, device, &gpu, &mig);
    if (code == SUCCESS) *types = KNOWN_TYPES;
    return leave(state, code, 0);
}

EXPORT int nvmlDeviceRegisterEvents(Device device, unsigned long long types, EventSet *set) {
    ENTER(state);
    unsigned gpu;
    ComputeInstance *mig;
    int code = find_device(state, device, &gpu, &mig);
    if (code == SUCCESS && mig) code = INVALID_ARGUMENT;
    if (code == SUCCESS) {
        set->types[gpu] |= types;
        for (int i = 0; i < state->event_count; i++)
            if (state->events[i].number > set->seen[gpu])
                set->seen[gpu] = state->events[i].number;
    }
    return leave(state, code, 0);
}

static int take(State *state, EventSet *set, EventData *data) {
    for (int i = 0; i < state->event_count; i++) {
        const Event *event = &state->events[i];
        if (event->number <= set->seen[event->gpu] || !(event->type & set->types[event->gpu]))
            continue;
        set->seen[event->gpu] = event->number;
        *data = (EventData){handle_of(DEVICE, event->gpu), event->type, event->data,
                            event->instance, event->compute};
        return 1;
    }
    return 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* nvml.h: a wait fails with GPU_IS_LOST when a GPU of the set has fallen off the bus. Here it gives
 * first what happened before. */
static int has_lost(const State *state, const EventSet *set) {
    for (int i = 0; i < state->gpu_count; i++)
        if (set->types[i] && state->gpus[i].lost) return 1;
    return 0;
}

EXPORT int nvmlEventSetWait_v2(EventSet *set, EventData *data, unsigned milliseconds) {
    double end = now() + milliseconds / 1e3;
    for (;;) {
        ENTER(state);
        int found = take(state, set, data), lost = has_lost(state, set);
        leave(state, SUCCESS, 0);
        if (found) return SUCCESS;
        if (lost) return GPU_IS_LOST;
        if (now() >= end) return TIMED_OUT;
        usleep(PAUSE_MICROSECONDS);
    }
}
