// Threads of one block as fibres of one host thread: blocks of a grid run one after the other.
//
// A fibre runs until it waits, for its block (__syncthreads) or for lanes of its warp (shuffles, matrix
// instructions); a warp runs until it waits for its block. So nothing runs at the same time, and races are not observed as such; but every other launch
// turns the order of the fibres around and lets asynchronous copies land at once instead of as late as the
// program allows, and each block's shared memory starts as NaN: what depends on any of these becomes a wrong
// value, or one that changes between calls.

#pragma once

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

namespace emulated {

constexpr unsigned kWarp = 32;
constexpr std::size_t kStack = 256 << 10;  // bytes of a fibre, touched as far as it is used
constexpr std::size_t kPage = 4096;
constexpr std::size_t kReason = 256;

// As the backend hands it over.
struct Geometry {
    unsigned grid[3];
    unsigned block[3];
    std::uint64_t shared_memory;
};

struct Copy {
    void* to;
    const void* from;
    unsigned bytes;
    unsigned zeros;
};

enum class State { ready, at_barrier, in_warp, done };

struct Fibre {
    ucontext_t start;
    jmp_buf context;
    uint3 index;
    unsigned number;
    State state;
    bool started;
    std::vector<Copy> open_copies;
    std::vector<std::vector<Copy>> groups;
};

// Lanes that have come to one operation of a warp, with where their operands lie.
struct Meeting {
    const void* operation;
    unsigned mask;
    unsigned arrived;
    void* operands[kWarp];
};

struct Array {
    void* start;
    std::size_t size;
};

struct Machine {
    std::vector<Fibre> fibres;
    std::vector<Array> arrays;  // static shared memory
    std::vector<std::vector<Meeting>> meetings;  // by warp
    Fibre* running = nullptr;
    jmp_buf scheduler;
    unsigned char* stacks = nullptr;
    std::size_t stacks_size = 0;
    unsigned char* shared = nullptr;
    std::size_t shared_size = 0;
    std::uint64_t launches = 0;
    char reason[kReason] = {};

    bool reversed() const { return launches % 2 == 0; }
    bool early() const { return launches % 2 == 0; }
};

inline Machine machine;
inline uint3 thread_index, block_index;
inline dim3 block_size, grid_size;

[[noreturn]] inline void leave() { _longjmp(machine.scheduler, 1); }

// The kernel did what a device would not survive either: the launch ends with this reason.
[[noreturn]] inline void fail(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(machine.reason, kReason, format, arguments);
    va_end(arguments);
    leave();
}

inline void wait(State state) {
    Fibre* self = machine.running;
    self->state = state;
    if (_setjmp(self->context) == 0) leave();
}

inline unsigned lane() { return machine.running->number % kWarp; }

// Every lane of the mask comes with its operands; the last one runs the operation for all of them.
inline void meet(const void* operation, unsigned mask, void* operands, void (*run)(Meeting&)) {
    Fibre* self = machine.running;
    const unsigned bit = 1u << lane();
    if ((mask & bit) == 0) fail("thread %u is not in the mask %#x of its warp's operation", self->number, mask);
    auto& meetings = machine.meetings[self->number / kWarp];
    Meeting* mine = nullptr;
    for (auto& meeting : meetings) {
        if ((meeting.mask & mask) == 0) continue;
        if (meeting.mask != mask || meeting.operation != operation) {
            fail("lanes of warp %u wait in different operations or with different masks (%#x and %#x)",
                 self->number / kWarp, meeting.mask, mask);
        }
        mine = &meeting;
    }
    if (mine == nullptr) {
        meetings.push_back({operation, mask, 0, {}});
        mine = &meetings.back();
    }
    mine->operands[lane()] = operands;
    mine->arrived |= bit;
    if (mine->arrived != mask) {
        wait(State::in_warp);
        return;
    }
    run(*mine);
    for (unsigned other = 0; other < kWarp; ++other) {
        const std::size_t number = self->number / kWarp * kWarp + other;
        if (mask & (1u << other)) machine.fibres[number].state = State::ready;
    }
    meetings.erase(meetings.begin() + (mine - meetings.data()));
}

// Stands behind every static array of shared memory, which it fills with NaN, now and before every block.
struct Poisoned {
    Poisoned(void* start, std::size_t size) {
        machine.arrays.push_back({start, size});
        std::memset(start, 0xFF, size);
    }
};

// The same kernel, started anew on each fibre.
struct Body {
    void (*call)(void*);
    void* arguments;
};
inline Body body;

inline void enter() {
    body.call(body.arguments);
    machine.running->state = State::done;
    leave();
}

inline void resume(Fibre& fibre) {
    machine.running = &fibre;
    thread_index = fibre.index;
    if (_setjmp(machine.scheduler) != 0) return;
    if (fibre.started) _longjmp(fibre.context, 1);
    fibre.started = true;
    setcontext(&fibre.start);
}

// One turn of a warp's threads that can run; whether there were any.
inline bool run_ready(std::size_t warp) {
    bool any = false;
    const std::size_t first = warp * kWarp;
    const std::size_t count = std::min<std::size_t>(kWarp, machine.fibres.size() - first);
    for (std::size_t place = 0; place < count && machine.reason[0] == 0; ++place) {
        Fibre& fibre = machine.fibres[first + (machine.reversed() ? count - 1 - place : place)];
        if (fibre.state != State::ready) continue;
        any = true;
        resume(fibre);
    }
    return any;
}

// Each warp as far as it gets: what it may not touch before the others are there, it touches.
inline void run_warps() {
    const std::size_t count = machine.meetings.size();
    for (std::size_t place = 0; place < count; ++place) {
        while (run_ready(machine.reversed() ? count - 1 - place : place)) {
        }
    }
}

// Whoever is left waits for the block: then all go on. False: some wait for lanes that never come.
inline bool open_barrier() {
    std::size_t waiting = 0, left = 0;
    for (const Fibre& fibre : machine.fibres) {
        waiting += fibre.state == State::at_barrier;
        left += fibre.state != State::done;
    }
    if (left == 0) return false;
    if (waiting != left) {
        std::snprintf(machine.reason, kReason,
                      "deadlock: %zu threads wait for lanes of their warp that do not come, %zu at a barrier",
                      left - waiting, waiting);
        return false;
    }
    for (Fibre& fibre : machine.fibres) {
        if (fibre.state == State::at_barrier) fibre.state = State::ready;
    }
    return true;
}

// A guard page behind it: an access beyond dynamic shared memory ends the process.
inline void provide_shared(std::size_t size) {
    const std::size_t whole = (size + kPage - 1) / kPage * kPage;
    void* memory = mmap(nullptr, whole + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    mprotect(static_cast<unsigned char*>(memory) + whole, kPage, PROT_NONE);
    machine.shared = static_cast<unsigned char*>(memory) + (whole - (size + 15) / 16 * 16);
    machine.shared_size = size;
}

inline void remove_shared() {
    const std::size_t whole = (machine.shared_size + kPage - 1) / kPage * kPage;
    munmap(machine.shared + (machine.shared_size + 15) / 16 * 16 - whole, whole + kPage);
}

inline void prepare(std::size_t threads) {
    machine.reason[0] = 0;
    machine.fibres.resize(threads);
    machine.meetings.resize((threads + kWarp - 1) / kWarp);
    if (machine.stacks_size < threads * kStack) {
        if (machine.stacks != nullptr) munmap(machine.stacks, machine.stacks_size);
        machine.stacks_size = threads * kStack;
        void* memory = mmap(nullptr, machine.stacks_size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) std::abort();
        machine.stacks = static_cast<unsigned char*>(memory);
    }
}

inline void start(Fibre& fibre, unsigned number) {
    fibre.number = number;
    fibre.index = {number % block_size.x, number / block_size.x % block_size.y,
                   number / block_size.x / block_size.y};
    fibre.state = State::ready;
    fibre.started = false;
    fibre.open_copies.clear();
    fibre.groups.clear();
    getcontext(&fibre.start);
    fibre.start.uc_stack.ss_sp = machine.stacks + number * kStack;
    fibre.start.uc_stack.ss_size = kStack;
    fibre.start.uc_link = nullptr;
    makecontext(&fibre.start, enter, 0);
}

inline void run_block() {
    std::memset(machine.shared, 0xFF, machine.shared_size);
    for (const Array& array : machine.arrays) std::memset(array.start, 0xFF, array.size);
    for (auto& meetings : machine.meetings) meetings.clear();
    for (unsigned number = 0; number < machine.fibres.size(); ++number) start(machine.fibres[number], number);
    do {
        run_warps();
    } while (machine.reason[0] == 0 && open_barrier());
}

// All blocks of the grid; nullptr, or why it ended early.
inline const char* run_grid(const Geometry& geometry) {
    const auto& [grid, block, bytes] = geometry;
    grid_size = {grid[0], grid[1], grid[2]};
    block_size = {block[0], block[1], block[2]};
    ++machine.launches;
    prepare(std::size_t{block[0]} * block[1] * block[2]);
    provide_shared(bytes);
    for (unsigned z = 0; z < grid[2]; ++z) {
        for (unsigned y = 0; y < grid[1]; ++y) {
            for (unsigned x = 0; x < grid[0] && machine.reason[0] == 0; ++x) {
                block_index = {x, y, z};
                run_block();
            }
        }
    }
    remove_shared();
    return machine.reason[0] == 0 ? nullptr : machine.reason;
}

}  // namespace emulated

#define threadIdx emulated::thread_index
#define blockIdx emulated::block_index
#define blockDim emulated::block_size
#define gridDim emulated::grid_size
