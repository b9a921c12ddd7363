// <cuda/functional> and <cuda/std/functional>, for sources that include them or CUB: with `using namespace at`, a
// namespace `cuda` would be ambiguous in others.

#pragma once

#include <type_traits>

namespace cuda {

#define EMULATED_CHOICE(NAME, CHOSEN)                                                      \
    template <class Value = void>                                                          \
    struct NAME {                                                                          \
        constexpr Value operator()(const Value& a, const Value& b) const { return CHOSEN; } \
    };                                                                                     \
    template <>                                                                            \
    struct NAME<void> {                                                                    \
        template <class First, class Second>                                               \
        constexpr ::std::common_type_t<First, Second> operator()(const First& a, const Second& b) const { \
            return CHOSEN;                                                                 \
        }                                                                                  \
    };
EMULATED_CHOICE(maximum, a < b ? b : a)
EMULATED_CHOICE(minimum, b < a ? b : a)
#undef EMULATED_CHOICE

namespace std {

#define EMULATED_OPERATION(NAME, OPERATOR)                                                         \
    template <class Value = void>                                                                  \
    struct NAME {                                                                                  \
        constexpr Value operator()(const Value& a, const Value& b) const { return a OPERATOR b; }  \
    };                                                                                             \
    template <>                                                                                    \
    struct NAME<void> {                                                                            \
        template <class First, class Second>                                                       \
        constexpr auto operator()(const First& a, const Second& b) const {                         \
            return a OPERATOR b;                                                                   \
        }                                                                                          \
    };
EMULATED_OPERATION(plus, +)
EMULATED_OPERATION(minus, -)
EMULATED_OPERATION(multiplies, *)
EMULATED_OPERATION(bit_and, &)
EMULATED_OPERATION(bit_or, |)
EMULATED_OPERATION(bit_xor, ^)
EMULATED_OPERATION(logical_and, &&)
EMULATED_OPERATION(logical_or, ||)
#undef EMULATED_OPERATION

}  // namespace std

}  // namespace cuda
