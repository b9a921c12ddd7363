// The parts of cooperative groups and of CUB that kernels use most. A function of CUB is collective: its values lie in
// shared memory between barriers.

#pragma once

#include "device.hpp"

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
// The lanes of a warp that are at one place together.
struct coalesced_group {
    unsigned lanes;
    unsigned size() const { return static_cast<unsigned>(__popc(lanes)); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const { return static_cast<unsigned>(__popc(lanes & ((1u << emulated::lane()) - 1u))); }
    void sync() const { __syncwarp(lanes); }
    // The lane of a thread of the group.
    int lane_of(unsigned rank) const {
        unsigned left = lanes;
        for (; rank > 0; --rank) left &= left - 1;
        return __ffs(static_cast<int>(left)) - 1;
    }
    template <class Value>
    Value shfl(Value value, int source) const {
        return __shfl_sync(lanes, value, lane_of(static_cast<unsigned>(source)));
    }
    template <class Value>
    Value shfl_down(Value value, unsigned distance) const {
        const unsigned rank = thread_rank() + distance;
        return __shfl_sync(lanes, value, rank < size() ? lane_of(rank) : static_cast<int>(emulated::lane()));
    }
    template <class Value>
    Value shfl_up(Value value, unsigned distance) const {
        const unsigned rank = thread_rank();
        return __shfl_sync(lanes, value,
                           rank >= distance ? lane_of(rank - distance) : static_cast<int>(emulated::lane()));
    }
    unsigned ballot(int predicate) const {
        const unsigned votes = __ballot_sync(lanes, predicate);
        unsigned found = 0;
        for (unsigned rank = 0; rank < size(); ++rank) found |= (votes >> lane_of(rank) & 1u) << rank;
        return found;
    }
    int any(int predicate) const { return __any_sync(lanes, predicate); }
    int all(int predicate) const { return __all_sync(lanes, predicate); }
};
// Where it is called is a place of its own.
__attribute__((always_inline)) inline coalesced_group coalesced_threads() { return {__activemask()}; }

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
