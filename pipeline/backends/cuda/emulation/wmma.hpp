// WMMA: a fragment is the whole matrix in each lane, so that elementwise work on it is right, and each lane stores a share.

#pragma once

#include "half.hpp"

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
