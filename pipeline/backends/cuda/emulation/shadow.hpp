// A shadow of global and shared memory: finds data races, and accesses outside of all memory of the kernel.
//
// The host's compiler calls `__tsan_read4(address)` and the like before every access of the source
// (GCC's -fsanitize=thread, of which nothing but these calls is used). Each cell of memory remembers its last
// writer and some of its readers, with the time. Two accesses race if they come from two threads, one of them
// changes bits, not both are atomic or volatile, and nothing orders them. What orders them, after the memory
// model of the PTX ISA 9.0:
//
// - a barrier of the block, and __syncwarp among its lanes; a shuffle, a vote or a matrix instruction does not;
// - a fence before an atomic or volatile access that another thread's atomic or volatile access follows. The
//   fence may stand before a barrier that lies between; the side that reads needs none.
//
// A plain read does not race with a compare-and-swap: loops around one begin with it, as in the CUDA programming
// guide.
//
// A store of the bits that are there already is no change: all threads may set one flag to the same value.

#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define UNWATCHED __attribute__((no_sanitize("thread")))
#define UNWATCHED_COLD __attribute__((no_sanitize("thread"), noinline, cold))  // small, quick to compile

extern "C" char __ehdr_start[] __attribute__((visibility("hidden")));  // this library, from its first byte
extern "C" char _end[] __attribute__((visibility("hidden")));          // to its last

#pragma GCC visibility push(hidden)

namespace emulated::shadow {

using Address = std::uintptr_t;

constexpr unsigned kLanes = 32;
constexpr std::uint32_t kAtomic = 1u << 31;  // of an event's thread
constexpr std::uint32_t kCompared = 1u << 30;  // the same, by a compare-and-swap
constexpr std::uint32_t kFlags = kAtomic | kCompared;
constexpr unsigned kMostFaults = 4;          // of each kind
constexpr Address kNear = 4096;              // bytes of guards around a tensor
constexpr Address kPageSize = 4096;
constexpr Address kStretch = 1 << 20;         // of memory that nobody told of
constexpr unsigned kLooks = 64;              // at one value, until other threads go on

// An access: which thread of the grid, counted from 1, and when. Time advances whenever threads synchronize.
struct Event {
    std::uint32_t thread, time;
};

// Readers: the last one, the last one of another warp, and one of an earlier block.
struct Cell {
    Event writer, reader, other, earlier;
};

enum class Kind { tensor, shared, variable, unknown };

struct Region {
    const char* name;
    Address start;
    std::size_t size;
    unsigned itemsize, cell;
    Kind kind;
    Cell* cells;
    bool guarded = false;  // nothing else lies within `kNear` of it
};

enum class FaultKind : unsigned { outside, race, misaligned };

struct Fault {
    FaultKind kind;
    char text[320];
};

// What a thread knows to have happened: of its block up to `base`, of its warp, and what it heard from others
// by atomics: the first so many releases of a location.
struct Heard {
    unsigned location, releases;
};
struct Knowledge {
    std::uint32_t time;
    std::uint32_t base;
    std::uint32_t lanes[kLanes];
};
struct Thread {
    Knowledge knows;
    Knowledge fences[2];  // by scope: block, device; time 0 is none
    std::vector<Heard> heard;
};
struct Release {
    std::uint32_t thread;
    bool device;
    Knowledge knows;
    int published;  // which of `publications`; -1 is none
};
struct Location {
    Address address;
    std::vector<Release> releases;
    std::vector<Heard> heard;
};

struct Memory {
    bool watching = false;  // the source's code runs, not the emulation's
    bool synchronizes = false;  // by atomics or volatile accesses
    bool fenced = false;
    std::uint32_t now = 1;
    std::uint32_t threads = 1, first = 1, me = 0;  // of a block, of this block, in this block
    Region* last = nullptr;
    std::vector<Region> tensors;
    std::vector<Region> regions;
    std::vector<Thread> known;
    std::vector<Location> locations;
    std::vector<std::vector<std::uint32_t>> publications[2];  // by scope: each thread's last fence before a barrier
    int published[2] = {-1, -1};  // the last of them, of this block
    Address stacks = 0;
    std::size_t stacks_size = 0;
    Address builtins = 0;
    std::size_t builtins_size = 0;
    Address parameters = 0;  // of a launch out of host code
    std::size_t parameters_size = 0;
    bool knows_all = true;  // whether there are no tensors but the known ones
    bool ended_by_fault = false;
    Address waiting = 0;  // where the running thread looked last, at what, and how often
    std::uint64_t seen = 0;
    unsigned waits = 0;
    Address pending = 0;
    unsigned pending_size = 0;
    unsigned char before[16] = {};
    std::vector<Fault> faults;
};
inline Memory memory;

// Code of the emulation that runs in a thread.
struct Unwatched {
    bool before;
    UNWATCHED Unwatched() : before(memory.watching) { memory.watching = false; }
    UNWATCHED ~Unwatched() { memory.watching = before; }
};

[[noreturn]] void stop();  // ends the launch
void give_way();           // lets other threads run

// ---- who knows what

UNWATCHED_COLD inline bool covers(const Release& release, Event event) {
    const auto number = (event.thread - 1) % memory.threads, its = (release.thread - 1) % memory.threads;
    if (event.thread == release.thread) return event.time <= release.knows.time;
    if (event.time <= release.knows.base) return true;
    if (number / kLanes == its / kLanes && event.time <= release.knows.lanes[number % kLanes]) return true;
    return release.published >= 0 && event.time <= memory.publications[release.device][release.published][number];
}

UNWATCHED_COLD inline bool heard_of(const Thread& thread, Event event) {
    const Unwatched section;
    const std::uint32_t block = (event.thread - 1) / memory.threads;
    const bool here = block == (memory.first - 1) / memory.threads;
    for (const auto& [place, count] : thread.heard) {
        const Location& location = memory.locations[place];
        for (unsigned number = count; number-- > 0;) {
            const Release& release = location.releases[number];
            if ((release.thread - 1) / memory.threads != block || !(here || release.device)) continue;
            if (covers(release, event)) return true;
        }
    }
    return false;
}

// Whether an access happened before the present one of the running thread.
UNWATCHED inline bool ordered(Event event) {
    event.thread &= ~kFlags;
    const std::uint32_t number = event.thread - memory.first;
    if (number == memory.me) return true;
    const Thread& mine = memory.known[memory.me];
    if (number < memory.threads) {
        if (event.time <= mine.knows.base) return true;
        if (number / kLanes == memory.me / kLanes && event.time <= mine.knows.lanes[number % kLanes]) return true;
    }
    return !mine.heard.empty() && heard_of(mine, event);
}

UNWATCHED_COLD inline void merge(std::vector<Heard>& heard, const std::vector<Heard>& others) {
    for (const Heard& other : others) {
        std::size_t place = 0;
        while (place < heard.size() && heard[place].location != other.location) ++place;
        if (place == heard.size()) heard.push_back({other.location, 0});
        heard[place].releases = std::max(heard[place].releases, other.releases);
    }
}

// ---- what is reported

UNWATCHED_COLD inline void name_thread(char (&text)[64], std::uint32_t thread, const unsigned (&grid)[3]) {
    const std::uint32_t block = (thread - 1) / memory.threads;
    std::snprintf(text, sizeof text, "thread %u of block (%u, %u, %u)", (thread - 1) % memory.threads, block % grid[0],
                  block / grid[0] % grid[1], block / grid[0] / grid[1]);
}

inline unsigned grid_of_launch[3] = {1, 1, 1};

UNWATCHED_COLD inline Fault* new_fault(FaultKind kind) {
    unsigned count = 0;
    for (const Fault& fault : memory.faults) count += fault.kind == kind;
    if (count >= kMostFaults) return nullptr;
    memory.faults.push_back({kind, {}});
    return &memory.faults.back();
}

UNWATCHED_COLD inline void report_race(const Region& region, Address address, Event other, const char* mine, const char* theirs) {
    const Unwatched section;
    Fault* fault = new_fault(FaultKind::race);
    if (fault == nullptr) return;
    char me[64], it[64];
    name_thread(me, memory.first + memory.me, grid_of_launch);
    name_thread(it, other.thread & ~kFlags, grid_of_launch);
    char element[96] = "a global variable";
    if (region.kind != Kind::variable) {
        std::snprintf(element, sizeof element, "element %zu of %s", (address - region.start) / region.itemsize, region.name);
    }
    std::snprintf(fault->text, sizeof fault->text, "data race: %s %s %s, which %s %s, and nothing orders them", me, mine,
                  element, it, theirs);
}

UNWATCHED_COLD inline void report_outside(Address address, unsigned size, const char* what) {
    const Unwatched section;
    memory.ended_by_fault = true;
    if (Fault* fault = new_fault(FaultKind::outside)) {
        char me[64], place[128] = "no tensor is passed";
        name_thread(me, memory.first + memory.me, grid_of_launch);
        std::size_t nearest = SIZE_MAX;
        for (const Region& region : memory.regions) {
            if (region.kind == Kind::variable) continue;
            const bool ahead = address < region.start;
            const std::size_t distance = ahead ? region.start - address : address - (region.start + region.size);
            if (distance >= nearest) continue;
            nearest = distance;
            std::snprintf(place, sizeof place, "%zu bytes %s of %s (%zu bytes)", distance,
                          ahead ? "before the start" : "past the end", region.name, region.size);
        }
        std::snprintf(fault->text, sizeof fault->text, "%s: %s of %u bytes outside of all tensors, %s", me, what, size, place);
    }
    stop();
}

// The compiler checks alignment before each access, and traps.
UNWATCHED_COLD inline void report_misaligned() {
    const Unwatched section;
    memory.ended_by_fault = true;
    if (Fault* fault = new_fault(FaultKind::misaligned)) {
        char me[64];
        name_thread(me, memory.first + memory.me, grid_of_launch);
        std::snprintf(fault->text, sizeof fault->text,
                      "%s: a misaligned access, as of a float4 at an address that is no multiple of 16", me);
    }
    stop();
}

// ---- cells

UNWATCHED_COLD inline Cell* new_cells(std::size_t count) {
    void* made = mmap(nullptr, std::max<std::size_t>(count, 1) * sizeof(Cell), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) std::abort();
    return static_cast<Cell*>(made);
}

UNWATCHED inline std::size_t count_of(const Region& region) { return (region.size + region.cell - 1) / region.cell; }

UNWATCHED_COLD inline void drop_cells(Region& region) {
    if (region.cells != nullptr) munmap(region.cells, std::max<std::size_t>(count_of(region), 1) * sizeof(Cell));
    region.cells = nullptr;
}

// Cells as small as the smallest access.
UNWATCHED_COLD inline void refine(Region& region, unsigned size) {
    const unsigned times = region.cell / size;
    Region finer = region;
    finer.cell = size;
    finer.cells = new_cells(count_of(finer));
    for (std::size_t number = 0; number < count_of(region); ++number) {
        const Cell& cell = region.cells[number];
        if (cell.writer.thread == 0 && cell.reader.thread == 0) continue;
        for (unsigned part = 0; part < times && number * times + part < count_of(finer); ++part) {
            finer.cells[number * times + part] = cell;
        }
    }
    drop_cells(region);
    region = finer;
}

UNWATCHED inline Region* region_of(Address address, unsigned size) {
    if (memory.last != nullptr && address - memory.last->start < memory.last->size &&
        address + size <= memory.last->start + memory.last->size) {
        return memory.last;
    }
    // By pointers: functions of the standard library are instrumented, and called.
    for (Region *region = memory.regions.data(), *end = region + memory.regions.size(); region != end; ++region) {
        if (address - region->start < region->size && address + size <= region->start + region->size) {
            const bool is_whole = region->kind == Kind::tensor || region->kind == Kind::shared;
            memory.last = is_whole ? region : nullptr;  // others may lie within
            return region;
        }
    }
    return nullptr;
}

// A thread's own memory, which nobody else can access.
UNWATCHED inline bool is_private(Address address) {
    return address - memory.stacks < memory.stacks_size || address - memory.builtins < memory.builtins_size ||
           address - memory.parameters < memory.parameters_size;
}

UNWATCHED_COLD inline bool in_a_guard(Address address) {
    for (const Region& region : memory.regions) {
        if (region.guarded && address + kNear > region.start && address < region.start + region.size + kNear) return true;
    }
    return false;
}

UNWATCHED_COLD inline bool is_mapped(Address address) {
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(address / kPageSize * kPageSize), 1, &resident) == 0;
}

// A region for memory that is no known tensor's, as from cudaMalloc.
UNWATCHED_COLD inline Region* unknown_region(Address address, unsigned size) {
    if (!is_mapped(address) || !is_mapped(address + size - 1)) return nullptr;
    const Address start = address / kStretch * kStretch;
    memory.regions.push_back({"memory of its own", start, kStretch + 2 * sizeof(std::uint64_t), 1, 4, Kind::unknown, nullptr});
    memory.last = nullptr;
    return &memory.regions.back();
}

// The region of an access to what is not the thread's own.
UNWATCHED __attribute__((noinline)) inline Region* watched_region(Address address, unsigned size, const char* what) {
    Region* region = region_of(address, size);
    if (region == nullptr && !memory.knows_all) region = unknown_region(address, size);
    if (region == nullptr || (region->kind == Kind::unknown && in_a_guard(address))) report_outside(address, size, what);
    if (region->cells == nullptr) region->cells = new_cells(count_of(*region));
    if (region->cell > size) refine(*region, size >= 2 ? 2 : 1);
    return region;
}

template <class Function>
UNWATCHED inline void each_cell(Region& region, Address address, unsigned size, Function function) {
    const std::size_t first = (address - region.start) / region.cell;
    const std::size_t last = std::min((address - region.start + size - 1) / region.cell, count_of(region) - 1);
    for (std::size_t number = first; number <= last; ++number) function(region.cells[number], region.start + number * region.cell);
}

// Shared memory is another one in every block.
UNWATCHED inline bool counts(const Region& region, Event event) {
    if (event.thread == 0) return false;
    return region.kind != Kind::shared || (event.thread & ~kFlags) - memory.first < memory.threads;
}

// The last reader gives way to the running thread.
UNWATCHED inline void keep_reader(Cell& cell) {
    const Event before = cell.reader;
    if (before.thread == 0) return;
    const std::uint32_t number = (before.thread & ~kFlags) - memory.first;
    if (number >= memory.threads) {
        cell.earlier = before;
        cell.other = {};
    } else if (number / kLanes != memory.me / kLanes) {
        cell.other = before;
    } else if (number != memory.me && cell.other.time <= memory.known[memory.me].knows.base) {
        cell.other = before;
    }
}

UNWATCHED __attribute__((noinline)) inline void note_read(Region& region, Address address, unsigned size, std::uint32_t flag) {
    const Event now{(memory.first + memory.me) | flag, memory.now};
    each_cell(region, address, size, [&](Cell& cell, Address place) UNWATCHED {
        if (cell.reader.thread == now.thread && cell.reader.time == now.time) return;
        // What a loop around a compare-and-swap reads before it is looked at again by that.
        const bool both = (cell.writer.thread & (flag == 0 ? kCompared : flag)) != 0;
        if (!both && counts(region, cell.writer) && !ordered(cell.writer)) {
            report_race(region, place, cell.writer, "reads", "writes");
        }
        keep_reader(cell);
        cell.reader = now;
    });
}

UNWATCHED __attribute__((noinline)) inline void note_write(Region& region, Cell& cell, Address place, std::uint32_t flag) {
    const Event now{(memory.first + memory.me) | flag, memory.now};
    const char* mine = flag != 0 ? "updates" : "writes";
    if ((cell.writer.thread & flag) == 0 && counts(region, cell.writer) && !ordered(cell.writer)) {
        report_race(region, place, cell.writer, mine, "writes");
    }
    for (const Event& reader : {cell.reader, cell.other, cell.earlier}) {
        if ((flag & kCompared) == 0 && (reader.thread & flag) == 0 && counts(region, reader) && !ordered(reader)) {
            report_race(region, place, reader, mine, "reads");
            break;
        }
    }
    cell.writer = now;
}

// ---- accesses

// A store is looked at once it is done: only what changes bits is a write.
UNWATCHED __attribute__((noinline)) inline void settle() {
    if (memory.pending == 0) return;
    const Address address = memory.pending;
    memory.pending = 0;
    Region* region = region_of(address, memory.pending_size);
    if (region == nullptr) return;
    each_cell(*region, address, memory.pending_size, [&](Cell& cell, Address place) UNWATCHED {
        const Address from = std::max(place, address);
        const Address to = std::min(place + region->cell, address + memory.pending_size);
        if (std::memcmp(reinterpret_cast<void*>(from), memory.before + (from - address), to - from) == 0) return;
        note_write(*region, cell, place, 0);
    });
}

UNWATCHED __attribute__((noinline)) inline void read(Address address, unsigned size) {
    if (is_private(address)) return;
    const Unwatched section;
    settle();
    note_read(*watched_region(address, size, "load"), address, size, 0);
}

UNWATCHED __attribute__((noinline)) inline void write(Address address, unsigned size) {
    if (is_private(address)) return;
    const Unwatched section;
    settle();
    watched_region(address, size, "store");
    memory.pending = address;
    memory.pending_size = size;
    std::memcpy(memory.before, reinterpret_cast<void*>(address), size);
}

// By the emulation, for the running thread.
UNWATCHED __attribute__((noinline)) inline void copied(Address address, unsigned size, bool written) {
    const Unwatched section;
    settle();
    if (size == 0 || is_private(address)) return;
    Region* region = watched_region(address, size, written ? "store" : "load");
    if (!written) return note_read(*region, address, size, 0);
    each_cell(*region, address, size, [&](Cell& cell, Address place) UNWATCHED { note_write(*region, cell, place, 0); });
}

UNWATCHED_COLD inline unsigned location_of(Address address) {
    unsigned place = 0;
    while (place < memory.locations.size() && memory.locations[place].address != address) ++place;
    if (place == memory.locations.size()) memory.locations.push_back({address, {}, {}});
    return place;
}

UNWATCHED_COLD inline void release(Location& location, unsigned place) {
    Thread& mine = memory.known[memory.me];
    const std::uint32_t thread = memory.first + memory.me;
    for (const bool device : {false, true}) {
        const Knowledge& fence = mine.fences[device];
        const int published = memory.published[device];
        if (fence.time == 0 && published < 0) continue;
        bool is_known = false;
        const std::size_t count = location.releases.size();
        for (std::size_t number = count < 2 ? 0 : count - 2; number < count; ++number) {
            const Release& last = location.releases[number];
            is_known |= last.thread == thread && last.device == device && last.knows.time == fence.time && last.published == published;
        }
        if (is_known) continue;
        location.releases.push_back({thread, device, fence, published});
    }
    merge(location.heard, mine.heard);
    merge(location.heard, {{place, static_cast<unsigned>(location.releases.size())}});
}

// Whether the running thread waits: it has looked at the same value again and again.
UNWATCHED inline bool looks_again(Address address, unsigned size) {
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<void*>(address), std::min<std::size_t>(size, sizeof value));
    memory.waits = address == memory.waiting && value == memory.seen ? memory.waits + 1 : 0;
    memory.waiting = address;
    memory.seen = value;
    if (memory.waits < kLooks) return false;
    memory.waits = 0;
    return true;
}

enum class Access { load, store, update, compare };

// Atomic or volatile.
UNWATCHED __attribute__((noinline)) inline void strong(Address address, unsigned size, Access access) {
    if (is_private(address)) return;
    const Unwatched section;
    settle();
    Region* region = watched_region(address, size, access == Access::load ? "load" : access == Access::store ? "store" : "update");
    memory.synchronizes = true;
    if (looks_again(address, size)) {
        give_way();
        memory.watching = false;
        region = region_of(address, size);
    }
    if (access == Access::load) {
        note_read(*region, address, size, kAtomic);
    } else {
        const std::uint32_t flag = access == Access::compare ? kFlags : kAtomic;
        each_cell(*region, address, size, [&](Cell& cell, Address place) UNWATCHED { note_write(*region, cell, place, flag); });
    }
    if (!memory.fenced) return;
    const unsigned place = location_of(address);
    if (access != Access::store) merge(memory.known[memory.me].heard, memory.locations[place].heard);
    if (access != Access::load) release(memory.locations[place], place);
}

// ---- what orders accesses

UNWATCHED_COLD inline void fence(bool device) {
    const Unwatched section;
    settle();
    memory.fenced = true;
    Thread& mine = memory.known[memory.me];
    mine.knows.time = memory.now++;
    mine.fences[0] = mine.knows;
    if (device) mine.fences[1] = mine.knows;
}

// All threads of the block wait for each other.
UNWATCHED_COLD inline void barrier() {
    const std::uint32_t time = memory.now++;
    std::vector<Heard> heard;
    for (const Thread& thread : memory.known) merge(heard, thread.heard);
    for (const bool device : {false, true}) {
        if (!memory.fenced) break;
        std::vector<std::uint32_t> times;
        for (const Thread& thread : memory.known) times.push_back(thread.fences[device].time);
        auto& all = memory.publications[device];
        const std::uint32_t latest = *std::max_element(times.begin(), times.end());
        if (latest == 0 || (memory.published[device] >= 0 && all.back() == times)) continue;
        memory.published[device] = static_cast<int>(all.size());
        all.push_back(std::move(times));
    }
    for (Thread& thread : memory.known) {
        thread.knows.base = time;
        if (!heard.empty()) thread.heard = heard;
    }
}

// The lanes of a mask wait for each other.
UNWATCHED_COLD inline void warp_barrier(unsigned warp, unsigned mask) {
    const std::uint32_t time = memory.now++;
    std::uint32_t lanes[kLanes] = {};
    std::vector<Heard> heard;
    const auto thread_of = [&](unsigned lane) -> Thread* {
        const std::size_t number = std::size_t{warp} * kLanes + lane;
        return (mask & 1u << lane) != 0 && number < memory.known.size() ? &memory.known[number] : nullptr;
    };
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const Thread* thread = thread_of(lane);
        if (thread == nullptr) continue;
        for (unsigned other = 0; other < kLanes; ++other) lanes[other] = std::max(lanes[other], thread->knows.lanes[other]);
        merge(heard, thread->heard);
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (thread_of(lane) != nullptr) lanes[lane] = time;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        Thread* thread = thread_of(lane);
        if (thread == nullptr) continue;
        std::copy(std::begin(lanes), std::end(lanes), thread->knows.lanes);
        if (!heard.empty()) thread->heard = heard;
    }
}

// ---- launches

UNWATCHED_COLD inline void add(Region region) {
    memory.last = nullptr;
    memory.regions.insert(memory.regions.begin(), region);  // arrays of shared memory before the library they are in
}

UNWATCHED_COLD inline void begin_launch(const unsigned (&grid)[3], unsigned threads, const std::vector<Region>& shared) {
    std::copy(std::begin(grid), std::end(grid), grid_of_launch);
    memory.threads = threads;
    memory.synchronizes = memory.fenced = false;
    memory.locations.clear();
    for (auto& each : memory.publications) each.clear();
    memory.pending = 0;
    const auto image = reinterpret_cast<Address>(__ehdr_start);
    memory.regions.clear();
    add({"a global variable", image, static_cast<std::size_t>(reinterpret_cast<Address>(_end) - image), 1, 4, Kind::variable, nullptr});
    for (const Region& region : shared) add(region);
    for (const Region& region : memory.tensors) add(region);
}

UNWATCHED_COLD inline void end_launch() {
    for (Region& region : memory.regions) drop_cells(region);
    memory.regions.clear();
    memory.last = nullptr;
}

UNWATCHED_COLD inline void begin_block(unsigned number) {
    ++memory.now;
    memory.first = number * memory.threads + 1;
    memory.known.assign(memory.threads, {});
    memory.published[0] = memory.published[1] = -1;
    memory.pending = 0;
}

}  // namespace emulated::shadow

#pragma GCC visibility pop

// ---- what the host's compiler calls

#define CALLED extern "C" __attribute__((no_sanitize("thread"), visibility("hidden"), used, weak))
#define WATCH(SIZE)                                                                             \
    CALLED void __tsan_read##SIZE(void* at) {                                                   \
        if (!emulated::shadow::memory.watching) return;                                         \
        emulated::shadow::read(reinterpret_cast<std::uintptr_t>(at), SIZE);                     \
    }                                                                                           \
    CALLED void __tsan_write##SIZE(void* at) {                                                  \
        if (!emulated::shadow::memory.watching) return;                                         \
        emulated::shadow::write(reinterpret_cast<std::uintptr_t>(at), SIZE);                    \
    }                                                                                           \
    CALLED void __tsan_volatile_read##SIZE(void* at) {                                          \
        if (!emulated::shadow::memory.watching) return;                                         \
        emulated::shadow::strong(reinterpret_cast<std::uintptr_t>(at), SIZE, emulated::shadow::Access::load); \
    }                                                                                           \
    CALLED void __tsan_volatile_write##SIZE(void* at) {                                         \
        if (!emulated::shadow::memory.watching) return;                                         \
        emulated::shadow::strong(reinterpret_cast<std::uintptr_t>(at), SIZE, emulated::shadow::Access::store); \
    }
#define WATCH_UNALIGNED(SIZE)                                                                    \
    CALLED void __tsan_unaligned_read##SIZE(void* at) { __tsan_read##SIZE(at); }                \
    CALLED void __tsan_unaligned_write##SIZE(void* at) { __tsan_write##SIZE(at); }              \
    CALLED void __tsan_unaligned_volatile_read##SIZE(void* at) { __tsan_volatile_read##SIZE(at); } \
    CALLED void __tsan_unaligned_volatile_write##SIZE(void* at) { __tsan_volatile_write##SIZE(at); }
WATCH(1)
WATCH(2)
WATCH(4)
WATCH(8)
WATCH(16)
WATCH_UNALIGNED(2)
WATCH_UNALIGNED(4)
WATCH_UNALIGNED(8)
WATCH_UNALIGNED(16)
#undef WATCH
#undef WATCH_UNALIGNED

CALLED void __tsan_read_range(void* at, unsigned long size) {
    if (emulated::shadow::memory.watching) emulated::shadow::copied(reinterpret_cast<std::uintptr_t>(at), size, false);
}
CALLED void __tsan_write_range(void* at, unsigned long size) {
    if (emulated::shadow::memory.watching) emulated::shadow::copied(reinterpret_cast<std::uintptr_t>(at), size, true);
}
CALLED void __tsan_vptr_update(void**, void*) {}
CALLED void __tsan_vptr_read(void**) {}
CALLED void __tsan_func_entry(void*) {}
CALLED void __tsan_func_exit() {}
CALLED void __tsan_init() {}
// Of host code, and of the guards of static variables.
#define ATOMICS(BITS, VALUE)                                                                                 \
    CALLED VALUE __tsan_atomic##BITS##_load(const volatile void* at, int) {                                  \
        return __atomic_load_n(static_cast<const volatile VALUE*>(at), __ATOMIC_SEQ_CST);                    \
    }                                                                                                        \
    CALLED void __tsan_atomic##BITS##_store(volatile void* at, VALUE value, int) {                           \
        __atomic_store_n(static_cast<volatile VALUE*>(at), value, __ATOMIC_SEQ_CST);                         \
    }                                                                                                        \
    ATOMIC_UPDATE(BITS, VALUE, exchange, exchange_n)                                                         \
    ATOMIC_UPDATE(BITS, VALUE, fetch_add, fetch_add)                                                         \
    ATOMIC_UPDATE(BITS, VALUE, fetch_sub, fetch_sub)                                                         \
    ATOMIC_UPDATE(BITS, VALUE, fetch_and, fetch_and)                                                         \
    ATOMIC_UPDATE(BITS, VALUE, fetch_or, fetch_or)                                                           \
    ATOMIC_UPDATE(BITS, VALUE, fetch_xor, fetch_xor)                                                         \
    ATOMIC_COMPARE(BITS, VALUE, strong)                                                                      \
    ATOMIC_COMPARE(BITS, VALUE, weak)
#define ATOMIC_UPDATE(BITS, VALUE, NAME, FUNCTION)                                                           \
    CALLED VALUE __tsan_atomic##BITS##_##NAME(volatile void* at, VALUE value, int) {                         \
        return __atomic_##FUNCTION(static_cast<volatile VALUE*>(at), value, __ATOMIC_SEQ_CST);               \
    }
#define ATOMIC_COMPARE(BITS, VALUE, KIND)                                                                    \
    CALLED bool __tsan_atomic##BITS##_compare_exchange_##KIND(volatile void* at, VALUE* expected, VALUE value, int, int) { \
        return __atomic_compare_exchange_n(static_cast<volatile VALUE*>(at), expected, value, false, __ATOMIC_SEQ_CST,     \
                                           __ATOMIC_SEQ_CST);                                                \
    }
ATOMICS(8, unsigned char)
ATOMICS(16, unsigned short)
ATOMICS(32, unsigned)
ATOMICS(64, unsigned long)
#undef ATOMIC_COMPARE
#undef ATOMIC_UPDATE
#undef ATOMICS
CALLED void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
CALLED void __tsan_atomic_signal_fence(int) {}

// By the linker's --wrap: what the compiler leaves as calls.
extern "C" void* __real_memcpy(void*, const void*, std::size_t);
extern "C" void* __real_memmove(void*, const void*, std::size_t);
extern "C" void* __real_memset(void*, int, std::size_t);
CALLED void* __wrap_memcpy(void* to, const void* from, std::size_t size) {
    __tsan_read_range(const_cast<void*>(from), size);
    __tsan_write_range(to, size);
    return __real_memcpy(to, from, size);
}
CALLED void* __wrap_memmove(void* to, const void* from, std::size_t size) {
    __tsan_read_range(const_cast<void*>(from), size);
    __tsan_write_range(to, size);
    return __real_memmove(to, from, size);
}
CALLED void* __wrap_memset(void* to, int value, std::size_t size) {
    __tsan_write_range(to, size);
    return __real_memset(to, value, size);
}
#undef CALLED
