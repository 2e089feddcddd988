// What sets of time have in common, and stretches in order of their starts joined to a set, in one pass each.
#include <algorithm>
#include <cstdint>

#include "scan.h"

std::int64_t trace_overlaps(const trace_stretches* a, const trace_stretches* b, trace_pieces* pieces) {
    std::int64_t found = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    for (std::uint64_t row = 0; row < a->size; ++row) {
        // The members of a need not be in order: from one to the next it is mostly a step.
        while (low < b->size && b->end[low] <= a->start[row]) ++low;
        while (low > 0 && b->end[low - 1] > a->start[row]) --low;
        while (high < b->size && b->start[high] < a->end[row]) ++high;
        while (high > 0 && b->start[high - 1] >= a->end[row]) --high;
        for (std::uint64_t other = low; other < high; ++other, ++found) {
            if (pieces == nullptr) continue;
            pieces->start[found] = std::max(a->start[row], b->start[other]);
            pieces->end[found] = std::min(a->end[row], b->end[other]);
            pieces->first[found] = static_cast<std::int64_t>(row);
            pieces->second[found] = static_cast<std::int64_t>(other);
        }
    }
    return found;
}

std::int64_t trace_join(const trace_stretches* given, std::int64_t* start, std::int64_t* end) {
    std::int64_t found = 0;
    std::int64_t last = INT64_MIN;
    for (std::uint64_t row = 0; row < given->size; ++row) {
        if (given->end[row] <= given->start[row]) continue;
        if (given->start[row] < last) return -1;
        last = given->start[row];
        if (found > 0 && last <= end[found - 1]) {
            end[found - 1] = std::max(end[found - 1], given->end[row]);
        } else {
            start[found] = last;
            end[found++] = given->end[row];
        }
    }
    return found;
}
