// A library with NVML's functions and signatures (nvml.h), whose answers stand in the file answers.txt beside it: a
// line `function device value` each; a function without a line for the device is not supported (3).
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace {
const std::uintptr_t BASE = 0x700000000000;  // a pointer that 32 bits do not hold

std::string answers() {
    Dl_info here;
    dladdr((void*)&answers, &here);
    const std::string library = here.dli_fname;
    return library.substr(0, library.rfind('/') + 1) + "answers.txt";
}

bool answer(const char* function, void* handle, std::string& value) {
    std::ifstream lines(answers());
    std::string line, name;
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        unsigned device;
        words >> name >> device;
        if (name == function && BASE + device == (std::uintptr_t)handle) {
            std::getline(words >> std::ws, value);
            return true;
        }
    }
    return false;
}

template <class Number>
int number(const char* function, void* handle, Number* out) {
    std::string value;
    if (!answer(function, handle, value)) return 3;
    if (value.rfind("error ", 0) == 0) return std::stoi(value.substr(6));
    *out = (Number)std::stoull(value, nullptr, 0);
    return 0;
}

int text(const char* function, void* handle, char* out, unsigned size) {
    std::string value;
    if (!answer(function, handle, value)) return 3;
    if (value.size() + 1 > size) return 7;
    std::strcpy(out, value.c_str());
    return 0;
}
}  // namespace

struct Process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu, compute;
};

extern "C" {
int nvmlInitWithFlags(unsigned) {
    int code = 0;
    number("nvmlInit", (void*)BASE, &code);
    return code;
}
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { return number("nvmlDeviceGetCount_v2", (void*)BASE, count); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
    unsigned count = 0;
    nvmlDeviceGetCount_v2(&count);
    *handle = (void*)(BASE + index);
    return index < count ? 0 : 2;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
    *handle = (void*)(BASE + 100);
    return std::string(uuid) == "MIG-1" ? 0 : 6;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* part, void** whole) {
    *whole = (void*)BASE;
    return (std::uintptr_t)part == BASE + 100 ? 0 : 2;
}
int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
    int both = 0;
    const int code = number("nvmlDeviceGetCudaComputeCapability", handle, &both);
    *major = both / 10;
    *minor = both % 10;
    return code;
}
int nvmlDeviceGetName(void* handle, char* out, unsigned size) {
    return text("nvmlDeviceGetName", handle, out, size);
}
int nvmlDeviceGetUUID(void* handle, char* out, unsigned size) {
    return text("nvmlDeviceGetUUID", handle, out, size);
}
int nvmlDeviceGetClockInfo(void* handle, int kind, unsigned* out) {
    return number(kind == 1 ? "sm_clock" : "memory_clock", handle, out);
}
int nvmlDeviceGetMaxClockInfo(void* handle, int kind, unsigned* out) {
    return number(kind == 1 ? "highest_sm_clock" : "highest_memory_clock", handle, out);
}
int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* out) {
    return sensor ? 2 : number("nvmlDeviceGetTemperature", handle, out);
}
#define NUMBER(function, type) \
    int function(void* handle, type* out) { return number(#function, handle, out); }
NUMBER(nvmlDeviceGetPowerUsage, unsigned)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned)
NUMBER(nvmlDeviceGetPerformanceState, unsigned)
NUMBER(nvmlDeviceGetPersistenceMode, unsigned)
NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long)
#ifndef OLD
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long)
#endif
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, Process* out) {
    std::string value;
    if (!answer("processes", handle, value)) return 3;
    std::istringstream words(value);
    unsigned found = 0, pid;
    const unsigned room = *count;
    while (words >> pid)
        if (found++ < room) out[found - 1] = {pid, 1ull << 33, 0, 0};
    *count = found;
    return found > room ? 7 : 0;
}
}
