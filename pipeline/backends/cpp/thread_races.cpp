// OpenMP's run time and the hooks of GCC's -fsanitize=thread, for finding data races, whatever the schedule.
//
// An instrumented object is linked with this one in place of libgomp and libtsan. The threads of a region are
// threads of the system, with stacks, thread-local variables and heaps of their own, but one runs at a time: it
// hands over at barriers, locks, atomic operations, and after many accesses. So a call is deterministic.
//
// Who races is decided by vector clocks (Flanagan and Freund, FastTrack, PLDI 2009): two accesses of one cell by
// two threads, at least one of which changes its bits, that no fork, join, barrier, lock or atomic operation
// orders. All clocks of a cell are kept, so that nothing is forgotten. Writing the bits that are there already
// is no race with another thread that wrote them. Cells are 4 bytes, or 1 where narrower accesses were made.
//
// Regions inside of regions have one thread, as by default in libgomp. Tasks run at once in the thread that
// makes them. What the compiler does not instrument is not seen: masked and streaming vector stores, inline
// assembly, code of libraries (memcpy, memmove and memset are replaced here).

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <cerrno>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

namespace {

using Address = std::uintptr_t;
using Clock = std::uint32_t;

constexpr int kThreads = 16;             // at most, in a team
constexpr int kTagShift = 28;            // of the thread in the mark of a write
constexpr Clock kClockMask = (Clock{1} << kTagShift) - 1;
constexpr int kPageShift = 12;
constexpr std::size_t kPageBytes = std::size_t{1} << kPageShift;
constexpr std::size_t kBuckets = std::size_t{1} << 16;
constexpr std::size_t kRecent = 256;
constexpr std::size_t kShadowBytes = std::size_t{1} << 30;  // of shadow, at most
constexpr std::size_t kKeptBytes = std::size_t{1} << 28;    // of shadow, from one region to the next
constexpr std::size_t kCompared = 256;                      // bytes of one access whose old value is kept
constexpr std::size_t kLocks = 1 << 14;
constexpr int kFaults = 4;
constexpr int kEagerTurns = 8;           // atomic operations and locks after which a thread hands over each time,
constexpr int kRareTurns = 1024;         // then after so many
constexpr long kPatience = 1L << 22;     // accesses after which it hands over anyway: it may wait for another one

enum Kind : std::int32_t { kRead, kWrite, kAtomicRead, kAtomicWrite };

struct Fault {
    std::uint64_t address, code;  // code: where the later access is, from the start of this shared object
    std::int32_t size, own_kind, other_kind, own_thread, other_thread;
};

// Clocks by cell, made when needed. All that is older than the present region is ordered before it.
struct Page {
    Address number;
    Page* next;
    int shift;  // of a cell: 2 or 0
    Clock* write;
    Clock* reads[kThreads];
    Clock* silent[kThreads];  // writes that changed nothing
    Clock* atomic_reads[kThreads];
    Clock* atomic_writes[kThreads];
};

struct Vector {
    Clock clock[kThreads];
    void join(const Vector& other) {
        for (int i = 0; i < kThreads; ++i)
            if (other.clock[i] > clock[i]) clock[i] = other.clock[i];
    }
};

struct Lock {  // a mutex, a lock of OpenMP, or the clock of an atomic variable
    Address address;
    Lock* next;
    Vector clock;
    int owner, depth;
};

struct Shares {  // of a loop or of sections, as one thread takes them
    long long next, count, chunk;  // chunks
    std::uint64_t start, step, iterations;
    bool ordered;
    int construct;
    long long current;
};

struct Thread {
    int number;
    Vector seen;
    Clock clock;
    sem_t turn;
    pthread_t system;
    enum { ready, waiting, done } state;
    int singles, loops, turns;
    long accesses;
    Shares shares;
    void* code;
    struct {
        Address address;
        std::size_t size;
        bool atomic;
        void* code;
        unsigned char old[kCompared];
    } pending;
};

struct Team {
    int size, direction, waiting, done, singles;
    Thread thread[kThreads];
    void (*body)(void*);
    void* data;
    void* copied;
    struct {
        int construct;
        long long turn;
    } ordered[16];
};

int g_threads = 1, g_direction = 1;
long g_regions = 0;
bool g_incomplete = false;
Team* g_team = nullptr;
Clock g_clock[kThreads] = {};
Page* g_pages[kBuckets] = {};
Page* g_recent[kRecent] = {};
std::size_t g_shadow = 0;
Lock* g_locks[kLocks] = {};
Fault g_faults[kFaults];
int g_found = 0;
#define OWN thread_local __attribute__((tls_model("initial-exec")))
OWN Thread* t_self = nullptr;
OWN int t_inner = 0;      // depth of regions with one thread
OWN Shares t_lone = {};   // of a loop in one of these

void* (*real_copy)(void*, const void*, std::size_t) = nullptr;
void* (*real_move)(void*, const void*, std::size_t) = nullptr;
void* (*real_set)(void*, int, std::size_t) = nullptr;
int (*real_mutex_lock)(pthread_mutex_t*) = nullptr;
int (*real_mutex_trylock)(pthread_mutex_t*) = nullptr;
int (*real_mutex_unlock)(pthread_mutex_t*) = nullptr;

void* (*real_malloc)(std::size_t) = nullptr;
void* (*real_calloc)(std::size_t, std::size_t) = nullptr;
void* (*real_realloc)(void*, std::size_t) = nullptr;
void* (*real_memalign)(std::size_t, std::size_t) = nullptr;

template <class F> void find(F& function, const char* name) {
    if (function == nullptr) function = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

void* zeroed(std::size_t bytes) { return find(real_calloc, "calloc"), real_calloc(1, bytes); }

[[noreturn]] void stop(const char* why) {
    static_cast<void>(!write(2, why, __builtin_strlen(why)));
    abort();
}

// Shadow ------------------------------------------------------------------------------------------------

std::size_t cells(const Page& page) { return kPageBytes >> page.shift; }

Clock* make_plane(const Page& page) {
    std::size_t bytes = cells(page) * sizeof(Clock);
    g_shadow += bytes;
    return static_cast<Clock*>(zeroed(bytes));
}

Clock* plane(const Page& page, Clock*& found) {
    if (found == nullptr) found = make_plane(page);
    return found;
}

template <class F> void every_plane(Page& page, F&& f) {
    f(page.write);
    for (int i = 0; i < kThreads; ++i) f(page.reads[i]), f(page.silent[i]), f(page.atomic_reads[i]), f(page.atomic_writes[i]);
}

void refine(Page& page) {
    every_plane(page, [&](Clock*& old) {
        if (old == nullptr) return;
        auto* fine = static_cast<Clock*>(zeroed(kPageBytes * sizeof(Clock)));
        for (std::size_t i = 0; i < kPageBytes; ++i) fine[i] = old[i >> 2];
        free(old);
        old = fine;
        g_shadow += (kPageBytes - kPageBytes / 4) * sizeof(Clock);
    });
    page.shift = 0;
}

Page*& bucket_of(Address number) { return g_pages[(number ^ (number >> 16)) % kBuckets]; }

Page* known_page(Address number) {
    Page*& recent = g_recent[number % kRecent];
    if (recent != nullptr && recent->number == number) return recent;
    for (Page* each = bucket_of(number); each != nullptr; each = each->next)
        if (each->number == number) return recent = each;
    return nullptr;
}

Page* page_of(Address number) {
    if (Page* known = known_page(number)) return known;
    if (g_shadow > kShadowBytes) {
        g_incomplete = true;
        return nullptr;
    }
    auto* page = static_cast<Page*>(zeroed(sizeof(Page)));
    page->number = number;
    page->shift = 2;
    page->next = bucket_of(number);
    g_shadow += sizeof(Page);
    return bucket_of(number) = page;
}

void forget_pages() {
    for (Page*& bucket : g_pages)
        while (bucket != nullptr) {
            Page* page = bucket;
            bucket = page->next;
            every_plane(*page, [](Clock* each) { free(each); });
            free(page);
        }
    for (Page*& each : g_recent) each = nullptr;
    g_shadow = 0;
}

void accuse(Thread& self, const Page& page, std::size_t cell, Kind own, Kind other, int thread) {
    auto code = reinterpret_cast<std::uint64_t>(self.code);
    for (int i = 0; i < g_found; ++i)
        if (g_faults[i].code == code && g_faults[i].own_kind == own) return;
    if (g_found == kFaults) return;
    Address address = (page.number << kPageShift) + (cell << page.shift);
    g_faults[g_found++] = {address, code, 1 << page.shift, own, other, self.number, thread};
}

// The first thread whose clock in a set of planes is not ordered before this access.
int unordered(const Thread& self, Clock* const* planes, std::size_t cell, int size) {
    for (int other = 0; other < size; ++other)
        if (other != self.number && planes[other] != nullptr && planes[other][cell] > self.seen.clock[other])
            return other;
    return -1;
}

int unordered_write(const Thread& self, const Page& page, std::size_t cell) {
    if (page.write == nullptr) return -1;
    int other = static_cast<int>(page.write[cell] >> kTagShift);
    return other != self.number && (page.write[cell] & kClockMask) > self.seen.clock[other] ? other : -1;
}

bool confirmed(const Thread& self, const Page& page, std::size_t cell) {
    return page.silent[self.number] != nullptr && page.silent[self.number][cell] != 0;
}

void note_read(Thread& self, Page& page, std::size_t cell) {
    Clock* own = plane(page, page.reads[self.number]);
    if (own[cell] == self.clock) return;  // who writes it since then is accused when he does
    int size = g_team->size, other = unordered_write(self, page, cell);
    if (other >= 0 && !confirmed(self, page, cell)) accuse(self, page, cell, kRead, kWrite, other);
    other = unordered(self, page.atomic_writes, cell, size);
    if (other >= 0) accuse(self, page, cell, kRead, kAtomicWrite, other);
    own[cell] = self.clock;
}

void note_write(Thread& self, Page& page, std::size_t cell) {
    int size = g_team->size, other = unordered_write(self, page, cell);
    if (other >= 0) accuse(self, page, cell, kWrite, kWrite, other);
    if ((other = unordered(self, page.reads, cell, size)) >= 0) accuse(self, page, cell, kWrite, kRead, other);
    if ((other = unordered(self, page.silent, cell, size)) >= 0) accuse(self, page, cell, kWrite, kWrite, other);
    if ((other = unordered(self, page.atomic_reads, cell, size)) >= 0)
        accuse(self, page, cell, kWrite, kAtomicRead, other);
    if ((other = unordered(self, page.atomic_writes, cell, size)) >= 0)
        accuse(self, page, cell, kWrite, kAtomicWrite, other);
    plane(page, page.write)[cell] = static_cast<Clock>(self.number) << kTagShift | self.clock;
    for (int i = 0; i < size; ++i)
        if (page.silent[i] != nullptr) page.silent[i][cell] = 0;
}

void note_silent(Thread& self, Page& page, std::size_t cell) {
    plane(page, page.silent[self.number])[cell] = self.clock;
}

void note_atomic(Thread& self, Page& page, std::size_t cell, bool writes) {
    int size = g_team->size, other = unordered_write(self, page, cell);
    if (other >= 0 && !confirmed(self, page, cell))
        accuse(self, page, cell, writes ? kAtomicWrite : kAtomicRead, kWrite, other);
    if (writes && (other = unordered(self, page.reads, cell, size)) >= 0)
        accuse(self, page, cell, kAtomicWrite, kRead, other);
    plane(page, (writes ? page.atomic_writes : page.atomic_reads)[self.number])[cell] = self.clock;
}

// Calls f(page, first cell, last cell) for each page that an access touches.
template <class F> void each_page(Address address, std::size_t size, F&& f) {
    while (size != 0) {
        std::size_t offset = address & (kPageBytes - 1);
        std::size_t part = size < kPageBytes - offset ? size : kPageBytes - offset;
        Page* page = page_of(address >> kPageShift);
        if (page != nullptr) {
            if (page->shift != 0 && ((offset | part) & 3) != 0) refine(*page);
            f(*page, offset >> page->shift, (offset + part - 1) >> page->shift);
        }
        address += part;
        size -= part;
    }
}

void settle(Thread& self);

// Memory that a thread allocates was nobody's before.
void* fresh(void* block, std::size_t size) {
    if (t_self == nullptr || block == nullptr) return block;
    settle(*t_self);
    Address address = reinterpret_cast<Address>(block), end = address + size;
    for (Address number = address >> kPageShift; number <= (end - 1) >> kPageShift && size != 0; ++number) {
        Page* page = known_page(number);
        if (page == nullptr) continue;
        Address start = number << kPageShift;
        std::size_t first = ((address > start ? address - start : 0)) >> page->shift;
        std::size_t last = ((end < start + kPageBytes ? end - start : kPageBytes) - 1) >> page->shift;
        every_plane(*page, [&](Clock* each) {
            for (std::size_t cell = first; each != nullptr && cell <= last; ++cell) each[cell] = 0;
        });
    }
    return block;
}

// An access is judged once it is known whether it changed anything: at the thread's next one.
void settle(Thread& self) {
    auto& pending = self.pending;
    if (pending.size == 0) return;
    Address start = pending.address;
    std::size_t size = pending.size;
    pending.size = 0;
    void* code = self.code;
    self.code = pending.code;
    each_page(start, size, [&](Page& page, std::size_t first, std::size_t last) {
        for (std::size_t cell = first; cell <= last; ++cell) {
            Address at = (page.number << kPageShift) + (cell << page.shift);
            bool changed = size > kCompared;
            for (Address byte = at; byte < at + (Address{1} << page.shift) && !changed; ++byte)
                changed = byte >= start && byte < start + size &&
                          *reinterpret_cast<unsigned char*>(byte) != pending.old[byte - start];
            if (pending.atomic) {
                if (changed) note_atomic(self, page, cell, true);
            } else if (changed) {
                note_write(self, page, cell);
            } else {
                note_silent(self, page, cell);
            }
        }
    });
    self.code = code;
}

void hand_over(Thread& self);

void watch(Thread& self, Address address, std::size_t size, bool atomic) {
    auto& pending = self.pending;
    pending.address = address;
    pending.size = size;
    pending.atomic = atomic;
    pending.code = self.code;
    if (size <= kCompared)
        for (std::size_t i = 0; i < size; ++i) pending.old[i] = reinterpret_cast<unsigned char*>(address)[i];
}

Thread* begin_access(void* code) {
    Thread* self = t_self;
    if (self == nullptr) return nullptr;
    settle(*self);
    if (++self->accesses >= kPatience) hand_over(*self);
    self->code = code;
    return self;
}

void read(const void* at, std::size_t size, void* code) {
    Thread* self = begin_access(code);
    if (self == nullptr) return;
    each_page(reinterpret_cast<Address>(at), size, [&](Page& page, std::size_t first, std::size_t last) {
        for (std::size_t cell = first; cell <= last; ++cell) note_read(*self, page, cell);
    });
}

void written(void* at, std::size_t size, void* code) {
    Thread* self = begin_access(code);
    if (self != nullptr) watch(*self, reinterpret_cast<Address>(at), size, false);
}

// Order -------------------------------------------------------------------------------------------------

Lock* find_lock(Address address) {
    for (Lock* lock = g_locks[(address >> 2) % kLocks]; lock != nullptr; lock = lock->next)
        if (lock->address == address) return lock;
    return nullptr;
}

Lock& lock_at(const volatile void* at) {
    auto address = reinterpret_cast<Address>(at);
    if (Lock* found = find_lock(address)) return *found;
    Lock** bucket = &g_locks[(address >> 2) % kLocks];
    auto* lock = static_cast<Lock*>(zeroed(sizeof(Lock)));
    lock->address = address;
    lock->owner = -1;
    lock->next = *bucket;
    return *(*bucket = lock);
}

void advance(Thread& self) {
    self.seen.clock[self.number] = self.clock;
    self.clock = ++g_clock[self.number];
}

void acquire(Thread& self, const Lock& lock) { self.seen.join(lock.clock); }

void release(Thread& self, Lock& lock) {
    settle(self);
    self.seen.clock[self.number] = self.clock;
    lock.clock.join(self.seen);
    advance(self);
}

// The thread that runs next: in cyclic order, forwards or backwards.
Thread* successor(const Thread& self) {
    for (int step = 1; step < g_team->size; ++step) {
        int number = (self.number + g_team->direction * step + g_team->size * step) % g_team->size;
        if (g_team->thread[number].state == Thread::ready) return &g_team->thread[number];
    }
    return nullptr;
}

void wait_turn(Thread& self) {
    while (sem_wait(&self.turn) != 0) {
    }
}

void switch_to(Thread& self, Thread& other) {
    sem_post(&other.turn);
    wait_turn(self);
}

void hand_over(Thread& self) {
    settle(self);
    self.accesses = 0;
    Thread* other = successor(self);
    if (other != nullptr) switch_to(self, *other);
}

// After an operation that other threads may wait for; often at first, so that their work is spread.
void offer(Thread& self) {
    if (++self.turns <= kEagerTurns || self.turns % kRareTurns == 0) hand_over(self);
}

template <class F> void wait_until(Thread& self, F&& condition) {
    while (!condition()) {
        Thread* other = successor(self);
        if (other == nullptr) stop("races: the threads wait for each other\n");
        settle(self);
        switch_to(self, *other);
    }
}

// All clocks meet, as at a barrier.
void meet() {
    Team& team = *g_team;
    Vector all;
    for (int i = 0; i < kThreads; ++i) all.clock[i] = g_clock[i];
    for (int i = 0; i < team.size; ++i) {
        team.thread[i].seen = all;
        team.thread[i].clock = ++g_clock[i];
        team.thread[i].turns = 0;
    }
}

void open_barrier() {
    Team& team = *g_team;
    meet();
    team.waiting = 0;
    for (int i = 0; i < team.size; ++i)
        if (team.thread[i].state == Thread::waiting) team.thread[i].state = Thread::ready;
}

void barrier(Thread& self) {
    settle(self);
    Team& team = *g_team;
    if (team.size == 1) return;
    self.state = Thread::waiting;
    if (++team.waiting + team.done == team.size) {
        open_barrier();
        return;
    }
    Thread* other = successor(self);
    if (other == nullptr) stop("races: the threads wait for each other\n");
    switch_to(self, *other);
}

void finish(Thread& self) {
    settle(self);
    Team& team = *g_team;
    self.state = Thread::done;
    ++team.done;
    if (team.waiting != 0 && team.waiting + team.done == team.size) open_barrier();
}

void* run(void* argument) {
    auto& self = *static_cast<Thread*>(argument);
    wait_turn(self);
    t_self = &self;
    g_team->body(g_team->data);
    t_self = nullptr;
    finish(self);
    Thread* other = successor(self);
    if (other == nullptr) other = &g_team->thread[0];  // which waits for the end of the region
    sem_post(&other->turn);
    return nullptr;
}

void region(void (*body)(void*), void* data, unsigned wanted) {
    int size = wanted != 0 ? static_cast<int>(wanted) : g_threads;
    if (size > kThreads) size = kThreads;
    if (g_team != nullptr || size == 1) {
        Shares outer = t_lone;
        ++t_inner;
        body(data);
        --t_inner;
        t_lone = outer;
        return;
    }
    ++g_regions;
    auto* team = static_cast<Team*>(zeroed(sizeof(Team)));
    team->size = size;
    team->direction = g_direction;
    team->body = body;
    team->data = data;
    for (auto& each : team->ordered) each.construct = -1;
    g_team = team;
    for (int i = 0; i < size; ++i) {
        Thread& thread = team->thread[i];
        thread.number = i;
        thread.clock = g_clock[i];
        thread.shares.current = -1;
        sem_init(&thread.turn, 0, 0);
    }
    meet();
    for (int i = 1; i < size; ++i)
        if (pthread_create(&team->thread[i].system, nullptr, run, &team->thread[i]) != 0)
            stop("races: no more threads\n");
    Thread& self = team->thread[0];
    t_self = &self;
    if (g_direction < 0) hand_over(self);
    body(data);
    t_self = nullptr;
    finish(self);
    while (team->done < size) {
        Thread* other = successor(self);
        if (other == nullptr) stop("races: the threads wait for each other\n");
        switch_to(self, *other);
    }
    for (int i = 1; i < size; ++i) pthread_join(team->thread[i].system, nullptr);
    for (int i = 0; i < size; ++i) sem_destroy(&team->thread[i].turn);
    g_team = nullptr;
    free(team);
    if (g_shadow > kKeptBytes) forget_pages();
}

// The thread of the present team; none outside of regions and in regions of one thread.
Thread* member() { return t_inner == 0 ? t_self : nullptr; }

int team_size() { return member() != nullptr ? g_team->size : 1; }
int own_number() { return member() != nullptr ? t_self->number : 0; }

// Loops and sections ------------------------------------------------------------------------------------
// Chunk k goes to thread k modulo their number: a schedule that `dynamic`, `guided` and `runtime` allow.

Shares& shares() { return member() != nullptr ? t_self->shares : t_lone; }

long long& ordered_turn(int construct) {
    auto& slot = g_team->ordered[construct % 16];
    if (slot.construct != construct) slot.construct = construct, slot.turn = 0;
    return slot.turn;
}

void leave_chunk(Shares& share) {
    Thread* self = member();
    if (self == nullptr || !share.ordered || share.current < 0) return;
    long long mine = share.current;
    wait_until(*self, [&] { return ordered_turn(share.construct) == mine; });
    ++ordered_turn(share.construct);
    share.current = -1;
}

bool next_chunk(Shares& share, std::uint64_t& from, std::uint64_t& count) {
    leave_chunk(share);
    if (share.next >= share.count) return false;
    std::uint64_t first = static_cast<std::uint64_t>(share.next) * static_cast<std::uint64_t>(share.chunk);
    count = share.iterations - first;
    if (count > static_cast<std::uint64_t>(share.chunk)) count = static_cast<std::uint64_t>(share.chunk);
    from = share.start + first * share.step;
    share.current = share.next;
    share.next += team_size();
    return true;
}

void begin_shares(std::uint64_t start, std::uint64_t step, std::uint64_t iterations, std::uint64_t chunk, bool ordered) {
    Shares& share = shares();
    Thread* self = member();
    share.start = start;
    share.step = step;
    share.iterations = iterations;
    share.chunk = static_cast<long long>(chunk == 0 ? 1 : chunk);
    share.count = static_cast<long long>((iterations + static_cast<std::uint64_t>(share.chunk) - 1) /
                                         static_cast<std::uint64_t>(share.chunk));
    share.next = own_number();
    share.current = -1;
    share.ordered = ordered;
    share.construct = self != nullptr ? self->loops++ : 0;
}

enum Schedule { by_chunk, by_thread };

template <class Integer>
void begin_loop(bool up, Integer start, Integer end, Integer step, Integer chunk, Schedule schedule, bool ordered) {
    std::uint64_t iterations = 0;
    auto wide = [](Integer value) { return static_cast<std::uint64_t>(value); };
    if (up ? start < end : start > end) {
        std::uint64_t distance = up ? wide(end) - wide(start) : wide(start) - wide(end);
        std::uint64_t stride = up ? wide(step) : std::uint64_t{0} - wide(step);
        iterations = (distance + stride - 1) / stride;
    }
    std::uint64_t size = wide(chunk);
    if (schedule == by_thread && size == 0)
        size = (iterations + static_cast<std::uint64_t>(team_size()) - 1) / static_cast<std::uint64_t>(team_size());
    begin_shares(wide(start), wide(step), iterations, size, ordered);
}

template <class Integer> bool next_range(Integer* from, Integer* to) {
    std::uint64_t first = 0, count = 0;
    Shares& share = shares();
    if (!next_chunk(share, first, count)) return false;
    *from = static_cast<Integer>(first);
    *to = static_cast<Integer>(first + count * share.step);
    return true;
}

void end_shares(bool wait) {
    leave_chunk(shares());
    Thread* self = member();
    if (wait && self != nullptr) barrier(*self);
}

struct LoopOfRegion {
    void (*body)(void*);
    void* data;
    long start, end, step, chunk;
    Schedule schedule;
};

void run_loop(void* argument) {
    const auto& loop = *static_cast<LoopOfRegion*>(argument);
    begin_loop(loop.step > 0, loop.start, loop.end, loop.step, loop.chunk, loop.schedule, false);
    loop.body(loop.data);
}

struct SectionsOfRegion {
    void (*body)(void*);
    void* data;
    unsigned count;
};

void run_sections(void* argument) {
    const auto& sections = *static_cast<SectionsOfRegion*>(argument);
    begin_shares(1, 1, sections.count, 1, false);
    sections.body(sections.data);
}

unsigned next_section() {
    std::uint64_t number = 0, count = 0;
    return next_chunk(shares(), number, count) ? static_cast<unsigned>(number) : 0;
}

// Locks and atomic operations ---------------------------------------------------------------------------

char g_critical, g_atomic, g_fence;

void take(const volatile void* at, bool again) {
    Thread* self = t_self;
    if (self == nullptr) return;
    settle(*self);
    Lock& lock = lock_at(at);
    if (again && lock.owner == self->number) {
        ++lock.depth;
        return;
    }
    wait_until(*self, [&] { return lock.owner < 0; });
    lock.owner = self->number;
    lock.depth = 1;
    acquire(*self, lock);
}

bool try_take(const volatile void* at, bool again) {
    Thread* self = t_self;
    if (self == nullptr) return true;
    settle(*self);
    Lock& lock = lock_at(at);
    if (again && lock.owner == self->number) {
        ++lock.depth;
        return true;
    }
    if (lock.owner >= 0) {
        offer(*self);
        return false;
    }
    lock.owner = self->number;
    lock.depth = 1;
    acquire(*self, lock);
    return true;
}

void let_go(const volatile void* at) {
    Thread* self = t_self;
    if (self == nullptr) return;
    Lock& lock = lock_at(at);
    if (--lock.depth > 0) return;
    release(*self, lock);
    lock.owner = -1;
    offer(*self);
}

bool acquires(int order) { return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST; }
bool releases(int order) { return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST; }

enum AtomicKind { load, store, update };

Thread* begin_atomic(void* code) {
    Thread* self = begin_access(code);
    if (self != nullptr) offer(*self);
    return self;
}

// After the operation: notes it, and does its part of the order.
void end_atomic(Thread* self, const volatile void* at, std::size_t size, AtomicKind kind, int order) {
    if (self == nullptr) return;
    each_page(reinterpret_cast<Address>(at), size, [&](Page& page, std::size_t first, std::size_t last) {
        for (std::size_t cell = first; cell <= last; ++cell) note_atomic(*self, page, cell, kind != load);
    });
    if (kind == load) watch(*self, reinterpret_cast<Address>(at), size, true);  // an exchange may follow unseen
    Lock* known = find_lock(reinterpret_cast<Address>(at));
    if (kind == store && known != nullptr) known->clock = Vector{};
    if (order == __ATOMIC_RELAXED) return;
    Lock& lock = known != nullptr ? *known : lock_at(at);
    if (kind != store && acquires(order)) acquire(*self, lock);
    if (kind != load && releases(order)) release(*self, lock);
}

void fence(int order) {
    Thread* self = t_self;
    if (self == nullptr) return;
    Lock& lock = lock_at(&g_fence);
    if (acquires(order)) acquire(*self, lock);
    if (releases(order)) release(*self, lock);
}

__attribute__((constructor)) void prepare() {
    // What libraries allocate lies in their thread's own heap, large blocks too: no other thread gets it later.
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_ARENA_MAX, 4 * kThreads);
    find(real_malloc, "malloc");
    find(real_calloc, "calloc");
    find(real_realloc, "realloc");
    find(real_memalign, "memalign");
    find(real_copy, "memcpy");
    find(real_move, "memmove");
    find(real_set, "memset");
    find(real_mutex_lock, "pthread_mutex_lock");
    find(real_mutex_trylock, "pthread_mutex_trylock");
    find(real_mutex_unlock, "pthread_mutex_unlock");
}

}  // namespace

#define EXPORTED __attribute__((visibility("default")))
#define CODE __builtin_return_address(0)

extern "C" {

// For the harness ---------------------------------------------------------------------------------------

EXPORTED void kernelmill_set_team(int threads, int direction) {
    g_threads = threads < 1 ? 1 : threads > kThreads ? kThreads : threads;
    g_direction = direction < 0 ? -1 : 1;
}

// Copies what was found since the last call; returns how many.
EXPORTED int kernelmill_take_races(Fault* out) {
    Dl_info info;
    std::uint64_t base = 0;
    if (dladdr(reinterpret_cast<void*>(&kernelmill_take_races), &info) != 0)
        base = reinterpret_cast<std::uint64_t>(info.dli_fbase);
    int count = g_found;
    for (int i = 0; i < count; ++i) out[i] = g_faults[i], out[i].code -= base + 1;  // in the call, not after it
    g_found = 0;
    return count;
}

// Regions of several threads since the last call; negative where not all of them could be watched.
EXPORTED long kernelmill_take_regions() {
    long count = g_incomplete ? -1 : g_regions;
    g_regions = 0;
    g_incomplete = false;
    return count;
}

// GCC's hooks -------------------------------------------------------------------------------------------

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** at, void*) { written(at, sizeof(void*), CODE); }
void __tsan_vptr_read(void** at) { read(at, sizeof(void*), CODE); }
void __tsan_read_range(void* at, std::size_t size) { read(at, size, CODE); }
void __tsan_write_range(void* at, std::size_t size) { written(at, size, CODE); }

#define ACCESS(size)                                                              \
    void __tsan_read##size(void* at) { read(at, size, CODE); }                    \
    void __tsan_write##size(void* at) { written(at, size, CODE); }                \
    void __tsan_unaligned_read##size(void* at) { read(at, size, CODE); }          \
    void __tsan_unaligned_write##size(void* at) { written(at, size, CODE); }      \
    void __tsan_volatile_read##size(void* at) { read(at, size, CODE); }           \
    void __tsan_volatile_write##size(void* at) { written(at, size, CODE); }
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)

#define UPDATE(bits, type, name)                                                              \
    type __tsan_atomic##bits##_##name(volatile type* at, type value, int order) {              \
        Thread* self = begin_atomic(CODE);                                                     \
        type old = __atomic_##name(at, value, __ATOMIC_SEQ_CST);                               \
        end_atomic(self, at, sizeof(type), update, order);                                     \
        return old;                                                                            \
    }
#define EXCHANGE(bits, type, name)                                                             \
    bool __tsan_atomic##bits##_compare_exchange_##name(volatile type* at, type* expected,      \
                                                       type value, int order, int failed) {    \
        Thread* self = begin_atomic(CODE);                                                     \
        bool done = __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST,  \
                                                __ATOMIC_SEQ_CST);                             \
        end_atomic(self, at, sizeof(type), done ? update : load, done ? order : failed);       \
        return done;                                                                           \
    }
#define ATOMIC(bits, type)                                                                     \
    type __tsan_atomic##bits##_load(const volatile type* at, int order) {                      \
        Thread* self = begin_atomic(CODE);                                                     \
        type value = __atomic_load_n(at, __ATOMIC_SEQ_CST);                                    \
        end_atomic(self, at, sizeof(type), load, order);                                       \
        return value;                                                                          \
    }                                                                                          \
    void __tsan_atomic##bits##_store(volatile type* at, type value, int order) {               \
        Thread* self = begin_atomic(CODE);                                                     \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                         \
        end_atomic(self, at, sizeof(type), store, order);                                      \
    }                                                                                          \
    type __tsan_atomic##bits##_exchange(volatile type* at, type value, int order) {            \
        Thread* self = begin_atomic(CODE);                                                     \
        type old = __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                           \
        end_atomic(self, at, sizeof(type), update, order);                                     \
        return old;                                                                            \
    }                                                                                          \
    UPDATE(bits, type, fetch_add) UPDATE(bits, type, fetch_sub) UPDATE(bits, type, fetch_and)  \
    UPDATE(bits, type, fetch_or) UPDATE(bits, type, fetch_xor) UPDATE(bits, type, fetch_nand)  \
    EXCHANGE(bits, type, strong) EXCHANGE(bits, type, weak)
ATOMIC(8, std::uint8_t) ATOMIC(16, std::uint16_t) ATOMIC(32, std::uint32_t) ATOMIC(64, std::uint64_t)

void __tsan_atomic_thread_fence(int order) { fence(order); }
void __tsan_atomic_signal_fence(int) {}

// The C library -----------------------------------------------------------------------------------------

static void* move(void* to, const void* from, std::size_t size, void* code) {
    read(from, size, code);
    bool apart = static_cast<char*>(to) + size <= from || static_cast<const char*>(from) + size <= to;
    std::size_t step = apart ? kCompared : size;
    for (std::size_t done = 0; done < size; done += step) {
        std::size_t part = size - done < step ? size - done : step;
        written(static_cast<char*>(to) + done, part, code);
        real_move(static_cast<char*>(to) + done, static_cast<const char*>(from) + done, part);
    }
    return to;
}

void* memcpy(void* to, const void* from, std::size_t size) {
    if (t_self == nullptr || size == 0) return find(real_copy, "memcpy"), real_copy(to, from, size);
    return move(to, from, size, CODE);
}

void* memmove(void* to, const void* from, std::size_t size) {
    if (t_self == nullptr || size == 0) return find(real_move, "memmove"), real_move(to, from, size);
    return move(to, from, size, CODE);
}

void* memset(void* to, int value, std::size_t size) {
    find(real_set, "memset");
    if (t_self == nullptr) return real_set(to, value, size);
    for (std::size_t done = 0; done < size; done += kCompared) {
        std::size_t part = size - done < kCompared ? size - done : kCompared;
        written(static_cast<char*>(to) + done, part, CODE);
        real_set(static_cast<char*>(to) + done, value, part);
    }
    return to;
}

void* malloc(std::size_t size) { return find(real_malloc, "malloc"), fresh(real_malloc(size), size); }
void* calloc(std::size_t count, std::size_t size) {
    return find(real_calloc, "calloc"), fresh(real_calloc(count, size), count * size);
}
void* realloc(void* block, std::size_t size) {
    return find(real_realloc, "realloc"), fresh(real_realloc(block, size), size);
}
void* memalign(std::size_t alignment, std::size_t size) {
    return find(real_memalign, "memalign"), fresh(real_memalign(alignment, size), size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
    *block = memalign(alignment, size);
    return *block == nullptr ? ENOMEM : 0;
}

// operator new, with and without an alignment, of arrays too, and where it must not throw.
#define NEW(name, parameters, block)                                     \
    void* name parameters {                                              \
        void* made = block;                                              \
        return made != nullptr ? made : no_memory();                     \
    }
[[noreturn]] static void* no_memory() { stop("races: no memory\n"); }
NEW(_Znwm, (std::size_t size), malloc(size))
NEW(_Znam, (std::size_t size), malloc(size))
NEW(_ZnwmSt11align_val_t, (std::size_t size, std::size_t alignment), memalign(alignment, size))
NEW(_ZnamSt11align_val_t, (std::size_t size, std::size_t alignment), memalign(alignment, size))
void* _ZnwmRKSt9nothrow_t(std::size_t size, const void*) { return malloc(size); }
void* _ZnamRKSt9nothrow_t(std::size_t size, const void*) { return malloc(size); }

int pthread_mutex_lock(pthread_mutex_t* mutex) {
    Thread* self = t_self;
    if (self == nullptr) return find(real_mutex_lock, "pthread_mutex_lock"), real_mutex_lock(mutex);
    settle(*self);
    int result = 0;
    wait_until(*self, [&] { return (result = real_mutex_trylock(mutex)) != EBUSY; });
    acquire(*self, lock_at(mutex));
    return result;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
    find(real_mutex_trylock, "pthread_mutex_trylock");
    Thread* self = t_self;
    int result = real_mutex_trylock(mutex);
    if (self == nullptr) return result;
    settle(*self);
    if (result == 0) acquire(*self, lock_at(mutex));
    else offer(*self);
    return result;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
    find(real_mutex_unlock, "pthread_mutex_unlock");
    Thread* self = t_self;
    if (self == nullptr) return real_mutex_unlock(mutex);
    release(*self, lock_at(mutex));
    int result = real_mutex_unlock(mutex);
    offer(*self);
    return result;
}

// Of static variables in functions: byte 0 says whether it is made, byte 1 whether it is being made.
int __cxa_guard_acquire(std::uint64_t* guard) {
    auto* byte = reinterpret_cast<volatile char*>(guard);
    Thread* self = t_self;
    if (self != nullptr) {
        settle(*self);
        wait_until(*self, [&] { return byte[0] != 0 || byte[1] == 0; });
        acquire(*self, lock_at(guard));
    }
    if (byte[0] != 0) return 0;
    byte[1] = 1;
    return 1;
}

void __cxa_guard_release(std::uint64_t* guard) {
    if (t_self != nullptr) release(*t_self, lock_at(guard));
    auto* byte = reinterpret_cast<volatile char*>(guard);
    byte[1] = 0;
    byte[0] = 1;
}

void __cxa_guard_abort(std::uint64_t* guard) { reinterpret_cast<volatile char*>(guard)[1] = 0; }

// libgomp -----------------------------------------------------------------------------------------------

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned) { region(body, data, threads); }

#define PARALLEL_LOOP(name, schedule)                                                                     \
    void GOMP_parallel_loop_##name(void (*body)(void*), void* data, unsigned threads, long start, long end, \
                                   long step, long chunk, unsigned) {                                     \
        LoopOfRegion loop{body, data, start, end, step, chunk, schedule};                                 \
        region(run_loop, &loop, threads);                                                                 \
    }
PARALLEL_LOOP(static, by_thread)
PARALLEL_LOOP(dynamic, by_chunk)
PARALLEL_LOOP(guided, by_chunk)
PARALLEL_LOOP(nonmonotonic_dynamic, by_chunk)
PARALLEL_LOOP(nonmonotonic_guided, by_chunk)

#define PARALLEL_LOOP_AT_RUN_TIME(name)                                                                   \
    void GOMP_parallel_loop_##name(void (*body)(void*), void* data, unsigned threads, long start, long end, \
                                   long step, unsigned) {                                                 \
        LoopOfRegion loop{body, data, start, end, step, 1, by_chunk};                                     \
        region(run_loop, &loop, threads);                                                                 \
    }
PARALLEL_LOOP_AT_RUN_TIME(runtime)
PARALLEL_LOOP_AT_RUN_TIME(nonmonotonic_runtime)
PARALLEL_LOOP_AT_RUN_TIME(maybe_nonmonotonic_runtime)

#define LOOP(name, schedule, ordered)                                                                     \
    bool GOMP_loop_##name##_next(long* from, long* to) { return next_range(from, to); }                   \
    bool GOMP_loop_##name##_start(long start, long end, long step, long chunk, long* from, long* to) {     \
        begin_loop(step > 0, start, end, step, chunk, schedule, ordered);                                 \
        return next_range(from, to);                                                                      \
    }                                                                                                     \
    bool GOMP_loop_ull_##name##_next(unsigned long long* from, unsigned long long* to) {                   \
        return next_range(from, to);                                                                      \
    }                                                                                                     \
    bool GOMP_loop_ull_##name##_start(bool up, unsigned long long start, unsigned long long end,           \
                                      unsigned long long step, unsigned long long chunk,                  \
                                      unsigned long long* from, unsigned long long* to) {                 \
        begin_loop(up, start, end, step, chunk, schedule, ordered);                                       \
        return next_range(from, to);                                                                      \
    }
LOOP(static, by_thread, false)
LOOP(dynamic, by_chunk, false)
LOOP(guided, by_chunk, false)
LOOP(nonmonotonic_dynamic, by_chunk, false)
LOOP(nonmonotonic_guided, by_chunk, false)
LOOP(ordered_static, by_thread, true)
LOOP(ordered_dynamic, by_chunk, true)
LOOP(ordered_guided, by_chunk, true)

#define LOOP_AT_RUN_TIME(name, ordered)                                                                   \
    bool GOMP_loop_##name##_next(long* from, long* to) { return next_range(from, to); }                   \
    bool GOMP_loop_##name##_start(long start, long end, long step, long* from, long* to) {                 \
        begin_loop(step > 0, start, end, step, 1L, by_chunk, ordered);                                    \
        return next_range(from, to);                                                                      \
    }                                                                                                     \
    bool GOMP_loop_ull_##name##_next(unsigned long long* from, unsigned long long* to) {                   \
        return next_range(from, to);                                                                      \
    }                                                                                                     \
    bool GOMP_loop_ull_##name##_start(bool up, unsigned long long start, unsigned long long end,           \
                                      unsigned long long step, unsigned long long* from,                  \
                                      unsigned long long* to) {                                           \
        begin_loop(up, start, end, step, 1ULL, by_chunk, ordered);                                        \
        return next_range(from, to);                                                                      \
    }
LOOP_AT_RUN_TIME(runtime, false)
LOOP_AT_RUN_TIME(nonmonotonic_runtime, false)
LOOP_AT_RUN_TIME(maybe_nonmonotonic_runtime, false)
LOOP_AT_RUN_TIME(ordered_runtime, true)

void GOMP_loop_end() { end_shares(true); }
void GOMP_loop_end_nowait() { end_shares(false); }
bool GOMP_loop_end_cancel() { return end_shares(true), false; }

void GOMP_ordered_start() {
    Thread* self = member();
    if (self == nullptr) return;
    Shares& share = self->shares;
    if (share.ordered && share.current >= 0)
        wait_until(*self, [&] { return ordered_turn(share.construct) == share.current; });
    acquire(*self, lock_at(&g_team->ordered));
}
void GOMP_ordered_end() {
    if (member() != nullptr) release(*t_self, lock_at(&g_team->ordered));
}

void GOMP_parallel_sections(void (*body)(void*), void* data, unsigned threads, unsigned count, unsigned) {
    SectionsOfRegion sections{body, data, count};
    region(run_sections, &sections, threads);
}
unsigned GOMP_sections_start(unsigned count) { return begin_shares(1, 1, count, 1, false), next_section(); }
unsigned GOMP_sections_next() { return next_section(); }
void GOMP_sections_end() { end_shares(true); }
void GOMP_sections_end_nowait() { end_shares(false); }
bool GOMP_sections_end_cancel() { return end_shares(true), false; }

bool GOMP_single_start() {
    Thread* self = member();
    if (self == nullptr) return true;
    settle(*self);
    if (self->singles++ < g_team->singles) return false;
    ++g_team->singles;
    return true;
}
void* GOMP_single_copy_start() {
    if (GOMP_single_start()) return nullptr;
    barrier(*t_self);
    return g_team->copied;
}
void GOMP_single_copy_end(void* data) {
    if (member() == nullptr) return;
    g_team->copied = data;
    barrier(*t_self);
}

void GOMP_barrier() {
    if (member() != nullptr) barrier(*t_self);
}
bool GOMP_barrier_cancel() { return GOMP_barrier(), false; }
bool GOMP_cancel(int, bool) { return false; }  // as long as OMP_CANCELLATION is not set
bool GOMP_cancellation_point(int) { return false; }

void GOMP_critical_start() { take(&g_critical, false); }
void GOMP_critical_end() { let_go(&g_critical); }
void GOMP_critical_name_start(void** name) { take(name, false); }
void GOMP_critical_name_end(void** name) { let_go(name); }
void GOMP_atomic_start() { take(&g_atomic, false); }
void GOMP_atomic_end() { let_go(&g_atomic); }

void GOMP_task(void (*body)(void*), void* data, void (*copy)(void*, void*), long size, long alignment, bool,
               unsigned, void**, int, void*) {
    if (copy == nullptr) return body(data);
    auto* own = static_cast<char*>(malloc(static_cast<std::size_t>(size + alignment)));
    auto address = reinterpret_cast<Address>(own) + static_cast<Address>(alignment) - 1;
    auto* aligned = reinterpret_cast<void*>(address - address % static_cast<Address>(alignment));
    copy(aligned, data);
    body(aligned);
    free(own);
}
void GOMP_taskwait() {}
void GOMP_taskyield() {}
void GOMP_taskgroup_start() {}
void GOMP_taskgroup_end() {}

int omp_get_thread_num() { return own_number(); }
int omp_get_num_threads() { return team_size(); }
int omp_get_max_threads() { return g_threads; }
int omp_get_num_procs() { return g_threads; }
int omp_get_thread_limit() { return kThreads; }
int omp_in_parallel() { return t_self != nullptr; }
int omp_get_level() { return (t_self != nullptr) + t_inner; }
int omp_get_active_level() { return t_self != nullptr; }
int omp_get_ancestor_thread_num(int level) { return level == 1 && t_self != nullptr ? t_self->number : 0; }
int omp_get_team_size(int level) { return level == 1 && t_self != nullptr ? g_team->size : 1; }
void omp_set_num_threads(int threads) { kernelmill_set_team(threads, g_direction); }
void omp_set_dynamic(int) {}
int omp_get_dynamic() { return 0; }
void omp_set_nested(int) {}
int omp_get_nested() { return 0; }
void omp_set_max_active_levels(int) {}
int omp_get_max_active_levels() { return 1; }
int omp_get_supported_active_levels() { return 1; }
void omp_set_schedule(int, int) {}
void omp_get_schedule(int* kind, int* chunk) { *kind = 2, *chunk = 1; }
int omp_get_cancellation() { return 0; }
int omp_get_proc_bind() { return 0; }
int omp_get_num_places() { return 0; }
int omp_is_initial_device() { return 1; }
int omp_in_final() { return 0; }
double omp_get_wtime() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
double omp_get_wtick() { return 1e-9; }

void omp_init_lock(void*) {}
void omp_init_lock_with_hint(void*, int) {}
void omp_destroy_lock(void*) {}
void omp_set_lock(void* lock) { take(lock, false); }
void omp_unset_lock(void* lock) { let_go(lock); }
int omp_test_lock(void* lock) { return try_take(lock, false); }
void omp_init_nest_lock(void*) {}
void omp_init_nest_lock_with_hint(void*, int) {}
void omp_destroy_nest_lock(void*) {}
void omp_set_nest_lock(void* lock) { take(lock, true); }
void omp_unset_nest_lock(void* lock) { let_go(lock); }
int omp_test_nest_lock(void* lock) { return try_take(lock, true) ? lock_at(lock).depth : 0; }

}  // extern "C"
