// One layer of an LSTM over time: gates = pre_t + h_{t-1} r^T, c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),
// h_t = sigmoid(o) tanh(c_t), with all steps in one pass (recurrence.hpp).

#include "recurrence.hpp"

using recurrence::Index;
using recurrence::Sizes;
using recurrence::Workspace;
using vec::Element;
using vec::Floats;

namespace {

struct Cell {
    static constexpr int kStates = 1;  // c

    Floats operator()(const recurrence::Units& units, Floats /*before*/, Floats* states) const {
        const Floats kept = vec::sigmoid(units.sum(1)) * states[0];
        states[0] = kept + vec::sigmoid(units.sum(0)) * vec::tanh(units.sum(2));
        return vec::sigmoid(units.sum(3)) * vec::tanh(states[0]);
    }
};

}  // namespace

// pre[steps, batch, 4 hidden], r[4 hidden, hidden], h0, c0 [batch, hidden] -> h[steps, batch, hidden], c as c0.
extern "C" int lstm(const Element* pre, const Element* r, const Element* h0, const Element* c0, Element* h, Element* c,
                    std::int64_t steps, std::int64_t batch, std::int64_t hidden) {
    const auto begin = [&](const Sizes& sizes, const Workspace& shared, Index row) {
        recurrence::widen(h0, sizes, row, shared.h[0]);
        recurrence::widen(c0, sizes, row, shared.states);
    };
    const auto end = [&](const Sizes& sizes, const Workspace& shared, Index row) {
        recurrence::narrow(shared.states, sizes, row, c);
    };
    return recurrence::run(Cell{}, pre, r, h, steps, batch, hidden, begin, end);
}
