/* What a GPU tells of itself: sensors, settings, health, utilisation.
 *
 * Numbers are readings of the state file, by name; a call about a reading that is not there is not
 * supported. What is supported where follows a table of captures and of nvml.h: nothing of this on
 * the handle of a MIG device, and no utilisation on a GPU in MIG mode.
 */
#include "stub_calls.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int read_named(const State *state, unsigned gpu, const char *name,
                      unsigned long long *value) {
    for (int i = 0; i < state->reading_count; i++) {
        const Reading *reading = &state->readings[i];
        if (reading->gpu != gpu || strcmp(reading->name, name)) continue;
        *value = reading->value;
        return SUCCESS;
    }
    return NOT_SUPPORTED;
}

/* Answers a call whose answers are readings: a list of names, and where each goes. */
static int tell(const char *call, Device device, int count, const char *const *names,
                unsigned *const *answers) {
    State *state;
    unsigned gpu;
    ComputeInstance *mig;
    int code = enter(call, &state);
    if (code != SUCCESS) return code;
    code = find_device(state, device, &gpu, &mig);
    if (code == SUCCESS && mig) code = NOT_SUPPORTED;
    for (int i = 0; i < count && code == SUCCESS; i++) {
        unsigned long long value;
        if (!answers[i])
            code = INVALID_ARGUMENT;
        else if ((code = read_named(state, gpu, names[i], &value)) == SUCCESS)
            *answers[i] = (unsigned)value;
    }
    return leave(state, code, 0);
}

#define TELLS(call, name) \
    EXPORT int call(Device device, unsigned *answer) { \
        return tell(__func__, device, 1, (const char *[]){name}, (unsigned *[]){answer}); \
    }
#define TELLS_TWO(call, first, second) \
    EXPORT int call(Device device, unsigned *one, unsigned *two) { \
        return tell(__func__, device, 2, (const char *[]){first, second}, \
                    (unsigned *[]){one, two}); \
    }
TELLS(nvmlDeviceGetFanSpeed, "fan")
TELLS(nvmlDeviceGetPowerUsage, "power")
TELLS(nvmlDeviceGetEnforcedPowerLimit, "power-limit")
TELLS(nvmlDeviceGetPowerManagementLimit, "power-limit")
TELLS(nvmlDeviceGetPowerManagementDefaultLimit, "power-limit")
TELLS(nvmlDeviceGetPersistenceMode, "persistence")
TELLS(nvmlDeviceGetComputeMode, "compute-mode")
TELLS(nvmlDeviceGetPerformanceState, "performance-state")
TELLS(nvmlDeviceGetDisplayMode, "display")
TELLS(nvmlDeviceGetDisplayActive, "display")
TELLS(nvmlDeviceGetRetiredPagesPendingStatus, "retirement-pending")
TELLS(nvmlDeviceGetCurrPcieLinkGeneration, "pcie-generation")
TELLS(nvmlDeviceGetMaxPcieLinkGeneration, "pcie-generation")
TELLS(nvmlDeviceGetCurrPcieLinkWidth, "pcie-width")
TELLS(nvmlDeviceGetMaxPcieLinkWidth, "pcie-width")
TELLS(nvmlDeviceGetNumaNodeId, "numa-memory-node")
TELLS_TWO(nvmlDeviceGetEccMode, "ecc", "ecc")
TELLS_TWO(nvmlDeviceGetCudaComputeCapability, "capability-major", "capability-minor")

EXPORT int nvmlDeviceGetRemappedRows(Device device, unsigned *correctable, unsigned *uncorrectable,
                                     unsigned *pending, unsigned *failed) {
    static const char *names[] = {"remapped-correctable", "remapped-uncorrectable",
                                  "remap-pending", "remap-failed"};
    return tell(__func__, device, 4, names,
                (unsigned *[]){correctable, uncorrectable, pending, failed});
}

/* ---- Calls that name what they ask for ------------------------------------------------------ */

static int tell_one_of(const char *call, Device device, const char *const *names, unsigned count,
                       unsigned number, unsigned *answer) {
    if (number >= count) return INVALID_ARGUMENT;
    return tell(call, device, 1, &names[number], &answer);
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char *const sensors[] = {"temperature"};
static const char *const thresholds[] = {"temperature-shutdown", "temperature-slowdown"};
static const char *const clocks[] = {"clock-graphics", "clock-sm", "clock-memory", "clock-video"};
static const char *const most_clocks[] = {"most-clock-graphics", "most-clock-sm",
                                          "most-clock-memory", "most-clock-video"};
static const char *const directions[] = {"pcie-sent", "pcie-received"};

EXPORT int nvmlDeviceGetTemperature(Device device, unsigned sensor, unsigned *degrees) {
    return tell_one_of(__func__, device, sensors, COUNT(sensors), sensor, degrees);
}

EXPORT int nvmlDeviceGetTemperatureThreshold(Device device, unsigned kind, unsigned *degrees) {
    return tell_one_of(__func__, device, thresholds, COUNT(thresholds), kind, degrees);
}

EXPORT int nvmlDeviceGetClockInfo(Device device, unsigned kind, unsigned *megahertz) {
    return tell_one_of(__func__, device, clocks, COUNT(clocks), kind, megahertz);
}

EXPORT int nvmlDeviceGetMaxClockInfo(Device device, unsigned kind, unsigned *megahertz) {
    return tell_one_of(__func__, device, most_clocks, COUNT(most_clocks), kind, megahertz);
}

EXPORT int nvmlDeviceGetPcieThroughput(Device device, unsigned direction, unsigned *kilobytes) {
    return tell_one_of(__func__, device, directions, COUNT(directions), direction, kilobytes);
}

typedef struct { unsigned version, sensor; int degrees; } Temperature;

EXPORT int nvmlDeviceGetTemperatureV(Device device, Temperature *asked) {
    if (asked->version != (sizeof *asked | 1u << 24)) return ARGUMENT_VERSION_MISMATCH;
    unsigned degrees = 0;
    int code = tell_one_of(__func__, device, sensors, COUNT(sensors), asked->sensor, &degrees);
    asked->degrees = (int)degrees;
    return code;
}

/* ---- Larger answers ------------------------------------------------------------------------- */

#define ENTER_WHOLE(state, handle, gpu)                        \
    ENTER_DEVICE(state, handle, gpu, part);                    \
    if (part) return leave(state, NOT_SUPPORTED, 0)

EXPORT int nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long *millijoules) {
    ENTER_WHOLE(state, device, gpu);
    return leave(state, read_named(state, gpu, "energy", millijoules), 0);
}

EXPORT int nvmlDeviceGetTotalEccErrors(Device device, unsigned kind, unsigned counter,
                                       unsigned long long *count) {
    ENTER_WHOLE(state, device, gpu);
    if (kind > 1 || counter > 1) return leave(state, INVALID_ARGUMENT, 0);
    const char *name = kind ? "ecc-uncorrected" : "ecc-corrected";
    return leave(state, read_named(state, gpu, name, count), 0);
}

EXPORT int nvmlDeviceGetSerial(Device device, char *text, unsigned length) {
    ENTER_WHOLE(state, device, gpu);
    unsigned long long serial;
    char digits[24];
    int code = read_named(state, gpu, "serial", &serial);
    if (code != SUCCESS) return leave(state, code, 0);
    snprintf(digits, sizeof digits, "%llu", serial);
    return leave(state, copy_text(text, length, digits), 0);
}

typedef struct { unsigned long long total, free, used; } Window;

/* The one thing here that a MIG device has as well: its share, as it has of memory. */
EXPORT int nvmlDeviceGetBAR1MemoryInfo(Device device, Window *window) {
    ENTER_DEVICE(state, device, gpu, mig);
    *window = (Window){0};
    int code = read_named(state, gpu, "bar1", &window->total);
    if (code == SUCCESS && !mig) code = read_named(state, gpu, "bar1-used", &window->used);
    if (code == SUCCESS && mig) {
        unsigned id = instance_by_serial(state, mig->instance)->profile;
        unsigned long long part = profile_by_id(state, gpu, id)->memory_mib;
        window->total = (window->total >> 20) * part / (state->gpus[gpu].memory >> 20) << 20;
    }
    window->free = window->total - window->used;
    return leave(state, code, 0);
}

/* Driver models are of another operating system. */
EXPORT int nvmlDeviceGetDriverModel_v2(Device device, unsigned *current, unsigned *pending) {
    (void)current, (void)pending;
    ENTER_DEVICE(state, device, gpu, mig);
    return leave(state, NOT_SUPPORTED, 0);
}

EXPORT int nvmlDeviceGetDriverModel(Device device, unsigned *current, unsigned *pending) {
    return nvmlDeviceGetDriverModel_v2(device, current, pending);
}

typedef struct {
    unsigned field, scope;
    int64_t microseconds, latency;
    unsigned type;
    int code;
    union { unsigned number; unsigned long long large; double real; } value;
} FieldValue;

enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3 };

static const struct { unsigned field, type; const char *name; } fields[] = {
    {1, UNSIGNED_INT, "ecc"}, {31, UNSIGNED_INT, "retirement-pending"},
    {82, UNSIGNED_INT, "memory-temperature"}, {83, UNSIGNED_LONG_LONG, "energy"},
    {91, UNSIGNED_INT, "nvlinks"}, {142, UNSIGNED_INT, "remapped-correctable"},
    {143, UNSIGNED_INT, "remapped-uncorrectable"}, {144, UNSIGNED_INT, "remap-pending"},
    {145, UNSIGNED_INT, "remap-failed"}, {185, UNSIGNED_INT, "power"},
    {186, UNSIGNED_INT, "power"}, {190, UNSIGNED_INT, "power-limit"},
    {230, UNSIGNED_INT, "recovery"},
};

static void fill(const State *state, unsigned gpu, FieldValue *asked) {
    asked->code = INVALID_ARGUMENT; /* for what this library has never heard of */
    for (size_t i = 0; i < COUNT(fields); i++) {
        unsigned long long value = 0;
        if (fields[i].field != asked->field) continue;
        asked->type = fields[i].type;
        asked->code = read_named(state, gpu, fields[i].name, &value);
        if (asked->type == UNSIGNED_INT) asked->value.number = (unsigned)value;
        else asked->value.large = value;
    }
}

EXPORT int nvmlDeviceGetFieldValues(Device device, int count, FieldValue *values) {
    ENTER_DEVICE(state, device, gpu, mig);
    if (count < 1 || !values) return leave(state, INVALID_ARGUMENT, 0);
    for (int i = 0; i < count; i++) {
        if (mig) values[i].code = NOT_SUPPORTED;
        else fill(state, gpu, &values[i]);
    }
    return leave(state, SUCCESS, 0);
}

/* ---- Utilisation ---------------------------------------------------------------------------- */

/* Opens the state for a call about utilisation, which nothing has that is in MIG mode. */
#define ENTER_SHARED(state, handle, gpu)                       \
    ENTER_WHOLE(state, handle, gpu);                           \
    if (state->gpus[gpu].mig == 1) return leave(state, NOT_SUPPORTED, 0)

typedef struct { unsigned gpu, memory; } Rates;

EXPORT int nvmlDeviceGetUtilizationRates(Device device, Rates *rates) {
    ENTER_SHARED(state, device, gpu);
    unsigned long long processors = 0, memory = 0;
    int code = read_named(state, gpu, "utilization", &processors);
    if (code == SUCCESS) code = read_named(state, gpu, "memory-utilization", &memory);
    *rates = (Rates){(unsigned)processors, (unsigned)memory};
    return leave(state, code, 0);
}

static int tell_engine(const char *call, Device device, const char *name, unsigned *percent,
                       unsigned *period) {
    State *state;
    unsigned gpu;
    ComputeInstance *mig;
    int code = enter(call, &state);
    if (code != SUCCESS) return code;
    code = find_device(state, device, &gpu, &mig);
    if (code == SUCCESS && (mig || state->gpus[gpu].mig == 1)) code = NOT_SUPPORTED;
    unsigned long long value = 0;
    if (code == SUCCESS) code = read_named(state, gpu, name, &value);
    *percent = (unsigned)value;
    *period = 167000;
    return leave(state, code, 0);
}

EXPORT int nvmlDeviceGetEncoderUtilization(Device device, unsigned *percent, unsigned *period) {
    return tell_engine(__func__, device, "encoder-utilization", percent, period);
}

EXPORT int nvmlDeviceGetDecoderUtilization(Device device, unsigned *percent, unsigned *period) {
    return tell_engine(__func__, device, "decoder-utilization", percent, period);
}

typedef struct {
    unsigned long long microseconds;
    union { unsigned number; unsigned long long large; } value;
} DeviceSample;

EXPORT int nvmlDeviceGetSamples(Device device, unsigned kind, unsigned long long after,
                                unsigned *type, unsigned *count, DeviceSample *list) {
    static const char *const kinds[] = {"power", "utilization", "memory-utilization",
                                        "encoder-utilization", "decoder-utilization",
                                        "clock-sm", "clock-memory"};
    ENTER_SHARED(state, device, gpu);
    if (kind >= COUNT(kinds)) return leave(state, INVALID_ARGUMENT, 0);
    unsigned found = 0;
    *type = UNSIGNED_INT;
    for (int i = 0; i < state->sample_count; i++) {
        const Sample *sample = &state->samples[i];
        if (sample->gpu != gpu || strcmp(sample->name, kinds[kind])
            || sample->microseconds <= after)
            continue;
        if (list && found == *count) break;
        if (list) {
            list[found].microseconds = sample->microseconds;
            list[found].value.number = (unsigned)sample->value;
        }
        found++;
    }
    *count = found;
    return leave(state, found ? SUCCESS : NOT_FOUND, 0);
}

/* ---- Utilisation of processes --------------------------------------------------------------- */

typedef struct {
    unsigned pid;
    unsigned long long microseconds;
    unsigned processors, memory, encoder, decoder;
} ProcessUtilization;

typedef struct {
    unsigned long long microseconds;
    unsigned pid, processors, memory, encoder, decoder, jpeg, ofa;
} ProcessUtilization2;

typedef struct {
    unsigned version, count;
    unsigned long long after;
    ProcessUtilization2 *list;
} ProcessesUtilization;

/* Finds the next sample of a GPU after a moment; *position starts at 0. */
static const ProcessSample *next_sample(const State *state, unsigned gpu, unsigned long long after,
                                        int *position) {
    while (*position < state->process_sample_count) {
        const ProcessSample *sample = &state->process_samples[(*position)++];
        if (sample->gpu == gpu && sample->microseconds > after) return sample;
    }
    return NULL;
}

/* Tells how many there are: SUCCESS when they fit, else why the list is not filled. */
static int count_samples(const State *state, unsigned gpu, unsigned long long after,
                         const void *list, unsigned *count) {
    unsigned room = *count;
    int position = 0;
    for (*count = 0; next_sample(state, gpu, after, &position);) ++*count;
    if (!*count) return NOT_FOUND;
    return list && room >= *count ? SUCCESS : INSUFFICIENT_SIZE;
}

EXPORT int nvmlDeviceGetProcessUtilization(Device device, ProcessUtilization *list,
                                           unsigned *count, unsigned long long after) {
    ENTER_SHARED(state, device, gpu);
    int position = 0, code = count_samples(state, gpu, after, list, count);
    for (unsigned i = 0; code == SUCCESS && i < *count; i++) {
        const ProcessSample *sample = next_sample(state, gpu, after, &position);
        list[i] = (ProcessUtilization){sample->pid, sample->microseconds, sample->processors,
                                       sample->memory, sample->encoder, sample->decoder};
    }
    return leave(state, code, 0);
}

EXPORT int nvmlDeviceGetProcessesUtilizationInfo(Device device, ProcessesUtilization *asked) {
    ENTER_SHARED(state, device, gpu);
    if (asked->version != (sizeof *asked | 1u << 24))
        return leave(state, ARGUMENT_VERSION_MISMATCH, 0);
    int position = 0, code = count_samples(state, gpu, asked->after, asked->list, &asked->count);
    for (unsigned i = 0; code == SUCCESS && i < asked->count; i++) {
        const ProcessSample *sample = next_sample(state, gpu, asked->after, &position);
        asked->list[i] = (ProcessUtilization2){
            .microseconds = sample->microseconds, .pid = sample->pid,
            .processors = sample->processors, .memory = sample->memory,
            .encoder = sample->encoder, .decoder = sample->decoder};
    }
    return leave(state, code, 0);
}
