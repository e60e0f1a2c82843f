/* GPUs and MIG devices: which there are, what they are, who runs on them. */
#include "stub_calls.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
} PciInfo;

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct {
    unsigned pid;
    unsigned long long memory;
    unsigned instance, compute;
} ProcessInfo;

EXPORT int nvmlDeviceGetCount_v2(unsigned *count) {
    ENTER(state);
    *count = (unsigned)state->gpu_count;
    return leave(state, SUCCESS, 0);
}

static int give_device(State *state, int gpu, Device *device) {
    if (state->gpus[gpu].lost) return leave(state, GPU_IS_LOST, 0);
    *device = handle_of(DEVICE, (unsigned)gpu);
    return leave(state, SUCCESS, 0);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    ENTER(state);
    if (index >= (unsigned)state->gpu_count) return leave(state, INVALID_ARGUMENT, 0);
    return give_device(state, (int)index, device);
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
    ENTER(state);
    for (int i = 0; i < state->gpu_count; i++)
        if (!strcmp(state->gpus[i].uuid, uuid)) return give_device(state, i, device);
    for (int i = 0; i < state->compute_count; i++) {
        if (strcmp(state->compute[i].uuid, uuid)) continue;
        *device = handle_of(MIG_DEVICE, state->compute[i].serial);
        return leave(state, SUCCESS, 0);
    }
    return leave(state, NOT_FOUND, 0);
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, Device *device) {
    ENTER(state);
    size_t asked = strlen(bus_id); /* the domain may have four digits or eight */
    for (int i = 0; i < state->gpu_count; i++) {
        const char *own = state->gpus[i].bus_id;
        size_t length = strlen(own);
        if (asked && asked <= length && !strcasecmp(own + length - asked, bus_id))
            return give_device(state, i, device);
    }
    return leave(state, NOT_FOUND, 0);
}

EXPORT int nvmlDeviceIsMigDeviceHandle(Device device, unsigned *answer) {
    ENTER_DEVICE(state, device, gpu, mig);
    *answer = mig != NULL;
    return leave(state, SUCCESS, 0);
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device device, Device *whole) {
    ENTER_DEVICE(state, device, gpu, mig);
    if (!mig) return leave(state, INVALID_ARGUMENT, 0);
    *whole = handle_of(DEVICE, gpu);
    return leave(state, SUCCESS, 0);
}

static Profile *profile_of(State *state, unsigned gpu, const ComputeInstance *mig) {
    return profile_by_id(state, gpu, instance_by_serial(state, mig->instance)->profile);
}

EXPORT int nvmlDeviceGetName(Device device, char *text, unsigned length) {
    ENTER_DEVICE(state, device, gpu, mig);
    char name[2 * TEXT + 8];
    snprintf(name, sizeof name, "%s", state->gpus[gpu].name);
    if (mig)
        snprintf(name, sizeof name, "%s MIG %s", state->gpus[gpu].name,
                 profile_of(state, gpu, mig)->name);
    return leave(state, copy_text(text, length, name), 0);
}

EXPORT int nvmlDeviceGetUUID(Device device, char *text, unsigned length) {
    ENTER_DEVICE(state, device, gpu, mig);
    return leave(state, copy_text(text, length, mig ? mig->uuid : state->gpus[gpu].uuid), 0);
}

EXPORT int nvmlDeviceGetIndex(Device device, unsigned *index) {
    ENTER_DEVICE(state, device, gpu, mig);
    *index = mig ? mig->slot : gpu;
    return leave(state, SUCCESS, 0);
}

EXPORT int nvmlDeviceGetMinorNumber(Device device, unsigned *minor) {
    ENTER_DEVICE(state, device, gpu, mig);
    *minor = state->gpus[gpu].minor;
    return leave(state, mig ? NOT_SUPPORTED : SUCCESS, 0);
}

EXPORT int nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info) {
    ENTER_DEVICE(state, device, gpu, mig);
    const Gpu *board = &state->gpus[gpu];
    memset(info, 0, sizeof *info);
    sscanf(board->bus_id, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    info->pci_device = board->pci_device;
    info->pci_subsystem = board->pci_subsystem;
    snprintf(info->bus_id, sizeof info->bus_id, "%s", board->bus_id);
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%04X:%02X:%02X.0",
             info->domain & 0xFFFF, info->bus & 0xFF, info->device & 0xFF);
    return leave(state, SUCCESS, 0);
}

/* Whether a process counts for a device: a GPU has all of its own, a MIG device only its own. */
static int runs_on(State *state, const Process *process, unsigned gpu, const ComputeInstance *mig) {
    if (process->gpu != gpu) return 0;
    return !mig || (process->instance == instance_by_serial(state, mig->instance)->id
                    && process->compute == mig->id);
}

static Memory memory_of(State *state, unsigned gpu, const ComputeInstance *mig) {
    Memory memory = {.total = state->gpus[gpu].memory};
    if (mig) memory.total = profile_of(state, gpu, mig)->memory_mib << 20;
    for (int i = 0; i < state->process_count; i++)
        if (runs_on(state, &state->processes[i], gpu, mig))
            memory.used += state->processes[i].memory;
    memory.free = memory.total - memory.used;
    return memory;
}

EXPORT int nvmlDeviceGetMemoryInfo(Device device, Memory *memory) {
    ENTER_DEVICE(state, device, gpu, mig);
    *memory = memory_of(state, gpu, mig);
    if (!mig) { /* the first version counts what is reserved as used */
        memory->used += state->gpus[gpu].reserved;
        memory->free -= state->gpus[gpu].reserved;
    }
    return leave(state, SUCCESS, 0);
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(Device device, Memory2 *memory) {
    ENTER_DEVICE(state, device, gpu, mig);
    if (memory->version != (sizeof *memory | 2u << 24))
        return leave(state, ARGUMENT_VERSION_MISMATCH, 0);
    Memory first = memory_of(state, gpu, mig);
    memory->total = first.total;
    memory->used = first.used;
    memory->reserved = mig ? 0 : state->gpus[gpu].reserved;
    memory->free = first.free - memory->reserved;
    return leave(state, SUCCESS, 0);
}

static int list_processes(const char *call, Device device, char kind, unsigned *count,
                          ProcessInfo *list) {
    State *state;
    unsigned gpu, found = 0;
    ComputeInstance *mig;
    int code = enter(call, &state);
    if (code != SUCCESS) return code;
    code = find_device(state, device, &gpu, &mig);
    if (code != SUCCESS) return leave(state, code, 0);
    for (int i = 0; i < state->process_count; i++) {
        const Process *process = &state->processes[i];
        if (process->kind != kind || !runs_on(state, process, gpu, mig)) continue;
        if (list && found < *count)
            list[found] = (ProcessInfo){.pid = process->pid, .memory = process->memory,
                                        .instance = process->instance,
                                        .compute = process->compute};
        found++;
    }
    code = found > *count ? INSUFFICIENT_SIZE : SUCCESS;
    *count = found;
    return leave(state, code, 0);
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned *count,
                                                   ProcessInfo *list) {
    return list_processes(__func__, device, 'C', count, list);
}

EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned *count,
                                                    ProcessInfo *list) {
    return list_processes(__func__, device, 'G', count, list);
}

EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned *count,
                                                      ProcessInfo *list) {
    return list_processes(__func__, device, 'M', count, list);
}
