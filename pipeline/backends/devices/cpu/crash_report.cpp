// In a process from its start (LD_PRELOAD): where native code crashed, one line for each function on the stack, the
// innermost first, in the file that $KERNELMILL_CRASH_LOG names: object, offset in it, name, separated by tabs.

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kFrames = 64;
std::atomic<pid_t> reporting{0};
int log_file = -1;
alignas(16) char own_stack[1 << 16];  // the thread's own may be what has run out

uintptr_t interrupted(const void* context) {
#if defined(__x86_64__)
    return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
    return 0;
#endif
}

void report(int number, siginfo_t*, void* context) {
    const pid_t self = gettid();
    pid_t first = 0;
    if (!reporting.compare_exchange_strong(first, self) && first != self) {
        for (;;) pause();  // the process ends with the thread that crashed first
    }
    if (first == self) {  // in what follows
        signal(number, SIG_DFL);
        return;
    }
    void* frames[kFrames];
    const int count = backtrace(frames, kFrames);
    for (int i = 0; i < count; ++i) {
        auto address = reinterpret_cast<uintptr_t>(frames[i]);
        if (address != interrupted(context)) --address;  // of the call, not of what follows it
        Dl_info found;
        if (!dladdr(reinterpret_cast<void*>(address), &found) || found.dli_fname == nullptr) continue;
        const char* name = found.dli_sname == nullptr ? "" : found.dli_sname;
        const auto offset = address - reinterpret_cast<uintptr_t>(found.dli_fbase);
        dprintf(log_file, "%s\t%#zx\t%s\n", found.dli_fname, static_cast<size_t>(offset), name);
    }
    signal(number, SIG_DFL);  // what it did is done again
}

__attribute__((constructor)) void start() {
    const char* path = getenv("KERNELMILL_CRASH_LOG");
    if (path == nullptr) return;
    log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_file < 0) return;
    void* frame;
    backtrace(&frame, 1);  // loads what it needs, for which a handler is no place
    const stack_t stack{own_stack, 0, sizeof own_stack};
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = report;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const int number : kSignals) sigaction(number, &action, nullptr);
}

}  // namespace
