// The algebra of sets of time, and stretches in order of their starts joined to a set, in one pass each.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "scan.h"
#include "search.h"

namespace {

using scan::passed;

// How much of the time before an instant lies in a set.
class Covered {
public:
    Covered(const trace_stretches* set, std::int64_t* before) : set_(set), before_(before) {
        before[0] = 0;
        for (std::uint64_t row = 0; row < set->size; ++row) {
            before[row + 1] = before[row] + set->end[row] - set->start[row];
        }
    }

    std::int64_t until(std::int64_t instant, std::uint64_t* near) const {
        return until(instant, *near = passed(set_->start, set_->size, *near, instant));
    }

    // The same where it is known how many members have begun.
    std::int64_t until(std::int64_t instant, std::uint64_t begun) const {
        return begun == 0 ? 0 : before_[begun] - std::max<std::int64_t>(set_->end[begun - 1] - instant, 0);
    }

private:
    const trace_stretches* set_;
    const std::int64_t* before_;
};

// Joins one more stretch to a set; it may not begin before the last one.
bool add(std::int64_t from, std::int64_t until, std::int64_t* last, std::int64_t* start, std::int64_t* end,
         std::int64_t* found) {
    if (until <= from) return true;
    if (from < *last) return false;
    *last = from;
    if (*found > 0 && from <= end[*found - 1]) {
        end[*found - 1] = std::max(end[*found - 1], until);
    } else {
        start[*found] = from;
        end[(*found)++] = until;
    }
    return true;
}

}  // namespace

std::int64_t trace_overlaps(const trace_stretches* a, const trace_stretches* b, trace_pieces* pieces,
                            std::int64_t room) {
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
            if (found >= room) continue;
            pieces->start[found] = std::max(a->start[row], b->start[other]);
            pieces->end[found] = std::min(a->end[row], b->end[other]);
            pieces->first[found] = static_cast<std::int64_t>(row);
            pieces->second[found] = static_cast<std::int64_t>(other);
        }
    }
    return found;
}

std::int64_t trace_join(const trace_stretches* given, std::int64_t* start, std::int64_t* end) {
    std::uint64_t row = 0;
    while (row < given->size && given->end[row] > given->start[row] &&
           (row == 0 || given->start[row] > given->end[row - 1])) {
        ++row;
    }
    std::int64_t found = static_cast<std::int64_t>(row);
    if (row == given->size) return found;  // A set already: nobody needs the copy.
    std::copy(given->start, given->start + row, start);
    std::copy(given->end, given->end + row, end);
    std::int64_t last = row == 0 ? INT64_MIN : start[row - 1];
    for (; row < given->size; ++row) {
        if (!add(given->start[row], given->end[row], &last, start, end, &found)) return -1;
    }
    return found;
}

std::int64_t trace_active(const std::int64_t* begin, const std::int64_t* length, const std::int32_t* rows,
                          std::uint64_t count, std::int64_t* start, std::int64_t* end) {
    std::int64_t found = 0;
    std::int64_t last = INT64_MIN;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::int64_t from = begin[rows[i]];
        if (!add(from, from + length[rows[i]], &last, start, end, &found)) return -1;
    }
    return found;
}

std::int64_t trace_union(const trace_stretches* a, const trace_stretches* b, std::int64_t* start, std::int64_t* end) {
    std::int64_t found = 0;
    std::uint64_t row = 0;
    std::uint64_t other = 0;
    while (row < a->size || other < b->size) {
        const bool first = other == b->size || (row < a->size && a->start[row] <= b->start[other]);
        const std::int64_t begin = first ? a->start[row] : b->start[other];
        const std::int64_t stop = first ? a->end[row++] : b->end[other++];
        if (found > 0 && begin <= end[found - 1]) {
            end[found - 1] = std::max(end[found - 1], stop);
        } else {
            start[found] = begin;
            end[found++] = stop;
        }
    }
    return found;
}

std::int64_t trace_intersect(const trace_stretches* a, const trace_stretches* b, std::int64_t* start,
                             std::int64_t* end) {
    if (a->size > b->size) std::swap(a, b);
    std::int64_t found = 0;
    std::uint64_t other = 0;
    for (std::uint64_t row = 0; row < a->size; ++row) {
        other = passed(b->end, b->size, other, a->start[row]);
        for (std::uint64_t each = other; each < b->size && b->start[each] < a->end[row]; ++each) {
            start[found] = std::max(a->start[row], b->start[each]);
            end[found++] = std::min(a->end[row], b->end[each]);
            other = each;
        }
    }
    return found;
}

std::int64_t trace_subtract(const trace_stretches* a, const trace_stretches* b, std::int64_t* start,
                            std::int64_t* end) {
    std::int64_t found = 0;
    std::uint64_t other = 0;
    for (std::uint64_t row = 0; row < a->size; ++row) {
        std::int64_t from = a->start[row];
        other = passed(b->end, b->size, other, from);
        for (; other < b->size && b->start[other] < a->end[row]; ++other) {
            if (b->start[other] > from) {
                start[found] = from;
                end[found++] = b->start[other];
            }
            from = b->end[other];
            if (from >= a->end[row]) break;
        }
        if (from < a->end[row]) {
            start[found] = from;
            end[found++] = a->end[row];
        }
    }
    return found;
}

std::int64_t trace_beside(const trace_stretches* a, const std::uint8_t* of_a, const trace_stretches* b,
                          const std::uint8_t* of_b, std::int64_t* start, std::int64_t* end, std::uint8_t* of) {
    std::int64_t found = 0;
    const auto add = [&](std::int64_t from, std::int64_t until, std::uint8_t label) {
        start[found] = from;
        end[found] = until;
        of[found++] = label;
    };
    std::uint64_t row = 0;
    for (std::uint64_t other = 0; other < b->size; ++other) {
        std::int64_t from = b->start[other];
        if (row > 0) from = std::max(from, a->end[row - 1]);
        for (; row < a->size && a->start[row] < b->end[other]; ++row) {
            if (a->start[row] > from) add(from, a->start[row], of_b[other]);
            add(a->start[row], a->end[row], of_a[row]);
            from = std::max(from, a->end[row]);
        }
        if (from < b->end[other]) add(from, b->end[other], of_b[other]);
    }
    for (; row < a->size; ++row) add(a->start[row], a->end[row], of_a[row]);
    return found;
}

int trace_take_out(const trace_work* work, const trace_stretches* removed, std::int64_t line, std::int64_t* before,
                   std::int64_t* weight) {
    const Covered covered(removed, before);
    std::uint64_t near = 0;
    for (std::uint64_t row = 0; row < work->size; ++row) {
        if (work->line[row] != line) continue;
        near = passed(removed->start, removed->size, near, work->start[row]);
        // Mostly nothing of the set lies in between.
        if ((near == 0 || removed->end[near - 1] <= work->start[row]) &&
            (near == removed->size || removed->start[near] >= work->end[row])) {
            continue;
        }
        const std::int64_t begun = covered.until(work->start[row], near);
        const std::int64_t gone = covered.until(work->end[row], &near) - begun;
        if (gone <= 0) continue;
        std::int64_t& left = weight[work->edge[row]];
        left = std::max(left - gone, std::min(work->least[row], left));
    }
    return TRACE_SCAN_OK;
}

void trace_coverage(const trace_stretches* set, const trace_stretches* windows, std::int64_t* before,
                    std::int64_t* covered) {
    const Covered known(set, before);
    std::uint64_t near = 0;
    for (std::uint64_t row = 0; row < windows->size; ++row) {
        const std::int64_t begun = known.until(std::min(windows->start[row], windows->end[row]), &near);
        covered[row] = known.until(windows->end[row], &near) - begun;
    }
}

void trace_passed(const std::int64_t* moments, std::uint64_t size, const std::int64_t* instants, std::uint64_t count,
                  std::int64_t* found) {
    std::uint64_t near = 0;
    for (std::uint64_t row = 0; row < count; ++row) {
        near = passed(moments, size, near, instants[row]);
        found[row] = static_cast<std::int64_t>(near);
    }
}
