/* The state of the stub driver: what stands, read from and written to one text file under a lock.
 *
 * The layout of the file is told in world.py, which writes it. It holds no more than a test world
 * needs, and every table of MIG facts comes from there: this code only knows what a rule is.
 */
#ifndef STUB_STATE_H
#define STUB_STATE_H

#define NONE 0xFFFFFFFFu
#define TEXT 96
#define MOST_GPUS 32
#define MOST_PROFILES 24
#define MOST_PLACEMENTS 16
#define MOST_ROWS 512
#define MOST_READINGS 2048

enum { DECODER, ENCODER, JPEG, OFA, ENGINES };

/* Return codes, as nvml.h numbers them. */
enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, TIMED_OUT = 10, GPU_IS_LOST = 15, RESET_REQUIRED = 16, IN_USE = 19,
    INSUFFICIENT_RESOURCES = 23, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN_ERROR = 999
};

/* What a change of MIG mode needs. */
enum { AT_ONCE = 0, RESET_BY_DRIVER = 1, RESET_BY_USER = 2 };

typedef struct {
    char uuid[TEXT], bus_id[32], name[TEXT];
    unsigned minor, pci_device, pci_subsystem;
    unsigned long long memory, reserved;
    int mig, pending, change, lost;
    unsigned most_mig_devices, engines[ENGINES];
} Gpu;

typedef struct { unsigned start, instance_id; } Place;

typedef struct {
    unsigned gpu, index, id, slices, most, processors, copy, engines[ENGINES], size;
    unsigned long long memory_mib;
    Place places[MOST_PLACEMENTS];
    int place_count;
    char name[TEXT];
} Profile;

typedef struct {
    unsigned gpu, profile, index, id, slices, processors;
    unsigned starts[MOST_PLACEMENTS];
    int start_count;
} ComputeProfile;

typedef struct { unsigned serial, gpu, id, profile, start, size; } Instance;

typedef struct {
    unsigned serial, instance, slot, id, profile, start, size;
    char uuid[TEXT];
} ComputeInstance;

typedef struct {
    unsigned gpu, instance, compute, pid;
    unsigned long long memory;
    char kind; /* C compute, G graphics, M a client of MPS */
} Process;

typedef struct {
    unsigned number, gpu, instance, compute;
    unsigned long long type, data;
} Event;

/* What a call tells of a GPU: without it the GPU does not support the call. */
typedef struct {
    unsigned gpu;
    char name[TEXT];
    unsigned long long value;
} Reading;

typedef struct {
    unsigned gpu;
    char name[TEXT]; /* as that of a reading */
    unsigned long long microseconds, value;
} Sample;

typedef struct {
    unsigned gpu, pid;
    unsigned long long microseconds;
    unsigned processors, memory, encoder, decoder;
} ProcessSample;

typedef struct { char call[TEXT]; int code, times; } Injected;

typedef struct {
    char driver[TEXT];
    int cuda;
    unsigned serial;
    Gpu gpus[MOST_GPUS];
    Profile profiles[MOST_ROWS];
    ComputeProfile compute_profiles[MOST_ROWS];
    Instance instances[MOST_ROWS];
    ComputeInstance compute[MOST_ROWS];
    Process processes[MOST_ROWS];
    Event events[MOST_ROWS];
    Reading readings[MOST_READINGS];
    Sample samples[MOST_ROWS];
    ProcessSample process_samples[MOST_ROWS];
    Injected injected[MOST_ROWS];
    int clients[MOST_ROWS];
    int gpu_count, profile_count, compute_profile_count, instance_count, compute_count,
        process_count, event_count, reading_count, sample_count, process_sample_count,
        injected_count, client_count;
} State;

/* Locks and reads the file. Returns NULL when there is none or it cannot be understood. */
State *state_open(void);
/* Writes the state when it was changed, unlocks and frees. */
void state_close(State *state, int changed);

#endif
