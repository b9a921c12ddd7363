// A parallel loop over independent tasks, each of which needs memory of its own.
#pragma once

#include <atomic>
#include <cstddef>

#include "vector.hpp"

namespace tasks {

// Calls body(task, memory) for each of `count` tasks, with `floats` floats that the thread keeps. 1: no memory.
template <class Body>
inline int for_each(std::ptrdiff_t count, std::ptrdiff_t floats, bool parallel, Body body) {
    std::atomic<int> failed{0};
#pragma omp parallel if (parallel)
    {
        static thread_local vec::Scratch scratch;
        auto* memory = static_cast<float*>(scratch.reserve(static_cast<std::size_t>(floats) * sizeof(float)));
        if (memory == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (std::ptrdiff_t task = 0; task < count; ++task) {
            if (memory != nullptr) body(task, memory);
        }
    }
    return failed;
}

}  // namespace tasks
