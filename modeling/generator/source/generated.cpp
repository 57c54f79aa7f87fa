// SPDX-License-Identifier: Apache-2.0
#include "generated.hpp"

#include <algorithm>
#include <cmath>

namespace generated {
namespace {

// Element `index` of `rank`; sums over ranks have a closed form.
Element pattern(std::uint64_t rank, std::uint64_t index) {
    return static_cast<Element>(rank * 2654435761ULL + index * 40503ULL + 1);
}

Element pattern_sum(std::uint64_t ranks, std::uint64_t index) {
    return static_cast<Element>(ranks * (ranks - 1) / 2 * 2654435761ULL + ranks * (index * 40503ULL + 1));
}

bool sends_to_all(const Run &run, Operation operation) {
    return operation == Operation::alltoall || (operation == Operation::scatter && run.rank == 0);
}

bool receives_from_all(const Run &run, Operation operation) {
    return operation == Operation::allgather || operation == Operation::alltoall ||
           (operation == Operation::gather && run.rank == 0);
}

bool receives(const Run &run, Operation operation) {
    switch (operation) {
    case Operation::none:
    case Operation::barrier:
    case Operation::bcast:
        return false;
    case Operation::reduce:
    case Operation::gather:
        return run.rank == 0;
    default:
        return true;
    }
}

// Returns the correct value at `index` of the received array.
Element arriving(const Run &run, Operation operation, std::size_t elements, std::size_t index) {
    const auto rank = static_cast<std::uint64_t>(run.rank);
    const auto ranks = static_cast<std::uint64_t>(run.ranks);
    switch (operation) {
    case Operation::reduce:
    case Operation::allreduce:
        return pattern_sum(ranks, index);
    case Operation::gather:
    case Operation::allgather:
        return pattern(index / elements, index % elements);
    case Operation::alltoall:
        return pattern(index / elements, rank * elements + index % elements);
    case Operation::scatter:
        return pattern(0, rank * elements + index);
    case Operation::send_recv:
        return pattern((rank + ranks - 1) % ranks, index);
    default:
        return pattern(0, index);
    }
}

} // namespace

Data::Data(const Run &run, Operation which, std::size_t count) : operation(which), elements(count) {
    const auto ranks = static_cast<std::size_t>(run.ranks);
    const bool talks = run.communicates;
    mine.resize(talks && sends_to_all(run, operation) ? ranks * elements : elements);
    if (talks && receives(run, operation)) {
        theirs.resize(receives_from_all(run, operation) ? ranks * elements : elements);
    }
    const bool waits = talks && operation == Operation::bcast && run.rank != 0;
    for (std::size_t index = 0; index < mine.size() && !waits; index++) {
        mine[index] = pattern(static_cast<std::uint64_t>(run.rank), index);
    }
}

std::uint64_t Data::wrong(const Run &run) const {
    if (!run.communicates || (operation != Operation::bcast && theirs.empty())) {
        return 0;
    }
    const std::vector<Element> &arrived = operation == Operation::bcast ? mine : theirs;
    std::uint64_t count = 0;
    for (std::size_t index = 0; index < arrived.size(); index++) {
        count += arrived[index] != arriving(run, operation, elements, index) ? 1 : 0;
    }
    return count;
}

const std::vector<Element> &Data::operand() const { return theirs.empty() ? mine : theirs; }

Window::Window(const Data &data)
    : first(data.operand().data()), mask(std::bit_floor(std::min(data.elements, largest)) - 1) {}

void synchronize() { MPI_Barrier(MPI_COMM_WORLD); }

Affine power(Affine map, std::uint64_t times) {
    Affine result;
    for (; times > 0; times /= 2) {
        result = times % 2 == 1 ? result.then(map) : result;
        map = map.then(map);
    }
    return result;
}

bool right(const Relaxation &found, const Window &window, std::uint64_t steps) {
    Relaxation again;
    for (std::uint64_t index = steps > 128 ? steps - 128 : 0; index < steps; index++) {
        again.step(window[index]);
    }
    return std::abs(found.value - again.value) <= 1e-9 * std::abs(again.value);
}

} // namespace generated
