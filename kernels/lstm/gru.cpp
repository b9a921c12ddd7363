// One layer of a GRU over time: r and z are sigmoids of their gates, n = tanh(pre + r (h_{t-1} w^T + bias)), and
// h_t = n + z (h_{t-1} - n), with all steps in one pass (recurrence.hpp). The product of the third gate is scaled
// before it meets its input, so that the two are not added as for the other gates.

#include "recurrence.hpp"

using recurrence::Index;
using recurrence::Sizes;
using recurrence::Workspace;
using vec::Element;
using vec::Floats;

namespace {

struct Cell {
    static constexpr int kStates = 0;
    const Element* bias;  // [hidden]

    Floats operator()(const recurrence::Units& units, Floats before, Floats* /*states*/) const {
        const Floats product = units.product(2) + recurrence::load(bias + units.at, units.hidden - units.at);
        const Floats next = vec::tanh(units.input(2) + vec::sigmoid(units.sum(0)) * product);
        return next + vec::sigmoid(units.sum(1)) * (before - next);
    }
};

}  // namespace

// pre[steps, batch, 3 hidden], r[3 hidden, hidden], h0[batch, hidden], bias[hidden] -> h[steps, batch, hidden].
extern "C" int gru(const Element* pre, const Element* r, const Element* h0, const Element* bias, Element* h,
                   std::int64_t steps, std::int64_t batch, std::int64_t hidden) {
    const auto begin = [&](const Sizes& sizes, const Workspace& shared, Index row) {
        recurrence::widen(h0, sizes, row, shared.h[0]);
    };
    const auto end = [](const Sizes&, const Workspace&, Index) {};
    return recurrence::run(Cell{bias}, pre, r, h, steps, batch, hidden, begin, end);
}
