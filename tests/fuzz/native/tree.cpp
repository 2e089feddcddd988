// Fuzz target of call trees: whatever the events, children lie inside their parents, siblings beside each other, and
// every nanosecond is somebody's own.
#include <algorithm>

#include "fuzz.h"

namespace fuzz {
namespace {

constexpr std::int32_t kThreads = 4;
constexpr std::size_t kEvent = 6;  // bytes of one: start, length, thread and rank, by how much both are shifted

struct Events {
    std::vector<std::int64_t> start, end, length;
    std::vector<std::int32_t> track, key;
    std::vector<std::uint8_t> rank;
    std::int64_t tick = 0;

    Events(const std::uint8_t* data, std::size_t size) {
        if (size > 0) tick = std::int64_t{data[0]} << (data[0] >> 5) * 4;
        for (std::size_t at = 1; at + kEvent <= size; at += kEvent) {
            const std::uint8_t* p = data + at;
            start.push_back(std::int64_t{p[0] | p[1] << 8} << (p[5] & 15) * 3);
            length.push_back(std::int64_t{p[2] | p[3] << 8} << (p[5] >> 4) * 3);
            end.push_back(start.back() + length.back());
            track.push_back(p[4] & 3);
            rank.push_back(p[4] >> 4 & 3);
            key.push_back(p[4] >> 6);
        }
    }
    [[nodiscard]] trace_tree_events given() const {
        return {start.data(), length.data(), track.data(), rank.data(), nullptr, start.size(), kThreads, tick};
    }
};

void run(const std::uint8_t* data, std::size_t size) {
    const Events events(data, size);
    const std::size_t count = events.start.size();
    std::vector<std::int32_t> order(count), parent(count), stop(count);
    std::vector<std::int64_t> start(count), end(count), own(count), alone(count), bounds(kThreads + 1);
    trace_tree tree = {order.data(), parent.data(), stop.data(), start.data(), end.data(), own.data(), bounds.data(), 0};
    const trace_tree_events given = events.given();
    require(trace_tree_build(&given, &tree) == TRACE_SCAN_OK, "build");
    require(trace_tree_own(&given, alone.data()) == TRACE_SCAN_OK, "own");
    require(bounds[0] == 0 && bounds[kThreads] == static_cast<std::int64_t>(count), "all are of some thread");

    std::vector<bool> seen(count);
    std::vector<std::int64_t> left(count);  // of each, without its children so far
    std::vector<std::int64_t> last(count + 1, INT64_MIN);  // where the last child of each ends; of roots, the last root
    std::int32_t before = -1;
    for (std::size_t i = 0; i < count; ++i) {
        const auto row = static_cast<std::size_t>(order[i]);
        require(row < count && !seen[row], "an order of all rows");
        seen[row] = true;
        if (events.track[row] != before) last[count] = INT64_MIN;
        require(events.track[row] >= before, "thread after thread");
        before = events.track[row];
        const auto thread = static_cast<std::size_t>(before), place = i;
        require(static_cast<std::size_t>(bounds[thread]) <= place && place < static_cast<std::size_t>(bounds[thread + 1]),
                "between the bounds of its thread");
        require(start[i] == events.start[row] && end[i] >= start[i] && end[i] <= events.end[row], "only ends are cut");
        require(parent[i] >= -1 && parent[i] < static_cast<std::int32_t>(i), "parents before children");
        require(stop[i] > static_cast<std::int32_t>(i) && static_cast<std::size_t>(stop[i]) <= count, "descendants follow");
        left[i] = end[i] - start[i];
        const std::size_t above = parent[i] < 0 ? count : static_cast<std::size_t>(parent[i]);
        require(start[i] >= last[above], "siblings lie beside each other");
        last[above] = end[i];
        if (above == count) continue;
        require(events.track[static_cast<std::size_t>(order[above])] == before, "of one thread");
        require(start[above] <= start[i] && end[i] <= end[above] && stop[i] <= stop[above], "children lie inside");
        left[above] -= end[i] - start[i];
    }
    for (std::size_t i = 0; i < count; ++i) {
        require(own[i] == left[i] && own[i] >= 0, "own time is what children leave");
        require(alone[static_cast<std::size_t>(order[i])] == own[i], "own times alone are those of the tree");
    }

    // Where each begins: by looking at all of them.
    std::vector<std::int64_t> places(count);
    trace_tree_innermost(&tree, kThreads, events.track.data(), events.start.data(), count, count, places.data());
    for (std::size_t row = 0; row < count; ++row) {
        std::int64_t found = -1;
        for (std::size_t i = 0; i < count && count <= 64; ++i) {
            const bool same = events.track[static_cast<std::size_t>(order[i])] == events.track[row];
            if (same && start[i] <= events.start[row] && events.start[row] < end[i]) found = static_cast<std::int64_t>(i);
        }
        require(count > 64 || places[row] == found, "the innermost runs");
    }

    std::vector<std::int32_t> key(count);
    for (std::size_t i = 0; i < count; ++i) key[i] = events.key[static_cast<std::size_t>(order[i])];
    std::vector<std::uint8_t> outer(count);
    require(trace_tree_outermost(stop.data(), key.data(), count, 4, outer.data()) == TRACE_SCAN_OK, "outermost");
    for (std::size_t i = 0; i < count; ++i) {
        bool inside = false;
        for (std::int32_t up = parent[i]; up >= 0 && !inside; up = parent[static_cast<std::size_t>(up)])
            inside = key[static_cast<std::size_t>(up)] == key[i];
        require(outer[i] == !inside, "the outermost are inside none of their key");
    }
}

// Whole events are moved, repeated, and made to begin or end where others do.
void mutate(Bytes& text, const Bytes& other, Random& random) {
    if (text.empty()) text.push_back(0);
    for (std::size_t left = 1 + random.below(4); left != 0; --left) {
        const std::size_t count = (text.size() - 1) / kEvent, at = 1 + kEvent * random.below(count + 1);
        const std::size_t from = other.empty() ? 0 : 1 + kEvent * random.below((other.size() - 1) / kEvent + 1);
        switch (random.below(6)) {
            case 0: insert(text, at, part_of(other, std::min(from, other.size()), kEvent * (1 + random.below(4)))); break;
            case 1: erase(text, at, kEvent * (1 + random.below(3))); break;
            case 2: text[random.below(text.size())] = static_cast<std::uint8_t>(random.below(256)); break;
            case 3: text[random.below(text.size())] += static_cast<std::uint8_t>(random.below(3) - 1); break;
            case 4: {
                Bytes event;
                for (std::size_t i = 0; i < kEvent; ++i) event.push_back(static_cast<std::uint8_t>(random.below(i == 5 ? 4 : 64)));
                insert(text, at, event);
                break;
            }
            default:
                if (at + kEvent <= text.size() && from + kEvent <= other.size()) std::copy_n(&other[from], 2 * (1 + random.below(2)), &text[at]);
                break;
        }
    }
}

}  // namespace

const Target kTree = {"tree", run, mutate};

}  // namespace fuzz
