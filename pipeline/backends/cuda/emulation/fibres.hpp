// Threads of one block as fibres of one host thread: blocks of a grid run one after the other.
//
// A fibre runs until it waits, for its block (__syncthreads) or for lanes of its warp (shuffles, matrix
// instructions), or looks at one value again and again; a warp runs until it waits for its block. Nothing runs
// at the same time: `shadow.hpp` finds races by what orders accesses. In addition every other launch turns the
// order of the fibres around and lets asynchronous copies land at once instead of as late as the program
// allows, later launches of kernels without atomics run their blocks in random order, and each block's shared
// memory starts as NaN: what depends on any of these becomes a wrong value, or one that changes between calls.

#pragma once

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "shadow.hpp"

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned first = 1, unsigned second = 1, unsigned third = 1) : x(first), y(second), z(third) {}
    constexpr dim3(uint3 sizes) : x(sizes.x), y(sizes.y), z(sizes.z) {}
};

#pragma GCC visibility push(hidden)

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
    bool early;  // done when it was issued
};

enum class State { ready, at_barrier, in_warp, converging, waiting, done };

struct Fibre {
    ucontext_t start;
    jmp_buf context;
    uint3 index;
    unsigned number;
    State state;
    const void* place;  // where it converges with others of its warp, and
    unsigned active;    // with which ones it did
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
    void (*run)(Meeting&);
};

struct Array {
    void* start;
    std::size_t size, itemsize;
    const char* name;
};

constexpr unsigned kFruitless = 1000;  // rounds in which threads only wait for another block

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
    unsigned votes = 0, votes_before = 0;  // at this barrier, at the last one
    unsigned fruitless = 0;
    unsigned chance = 0;
    char reason[kReason] = {};

    bool reversed() const { return launches % 2 == 0; }
    bool early() const { return launches % 2 == 0; }
};

inline Machine machine;
struct Builtins {
    uint3 thread_index, block_index;
    dim3 block_size, grid_size;
};
inline Builtins builtins;

[[noreturn]] UNWATCHED inline void leave() {
    shadow::memory.watching = false;
    shadow::settle();
    _longjmp(machine.scheduler, 1);
}

// The kernel did what a device would not survive either: the launch ends with this reason.
[[noreturn]] UNWATCHED inline void fail(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(machine.reason, kReason, format, arguments);
    va_end(arguments);
    leave();
}

UNWATCHED inline void wait(State state) {
    Fibre* self = machine.running;
    self->state = state;
    if (_setjmp(self->context) == 0) leave();
}

UNWATCHED inline unsigned lane() { return machine.running->number % kWarp; }

// Lanes of a warp that have not ended.
UNWATCHED inline unsigned living(std::size_t warp) {
    unsigned mask = 0;
    for (unsigned other = 0; other < kWarp && warp * kWarp + other < machine.fibres.size(); ++other) {
        if (machine.fibres[warp * kWarp + other].state != State::done) mask |= 1u << other;
    }
    return mask;
}

// What all lanes of the mask have come to that have not ended: it runs for all of them.
UNWATCHED inline bool complete(std::size_t warp, Meeting& meeting) {
    if (meeting.arrived != (meeting.mask & living(warp))) return false;
    meeting.mask = meeting.arrived;
    meeting.run(meeting);
    for (unsigned other = 0; other < kWarp; ++other) {
        if (meeting.mask & (1u << other)) machine.fibres[warp * kWarp + other].state = State::ready;
    }
    auto& meetings = machine.meetings[warp];
    meetings.erase(meetings.begin() + (&meeting - meetings.data()));
    return true;
}

// Every lane of the mask comes with its operands; the last one runs the operation for all of them.
UNWATCHED inline void meet(const void* operation, unsigned mask, void* operands, void (*run)(Meeting&)) {
    const shadow::Unwatched section;
    shadow::settle();
    Fibre* self = machine.running;
    const unsigned bit = 1u << lane();
    const std::size_t warp = self->number / kWarp;
    if ((mask & bit) == 0) fail("thread %u is not in the mask %#x of its warp's operation", self->number, mask);
    auto& meetings = machine.meetings[warp];
    Meeting* mine = nullptr;
    for (auto& meeting : meetings) {
        if ((meeting.mask & mask) == 0) continue;
        if (meeting.mask != mask || meeting.operation != operation) {
            fail("lanes of warp %zu wait in different operations or with different masks (%#x and %#x)", warp,
                 meeting.mask, mask);
        }
        mine = &meeting;
    }
    if (mine == nullptr) {
        meetings.push_back({operation, mask, 0, {}, run});
        mine = &meetings.back();
    }
    mine->operands[lane()] = operands;
    mine->arrived |= bit;
    if (!complete(warp, *mine)) wait(State::in_warp);
}

// The lanes of a warp that come to the same place: all that can, whichever way the others went.
UNWATCHED inline unsigned converged(const void* place) {
    const shadow::Unwatched section;
    machine.running->place = place;
    wait(State::converging);
    return machine.running->active;
}

// Nobody else of the warp can run: those at one place go on together. Whether there were any.
UNWATCHED inline bool release_converged(std::size_t warp) {
    const std::size_t first = warp * kWarp, last = std::min<std::size_t>(first + kWarp, machine.fibres.size());
    const void* place = nullptr;
    unsigned mask = 0;
    for (std::size_t number = first; number < last; ++number) {
        const Fibre& fibre = machine.fibres[number];
        if (fibre.state != State::converging || (mask != 0 && fibre.place != place)) continue;
        place = fibre.place;
        mask |= 1u << (number - first);
    }
    for (std::size_t number = first; number < last; ++number) {
        if ((mask >> (number - first) & 1u) == 0) continue;
        machine.fibres[number].active = mask;
        machine.fibres[number].state = State::ready;
    }
    return mask != 0;
}

UNWATCHED inline shadow::Region shared_region(const Array& array) {
    const auto itemsize = static_cast<unsigned>(array.itemsize);
    const unsigned cell = itemsize % 4 == 0 ? 4 : itemsize % 2 == 0 ? 2 : 1;
    return {array.name, reinterpret_cast<std::uintptr_t>(array.start), array.size, itemsize, cell,
            shadow::Kind::shared, nullptr};
}

// Stands behind every static array of shared memory, which it fills with NaN, now and before every block.
struct Poisoned {
    UNWATCHED Poisoned(volatile void* array, std::size_t size, std::size_t itemsize, const char* name) {
        const shadow::Unwatched section;
        void* start = const_cast<void*>(array);
        machine.arrays.push_back({start, size, itemsize, name});
        shadow::add(shared_region(machine.arrays.back()));
        std::memset(start, 0xFF, size);
    }
};

// The same kernel, started anew on each fibre.
struct Body {
    void (*call)(void*);
    void* arguments;
};
inline Body body;

UNWATCHED inline void enter() {
    shadow::memory.watching = true;
    body.call(body.arguments);
    shadow::memory.watching = false;
    machine.running->state = State::done;
    auto& meetings = machine.meetings[machine.running->number / kWarp];
    for (std::size_t place = meetings.size(); place-- > 0;) complete(machine.running->number / kWarp, meetings[place]);
    leave();
}

UNWATCHED inline void resume(Fibre& fibre) {
    machine.running = &fibre;
    builtins.thread_index = fibre.index;
    shadow::memory.me = fibre.number;
    shadow::memory.waits = 0;
    if (_setjmp(machine.scheduler) != 0) return;
    if (fibre.started) {
        shadow::memory.watching = true;
        _longjmp(fibre.context, 1);
    }
    fibre.started = true;
    setcontext(&fibre.start);
}

// One turn of a warp's threads that can run; whether there were any.
UNWATCHED inline bool run_ready(std::size_t warp) {
    bool any = false;
    const std::size_t first = warp * kWarp;
    const std::size_t count = std::min<std::size_t>(kWarp, machine.fibres.size() - first);
    for (std::size_t place = 0; place < count && machine.reason[0] == 0; ++place) {
        Fibre& fibre = machine.fibres[first + (machine.reversed() ? count - 1 - place : place)];
        if (fibre.state != State::ready) continue;
        any = true;
        resume(fibre);
        if (fibre.state != State::waiting) machine.fruitless = 0;
    }
    return any;
}

// Each warp as far as it gets: what it may not touch before the others are there, it touches.
UNWATCHED inline void run_warps() {
    const std::size_t count = machine.meetings.size();
    for (std::size_t place = 0; place < count; ++place) {
        const std::size_t warp = machine.reversed() ? count - 1 - place : place;
        while (run_ready(warp) || (machine.reason[0] == 0 && release_converged(warp))) {
        }
    }
}

// Whoever is left waits for the block: then all go on. False: some wait for lanes that never come.
UNWATCHED_COLD inline bool open_barrier() {
    std::size_t waiting = 0, left = 0, looking = 0;
    for (Fibre& fibre : machine.fibres) {
        waiting += fibre.state == State::at_barrier;
        looking += fibre.state == State::waiting;
        left += fibre.state != State::done;
        if (fibre.state == State::waiting) fibre.state = State::ready;
    }
    if (left == 0) return false;
    if (looking != 0 && ++machine.fruitless < kFruitless) return true;
    if (looking != 0) {
        const auto& [x, y, z] = builtins.block_index;
        std::snprintf(machine.reason, kReason,
                      "block (%u, %u, %u) waits for a value that no thread of it writes: blocks run one after the"
                      " other here, it needs a device", x, y, z);
        return false;
    }
    if (waiting != left) {
        std::snprintf(machine.reason, kReason,
                      "deadlock: %zu threads wait for lanes of their warp that do not come, %zu at a barrier",
                      left - waiting, waiting);
        return false;
    }
    machine.votes_before = std::exchange(machine.votes, 0);
    shadow::barrier();
    for (Fibre& fibre : machine.fibres) {
        if (fibre.state == State::at_barrier) fibre.state = State::ready;
    }
    return true;
}

// A guard page behind it: an access beyond dynamic shared memory ends the process.
UNWATCHED_COLD inline void provide_shared(std::size_t size) {
    const std::size_t whole = (size + kPage - 1) / kPage * kPage;
    void* memory = mmap(nullptr, whole + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    mprotect(static_cast<unsigned char*>(memory) + whole, kPage, PROT_NONE);
    machine.shared = static_cast<unsigned char*>(memory) + (whole - (size + 15) / 16 * 16);
    machine.shared_size = size;
}

UNWATCHED inline void remove_shared() {
    const std::size_t whole = (machine.shared_size + kPage - 1) / kPage * kPage;
    munmap(machine.shared + (machine.shared_size + 15) / 16 * 16 - whole, whole + kPage);
}

UNWATCHED_COLD inline void prepare(std::size_t threads) {
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

UNWATCHED_COLD inline void start(Fibre& fibre, unsigned number) {
    fibre.number = number;
    fibre.index = {number % builtins.block_size.x, number / builtins.block_size.x % builtins.block_size.y,
                   number / builtins.block_size.x / builtins.block_size.y};
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

UNWATCHED inline void run_block() {
    const auto& [x, y, z] = builtins.block_index;
    shadow::begin_block(x + builtins.grid_size.x * (y + builtins.grid_size.y * z));
    machine.votes = machine.fruitless = 0;
    std::memset(machine.shared, 0xFF, machine.shared_size);
    for (const Array& array : machine.arrays) std::memset(array.start, 0xFF, array.size);
    for (auto& meetings : machine.meetings) meetings.clear();
    for (unsigned number = 0; number < machine.fibres.size(); ++number) start(machine.fibres[number], number);
    do {
        run_warps();
    } while (machine.reason[0] == 0 && open_barrier());
}

// Numbers of the blocks: in order at first and where blocks may wait for each other.
UNWATCHED_COLD inline std::vector<unsigned> order_of_blocks(const Geometry& geometry) {
    const auto& [grid, block, bytes] = geometry;
    std::vector<unsigned> order(std::size_t{grid[0]} * grid[1] * grid[2]);
    for (unsigned number = 0; number < order.size(); ++number) order[number] = number;
    if (machine.launches == 1 || shadow::memory.synchronizes) return order;
    if (getentropy(&machine.chance, sizeof machine.chance) != 0) std::abort();
    for (std::size_t left = order.size(); left > 1; --left) {
        std::swap(order[left - 1], order[rand_r(&machine.chance) % left]);
    }
    return order;
}

UNWATCHED_COLD inline void begin_shadow(const Geometry& geometry) {
    shadow::memory.stacks = reinterpret_cast<std::uintptr_t>(machine.stacks);
    shadow::memory.stacks_size = machine.stacks_size;
    shadow::memory.builtins = reinterpret_cast<std::uintptr_t>(&builtins);
    shadow::memory.builtins_size = sizeof builtins;
    std::vector<shadow::Region> shared;
    for (const Array& array : machine.arrays) shared.push_back(shared_region(array));
    if (geometry.shared_memory != 0) {
        shared.push_back(shared_region({machine.shared, machine.shared_size, 4, "dynamic shared memory"}));
    }
    shadow::begin_launch(geometry.grid, machine.fibres.size(), shared);
}

// While a kernel runs, a trap is that of a misaligned access.
struct Traps {
    struct sigaction before;
    UNWATCHED Traps() {
        struct sigaction action = {};
        action.sa_handler = [](int) UNWATCHED { shadow::report_misaligned(); };
        action.sa_flags = SA_NODEFER;
        sigaction(SIGILL, &action, &before);
    }
    UNWATCHED ~Traps() { sigaction(SIGILL, &before, nullptr); }
};

// All blocks of the grid; nullptr, or why it ended early.
UNWATCHED_COLD inline const char* run_grid(const Geometry& geometry) {
    const auto& [grid, block, bytes] = geometry;
    builtins.grid_size = {grid[0], grid[1], grid[2]};
    builtins.block_size = {block[0], block[1], block[2]};
    ++machine.launches;
    prepare(std::size_t{block[0]} * block[1] * block[2]);
    provide_shared(bytes);
    const auto order = order_of_blocks(geometry);
    begin_shadow(geometry);
    const Traps traps;
    for (const unsigned number : order) {
        if (machine.reason[0] != 0) break;
        builtins.block_index = {number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]};
        run_block();
    }
    shadow::end_launch();
    remove_shared();
    return machine.reason[0] == 0 ? nullptr : machine.reason;
}

}  // namespace emulated

#pragma GCC visibility pop

[[noreturn]] UNWATCHED inline void emulated::shadow::stop() { fail("an access outside of all tensors"); }
UNWATCHED inline void emulated::shadow::give_way() { wait(State::waiting); }

// What the kernel may access, before a launch; and what it did wrong, after one: text of the fault, nullptr beyond
// the last.
extern "C" UNWATCHED __attribute__((weak, visibility("default"))) void kernelmill_watch(
    const char* name, void* start, std::size_t size, unsigned itemsize, bool guarded) {
    auto& tensors = emulated::shadow::memory.tensors;
    if (start == nullptr) return tensors.clear();
    tensors.push_back({name, reinterpret_cast<std::uintptr_t>(start), size, itemsize, std::min(itemsize, 4u),
                       emulated::shadow::Kind::tensor, nullptr, guarded});
}
extern "C" UNWATCHED __attribute__((weak, visibility("default"))) const char* kernelmill_fault(
    unsigned number, unsigned* kind) {
    auto& faults = emulated::shadow::memory.faults;
    if (number >= faults.size()) {
        faults.clear();
        return nullptr;
    }
    *kind = static_cast<unsigned>(faults[number].kind);
    return faults[number].text;
}

// No macros: host code may have variables of these names.
static constexpr uint3& threadIdx = emulated::builtins.thread_index;
static constexpr uint3& blockIdx = emulated::builtins.block_index;
static constexpr dim3& blockDim = emulated::builtins.block_size;
static constexpr dim3& gridDim = emulated::builtins.grid_size;
