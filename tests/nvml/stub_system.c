/* Start, end, versions, error texts, and what the calls share. */
#define _DEFAULT_SOURCE
#include "stub_calls.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int initialised;

struct handle *handle_of(unsigned kind, unsigned number) {
    return (struct handle *)(((uintptr_t)kind << 28) | number);
}

unsigned number_of(struct handle *handle, unsigned kind) {
    uintptr_t value = (uintptr_t)handle;
    return value >> 28 == kind ? (unsigned)(value & 0xFFFFFFFu) : NONE;
}

static int injected(State *state, const char *call, int *changed) {
    for (int i = 0; i < state->injected_count; i++) {
        Injected *entry = &state->injected[i];
        if (strcmp(entry->call, call) || !entry->times) continue;
        if (entry->times > 0) {
            entry->times--;
            *changed = 1;
        }
        return entry->code;
    }
    return SUCCESS;
}

static int begin(const char *call, State **state) {
    *state = state_open();
    if (!*state) return UNKNOWN_ERROR;
    int changed = 0, code = injected(*state, call, &changed);
    if (code == SUCCESS) return SUCCESS;
    state_close(*state, changed);
    while (code < 0) pause(); /* a driver that hangs */
    return code;
}

int enter(const char *call, State **state) {
    return initialised ? begin(call, state) : UNINITIALIZED;
}

int leave(State *state, int code, int changed) {
    state_close(state, changed && code == SUCCESS);
    return code;
}

int find_device(State *state, Device handle, unsigned *gpu, ComputeInstance **mig) {
    unsigned serial = number_of(handle, MIG_DEVICE);
    *gpu = number_of(handle, DEVICE);
    *mig = NULL;
    for (int i = 0; i < state->compute_count && serial != NONE; i++) {
        if (state->compute[i].serial != serial) continue;
        *mig = &state->compute[i];
        *gpu = instance_by_serial(state, (*mig)->instance)->gpu;
    }
    if (*gpu >= (unsigned)state->gpu_count) return INVALID_ARGUMENT;
    return state->gpus[*gpu].lost ? GPU_IS_LOST : SUCCESS;
}

Instance *instance_by_serial(State *state, unsigned serial) {
    for (int i = 0; i < state->instance_count; i++)
        if (state->instances[i].serial == serial) return &state->instances[i];
    return NULL;
}

Instance *find_instance(State *state, GpuInstance handle) {
    return instance_by_serial(state, number_of(handle, GPU_INSTANCE));
}

Profile *profile_by_id(State *state, unsigned gpu, unsigned id) {
    for (int i = 0; i < state->profile_count; i++)
        if (state->profiles[i].gpu == gpu && state->profiles[i].id == id)
            return &state->profiles[i];
    return NULL;
}

int is_busy(const State *state, unsigned gpu, unsigned instance) {
    for (int i = 0; i < state->process_count; i++)
        if (state->processes[i].gpu == gpu && state->processes[i].instance == instance) return 1;
    return 0;
}

int copy_text(char *target, unsigned length, const char *text) {
    if (!target) return INVALID_ARGUMENT;
    if (strlen(text) >= length) return INSUFFICIENT_SIZE;
    strcpy(target, text);
    return SUCCESS;
}

static void forget_client(State *state, int client) {
    for (int i = 0; i < state->client_count; i++) {
        if (state->clients[i] != client) continue;
        state->clients[i] = state->clients[--state->client_count];
        return;
    }
}

EXPORT int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    State *state;
    int code = begin(__func__, &state);
    if (code != SUCCESS) return code;
    for (int i = state->client_count - 1; i >= 0; i--) /* those that died without a word */
        if (kill(state->clients[i], 0)) forget_client(state, state->clients[i]);
    if (!initialised++ && state->client_count < MOST_ROWS)
        state->clients[state->client_count++] = getpid();
    return leave(state, SUCCESS, 1);
}

EXPORT int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT int nvmlInit(void) { return nvmlInitWithFlags(0); }

EXPORT int nvmlShutdown(void) {
    ENTER(state);
    if (!--initialised) forget_client(state, getpid());
    return leave(state, SUCCESS, 1);
}

EXPORT const char *nvmlErrorString(int code) {
    static const struct { int code; const char *text; } texts[] = {
        {SUCCESS, "Success"}, {UNINITIALIZED, "Uninitialized"},
        {INVALID_ARGUMENT, "Invalid Argument"}, {NOT_SUPPORTED, "Not Supported"},
        {4, "Insufficient Permissions"}, {NOT_FOUND, "Not Found"},
        {INSUFFICIENT_SIZE, "Insufficient Size"}, {TIMED_OUT, "Timeout"},
        {GPU_IS_LOST, "GPU is lost"}, {RESET_REQUIRED, "GPU requires reset"},
        {IN_USE, "In use by another client"},
        {INSUFFICIENT_RESOURCES, "Insufficient Resources"},
        {ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == code) return texts[i].text;
    return "Unknown Error";
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    ENTER(state);
    return leave(state, copy_text(text, length, state->driver), 0);
}

EXPORT int nvmlSystemGetNVMLVersion(char *text, unsigned length) {
    ENTER(state);
    char version[TEXT + 16];
    snprintf(version, sizeof version, "%d.%s", state->cuda / 1000, state->driver);
    return leave(state, copy_text(text, length, version), 0);
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version) {
    ENTER(state);
    *version = state->cuda;
    return leave(state, SUCCESS, 0);
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return nvmlSystemGetCudaDriverVersion(version);
}
