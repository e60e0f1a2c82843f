/* MIG mode, GPU instances and compute instances, under the rules of the real driver. */
#include "stub_calls.h"

#include <stdio.h>
#include <string.h>

typedef struct { unsigned start, size; } Placement;

typedef struct {
    unsigned id, p2p, slices, most, processors, copy, engines[ENGINES];
    unsigned long long memory_mib;
} ProfileInfo;

typedef struct {
    unsigned version, id, p2p, slices, most, processors, copy, engines[ENGINES];
    unsigned long long memory_mib;
    char name[96];
} ProfileInfo2;

typedef struct {
    unsigned id, slices, most, processors, copy, engines[ENGINES];
} ComputeProfileInfo;

typedef struct {
    unsigned version, id, slices, most, processors, copy, engines[ENGINES];
    char name[96];
} ComputeProfileInfo2;

typedef struct { Device device; unsigned id, profile; Placement placement; } InstanceInfo;

typedef struct {
    Device device;
    GpuInstance instance;
    unsigned id, profile;
    Placement placement;
} ComputeInfo;

enum { PROFILE_COUNT = 0x12, COMPUTE_PROFILE_COUNT = 0x9 };

/* Opens the state for a call on a whole GPU that has MIG. */
#define ENTER_BOARD(state, handle, gpu)                                        \
    ENTER(state);                                                              \
    unsigned gpu;                                                              \
    do {                                                                       \
        ComputeInstance *mig;                                                  \
        int found = find_device(state, handle, &gpu, &mig);                    \
        if (found == SUCCESS && mig) found = INVALID_ARGUMENT;                 \
        if (found == SUCCESS && state->gpus[gpu].mig < 0) found = NOT_SUPPORTED; \
        if (found != SUCCESS) return leave(state, found, 0);                   \
    } while (0)

#define ENTER_INSTANCE(state, handle, instance)                                \
    ENTER(state);                                                              \
    Instance *instance = find_instance(state, handle);                         \
    if (!instance) return leave(state, INVALID_ARGUMENT, 0);                   \
    if (state->gpus[instance->gpu].lost) return leave(state, GPU_IS_LOST, 0)

/* ---- Mode ---------------------------------------------------------------------------------- */

EXPORT int nvmlDeviceGetMigMode(Device device, unsigned *current, unsigned *pending) {
    ENTER_BOARD(state, device, gpu);
    *current = (unsigned)state->gpus[gpu].mig;
    *pending = (unsigned)state->gpus[gpu].pending;
    return leave(state, SUCCESS, 0);
}

static int count_instances(const State *state, unsigned gpu, unsigned profile) {
    int count = 0;
    for (int i = 0; i < state->instance_count; i++)
        count += state->instances[i].gpu == gpu
                 && (profile == NONE || state->instances[i].profile == profile);
    return count;
}

static int any_process(const State *state, unsigned gpu) {
    for (int i = 0; i < state->process_count; i++)
        if (state->processes[i].gpu == gpu) return 1;
    return 0;
}

EXPORT int nvmlDeviceSetMigMode(Device device, unsigned mode, unsigned *activation) {
    ENTER_BOARD(state, device, gpu);
    Gpu *board = &state->gpus[gpu];
    if (mode > 1) return leave(state, INVALID_ARGUMENT, 0);
    *activation = SUCCESS;
    board->pending = (int)mode;
    if (board->mig != (int)mode) {
        if (any_process(state, gpu) || count_instances(state, gpu, NONE))
            *activation = IN_USE;
        else if (board->change == RESET_BY_USER)
            *activation = RESET_REQUIRED;
        else
            board->mig = (int)mode;
    }
    return leave(state, SUCCESS, 1);
}

/* ---- Profiles ------------------------------------------------------------------------------ */

static int find_profile(State *state, unsigned gpu, unsigned index, Profile **profile) {
    if (index >= PROFILE_COUNT) return INVALID_ARGUMENT;
    for (int i = 0; i < state->profile_count; i++) {
        *profile = &state->profiles[i];
        if ((*profile)->gpu == gpu && (*profile)->index == index) return SUCCESS;
    }
    return NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetGpuInstanceProfileInfo(Device device, unsigned index, ProfileInfo *info) {
    ENTER_BOARD(state, device, gpu);
    Profile *profile;
    int code = find_profile(state, gpu, index, &profile);
    if (code == SUCCESS) {
        *info = (ProfileInfo){.id = profile->id, .slices = profile->slices, .most = profile->most,
                              .processors = profile->processors, .copy = profile->copy,
                              .memory_mib = profile->memory_mib};
        memcpy(info->engines, profile->engines, sizeof info->engines);
    }
    return leave(state, code, 0);
}

EXPORT int nvmlDeviceGetGpuInstanceProfileInfoV(Device device, unsigned index,
                                                ProfileInfo2 *info) {
    ENTER_BOARD(state, device, gpu);
    if (info->version != (sizeof *info | 2u << 24))
        return leave(state, ARGUMENT_VERSION_MISMATCH, 0);
    Profile *profile;
    int code = find_profile(state, gpu, index, &profile);
    if (code == SUCCESS) {
        *info = (ProfileInfo2){.version = info->version, .id = profile->id,
                               .slices = profile->slices, .most = profile->most,
                               .processors = profile->processors, .copy = profile->copy,
                               .memory_mib = profile->memory_mib};
        memcpy(info->engines, profile->engines, sizeof info->engines);
        snprintf(info->name, sizeof info->name, "MIG %.90s", profile->name);
    }
    return leave(state, code, 0);
}

EXPORT int nvmlDeviceGetGpuInstancePossiblePlacements_v2(Device device, unsigned id,
                                                         Placement *list, unsigned *count) {
    ENTER_BOARD(state, device, gpu);
    const Profile *profile = profile_by_id(state, gpu, id);
    if (!profile) return leave(state, INVALID_ARGUMENT, 0);
    unsigned room = *count;
    *count = (unsigned)profile->place_count;
    if (list && room < *count) return leave(state, INSUFFICIENT_SIZE, 0);
    for (int i = 0; list && i < profile->place_count; i++)
        list[i] = (Placement){profile->places[i].start, profile->size};
    return leave(state, SUCCESS, 0);
}

/* ---- GPU instances ------------------------------------------------------------------------- */

static int is_free(const State *state, unsigned gpu, unsigned start, unsigned size) {
    for (int i = 0; i < state->instance_count; i++) {
        const Instance *other = &state->instances[i];
        if (other->gpu == gpu && start < other->start + other->size && other->start < start + size)
            return 0;
    }
    return 1;
}

/* Whether one more of a profile is allowed by its limit and by the engines that are left. */
static int is_allowed(State *state, const Profile *wanted) {
    unsigned taken[ENGINES];
    if (count_instances(state, wanted->gpu, wanted->id) >= (int)wanted->most) return 0;
    memcpy(taken, wanted->engines, sizeof taken);
    for (int i = 0; i < state->instance_count; i++) {
        if (state->instances[i].gpu != wanted->gpu) continue;
        const Profile *other = profile_by_id(state, wanted->gpu, state->instances[i].profile);
        for (int e = 0; e < ENGINES; e++) taken[e] += other->engines[e];
    }
    for (int e = 0; e < ENGINES; e++)
        if (taken[e] > state->gpus[wanted->gpu].engines[e]) return 0;
    return 1;
}

static unsigned free_places(State *state, const Profile *profile) {
    unsigned count = 0;
    if (!is_allowed(state, profile)) return 0;
    for (int i = 0; i < profile->place_count; i++)
        count += (unsigned)is_free(state, profile->gpu, profile->places[i].start, profile->size);
    unsigned left = profile->most - (unsigned)count_instances(state, profile->gpu, profile->id);
    return count < left ? count : left;
}

EXPORT int nvmlDeviceGetGpuInstanceRemainingCapacity(Device device, unsigned id, unsigned *count) {
    ENTER_BOARD(state, device, gpu);
    const Profile *profile = profile_by_id(state, gpu, id);
    if (state->gpus[gpu].mig != 1) return leave(state, NOT_SUPPORTED, 0);
    if (!profile) return leave(state, INVALID_ARGUMENT, 0);
    *count = free_places(state, profile);
    return leave(state, SUCCESS, 0);
}

/* How many placements that are still free, of any profile, a placement would take away. */
static int cost(State *state, const Profile *wanted, unsigned start) {
    int lost = 0;
    for (int i = 0; i < state->profile_count; i++) {
        const Profile *p = &state->profiles[i];
        for (int k = 0; p->gpu == wanted->gpu && k < p->place_count; k++) {
            unsigned other = p->places[k].start;
            lost += is_free(state, p->gpu, other, p->size) && start < other + p->size
                    && other < start + wanted->size;
        }
    }
    return lost;
}

/* The driver's own choice is not published; this is the cheapest, then the lowest instance id. */
static const Place *choose(State *state, const Profile *profile) {
    const Place *best = NULL;
    for (int i = 0; i < profile->place_count; i++) {
        const Place *place = &profile->places[i];
        if (!is_free(state, profile->gpu, place->start, profile->size)) continue;
        if (!best || cost(state, profile, place->start) < cost(state, profile, best->start))
            best = place;
    }
    return best;
}

static int create_instance(State *state, unsigned gpu, unsigned id, const Placement *wanted,
                           GpuInstance *handle) {
    const Profile *profile = profile_by_id(state, gpu, id);
    const Place *place = NULL;
    if (state->gpus[gpu].mig != 1) return NOT_SUPPORTED;
    if (!profile) return INVALID_ARGUMENT;
    for (int i = 0; wanted && i < profile->place_count; i++)
        if (profile->places[i].start == wanted->start && profile->size == wanted->size)
            place = &profile->places[i];
    if (wanted && !place) return INVALID_ARGUMENT;
    if (is_busy(state, gpu, NONE)) return IN_USE;
    if (!wanted) place = choose(state, profile);
    if (!place || !is_free(state, gpu, place->start, profile->size)
        || !is_allowed(state, profile) || state->instance_count == MOST_ROWS)
        return INSUFFICIENT_RESOURCES;
    state->instances[state->instance_count++] =
        (Instance){++state->serial, gpu, place->instance_id, id, place->start, profile->size};
    *handle = handle_of(GPU_INSTANCE, state->serial);
    return SUCCESS;
}

EXPORT int nvmlDeviceCreateGpuInstance(Device device, unsigned id, GpuInstance *handle) {
    ENTER_BOARD(state, device, gpu);
    return leave(state, create_instance(state, gpu, id, NULL, handle), 1);
}

EXPORT int nvmlDeviceCreateGpuInstanceWithPlacement(Device device, unsigned id,
                                                    const Placement *wanted, GpuInstance *handle) {
    ENTER_BOARD(state, device, gpu);
    if (!wanted) return leave(state, INVALID_ARGUMENT, 0);
    return leave(state, create_instance(state, gpu, id, wanted, handle), 1);
}

EXPORT int nvmlDeviceGetGpuInstances(Device device, unsigned id, GpuInstance *list,
                                     unsigned *count) {
    ENTER_BOARD(state, device, gpu);
    if (state->gpus[gpu].mig != 1) return leave(state, NOT_SUPPORTED, 0);
    if (!profile_by_id(state, gpu, id)) return leave(state, INVALID_ARGUMENT, 0);
    *count = 0;
    for (int i = 0; i < state->instance_count; i++)
        if (state->instances[i].gpu == gpu && state->instances[i].profile == id)
            list[(*count)++] = handle_of(GPU_INSTANCE, state->instances[i].serial);
    return leave(state, SUCCESS, 0);
}

EXPORT int nvmlDeviceGetGpuInstanceById(Device device, unsigned id, GpuInstance *handle) {
    ENTER_BOARD(state, device, gpu);
    if (state->gpus[gpu].mig != 1) return leave(state, NOT_SUPPORTED, 0);
    for (int i = 0; i < state->instance_count; i++) {
        if (state->instances[i].gpu != gpu || state->instances[i].id != id) continue;
        *handle = handle_of(GPU_INSTANCE, state->instances[i].serial);
        return leave(state, SUCCESS, 0);
    }
    return leave(state, NOT_FOUND, 0);
}

EXPORT int nvmlGpuInstanceGetInfo(GpuInstance handle, InstanceInfo *info) {
    ENTER_INSTANCE(state, handle, instance);
    *info = (InstanceInfo){handle_of(DEVICE, instance->gpu), instance->id, instance->profile,
                           {instance->start, instance->size}};
    return leave(state, SUCCESS, 0);
}

EXPORT int nvmlGpuInstanceDestroy(GpuInstance handle) {
    ENTER_INSTANCE(state, handle, instance);
    for (int i = 0; i < state->compute_count; i++)
        if (state->compute[i].instance == instance->serial) return leave(state, IN_USE, 0);
    if (is_busy(state, instance->gpu, instance->id)) return leave(state, IN_USE, 0);
    *instance = state->instances[--state->instance_count];
    return leave(state, SUCCESS, 1);
}

/* ---- Compute instances --------------------------------------------------------------------- */

static int find_compute_profile(State *state, const Instance *instance, unsigned index,
                                unsigned engines, ComputeProfile **profile) {
    if (index >= COMPUTE_PROFILE_COUNT || engines) return INVALID_ARGUMENT;
    for (int i = 0; i < state->compute_profile_count; i++) {
        *profile = &state->compute_profiles[i];
        if ((*profile)->gpu == instance->gpu && (*profile)->profile == instance->profile
            && (*profile)->index == index)
            return SUCCESS;
    }
    return NOT_SUPPORTED;
}

static ComputeProfile *compute_profile_by_id(State *state, const Instance *instance, unsigned id) {
    for (int i = 0; i < state->compute_profile_count; i++) {
        ComputeProfile *profile = &state->compute_profiles[i];
        if (profile->gpu == instance->gpu && profile->profile == instance->profile
            && profile->id == id)
            return profile;
    }
    return NULL;
}

EXPORT int nvmlGpuInstanceGetComputeInstanceProfileInfo(GpuInstance handle, unsigned index,
                                                        unsigned engines,
                                                        ComputeProfileInfo *info) {
    ENTER_INSTANCE(state, handle, instance);
    ComputeProfile *profile;
    int code = find_compute_profile(state, instance, index, engines, &profile);
    if (code == SUCCESS) {
        const Profile *whole = profile_by_id(state, instance->gpu, instance->profile);
        *info = (ComputeProfileInfo){profile->id, profile->slices, (unsigned)profile->start_count,
                                     profile->processors, whole->copy, {0}};
        memcpy(info->engines, whole->engines, sizeof info->engines);
    }
    return leave(state, code, 0);
}

EXPORT int nvmlGpuInstanceGetComputeInstanceProfileInfoV(GpuInstance handle, unsigned index,
                                                         unsigned engines,
                                                         ComputeProfileInfo2 *info) {
    ENTER_INSTANCE(state, handle, instance);
    if (info->version != (sizeof *info | 2u << 24))
        return leave(state, ARGUMENT_VERSION_MISMATCH, 0);
    ComputeProfile *profile;
    int code = find_compute_profile(state, instance, index, engines, &profile);
    if (code == SUCCESS) {
        const Profile *whole = profile_by_id(state, instance->gpu, instance->profile);
        *info = (ComputeProfileInfo2){.version = info->version, .id = profile->id,
                                      .slices = profile->slices,
                                      .most = (unsigned)profile->start_count,
                                      .processors = profile->processors, .copy = whole->copy};
        memcpy(info->engines, whole->engines, sizeof info->engines);
        if (profile->slices == whole->slices)
            snprintf(info->name, sizeof info->name, "MIG %.80s", whole->name);
        else
            snprintf(info->name, sizeof info->name, "MIG %uc.%.80s", profile->slices, whole->name);
    }
    return leave(state, code, 0);
}

static int compute_is_free(const State *state, unsigned serial, unsigned start, unsigned size) {
    for (int i = 0; i < state->compute_count; i++) {
        const ComputeInstance *other = &state->compute[i];
        if (other->instance == serial && start < other->start + other->size
            && other->start < start + size)
            return 0;
    }
    return 1;
}

/* The lowest number that no compute instance of a GPU (or of one GPU instance) has. */
static unsigned lowest(State *state, const Instance *instance, int of_gpu) {
    for (unsigned number = 0;; number++) {
        int taken = 0;
        for (int i = 0; i < state->compute_count; i++) {
            const ComputeInstance *other = &state->compute[i];
            if (of_gpu)
                taken |= other->slot == number
                         && instance_by_serial(state, other->instance)->gpu == instance->gpu;
            else
                taken |= other->id == number && other->instance == instance->serial;
        }
        if (!taken) return number;
    }
}

EXPORT int nvmlGpuInstanceCreateComputeInstance(GpuInstance handle, unsigned id,
                                                ComputeInstanceHandle *created) {
    ENTER_INSTANCE(state, handle, instance);
    const ComputeProfile *profile = compute_profile_by_id(state, instance, id);
    if (!profile) return leave(state, NOT_SUPPORTED, 0);
    for (int i = 0; i < profile->start_count && state->compute_count < MOST_ROWS; i++) {
        unsigned start = profile->starts[i];
        if (!compute_is_free(state, instance->serial, start, profile->slices)) continue;
        ComputeInstance new = {.serial = ++state->serial, .instance = instance->serial,
                               .slot = lowest(state, instance, 1),
                               .id = lowest(state, instance, 0), .profile = id, .start = start,
                               .size = profile->slices};
        snprintf(new.uuid, sizeof new.uuid, "MIG-%08x-0000-5000-8000-%012x", new.serial,
                 instance->gpu);
        state->compute[state->compute_count++] = new;
        *created = handle_of(COMPUTE_INSTANCE, new.serial);
        return leave(state, SUCCESS, 1);
    }
    return leave(state, INSUFFICIENT_RESOURCES, 0);
}

static ComputeInstance *find_compute(State *state, ComputeInstanceHandle handle) {
    for (int i = 0; i < state->compute_count; i++)
        if (state->compute[i].serial == number_of(handle, COMPUTE_INSTANCE))
            return &state->compute[i];
    return NULL;
}

EXPORT int nvmlComputeInstanceDestroy(ComputeInstanceHandle handle) {
    ENTER(state);
    ComputeInstance *compute = find_compute(state, handle);
    if (!compute) return leave(state, INVALID_ARGUMENT, 0);
    const Instance *instance = instance_by_serial(state, compute->instance);
    if (state->gpus[instance->gpu].lost) return leave(state, GPU_IS_LOST, 0);
    for (int i = 0; i < state->process_count; i++) {
        const Process *process = &state->processes[i];
        if (process->gpu == instance->gpu && process->instance == instance->id
            && process->compute == compute->id)
            return leave(state, IN_USE, 0);
    }
    *compute = state->compute[--state->compute_count];
    return leave(state, SUCCESS, 1);
}

EXPORT int nvmlGpuInstanceGetComputeInstances(GpuInstance handle, unsigned id,
                                              ComputeInstanceHandle *list, unsigned *count) {
    ENTER_INSTANCE(state, handle, instance);
    if (!compute_profile_by_id(state, instance, id)) return leave(state, NOT_SUPPORTED, 0);
    *count = 0;
    for (int i = 0; i < state->compute_count; i++)
        if (state->compute[i].instance == instance->serial && state->compute[i].profile == id)
            list[(*count)++] = handle_of(COMPUTE_INSTANCE, state->compute[i].serial);
    return leave(state, SUCCESS, 0);
}

EXPORT int nvmlGpuInstanceGetComputeInstanceById(GpuInstance handle, unsigned id,
                                                 ComputeInstanceHandle *found) {
    ENTER_INSTANCE(state, handle, instance);
    for (int i = 0; i < state->compute_count; i++) {
        if (state->compute[i].instance != instance->serial || state->compute[i].id != id) continue;
        *found = handle_of(COMPUTE_INSTANCE, state->compute[i].serial);
        return leave(state, SUCCESS, 0);
    }
    return leave(state, NOT_FOUND, 0);
}

EXPORT int nvmlComputeInstanceGetInfo_v2(ComputeInstanceHandle handle, ComputeInfo *info) {
    ENTER(state);
    const ComputeInstance *compute = find_compute(state, handle);
    if (!compute) return leave(state, INVALID_ARGUMENT, 0);
    const Instance *instance = instance_by_serial(state, compute->instance);
    *info = (ComputeInfo){handle_of(DEVICE, instance->gpu),
                          handle_of(GPU_INSTANCE, instance->serial), compute->id, compute->profile,
                          {compute->start, compute->size}};
    return leave(state, SUCCESS, 0);
}

/* ---- MIG devices --------------------------------------------------------------------------- */

EXPORT int nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned *count) {
    ENTER(state);
    unsigned gpu;
    ComputeInstance *mig;
    int code = find_device(state, device, &gpu, &mig);
    if (code == SUCCESS) *count = state->gpus[gpu].mig == 1 ? state->gpus[gpu].most_mig_devices : 0;
    return leave(state, code, 0);
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *found) {
    ENTER_BOARD(state, device, gpu);
    for (int i = 0; i < state->compute_count; i++) {
        const ComputeInstance *compute = &state->compute[i];
        if (compute->slot != index || instance_by_serial(state, compute->instance)->gpu != gpu)
            continue;
        *found = handle_of(MIG_DEVICE, compute->serial);
        return leave(state, SUCCESS, 0);
    }
    return leave(state, NOT_FOUND, 0);
}

static int mig_device(Device device, const char *call, int of_instance, unsigned *id) {
    State *state;
    unsigned gpu;
    ComputeInstance *mig;
    int code = enter(call, &state);
    if (code != SUCCESS) return code;
    code = find_device(state, device, &gpu, &mig);
    if (code == SUCCESS && !mig) code = NOT_SUPPORTED;
    if (code == SUCCESS)
        *id = of_instance ? instance_by_serial(state, mig->instance)->id : mig->id;
    return leave(state, code, 0);
}

EXPORT int nvmlDeviceGetGpuInstanceId(Device device, unsigned *id) {
    return mig_device(device, __func__, 1, id);
}

EXPORT int nvmlDeviceGetComputeInstanceId(Device device, unsigned *id) {
    return mig_device(device, __func__, 0, id);
}
