// Kernels whose threads race, `wrong_*`, and kernels that are right however awkward they look, `right_*`.
// All have one signature; what they compute does not matter, only how their threads share memory.

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <omp.h>
#include <vector>

#define KERNEL(name) extern "C" void name(const float* x, float* y, std::int64_t rows, std::int64_t cols)

static float sum_of(const float* row, std::int64_t cols) {
    float sum = 0;
    for (std::int64_t i = 0; i < cols; ++i) sum += row[i];
    return sum;
}

KERNEL(wrong_shared_scale) {
    float scale;
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r) {
        scale = 1 / (1 + std::fabs(sum_of(x + r * cols, cols)));
        for (std::int64_t c = 0; c < cols; ++c) y[r * cols + c] = x[r * cols + c] * scale;
    }
}

KERNEL(wrong_shared_buffer) {
    std::vector<float> buffer(cols);
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) buffer[c] = x[r * cols + c] + 1;
        for (std::int64_t c = 0; c < cols; ++c) y[r * cols + c] = buffer[c];
    }
}

static float g_buffer[1 << 12];
KERNEL(wrong_static_buffer) {
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t r = 0; r < rows; ++r) {
        std::memcpy(g_buffer, x + r * cols, cols * sizeof(float));
        for (std::int64_t c = 0; c < cols; ++c) y[r * cols + c] = g_buffer[cols - 1 - c];
    }
}

KERNEL(wrong_missing_reduction) {
    float total = 0;
#pragma omp parallel for
    for (std::int64_t i = 0; i < rows * cols; ++i) total += x[i];
    for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = total;
}

KERNEL(wrong_overlapping_rows) {
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c <= cols && r * cols + c < rows * cols; ++c) y[r * cols + c] = x[r * cols] + r;
}

KERNEL(wrong_prefix_carry) {
#pragma omp parallel for
    for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] + (i == 0 ? 0 : y[i - 1]);
}

KERNEL(wrong_dynamic_column_sums) {
    std::memset(y, 0, rows * cols * sizeof(float));
#pragma omp parallel for schedule(dynamic, 1)
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < cols; ++c) y[c] += x[r * cols + c];
}

KERNEL(wrong_nowait) {
    std::vector<float> sums(rows);
#pragma omp parallel
    {
#pragma omp for nowait
        for (std::int64_t r = 0; r < rows; ++r) sums[r] = sum_of(x + r * cols, cols);
#pragma omp for
        for (std::int64_t r = 0; r < rows; ++r) y[r] = sums[rows - 1 - r];
    }
}

KERNEL(wrong_single_nowait) {
    float mean = 0;
#pragma omp parallel
    {
#pragma omp single nowait
        mean = sum_of(x, rows * cols) / static_cast<float>(rows * cols);
#pragma omp for
        for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] - mean;
    }
}

KERNEL(wrong_master) {
    float mean = 0;
#pragma omp parallel
    {
#pragma omp master
        mean = sum_of(x, rows * cols);
#pragma omp for
        for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] - mean;
    }
}

KERNEL(wrong_critical_names) {
    float total = 0;
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r) {
        if (r % 2 == 0) {
#pragma omp critical(even)
            total += x[r * cols];
        } else {
#pragma omp critical(odd)
            total += x[r * cols];
        }
    }
    y[0] = total;
}

KERNEL(wrong_atomic_and_plain) {
    float total = 0;
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp atomic
        total += x[r * cols];
        y[r] = total;
    }
}

KERNEL(wrong_relaxed_flag) {
    std::vector<float> sums(1);
    std::atomic<int> ready{0};
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0) {
            sums[0] = sum_of(x, cols);
            ready.store(1, std::memory_order_relaxed);
        }
        while (ready.load(std::memory_order_relaxed) == 0) {
        }
        y[omp_get_thread_num()] = sums[0];
    }
}

KERNEL(wrong_buffers_by_row) {  // two rows of one thread's share meet in one buffer
    std::vector<float> buffers(2 * cols);
#pragma omp parallel for schedule(static, 1)
    for (std::int64_t r = 0; r < rows; ++r) {
        float* own = buffers.data() + (r / 2 % 2) * cols;
        for (std::int64_t c = 0; c < cols; ++c) own[c] = x[r * cols + c] * 2;
        for (std::int64_t c = 0; c < cols; ++c) y[r * cols + c] = own[c];
    }
}

KERNEL(wrong_counter_of_chunks) {  // the work is shared with an atomic counter, the scratch without
    std::atomic<std::int64_t> next{0};
    float scratch = 0;
#pragma omp parallel
    for (std::int64_t r = next.fetch_add(1); r < rows; r = next.fetch_add(1)) {
        scratch = sum_of(x + r * cols, cols);
        y[r] = scratch;
    }
}

KERNEL(wrong_packed_bytes) {  // halves of a byte
    auto* bits = reinterpret_cast<std::uint8_t*>(y);
    std::memset(bits, 0, rows * cols);
#pragma omp parallel for schedule(static, 1)
    for (std::int64_t i = 0; i < rows * cols; ++i) bits[i / 2] |= static_cast<std::uint8_t>(5 << (i % 2 * 4));
}

KERNEL(wrong_transpose_in_place) {
#pragma omp parallel
    {
#pragma omp for
        for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] + static_cast<float>(i);
#pragma omp for
        for (std::int64_t i = 0; i < rows * cols; ++i) {
            std::int64_t j = rows * cols - 1 - i;
            float kept = y[i];
            y[i] = y[j];
            y[j] = kept;
        }
    }
}

KERNEL(wrong_sections) {
    float part = 0;
#pragma omp parallel sections
    {
#pragma omp section
        {
            part = x[0] + 1;
            y[0] = part;
        }
#pragma omp section
        {
            part = x[1] + 2;
            y[1] = part;
        }
    }
}

KERNEL(right_rows) {
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r) {
        float scale = 1 / (1 + std::fabs(sum_of(x + r * cols, cols)));
        for (std::int64_t c = 0; c < cols; ++c) y[r * cols + c] = x[r * cols + c] * scale;
    }
}

KERNEL(right_neighbours) {  // neighbouring elements of other threads: false sharing is no race
#pragma omp parallel for schedule(static, 1)
    for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] * 2;
}

KERNEL(right_neighbouring_bytes) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(y);
#pragma omp parallel for schedule(static, 1)
    for (std::int64_t i = 0; i < rows * cols; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
}

KERNEL(right_mixed_widths) {  // floats of all threads, read as bytes after the barrier
#pragma omp parallel
    {
#pragma omp for schedule(static, 1)
        for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = x[i];
#pragma omp for schedule(static, 3)
        for (std::int64_t i = 0; i < 4 * rows * cols; ++i) reinterpret_cast<std::uint8_t*>(y)[i] ^= 1;
    }
}

KERNEL(right_buffers_by_thread) {
    std::vector<float> buffers(omp_get_max_threads() * cols);
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r) {
        float* own = buffers.data() + omp_get_thread_num() * cols;
        for (std::int64_t c = 0; c < cols; ++c) own[c] = x[r * cols + c] + 1;
        for (std::int64_t c = 0; c < cols; ++c) y[r * cols + c] = own[c];
    }
}

KERNEL(right_vectors_inside) {  // memory that is freed and allocated again, small and large
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t r = 0; r < rows; ++r) {
        std::vector<float> small(cols), large(1 << 17);
        for (std::int64_t c = 0; c < cols; ++c) small[c] = large[c * 97] + x[r * cols + c];
        for (std::int64_t c = 0; c < cols; ++c) y[r * cols + c] = small[c];
    }
}

KERNEL(right_thread_local) {
    static thread_local std::vector<float> buffer;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t r = 0; r < rows; ++r) {
        buffer.assign(x + r * cols, x + (r + 1) * cols);
        for (std::int64_t c = 0; c < cols; ++c) y[r * cols + c] = buffer[cols - 1 - c];
    }
}

KERNEL(right_reduction) {
    float total = 0, most = x[0];
#pragma omp parallel for reduction(+ : total) reduction(max : most)
    for (std::int64_t i = 0; i < rows * cols; ++i) {
        total += x[i];
        most = x[i] > most ? x[i] : most;
    }
    y[0] = total + most;
}

KERNEL(right_array_reduction) {
    std::memset(y, 0, cols * sizeof(float));
#pragma omp parallel for reduction(+ : y[ : cols])
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < cols; ++c) y[c] += x[r * cols + c];
}

KERNEL(right_critical) {
    float total = 0, other = 0;
#pragma omp parallel
    {
        float own = 0;
#pragma omp for nowait
        for (std::int64_t r = 0; r < rows; ++r) own += sum_of(x + r * cols, cols);
#pragma omp critical
        total += own;
#pragma omp critical(named)
        other += own;
    }
    y[0] = total + other;
}

KERNEL(right_atomic) {
    double total = 0;
    std::memset(y, 0, cols * sizeof(float));
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < cols; ++c) {
#pragma omp atomic
            y[c] += x[r * cols + c];
#pragma omp atomic
            total += x[r * cols + c];
        }
    y[0] += static_cast<float>(total);
}

KERNEL(right_locks) {
    omp_lock_t lock;
    omp_init_lock(&lock);
    omp_nest_lock_t nest;
    omp_init_nest_lock(&nest);
    std::mutex mutex;
    float total = 0, second = 0, third = 0;
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r) {
        omp_set_lock(&lock);
        total += x[r * cols];
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        second += x[r * cols];
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
        std::lock_guard<std::mutex> guard(mutex);
        third += x[r * cols];
    }
    y[0] = total + second + third;
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
}

KERNEL(right_histogram) {
    constexpr int kBins = 16;
    std::vector<int> copies(omp_get_max_threads() * kBins);
    std::vector<int> bins(kBins);
#pragma omp parallel
    {
        int* own = copies.data() + omp_get_thread_num() * kBins;
#pragma omp for
        for (std::int64_t i = 0; i < rows * cols; ++i) ++own[static_cast<int>(std::fabs(x[i]) * 4) % kBins];
#pragma omp for
        for (int bin = 0; bin < kBins; ++bin)
            for (int t = 0; t < omp_get_num_threads(); ++t) bins[bin] += copies[t * kBins + bin];
    }
    for (int bin = 0; bin < kBins; ++bin) y[bin] = static_cast<float>(bins[bin]);
}

typedef float Vector __attribute__((vector_size(32), aligned(4)));
KERNEL(right_vector_stores) {  // rows of any length: a vector ends where another thread's row begins
#pragma omp parallel for schedule(static, 1)
    for (std::int64_t r = 0; r < rows; ++r) {
        std::int64_t c = 0;
        for (; c + 8 <= cols; c += 8)
            *reinterpret_cast<Vector*>(y + r * cols + c) = *reinterpret_cast<const Vector*>(x + r * cols + c) * 2.0f;
        for (; c < cols; ++c) y[r * cols + c] = x[r * cols + c] * 2;
    }
}

KERNEL(right_nested) {
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r) {
        float total = 0;
#pragma omp parallel for reduction(+ : total) schedule(dynamic)
        for (std::int64_t c = 0; c < cols; ++c) total += x[r * cols + c];
        y[r] = total;
    }
}

KERNEL(right_single) {
    float mean = 0, copied;
    int threads = 0;
#pragma omp parallel private(copied)
    {
        threads = omp_get_num_threads();  // every thread writes the same number
#pragma omp single
        mean = sum_of(x, rows * cols) / static_cast<float>(threads);
#pragma omp single copyprivate(copied)
        copied = mean * 2;
#pragma omp for
        for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] - mean + copied;
    }
}

KERNEL(right_ordered) {
    float carry = 0;
#pragma omp parallel for ordered schedule(dynamic, 2)
    for (std::int64_t r = 0; r < rows; ++r) {
        float sum = sum_of(x + r * cols, cols);
#pragma omp ordered
        {
            carry += sum;
            y[r] = carry;
        }
    }
}

KERNEL(right_published) {  // each thread waits for the sum of the one before it
    int most = omp_get_max_threads();
    std::vector<std::atomic<int>> ready(most + 1);
    std::vector<float> sums(most + 1);
    ready[0] = 1;
#pragma omp parallel
    {
        int me = omp_get_thread_num(), count = omp_get_num_threads();
        float own = 0;
        for (std::int64_t r = me; r < rows; r += count) own += sum_of(x + r * cols, cols);
        while (ready[me].load(std::memory_order_acquire) == 0) {
        }
        sums[me + 1] = sums[me] + own;
        ready[me + 1].store(1, std::memory_order_release);
        y[me] = sums[me + 1];
    }
}

KERNEL(right_work_queue) {  // a mutex hands indices over, and what they stand for
    std::vector<std::int64_t> queue;
    std::vector<float> made(rows);
#pragma omp parallel
    {
#pragma omp for nowait
        for (std::int64_t r = 0; r < rows; ++r) {
            made[r] = sum_of(x + r * cols, cols);
#pragma omp critical(queue)
            queue.push_back(r);
        }
        for (bool some = true; some;) {
            std::int64_t r = -1;
#pragma omp critical(queue)
            {
                some = !queue.empty();
                if (some) {
                    r = queue.back();
                    queue.pop_back();
                }
            }
            if (some) y[r] = made[r];
        }
    }
}

KERNEL(right_static_table) {
#pragma omp parallel for
    for (std::int64_t r = 0; r < rows; ++r) {
        static const std::vector<float> table(64, 0.5f);
        y[r] = x[r * cols] * table[r % 64];
    }
}

KERNEL(right_tasks) {
#pragma omp parallel
#pragma omp single
    {
        for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp task firstprivate(r)
            y[r] = sum_of(x + r * cols, cols);
        }
#pragma omp taskwait
        y[0] += 1;
    }
}

KERNEL(right_sections_and_schedules) {
#pragma omp parallel
    {
#pragma omp sections
        {
#pragma omp section
            y[0] = x[0];
#pragma omp section
            y[1] = x[1];
#pragma omp section
            y[2] = x[2];
        }
#pragma omp for schedule(guided)
        for (std::uint64_t i = 3; i < static_cast<std::uint64_t>(rows * cols); ++i) y[i] = x[i];
#pragma omp for schedule(runtime) collapse(2)
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = cols - 1; c >= 0; --c) y[r * cols + c] += 1;
    }
}
