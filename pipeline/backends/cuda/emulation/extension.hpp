// CUDA sources of an extension for the host's compiler: what `device.hpp` has, numbers of 16 bits, launches out of
// host code, and the parts of cooperative groups, CUB and WMMA that kernels use most.
//
// A launch `kernel<<<grid, block>>>(x)` was rewritten to `emulated::launch("kernel", {grid, block}, [=](auto... given)
// { kernel(given...); }, x)`. A fragment of WMMA is the whole matrix in each lane.

#pragma once

#include <cfloat>
#include <climits>
#include <cstdarg>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <tuple>

#include "device.hpp"
#include "host.hpp"

#undef __constant__
#define __constant__

// ---- numbers of 16 bits

using __half = c10::Half;
using half = c10::Half;
using __nv_bfloat16 = c10::BFloat16;
using nv_bfloat16 = c10::BFloat16;

#define EMULATED_PAIRS(PAIR, NUMBER)                                                                         \
    struct alignas(4) PAIR {                                                                                 \
        NUMBER x, y;                                                                                         \
    };                                                                                                       \
    inline PAIR operator+(PAIR a, PAIR b) { return {NUMBER(a.x + b.x), NUMBER(a.y + b.y)}; }                 \
    inline PAIR operator-(PAIR a, PAIR b) { return {NUMBER(a.x - b.x), NUMBER(a.y - b.y)}; }                 \
    inline PAIR operator*(PAIR a, PAIR b) { return {NUMBER(a.x * b.x), NUMBER(a.y * b.y)}; }                 \
    inline PAIR operator/(PAIR a, PAIR b) { return {NUMBER(a.x / b.x), NUMBER(a.y / b.y)}; }                 \
    inline PAIR& operator+=(PAIR& a, PAIR b) { return a = a + b; }                                           \
    inline PAIR __hadd2(PAIR a, PAIR b) { return a + b; }                                                    \
    inline PAIR __hsub2(PAIR a, PAIR b) { return a - b; }                                                    \
    inline PAIR __hmul2(PAIR a, PAIR b) { return a * b; }                                                    \
    inline PAIR __h2div(PAIR a, PAIR b) { return a / b; }                                                    \
    inline PAIR __hfma2(PAIR a, PAIR b, PAIR c) {                                                            \
        return {NUMBER(std::fma(float(a.x), float(b.x), float(c.x))),                                        \
                NUMBER(std::fma(float(a.y), float(b.y), float(c.y)))};                                       \
    }                                                                                                        \
    inline PAIR __hmax2(PAIR a, PAIR b) { return {a.x < b.x ? b.x : a.x, a.y < b.y ? b.y : a.y}; }           \
    inline PAIR __hmin2(PAIR a, PAIR b) { return {b.x < a.x ? b.x : a.x, b.y < a.y ? b.y : a.y}; }           \
    inline PAIR __hneg2(PAIR a) { return {NUMBER(-float(a.x)), NUMBER(-float(a.y))}; }                       \
    inline NUMBER __hadd(NUMBER a, NUMBER b) { return a + b; }                                               \
    inline NUMBER __hsub(NUMBER a, NUMBER b) { return a - b; }                                               \
    inline NUMBER __hmul(NUMBER a, NUMBER b) { return a * b; }                                               \
    inline NUMBER __hdiv(NUMBER a, NUMBER b) { return a / b; }                                               \
    inline NUMBER __hfma(NUMBER a, NUMBER b, NUMBER c) { return NUMBER(std::fma(float(a), float(b), float(c))); } \
    inline NUMBER __hmax(NUMBER a, NUMBER b) { return a < b ? b : a; }                                       \
    inline NUMBER __hmin(NUMBER a, NUMBER b) { return b < a ? b : a; }                                       \
    inline NUMBER __hneg(NUMBER a) { return NUMBER(-float(a)); }                                             \
    inline NUMBER __habs(NUMBER a) { return NUMBER(std::fabs(float(a))); }                                   \
    inline bool __hgt(NUMBER a, NUMBER b) { return float(a) > float(b); }                                    \
    inline bool __hge(NUMBER a, NUMBER b) { return float(a) >= float(b); }                                   \
    inline bool __hlt(NUMBER a, NUMBER b) { return float(a) < float(b); }                                    \
    inline bool __hle(NUMBER a, NUMBER b) { return float(a) <= float(b); }                                   \
    inline bool __heq(NUMBER a, NUMBER b) { return float(a) == float(b); }                                   \
    inline bool __hisnan(NUMBER a) { return std::isnan(float(a)); }                                          \
    inline NUMBER hexp(NUMBER a) { return NUMBER(std::exp(float(a))); }                                      \
    inline NUMBER hlog(NUMBER a) { return NUMBER(std::log(float(a))); }                                      \
    inline NUMBER hsqrt(NUMBER a) { return NUMBER(std::sqrt(float(a))); }                                    \
    inline NUMBER hrsqrt(NUMBER a) { return NUMBER(1.0f / std::sqrt(float(a))); }                            \
    inline NUMBER hrcp(NUMBER a) { return NUMBER(1.0f / float(a)); }                                         \
    inline PAIR h2exp(PAIR a) { return {hexp(a.x), hexp(a.y)}; }                                             \
    inline PAIR h2sqrt(PAIR a) { return {hsqrt(a.x), hsqrt(a.y)}; }                                          \
    inline PAIR h2rsqrt(PAIR a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }                                       \
    inline NUMBER __low2half(PAIR a) { return a.x; }                                                         \
    inline NUMBER __high2half(PAIR a) { return a.y; }                                                        \
    inline float __low2float(PAIR a) { return a.x; }                                                         \
    inline float __high2float(PAIR a) { return a.y; }                                                        \
    inline PAIR __halves2##PAIR(NUMBER a, NUMBER b) { return {a, b}; }                                       \
    inline float2 emulated_floats(PAIR a) { return {float(a.x), float(a.y)}; }
using __half2 = struct half2;
using __nv_bfloat162 = struct nv_bfloat162;
EMULATED_PAIRS(half2, c10::Half)
EMULATED_PAIRS(nv_bfloat162, c10::BFloat16)
#undef EMULATED_PAIRS

inline float __half2float(half x) { return x; }
inline half __float2half(float x) { return x; }
inline half __float2half_rn(float x) { return x; }
inline half __int2half_rn(int x) { return static_cast<float>(x); }
inline half __double2half(double x) { return static_cast<float>(x); }
inline half2 __float2half2_rn(float x) { return {x, x}; }
inline half2 __half2half2(half x) { return {x, x}; }
inline half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline half2 __float22half2_rn(float2 a) { return {a.x, a.y}; }
inline half2 make_half2(half x, half y) { return {x, y}; }
inline float2 __half22float2(half2 a) { return emulated_floats(a); }
inline unsigned short __half_as_ushort(half x) { return x.x; }
inline half __ushort_as_half(unsigned short bits) { return half(bits, half::from_bits()); }
inline float __bfloat162float(nv_bfloat16 x) { return x; }
inline nv_bfloat16 __float2bfloat16(float x) { return x; }
inline nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline nv_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
inline nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline nv_bfloat162 __float22bfloat162_rn(float2 a) { return {a.x, a.y}; }
inline nv_bfloat162 __halves2bfloat162(nv_bfloat16 x, nv_bfloat16 y) { return {x, y}; }
inline float2 __bfloat1622float2(nv_bfloat162 a) { return emulated_floats(a); }

// ---- launches

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

template <class Function, class... Arguments>
void launch(const char* name, const Configuration& wanted, Function function, Arguments... given) {
    if (!wanted.possible()) {
        last_error = cudaErrorInvalidConfiguration;
        return;
    }
    struct Parts {
        Function function;
        std::tuple<Arguments...> arguments;
    } parts{function, {given...}};
    if (kernelmill_before_launch != nullptr) kernelmill_before_launch();
    auto& memory = shadow::memory;
    memory.parameters = reinterpret_cast<std::uintptr_t>(&parts);
    memory.parameters_size = sizeof parts;
    memory.knows_all = false;
    const std::size_t before = memory.faults.size();
    const char* reason = run_lambda(parts.function, parts.arguments,
                                    {{wanted.grid.x, wanted.grid.y, wanted.grid.z},
                                     {wanted.block.x, wanted.block.y, wanted.block.z}, wanted.shared},
                                    std::index_sequence_for<Arguments...>{});
    memory.parameters_size = 0;
    bool outside = false;
    for (std::size_t number = before; number < memory.faults.size(); ++number) {
        shadow::Fault& fault = memory.faults[number];
        const std::string text = fault.text;
        std::snprintf(fault.text, sizeof fault.text, "kernel '%s': %s", name, text.c_str());
        outside |= !fault.race;
    }
    if (reason != nullptr && !outside) throw std::runtime_error("emulated: kernel '" + std::string(name) + "': " + reason);
}

}  // namespace emulated

// ---- cooperative groups

namespace cooperative_groups {

struct thread_block {
    void sync() const { __syncthreads(); }
    unsigned thread_rank() const {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
    unsigned num_threads() const { return size(); }
    dim3 group_index() const { return blockIdx; }
    dim3 thread_index() const { return threadIdx; }
    dim3 group_dim() const { return blockDim; }
    dim3 dim_threads() const { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

template <unsigned Size, class Parent = thread_block>
struct thread_block_tile {
    static_assert(Size != 0 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile is a part of a warp");
    unsigned first() const { return emulated::lane() / Size * Size; }
    unsigned mask() const { return (Size == 32 ? ~0u : (1u << Size % 32) - 1u) << first(); }
    void sync() const { __syncwarp(mask()); }
    unsigned thread_rank() const { return emulated::lane() % Size; }
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    unsigned meta_group_rank() const { return emulated::machine.running->number / Size; }
    unsigned meta_group_size() const { return (thread_block().size() + Size - 1) / Size; }
    template <class Value>
    Value shfl(Value value, int source) const {
        return __shfl_sync(mask(), value, source, Size);
    }
    template <class Value>
    Value shfl_down(Value value, unsigned distance) const {
        return __shfl_down_sync(mask(), value, distance, Size);
    }
    template <class Value>
    Value shfl_up(Value value, unsigned distance) const {
        return __shfl_up_sync(mask(), value, distance, Size);
    }
    template <class Value>
    Value shfl_xor(Value value, int distance) const {
        return __shfl_xor_sync(mask(), value, distance, Size);
    }
    unsigned ballot(int predicate) const { return __ballot_sync(mask(), predicate) >> first(); }
    int any(int predicate) const { return __any_sync(mask(), predicate); }
    int all(int predicate) const { return __all_sync(mask(), predicate); }
};
template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
    return {};
}
template <class Group>
inline void sync(const Group& group) {
    group.sync();
}

template <class Value>
struct plus {
    Value operator()(Value a, Value b) const { return a + b; }
};
template <class Value>
struct greater {
    Value operator()(Value a, Value b) const { return a < b ? b : a; }
};
template <class Value>
struct less {
    Value operator()(Value a, Value b) const { return b < a ? b : a; }
};
template <unsigned Size, class Parent, class Value, class Function>
inline Value reduce(const thread_block_tile<Size, Parent>& tile, Value value, Function function) {
    for (unsigned distance = Size / 2; distance > 0; distance /= 2) {
        value = function(value, tile.shfl_xor(value, static_cast<int>(distance)));
    }
    return value;
}

}  // namespace cooperative_groups

// ---- CUB

namespace cub {

struct Sum {
    template <class Value>
    Value operator()(Value a, Value b) const {
        return a + b;
    }
};
struct Max {
    template <class Value>
    Value operator()(Value a, Value b) const {
        return a < b ? b : a;
    }
};
struct Min {
    template <class Value>
    Value operator()(Value a, Value b) const {
        return b < a ? b : a;
    }
};
template <class Key, class Value>
struct KeyValuePair {
    Key key;
    Value value;
};
struct ArgMax {
    template <class Pair>
    Pair operator()(const Pair& a, const Pair& b) const {
        return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <class Pair>
    Pair operator()(const Pair& a, const Pair& b) const {
        return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING, BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

// A value of each thread in shared memory; functions of CUB are collective.
template <class Value, int Threads>
struct BlockValues {
    struct TempStorage {
        unsigned char values[sizeof(Value) * Threads];
    };
    explicit BlockValues(TempStorage& storage) : values_(reinterpret_cast<Value*>(storage.values)) {}

  protected:
    unsigned share(const Value& value) {
        const unsigned mine = cooperative_groups::thread_block().thread_rank();
        values_[mine] = value;
        __syncthreads();
        return mine;
    }
    Value* values_;
};

template <class Value, int Threads, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1>
struct BlockReduce : BlockValues<Value, Threads * Y * Z> {
    using BlockValues<Value, Threads * Y * Z>::BlockValues;
    // The result is that of thread 0; the others get what they gave.
    template <class Function>
    Value Reduce(Value value, Function function, int count = Threads * Y * Z) {
        if (this->share(value) != 0) return value;
        Value result = this->values_[0];
        for (int other = 1; other < count; ++other) result = function(result, this->values_[other]);
        return result;
    }
    template <int Items, class Function>
    Value Reduce(Value (&values)[Items], Function function) {
        Value own = values[0];
        for (int item = 1; item < Items; ++item) own = function(own, values[item]);
        return Reduce(own, function);
    }
    template <class Given>
    Value Sum(Given&& given) {
        return Reduce(given, cub::Sum());
    }
    Value Sum(Value value, int count) { return Reduce(value, cub::Sum(), count); }
};

template <class Value, int Threads, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1>
struct BlockScan : BlockValues<Value, Threads * Y * Z> {
    using BlockValues<Value, Threads * Y * Z>::BlockValues;
    template <class Function>
    void InclusiveScan(Value value, Value& result, Function function, Value& total) {
        Value items[1] = {value};
        scan(items, items, function, nullptr, true, total);
        result = items[0];
    }
    template <class Function>
    void InclusiveScan(Value value, Value& result, Function function) {
        Value total;
        InclusiveScan(value, result, function, total);
    }
    template <class Function>
    void ExclusiveScan(Value value, Value& result, Value first, Function function, Value& total) {
        Value items[1] = {value};
        scan(items, items, function, &first, false, total);
        result = items[0];
    }
    template <class Function>
    void ExclusiveScan(Value value, Value& result, Value first, Function function) {
        Value total;
        ExclusiveScan(value, result, first, function, total);
    }
    template <class... Total>
    void InclusiveSum(Value value, Value& result, Total&... total) {
        InclusiveScan(value, result, cub::Sum(), total...);
    }
    template <class... Total>
    void ExclusiveSum(Value value, Value& result, Total&... total) {
        ExclusiveScan(value, result, Value{}, cub::Sum(), total...);
    }
    template <int Items>
    void InclusiveSum(Value (&values)[Items], Value (&results)[Items], Value& total) {
        scan(values, results, cub::Sum(), nullptr, true, total);
    }
    template <int Items>
    void InclusiveSum(Value (&values)[Items], Value (&results)[Items]) {
        Value total;
        InclusiveSum(values, results, total);
    }
    template <int Items>
    void ExclusiveSum(Value (&values)[Items], Value (&results)[Items], Value& total) {
        const Value first{};
        scan(values, results, cub::Sum(), &first, false, total);
    }
    template <int Items>
    void ExclusiveSum(Value (&values)[Items], Value (&results)[Items]) {
        Value total;
        ExclusiveSum(values, results, total);
    }

  private:
    // `first`: what comes before all; there is one for an exclusive scan.
    template <int Items, class Function>
    void scan(Value (&values)[Items], Value (&results)[Items], Function function, const Value* first, bool inclusive,
              Value& total) {
        Value own = values[0];
        for (int item = 1; item < Items; ++item) own = function(own, values[item]);
        const unsigned mine = this->share(own);
        total = this->values_[0];
        for (int other = 1; other < Threads * Y * Z; ++other) total = function(total, this->values_[other]);
        bool any = first != nullptr;
        Value sum = any ? *first : values[0];
        for (unsigned other = 0; other < mine; ++other) {
            sum = any ? function(sum, this->values_[other]) : this->values_[other];
            any = true;
        }
        for (int item = 0; item < Items; ++item) {
            const Value next = any ? function(sum, values[item]) : values[item];
            results[item] = inclusive ? next : sum;
            sum = next;
            any = true;
        }
    }
};

template <class Value, int Lanes = 32>
struct WarpReduce {
    struct TempStorage {};
    explicit WarpReduce(TempStorage&) {}
    template <class Function>
    Value Reduce(Value value, Function function) {
        const cooperative_groups::thread_block_tile<Lanes> tile;
        for (unsigned distance = Lanes / 2; distance > 0; distance /= 2) {
            const Value other = tile.shfl_down(value, distance);
            if (tile.thread_rank() + distance < Lanes) value = function(value, other);
        }
        return value;
    }
    Value Sum(Value value) { return Reduce(value, cub::Sum()); }
};

}  // namespace cub

// ---- WMMA

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}
template <class Value>
struct Stored {
    using type = Value;
};
template <>
struct Stored<precision::tf32> {
    using type = float;
};

template <class Use, int M, int N, int K, class Value, class Layout = void>
struct fragment {
    static constexpr int rows = std::is_same_v<Use, matrix_b> ? K : M;
    static constexpr int columns = std::is_same_v<Use, matrix_a> ? K : N;
    static constexpr int num_elements = rows * columns;
    using element_type = typename Stored<Value>::type;
    element_type x[num_elements];
};

template <class Use, int M, int N, int K, class Value, class Layout, class Number>
inline void fill_fragment(fragment<Use, M, N, K, Value, Layout>& to, Number value) {
    for (auto& element : to.x) element = value;
}
template <class Use, int M, int N, int K, class Value, class Layout>
inline void load(fragment<Use, M, N, K, Value, Layout>& to, const typename Stored<Value>::type* from, unsigned stride,
                 bool by_rows) {
    using Matrix = fragment<Use, M, N, K, Value, Layout>;
    for (int row = 0; row < Matrix::rows; ++row) {
        for (int column = 0; column < Matrix::columns; ++column) {
            const std::size_t place = by_rows ? row * std::size_t{stride} + column : column * std::size_t{stride} + row;
            to.x[row * Matrix::columns + column] = from[place];
        }
    }
}
template <class Use, int M, int N, int K, class Value, class Layout>
inline void load_matrix_sync(fragment<Use, M, N, K, Value, Layout>& to, const typename Stored<Value>::type* from,
                             unsigned stride) {
    __syncwarp();
    load(to, from, stride, std::is_same_v<Layout, row_major>);
}
template <int M, int N, int K, class Value>
inline void load_matrix_sync(fragment<accumulator, M, N, K, Value>& to, const Value* from, unsigned stride,
                             layout_t layout) {
    __syncwarp();
    load(to, from, stride, layout == mem_row_major);
}
template <int M, int N, int K, class Value>
inline void store_matrix_sync(Value* to, const fragment<accumulator, M, N, K, Value>& from, unsigned stride,
                              layout_t layout) {
    // Each lane stores a share.
    for (int place = static_cast<int>(emulated::lane()); place < M * N; place += 32) {
        const int row = place / N, column = place % N;
        to[layout == mem_row_major ? row * std::size_t{stride} + column : column * std::size_t{stride} + row] = from.x[place];
    }
    __syncwarp();
}
template <int M, int N, int K, class A, class LayoutA, class LayoutB, class Sum>
inline void mma_sync(fragment<accumulator, M, N, K, Sum>& to, const fragment<matrix_a, M, N, K, A, LayoutA>& a,
                     const fragment<matrix_b, M, N, K, A, LayoutB>& b, const fragment<accumulator, M, N, K, Sum>& c) {
    using Wide = std::conditional_t<std::is_integral_v<Sum>, int, float>;
    for (int row = 0; row < M; ++row) {
        for (int column = 0; column < N; ++column) {
            Wide sum = c.x[row * N + column];
            for (int k = 0; k < K; ++k) sum += Wide(a.x[row * K + k]) * Wide(b.x[k * N + column]);
            to.x[row * N + column] = Sum(sum);
        }
    }
}
inline float __float_to_tf32(float x) {
    const unsigned bits = __float_as_uint(x) + 0x1000u;
    return __uint_as_float(bits & ~0x1FFFu);
}

}  // namespace nvcuda::wmma
