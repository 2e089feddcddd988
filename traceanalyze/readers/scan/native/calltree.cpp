// Call trees of all threads at once: who contains whom among the events of a thread.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "boundary.h"
#include "search.h"

namespace {

// Events by their rows.
struct Events {
    const std::int64_t* begin;
    const std::int64_t* length;
    const std::uint8_t* rank;

    [[nodiscard]] std::int64_t start(std::int32_t row) const { return begin[row]; }
    [[nodiscard]] std::int64_t end(std::int32_t row) const { return begin[row] + length[row]; }

    // Longer first where two start together, as the longer one contains the other.
    bool operator()(std::int32_t a, std::int32_t b) const {
        if (begin[a] != begin[b]) return begin[a] < begin[b];
        if (end(a) != end(b)) return end(a) > end(b);
        return rank[a] < rank[b];
    }
};

// Stable sort that is nearly linear where the rows come in a few sorted stretches, as profilers write them.
void sort_stretches(std::int32_t* begin, std::int32_t* end, const Events& before) {
    std::vector<std::int32_t*> cuts{begin};
    for (std::int32_t* row = begin; end - row > 1; ++row) {
        if (before(row[1], row[0])) cuts.push_back(row + 1);
    }
    cuts.push_back(end);
    while (cuts.size() > 2) {
        std::vector<std::int32_t*> wider;
        std::size_t i = 0;
        for (; i + 2 < cuts.size(); i += 2) {
            // Only where the two overlap is there something to merge.
            std::int32_t* low = std::upper_bound(cuts[i], cuts[i + 1], *cuts[i + 1], before);
            std::int32_t* high = std::lower_bound(cuts[i + 1], cuts[i + 2], *(cuts[i + 1] - 1), before);
            if (low < cuts[i + 1]) std::inplace_merge(low, cuts[i + 1], high, before);
            wider.push_back(cuts[i]);
        }
        for (; i < cuts.size(); ++i) wider.push_back(cuts[i]);
        cuts.swap(wider);
    }
}

// The rows of each thread in the order of its tree, one thread after another, and where those of each begin.
std::vector<std::size_t> in_order(const trace_tree_events& given, const Events& events, std::int32_t* order) {
    const auto row = [&](std::uint64_t i) {
        return given.rows != nullptr ? given.rows[i] : static_cast<std::int32_t>(i);
    };
    std::vector<std::size_t> bounds(given.tracks + 1);
    for (std::uint64_t i = 0; i < given.size; ++i) {
        if (given.rank[row(i)] != TRACE_TREE_NONE) ++bounds[static_cast<std::size_t>(given.track[row(i)]) + 1];
    }
    for (std::size_t track = 0; track < given.tracks; ++track) bounds[track + 1] += bounds[track];
    std::vector<std::size_t> next(bounds);
    for (std::uint64_t i = 0; i < given.size; ++i) {
        if (given.rank[row(i)] == TRACE_TREE_NONE) continue;
        order[next[static_cast<std::size_t>(given.track[row(i)])]++] = row(i);
    }
    for (std::size_t track = 0; track < given.tracks; ++track) {
        sort_stretches(order + bounds[track], order + bounds[track + 1], events);
    }
    return bounds;
}

// An event whose descendants may still come.
struct Open {
    std::int32_t at;
    std::int64_t start;
    std::int64_t end;
    std::int64_t inner = 0;  // time in its children
};

// Nests the events of one thread after another; `Out` is told of each as it opens and as it closes.
template <class Out>
class Nesting {
  public:
    Nesting(const Events& events, std::int64_t tick, Out out) : events_(events), tick_(tick), out_(out) {}

    void thread(const std::int32_t* order, std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) add(order[i], static_cast<std::int32_t>(i));
        while (!open_.empty()) close(static_cast<std::int32_t>(last));
    }

    [[nodiscard]] std::uint64_t broken() const { return broken_; }

  private:
    void add(std::int32_t row, std::int32_t at) {
        const std::int64_t start = events_.start(row);
        std::int64_t end = events_.end(row);
        while (!open_.empty()) {
            std::int64_t& outer = open_.back().end;
            if (outer > start) {
                if (end <= outer) break;
                if (end - outer <= tick_) {
                    end = outer;
                    break;
                }
                outer = start;
                ++broken_;
            }
            close(at);
        }
        out_.opened(at, open_.empty() ? -1 : open_.back().at);
        // Member by member, as they are read: to copy it whole would wait for each of them.
        Open& one = open_.emplace_back();
        one.at = at;
        one.start = start;
        one.end = end;
    }

    void close(std::int32_t at) {
        const Open& closed = open_.back();
        const std::int64_t length = closed.end - closed.start;
        out_.closed(closed, at, length - closed.inner);
        open_.pop_back();
        if (!open_.empty()) open_.back().inner += length;
    }

    const Events& events_;
    std::int64_t tick_;
    Out out_;
    std::vector<Open> open_;
    std::uint64_t broken_ = 0;
};

struct Whole {
    const trace_tree& tree;

    void opened(std::int32_t at, std::int32_t parent) { tree.parent[at] = parent; }
    void closed(const Open& one, std::int32_t stop, std::int64_t own) {
        tree.stop[one.at] = stop;
        tree.start[one.at] = one.start;
        tree.end[one.at] = one.end;
        tree.own[one.at] = own;
    }
};

struct OwnTimes {
    const std::int32_t* order;
    std::int64_t* own;

    void opened(std::int32_t, std::int32_t) {}
    void closed(const Open& one, std::int32_t, std::int64_t time) { own[order[one.at]] = time; }
};

template <class Out>
std::uint64_t nest(const Events& events, const std::int32_t* order, const std::vector<std::size_t>& bounds,
                   std::int64_t tick, Out out) {
    Nesting<Out> nesting(events, tick, out);
    for (std::size_t track = 0; track + 1 < bounds.size(); ++track) {
        nesting.thread(order, bounds[track], bounds[track + 1]);
    }
    return nesting.broken();
}

}  // namespace

int trace_tree_build(const trace_tree_events* given, trace_tree* tree) {
    if (given->size > INT32_MAX) return TRACE_SCAN_TOO_LARGE;
    return scan::guarded([&] {
        const Events events{given->start, given->length, given->rank};
        const auto bounds = in_order(*given, events, tree->order);
        std::copy(bounds.begin(), bounds.end(), tree->bounds);
        tree->broken = nest(events, tree->order, bounds, given->tick, Whole{*tree});
        return TRACE_SCAN_OK;
    });
}

int trace_tree_own(const trace_tree_events* given, std::int64_t* own) {
    if (given->size > INT32_MAX) return TRACE_SCAN_TOO_LARGE;
    return scan::guarded([&] {
        const Events events{given->start, given->length, given->rank};
        std::vector<std::int32_t> order(given->size);
        const auto bounds = in_order(*given, events, order.data());
        nest(events, order.data(), bounds, given->tick, OwnTimes{order.data(), own});
        return TRACE_SCAN_OK;
    });
}

int trace_tree_outermost(const std::int32_t* stop, const std::int32_t* key, std::uint64_t size, std::uint64_t keys,
                         std::uint8_t* outer) {
    return scan::guarded([&] {
        // Where the last outermost event of each key ends.
        std::vector<std::int32_t> reach(keys);
        for (std::uint64_t i = 0; i < size; ++i) {
            std::int32_t& end = reach[static_cast<std::size_t>(key[i])];
            outer[i] = static_cast<std::int32_t>(i) >= end;
            if (outer[i]) end = stop[i];
        }
        return TRACE_SCAN_OK;
    });
}

void trace_tree_innermost(const trace_tree* tree, std::uint64_t tracks, const std::int32_t* track,
                          const std::int64_t* instants, std::uint64_t count, std::uint64_t around,
                          std::int64_t* places) {
    std::int32_t thread = -1;
    std::uint64_t begun = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        places[i] = -1;
        if (track[i] < 0 || static_cast<std::uint64_t>(track[i]) >= tracks) continue;
        if (track[i] != thread) begun = 0;
        thread = track[i];
        const std::int64_t first = tree->bounds[thread];
        const auto size = static_cast<std::uint64_t>(tree->bounds[thread + 1] - first);
        begun = scan::passed(tree->start + first, size, begun, instants[i]);
        if (begun == 0) continue;
        std::int64_t at = first + static_cast<std::int64_t>(begun) - 1;
        for (std::uint64_t left = around; at >= 0 && tree->end[at] <= instants[i]; --left) {
            at = left > 0 ? tree->parent[at] : -2;
        }
        places[i] = at;
    }
}

void trace_tree_inside(const std::int32_t* stop, std::uint64_t size, const std::int32_t* some, std::uint64_t number,
                       std::int32_t* before, std::int32_t* inside) {
    const auto end = static_cast<std::int64_t>(size);
    std::fill(before, before + size + 1, 0);
    for (std::uint64_t i = 0; i < number; ++i) {
        if (some[i] >= 0 && some[i] < end) ++before[some[i] + 1];
    }
    for (std::int64_t at = 0; at < end; ++at) before[at + 1] += before[at];
    for (std::int64_t at = 0; at < end; ++at) inside[at] = before[stop[at]] - before[at];
}
