// Inline PTX as functions: `asm("cp.async.commit_group;")` is rewritten to `emulated::ptx::cp_async_commit_group()`.
//
// Fragments and semantics are those of the PTX ISA 9.0: cp.async in section 9.7.9.25, ldmatrix in 9.7.15.5.15,
// mma.m16n8k16 in 9.7.15.5.8. Sums of a matrix instruction are rounded to float32 after each addition; how the
// tensor cores round inside of one instruction is not documented.

#pragma once

#include <cmath>

#include "fibres.hpp"

namespace emulated::ptx {

UNWATCHED inline void all_of(const Meeting& meeting) {
    if (meeting.mask != ~0u) fail("a matrix instruction without all lanes of its warp");
}

// ---- numbers

inline float widen_bfloat16(std::uint16_t bits) {
    const std::uint32_t wide = std::uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

inline float widen_float16(std::uint16_t bits) {
    _Float16 value;
    std::memcpy(&value, &bits, sizeof value);
    return static_cast<float>(value);
}

inline void cvt_f32_f16(float& to, std::uint16_t from) { to = widen_float16(from); }

inline void cvt_rn_f16_f32(std::uint16_t& to, float from) {
    const _Float16 value = static_cast<_Float16>(from);
    std::memcpy(&to, &value, sizeof to);
    if (std::isnan(from)) to = 0x7FFF;
}

inline void cvt_rn_bf16_f32(std::uint16_t& to, float from) {
    std::uint32_t bits;
    std::memcpy(&bits, &from, sizeof bits);
    to = std::isnan(from) ? 0x7FFF : static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline void ex2_approx_f32(float& to, float from) { to = std::exp2(from); }
inline void ex2_approx_ftz_f32(float& to, float from) { to = std::exp2(from); }
inline void rcp_approx_f32(float& to, float from) { to = 1.0f / from; }
inline void rcp_approx_ftz_f32(float& to, float from) { to = 1.0f / from; }

// ---- addresses of shared memory: the lower half of the host's

inline char anchor;  // near the static arrays

inline unsigned char* from_shared(std::uint32_t address) {
    const std::uint32_t inside = address - static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(machine.shared));
    if (inside < machine.shared_size) return machine.shared + inside;
    const auto base = reinterpret_cast<std::uintptr_t>(&anchor);
    const auto distance = static_cast<std::int32_t>(address - static_cast<std::uint32_t>(base));
    return reinterpret_cast<unsigned char*>(base + static_cast<std::intptr_t>(distance));
}

inline void require_aligned(const void* address, std::uintptr_t bytes, const char* instruction) {
    if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) {
        fail("misaligned address: %s needs a multiple of %zu bytes", instruction, static_cast<std::size_t>(bytes));
    }
}

// ---- asynchronous copies

UNWATCHED inline void perform(const Copy& copy) {
    std::memcpy(copy.to, copy.from, copy.bytes);
    std::memset(static_cast<unsigned char*>(copy.to) + copy.bytes, 0, copy.zeros);
}

template <class Address>
UNWATCHED inline void copy_async(std::uint32_t to, Address from, unsigned size, unsigned read) {
    void* place = from_shared(to);
    const void* source = reinterpret_cast<const void*>(from);
    const shadow::Unwatched section;
    require_aligned(place, size, "cp.async");
    require_aligned(source, size, "cp.async");
    if (read > size) fail("cp.async reads %u bytes of a copy of %u", read, size);
    const Copy copy{place, source, read, size - read, machine.early()};
    shadow::copied(reinterpret_cast<std::uintptr_t>(source), read, false);
    shadow::copied(reinterpret_cast<std::uintptr_t>(place), size, true);
    if (copy.early) perform(copy);
    machine.running->open_copies.push_back(copy);
}

template <class Address>
inline void cp_async_cg_shared_global(std::uint32_t to, Address from, unsigned size, unsigned read) {
    copy_async(to, from, size, read);
}
template <class Address>
inline void cp_async_cg_shared_global(std::uint32_t to, Address from, unsigned size) {
    copy_async(to, from, size, size);
}
template <class Address>
inline void cp_async_ca_shared_global(std::uint32_t to, Address from, unsigned size, unsigned read) {
    copy_async(to, from, size, read);
}
template <class Address>
inline void cp_async_ca_shared_global(std::uint32_t to, Address from, unsigned size) {
    copy_async(to, from, size, size);
}

UNWATCHED inline void cp_async_commit_group() {
    const shadow::Unwatched section;
    Fibre& self = *machine.running;
    self.groups.push_back(std::move(self.open_copies));
    self.open_copies.clear();
}

// A copy writes at any time between its start and this.
UNWATCHED inline void cp_async_wait_group(unsigned newest) {
    const shadow::Unwatched section;
    auto& groups = machine.running->groups;
    while (groups.size() > newest) {
        for (const Copy& copy : groups.front()) {
            shadow::copied(reinterpret_cast<std::uintptr_t>(copy.to), copy.bytes + copy.zeros, true);
            if (!copy.early) perform(copy);
        }
        groups.erase(groups.begin());
    }
}

inline void cp_async_wait_all() {
    cp_async_commit_group();
    cp_async_wait_group(0);
}

// ---- 8 x 8 matrices of 16 bits

struct MatrixLoad {
    std::uint32_t address;
    std::uint32_t* to[4];
};

template <int COUNT, bool TRANSPOSED>
inline void load_matrices(Meeting& meeting) {
    all_of(meeting);
    for (unsigned number = 0; number < COUNT; ++number) {
        std::uint16_t matrix[8][8];
        for (unsigned row = 0; row < 8; ++row) {
            const auto* giver = static_cast<MatrixLoad*>(meeting.operands[8 * number + row]);
            const unsigned char* place = from_shared(giver->address);
            require_aligned(place, sizeof matrix[0], "ldmatrix");
            std::memcpy(matrix[row], place, sizeof matrix[0]);
        }
        for (unsigned lane = 0; lane < kWarp; ++lane) {
            const unsigned row = lane / 4, col = lane % 4 * 2;
            const std::uint32_t low = TRANSPOSED ? matrix[col][row] : matrix[row][col];
            const std::uint32_t high = TRANSPOSED ? matrix[col + 1][row] : matrix[row][col + 1];
            *static_cast<MatrixLoad*>(meeting.operands[lane])->to[number] = low | high << 16;
        }
    }
}

template <int COUNT, bool TRANSPOSED>
inline void load_matrix(MatrixLoad load) {
    if (lane() < 8 * COUNT) shadow::copied(reinterpret_cast<std::uintptr_t>(from_shared(load.address)), 16, false);
    const auto run = load_matrices<COUNT, TRANSPOSED>;
    meet(reinterpret_cast<const void*>(run), ~0u, &load, run);
}

inline void ldmatrix_sync_aligned_m8n8_x1_shared_b16(std::uint32_t& a, std::uint32_t address) {
    load_matrix<1, false>({address, {&a}});
}
inline void ldmatrix_sync_aligned_m8n8_x2_shared_b16(std::uint32_t& a, std::uint32_t& b, std::uint32_t address) {
    load_matrix<2, false>({address, {&a, &b}});
}
inline void ldmatrix_sync_aligned_m8n8_x4_shared_b16(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                                                     std::uint32_t& d, std::uint32_t address) {
    load_matrix<4, false>({address, {&a, &b, &c, &d}});
}
inline void ldmatrix_sync_aligned_m8n8_x1_trans_shared_b16(std::uint32_t& a, std::uint32_t address) {
    load_matrix<1, true>({address, {&a}});
}
inline void ldmatrix_sync_aligned_m8n8_x2_trans_shared_b16(std::uint32_t& a, std::uint32_t& b,
                                                           std::uint32_t address) {
    load_matrix<2, true>({address, {&a, &b}});
}
inline void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                                                           std::uint32_t& d, std::uint32_t address) {
    load_matrix<4, true>({address, {&a, &b, &c, &d}});
}

// ---- d[16, 8] = a[16, 16] b[16, 8] + c[16, 8]

struct Product {
    std::uint32_t a[4];
    std::uint32_t b[2];
    float c[4];
    float* d[4];
};

template <float (*WIDEN)(std::uint16_t)>
inline void multiply(Meeting& meeting) {
    all_of(meeting);
    float a[16][16], b[16][8], sums[16][8];
    for (unsigned lane = 0; lane < kWarp; ++lane) {
        const auto& given = *static_cast<Product*>(meeting.operands[lane]);
        const unsigned group = lane / 4, pair = lane % 4 * 2;
        for (unsigned half = 0; half < 2; ++half) {
            const auto element = [half](std::uint32_t both) {
                return WIDEN(static_cast<std::uint16_t>(both >> 16 * half));
            };
            for (unsigned part = 0; part < 4; ++part) {
                a[group + part % 2 * 8][pair + part / 2 * 8 + half] = element(given.a[part]);
                sums[group + part / 2 * 8][pair + part % 2] = given.c[part];
            }
            for (unsigned part = 0; part < 2; ++part) b[pair + part * 8 + half][group] = element(given.b[part]);
        }
    }
    for (unsigned k = 0; k < 16; ++k) {
        for (unsigned row = 0; row < 16; ++row) {
            for (unsigned col = 0; col < 8; ++col) sums[row][col] += a[row][k] * b[k][col];
        }
    }
    for (unsigned lane = 0; lane < kWarp; ++lane) {
        const auto& given = *static_cast<Product*>(meeting.operands[lane]);
        for (unsigned part = 0; part < 4; ++part) {
            *given.d[part] = sums[lane / 4 + part / 2 * 8][lane % 4 * 2 + part % 2];
        }
    }
}

inline void meet_for_product(Product product, void (*run)(Meeting&)) {
    meet(reinterpret_cast<const void*>(run), ~0u, &product, run);
}

#define EMULATED_MMA(NAME, WIDEN)                                                                              \
    inline void mma_sync_aligned_m16n8k16_row_col_f32_##NAME##_f32(                                            \
        float& d0, float& d1, float& d2, float& d3, std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,      \
        std::uint32_t a3, std::uint32_t b0, std::uint32_t b1, float c0, float c1, float c2, float c3) {        \
        meet_for_product({{a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3}, {&d0, &d1, &d2, &d3}}, multiply<WIDEN>); \
    }
EMULATED_MMA(f16_f16, widen_float16)
EMULATED_MMA(bf16_bf16, widen_bfloat16)
#undef EMULATED_MMA

}  // namespace emulated::ptx
