// CUDA sources of an extension for the host's compiler: what `device.hpp` has, launches out of host code, and libraries.
//
// A launch `kernel<<<grid, block>>>(x)` was rewritten to `emulated::launch("kernel", {grid, block}, [=](auto... given)
// { kernel(given...); }, x)`.

#pragma once

#include <atomic>
#include <cfloat>
#include <climits>
#include <stdexcept>
#include <string>
#include <tuple>

#include "collectives.hpp"
#include "device.hpp"
#include "half.hpp"
#include "host.hpp"
#include "wmma.hpp"

#undef __constant__
#define __constant__

extern "C" {
inline void (*kernelmill_before_launch)() = nullptr;  // says by `kernelmill_watch` what there is to access
}

namespace emulated {

struct Configuration {
    dim3 grid, block;
    std::size_t shared = 0;
    cudaStream_t stream = nullptr;
    bool possible() const {
        const bool some = grid.x != 0 && grid.y != 0 && grid.z != 0 && block.x != 0 && block.y != 0 && block.z != 0;
        const bool few = grid.x <= 0x7FFFFFFFu && grid.y <= 65535 && grid.z <= 65535 && block.z <= 64 &&
                         std::size_t{block.x} * block.y * block.z <= std::size_t{kThreadsOfBlock};
        return some && few && shared <= allowed_shared;
    }
};

template <class Function, class Arguments, std::size_t... Places>
const char* run_lambda(Function& function, Arguments& arguments, const Geometry& geometry, std::index_sequence<Places...>) {
    struct Call {
        Function* function;
        Arguments* arguments;
    } call{&function, &arguments};
    body = {[](void* given) UNWATCHED {
                const auto& [function, arguments] = *static_cast<Call*>(given);
                (*function)(std::get<Places>(*arguments)...);
            },
            &call};
    return run_grid(geometry);
}

// Launches of two threads at once.
struct Alone {
    static inline std::atomic<bool> taken{false};
    Alone() {
        if (taken.exchange(true)) throw std::runtime_error("emulated: two threads launch at once, which needs a device");
    }
    ~Alone() { taken = false; }
};

template <class Function, class... Arguments>
void launch(const char* name, const Configuration& wanted, Function function, Arguments... given) {
    if (!wanted.possible()) {
        last_error = cudaErrorInvalidConfiguration;
        return;
    }
    const Alone alone;
    struct Parts {
        Function function;
        std::tuple<Arguments...> arguments;
    } parts{function, {given...}};
    if (kernelmill_before_launch != nullptr) kernelmill_before_launch();
    auto& memory = shadow::memory;
    memory.parameters = reinterpret_cast<std::uintptr_t>(&parts);
    memory.parameters_size = sizeof parts;
    memory.knows_all = memory.ended_by_fault = false;
    const std::size_t before = memory.faults.size();
    const char* reason = run_lambda(parts.function, parts.arguments,
                                    {{wanted.grid.x, wanted.grid.y, wanted.grid.z},
                                     {wanted.block.x, wanted.block.y, wanted.block.z}, wanted.shared},
                                    std::index_sequence_for<Arguments...>{});
    memory.parameters_size = 0;
    for (std::size_t number = before; number < memory.faults.size(); ++number) {
        shadow::Fault& fault = memory.faults[number];
        const std::string text = fault.text;
        std::snprintf(fault.text, sizeof fault.text, "kernel '%s': %s", name, text.c_str());
    }
    if (reason != nullptr && !memory.ended_by_fault) throw std::runtime_error("emulated: kernel '" + std::string(name) + "': " + reason);
}

}  // namespace emulated
