// One layer of an sLSTM over time (Beck et al. 2024, arXiv:2405.04517): gates = pre_t + h_{t-1} r^T, and with all
// exponents shifted by m_t = max(log sigmoid(f) + m_{t-1}, i), so that none is above 0,
// c_t = e^(log sigmoid(f) + m_{t-1} - m_t) c_{t-1} + e^(i - m_t) tanh(z), n_t the same with 1 in place of tanh(z), and
// h_t = sigmoid(o) c_t / n_t. All steps in one pass (recurrence.hpp).

#include <limits>

#include "recurrence.hpp"

using recurrence::Index;
using recurrence::Sizes;
using recurrence::Workspace;
using vec::Element;
using vec::Floats;

namespace {

struct Cell {
    static constexpr int kStates = 3;  // c, n, m

    Floats operator()(const recurrence::Units& units, Floats /*before*/, Floats* states) const {
        const Floats kept = states[2] - vec::softplus(-units.sum(1));
        const Floats input = units.sum(0);
        states[2] = vec::maximum(kept, input);
        const Floats forget = vec::exp(kept - states[2]), added = vec::exp(input - states[2]);
        states[0] = forget * states[0] + added * vec::tanh(units.sum(2));
        states[1] = forget * states[1] + added;
        return vec::sigmoid(units.sum(3)) * (states[0] / states[1]);
    }
};

}  // namespace

// pre[steps, batch, 4 hidden], r[4 hidden, hidden] -> h[steps, batch, hidden].
extern "C" int slstm(const Element* pre, const Element* r, Element* h, std::int64_t steps, std::int64_t batch,
                     std::int64_t hidden) {
    const auto begin = [](const Sizes& sizes, const Workspace& shared, Index row) {
        const auto fill = [&](float* state, float value) {
            std::fill(state + row * sizes.row, state + (row + 1) * sizes.row, value);
        };
        fill(shared.h[0], 0.0f);
        fill(shared.states, 0.0f);
        fill(shared.states + sizes.state(), 0.0f);
        fill(shared.states + 2 * sizes.state(), -std::numeric_limits<float>::infinity());
    };
    const auto end = [](const Sizes&, const Workspace&, Index) {};
    return recurrence::run(Cell{}, pre, r, h, steps, batch, hidden, begin, end);
}
