// Call trees of all threads at once: who contains whom among the events of a thread.
#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "scan.h"

namespace {

struct Node {
    std::int64_t start;
    std::int64_t end;
    std::int32_t row;
    std::uint8_t rank;
};

// Longer first where two start together, as the longer one contains the other.
bool before(const Node& a, const Node& b) {
    if (a.start != b.start) return a.start < b.start;
    if (a.end != b.end) return a.end > b.end;
    return a.rank < b.rank;
}

// Stable sort that is nearly linear where the rows come in a few sorted stretches, as profilers write them.
void sort_stretches(Node* begin, Node* end) {
    std::vector<Node*> cuts{begin};
    for (Node* node = begin; node + 1 < end; ++node) {
        if (before(node[1], node[0])) cuts.push_back(node + 1);
    }
    cuts.push_back(end);
    while (cuts.size() > 2) {
        std::vector<Node*> wider;
        std::size_t i = 0;
        for (; i + 2 < cuts.size(); i += 2) {
            // Only where the two overlap is there something to merge.
            Node* low = std::upper_bound(cuts[i], cuts[i + 1], *cuts[i + 1], before);
            Node* high = std::lower_bound(cuts[i + 1], cuts[i + 2], *(cuts[i + 1] - 1), before);
            if (low < cuts[i + 1]) std::inplace_merge(low, cuts[i + 1], high, before);
            wider.push_back(cuts[i]);
        }
        for (; i < cuts.size(); ++i) wider.push_back(cuts[i]);
        cuts.swap(wider);
    }
}

std::vector<std::size_t> group_by_track(const trace_tree_events& events, std::vector<Node>& nodes) {
    std::vector<std::size_t> bounds(events.tracks + 1);
    for (std::uint64_t i = 0; i < events.size; ++i) ++bounds[static_cast<std::size_t>(events.track[i]) + 1];
    for (std::size_t track = 0; track < events.tracks; ++track) bounds[track + 1] += bounds[track];
    nodes.resize(events.size);
    std::vector<std::size_t> next(bounds);
    for (std::uint64_t i = 0; i < events.size; ++i) {
        Node& node = nodes[next[static_cast<std::size_t>(events.track[i])]++];
        node = {events.start[i], events.end[i], static_cast<std::int32_t>(i), events.rank[i]};
    }
    return bounds;
}

class Nesting {
  public:
    Nesting(std::int64_t tick, const trace_tree& out) : tick_(tick), out_(out) {}

    void thread(const Node* nodes, std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) add(nodes[i], static_cast<std::int32_t>(i));
        while (!open_.empty()) close(static_cast<std::int32_t>(last));
    }

    [[nodiscard]] std::uint64_t broken() const { return broken_; }

  private:
    void add(const Node& node, std::int32_t at) {
        std::int64_t end = node.end;
        while (!open_.empty()) {
            std::int64_t& outer = out_.end[open_.back()];
            if (outer > node.start) {
                if (end <= outer) break;
                if (end - outer <= tick_) {
                    end = outer;
                    break;
                }
                outer = node.start;
                ++broken_;
            }
            close(at);
        }
        out_.order[at] = node.row;
        out_.start[at] = node.start;
        out_.end[at] = end;
        out_.own[at] = 0;
        out_.parent[at] = open_.empty() ? -1 : open_.back();
        open_.push_back(at);
    }

    void close(std::int32_t at) {
        const std::int32_t closed = open_.back();
        const std::int64_t length = out_.end[closed] - out_.start[closed];
        open_.pop_back();
        out_.stop[closed] = at;
        out_.own[closed] += length;
        if (!open_.empty()) out_.own[open_.back()] -= length;
    }

    std::int64_t tick_;
    const trace_tree& out_;
    std::vector<std::int32_t> open_;
    std::uint64_t broken_ = 0;
};

std::uint64_t build(const trace_tree_events& events, const trace_tree& out) {
    std::vector<Node> nodes;
    const std::vector<std::size_t> bounds = group_by_track(events, nodes);
    Nesting nesting(events.tick, out);
    for (std::size_t track = 0; track < events.tracks; ++track) {
        sort_stretches(nodes.data() + bounds[track], nodes.data() + bounds[track + 1]);
        nesting.thread(nodes.data(), bounds[track], bounds[track + 1]);
    }
    return nesting.broken();
}

template <class Action>
int guarded(Action action) noexcept {
    try {
        action();
        return TRACE_SCAN_OK;
    } catch (const std::bad_alloc&) {
        return TRACE_SCAN_NO_MEMORY;
    } catch (...) {
        return TRACE_SCAN_INTERNAL;
    }
}

}  // namespace

int trace_tree_build(const trace_tree_events* events, trace_tree* tree) {
    if (events->size > INT32_MAX) return TRACE_SCAN_TOO_LARGE;
    return guarded([&] { tree->broken = build(*events, *tree); });
}

int trace_tree_outermost(const std::int32_t* stop, const std::int32_t* key, std::uint64_t size, std::uint64_t keys,
                         std::uint8_t* outer) {
    return guarded([&] {
        // Where the last outermost event of each key ends.
        std::vector<std::int32_t> reach(keys);
        for (std::uint64_t i = 0; i < size; ++i) {
            std::int32_t& end = reach[static_cast<std::size_t>(key[i])];
            outer[i] = static_cast<std::int32_t>(i) >= end;
            if (outer[i]) end = stop[i];
        }
    });
}
