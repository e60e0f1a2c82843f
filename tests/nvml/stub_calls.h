/* What the calls of the stub share: handles, the entry and exit of a call, look-ups.
 *
 * A handle is a number in a pointer: its kind, and the index of a GPU or the serial number of an
 * instance. Serial numbers are never used again, so a handle of something destroyed stays invalid.
 */
#ifndef STUB_CALLS_H
#define STUB_CALLS_H

#include "stub_state.h"

#include <stddef.h>

typedef struct handle *Device;
typedef struct handle *GpuInstance;
typedef struct handle *ComputeInstanceHandle;

enum { DEVICE = 1, MIG_DEVICE = 2, GPU_INSTANCE = 3, COMPUTE_INSTANCE = 4 };

#define EXPORT __attribute__((visibility("default")))

struct handle *handle_of(unsigned kind, unsigned number);
/* The number in a handle of that kind, NONE when it is of another kind. */
unsigned number_of(struct handle *handle, unsigned kind);

/* Opens the state for a call, or tells with which code to return at once (an injected error). */
int enter(const char *call, State **state);
/* Ends a call. */
int leave(State *state, int code, int changed);

/* A GPU by handle, its own or that of one of its MIG devices; *mig is then the MIG device. */
int find_device(State *state, Device handle, unsigned *gpu, ComputeInstance **mig);
Instance *find_instance(State *state, GpuInstance handle);
Instance *instance_by_serial(State *state, unsigned serial);
Profile *profile_by_id(State *state, unsigned gpu, unsigned id);
/* Whether a process of that GPU runs there; NONE stands for outside of every instance. */
int is_busy(const State *state, unsigned gpu, unsigned instance);
int copy_text(char *target, unsigned length, const char *text);

#define ENTER(state)                                \
    State *state;                                   \
    do {                                            \
        int entered = enter(__func__, &state);      \
        if (entered != SUCCESS) return entered;     \
    } while (0)

/* Opens the state for a call on a GPU or one of its MIG devices. */
#define ENTER_DEVICE(state, handle, gpu, mig)                                 \
    ENTER(state);                                                             \
    unsigned gpu;                                                             \
    ComputeInstance *mig;                                                     \
    do {                                                                      \
        int found = find_device(state, handle, &gpu, &mig);                   \
        if (found != SUCCESS) return leave(state, found, 0);                  \
    } while (0)

#endif
