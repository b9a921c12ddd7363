// Stands for NVIDIA's driver (libcuda.so.1): answers like an H200, and does at cuInit what drivers from
// version 570 on do. Every entry point that is not here is generated and answers success.
//
// CUDA_STAND_IN_LOG   if set, calls are written to stderr
// CUDA_STAND_IN_FAIL  NAME=ERROR or NAME=ERROR:NUMBER, separated by commas: from that call on (1 if absent)
// CUDA_STAND_IN_HANG  name of a function that never returns
// CUDA_STAND_IN_NODES paths separated by colons, opened for reading and writing at cuInit
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

typedef int Result;
enum { OPERATING_SYSTEM = 304, MPS_CONNECTION_FAILED = 805, NOT_FOUND = 500, INVALID_VALUE = 1, OUT_OF_MEMORY = 2 };

static Result called(const char* name) {
  static struct { const char* name; int count; } calls[1024];
  int number = 0;
  for (int i = 0; i < 1024; ++i) {
    if (calls[i].name == NULL) calls[i].name = name;
    if (strcmp(calls[i].name, name) == 0) { number = ++calls[i].count; break; }
  }
  if (getenv("CUDA_STAND_IN_LOG")) fprintf(stderr, "[driver] %s\n", name);
  const char* hang = getenv("CUDA_STAND_IN_HANG");
  while (hang != NULL && strcmp(hang, name) == 0) pause();
  const char* fail = getenv("CUDA_STAND_IN_FAIL");
  size_t length = strlen(name);
  for (const char* at = fail; at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    int error = 0, first = 1;
    if (strncmp(at, name, length) == 0 && sscanf(at + length, "=%d:%d", &error, &first) >= 1 && number >= first)
      return error;
  }
  return 0;
}
#define CALLED(name) do { Result error_ = called(name); if (error_) return error_; } while (0)

static void* name_thread(void* failed) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%ld/comm", (long)syscall(SYS_gettid));
  int file = open(path, O_WRONLY);
  if (file < 0 || write(file, "cuda-EvtHandlr", 14) != 14) *(int*)failed = 1;
  if (file >= 0) close(file);
  return NULL;
}

static int socket_of(const char* name, size_t length, struct sockaddr_un* address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path, name, length);
  return socket(AF_UNIX, SOCK_STREAM, 0);
}

Result cuInit(unsigned flags) {
  (void)flags;
  CALLED("cuInit");
  static int initialized = 0;
  if (initialized) return 0;
  pthread_t thread;
  int failed = 0;
  if (pthread_create(&thread, NULL, name_thread, &failed) != 0) return OPERATING_SYSTEM;
  pthread_join(thread, NULL);
  if (failed) return OPERATING_SYSTEM;
  struct sockaddr_un address;
  const char* server = "/nonexistent/nvidia-mps/control";
  int client = socket_of(server, strlen(server), &address);
  if (client < 0) return OPERATING_SYSTEM;
  if (connect(client, (struct sockaddr*)&address, sizeof address) == 0 || (errno != ENOENT && errno != ECONNREFUSED))
    return MPS_CONNECTION_FAILED;
  close(client);
  void* reserved = mmap(NULL, (size_t)1 << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return OUT_OF_MEMORY;
  int memory = memfd_create("driver", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, 1 << 20) != 0) return OPERATING_SYSTEM;
  char name[32] = "";
  snprintf(name + 1, sizeof name - 1, "cuda-%ld", (long)getpid());
  int listener = socket_of(name, 1 + strlen(name + 1), &address);
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, sizeof address) != 0) return OPERATING_SYSTEM;
  char* nodes = getenv("CUDA_STAND_IN_NODES") ? strdup(getenv("CUDA_STAND_IN_NODES")) : NULL;
  for (char* node = nodes ? strtok(nodes, ":") : NULL; node != NULL; node = strtok(NULL, ":"))
    if (open(node, O_RDWR | O_CLOEXEC) < 0) return OPERATING_SYSTEM;
  free(nodes);
  initialized = 1;
  return 0;
}

static void* current = NULL;

Result cuGetExportTable(void** table, const void* id) { (void)id; *table = NULL; return NOT_FOUND; }
Result cuDriverGetVersion(int* version) { *version = 13000; return 0; }
Result cuDeviceGetCount(int* count) { *count = 1; return 0; }
Result cuDeviceGet(int* device, int ordinal) { *device = ordinal; return 0; }
Result cuDeviceGetName(char* name, int length, int device) { (void)device; snprintf(name, length, "NVIDIA H200"); return 0; }
Result cuCtxGetCurrent(void** context) { *context = current; return 0; }
Result cuCtxSetCurrent(void* context) { CALLED("cuCtxSetCurrent"); current = context; return 0; }
Result cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  CALLED("cuDevicePrimaryCtxRetain");
  *context = (void*)0x1111;
  return 0;
}
Result cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 75: *value = 9; break;                       // compute capability, major
    case 76: *value = 0; break;                       // minor
    case 16: *value = 132; break;                     // multiprocessors
    case 81: case 97: *value = 232448; break;         // shared memory per multiprocessor, per block after opting in
    case 8: *value = 49152; break;                    // shared memory per block
    case 10: *value = 32; break;                      // warp
    case 12: *value = 65536; break;                   // registers per block
    default: *value = 1024;
  }
  return 0;
}
Result cuCtxGetDevice(int* device) { *device = 0; return 0; }
Result cuLibraryLoadData(void** library, const void* code) { (void)code; CALLED("cuLibraryLoadData"); *library = (void*)0x2222; return 0; }
Result cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  (void)library, (void)name;
  CALLED("cuLibraryGetKernel");
  *kernel = (void*)0x3333;
  return 0;
}
Result cuLibraryGetKernelCount(unsigned* count, void* library) { (void)library; *count = 1; return 0; }
Result cuKernelGetFunction(void** function, void* kernel) { (void)kernel; *function = (void*)0x4444; return 0; }
Result cuStreamGetCtx(void* stream, void** context) { (void)stream; *context = current; return 0; }
Result cuStreamGetDevice(void* stream, int* device) { (void)stream; *device = 0; return 0; }
Result cuStreamIsCapturing(void* stream, int* status) { (void)stream; *status = 0; return 0; }
Result cuKernelSetAttribute(int attribute, int value, void* kernel, int device) {
  (void)kernel, (void)device;
  CALLED("cuKernelSetAttribute");
  if (getenv("CUDA_STAND_IN_LOG")) fprintf(stderr, "[driver] attribute %d = %d\n", attribute, value);
  return 0;
}
Result cuFuncSetAttribute(void* function, int attribute, int value) { return cuKernelSetAttribute(attribute, value, function, 0); }
Result cuKernelGetAttribute(int* value, int attribute, void* kernel, int device) {
  (void)attribute, (void)kernel, (void)device;
  *value = 64;
  return 0;
}
Result cuKernelGetParamInfo(void* kernel, size_t index, size_t* offset, size_t* size) {
  (void)kernel;
  const char* count = getenv("CUDA_STAND_IN_PARAMETERS");
  if (index >= (size_t)(count ? atoi(count) : 4)) return INVALID_VALUE;
  *offset = 8 * index;
  if (size) *size = 8;
  return 0;
}
Result cuModuleLoadData(void** module, const void* image) { (void)image; CALLED("cuModuleLoadData"); *module = (void*)0x5555; return 0; }
Result cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module, (void)name;
  CALLED("cuModuleGetFunction");
  *function = (void*)0x6666;
  return 0;
}
Result cuFuncGetAttribute(int* value, int attribute, void* function) {
  (void)function;
  *value = attribute == 0 ? 1024 : attribute == 4 ? 64 : 0;  // threads per block, registers
  return 0;
}
Result cuGetErrorName(int error, const char** name) {
  static const struct { int error; const char* name; } known[] = {
    {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {304, "CUDA_ERROR_OPERATING_SYSTEM"},
    {500, "CUDA_ERROR_NOT_FOUND"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {805, "CUDA_ERROR_MPS_CONNECTION_FAILED"}};
  *name = "CUDA_ERROR_UNKNOWN";
  for (unsigned i = 0; i < sizeof known / sizeof *known; ++i)
    if (known[i].error == error) *name = known[i].name;
  return 0;
}
Result cuGetErrorString(int error, const char** text) { return cuGetErrorName(error, text); }

static Result launched(const char* name, const unsigned* grid, const unsigned* block, unsigned shared, unsigned attributes, void** parameters) {
  CALLED(name);
  if (getenv("CUDA_STAND_IN_LOG")) {
    fprintf(stderr, "[driver] grid %u %u %u block %u %u %u shared %u attributes %u parameters", grid[0], grid[1],
            grid[2], block[0], block[1], block[2], shared, attributes);
    const char* count = getenv("CUDA_STAND_IN_PARAMETERS");
    for (int i = 0; parameters != NULL && i < (count ? atoi(count) : 4); ++i)
      fprintf(stderr, " %#lx", *(unsigned long*)parameters[i]);
    fprintf(stderr, "\n");
  }
  return 0;
}
struct Config { unsigned grid[3], block[3], shared; void* stream; void* attributes; unsigned count; };
Result cuLaunchKernelEx(const struct Config* config, void* function, void** parameters, void** extra) {
  (void)function, (void)extra;
  return launched("cuLaunchKernelEx", config->grid, config->block, config->shared, config->count, parameters);
}
Result cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void* stream, void** parameters, void** extra) {
  (void)function, (void)stream, (void)extra;
  unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  return launched("cuLaunchKernel", grid, block, shared, 0, parameters);
}
