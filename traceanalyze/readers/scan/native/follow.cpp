// Follows the layout of memory through a history: which block had which size, and which holes there were.
#include <map>
#include <unordered_set>
#include <vector>

#include "boundary.h"
#include "caching.h"

namespace {

using scan::Column;

// Free ranges. None overlaps another, as segments do not. Neighbours of a domain merge, but not over the border of a
// segment that stands alone.
class Holes {
    struct Hole {
        std::int64_t end;
        std::int32_t domain;
    };
    struct Free {
        std::int64_t bytes = 0;
        std::int64_t holes = 0;
        std::map<std::int64_t, std::int64_t> sizes;  // and how many there are of each
        bool known = false;
    };

public:
    using Place = std::map<std::int64_t, Hole>::iterator;

    explicit Holes(std::uint64_t domains) : free_(domains) {}

    void enclose(std::int64_t start, std::int64_t end) {
        first_.insert(start);
        last_.insert(end);
    }
    void disclose(std::int64_t start, std::int64_t end) {
        first_.erase(start);
        last_.erase(end);
    }

    void add(std::int32_t domain, std::int64_t start, std::int64_t end) {
        Free& free = of(domain);
        if (!free.known) order_.push_back(domain);
        free.known = true;
        free.bytes += end - start;
        Place after = holes_.lower_bound(start);
        if (after != holes_.end() && after->first == end && after->second.domain == domain && !border(end)) {
            end = after->second.end;
            lose(free, end - after->first);
            after = holes_.erase(after);
        }
        if (after != holes_.begin()) {
            const Place before = std::prev(after);
            if (before->second.end == start && before->second.domain == domain && !border(start)) {
                lose(free, start - before->first);
                gain(free, end - before->first);
                before->second.end = end;
                return;
            }
        }
        holes_.emplace_hint(after, start, Hole{end, domain});
        gain(free, end - start);
    }

    // The hole that begins at an address or, `inside`, is around it.
    Place find(std::int64_t address, bool inside) {
        Place found = holes_.upper_bound(address);
        if (found == holes_.begin()) return holes_.end();
        --found;
        return found->first == address || (inside && found->second.end > address) ? found : holes_.end();
    }
    bool suffices(Place hole, std::int64_t end) const { return hole != holes_.end() && hole->second.end >= end; }

    // Part of a hole is used; what is left on both sides stays free.
    void take(Place hole, std::int64_t start, std::int64_t end) {
        const auto [until, domain] = hole->second;
        Free& free = of(domain);
        free.bytes -= end - start;
        lose(free, until - hole->first);
        const Place after = std::next(hole);
        if (hole->first < start) {
            hole->second.end = start;
            gain(free, start - hole->first);
            if (end < until) holes_.emplace_hint(after, end, Hole{until, domain});
        } else if (end < until) {
            auto rest = holes_.extract(hole);
            rest.key() = end;
            holes_.insert(after, std::move(rest));
        } else {
            holes_.erase(hole);
        }
        if (end < until) gain(free, until - end);
    }

    void tell(std::int64_t event, std::int32_t domain, Column<std::int64_t>& rows) {
        const Free& free = of(domain);
        const std::int64_t largest = free.sizes.empty() ? 0 : free.sizes.rbegin()->first;
        for (const std::int64_t value : {event, std::int64_t{domain}, free.bytes, free.holes, largest}) rows.push(value);
    }
    // Every domain that has some, in the order in which they first had.
    void tell_all(std::int64_t event, Column<std::int64_t>& rows) {
        for (const std::int32_t domain : order_)
            if (of(domain).bytes != 0) tell(event, domain, rows);
    }

private:
    Free& of(std::int32_t domain) { return free_[static_cast<std::size_t>(domain)]; }
    bool border(std::int64_t address) const { return first_.count(address) != 0 || last_.count(address) != 0; }

    static void gain(Free& free, std::int64_t size) {
        ++free.holes;
        ++free.sizes[size];
    }
    static void lose(Free& free, std::int64_t size) {
        --free.holes;
        const auto found = free.sizes.find(size);
        if (--found->second == 0) free.sizes.erase(found);
    }

    std::map<std::int64_t, Hole> holes_;
    std::vector<Free> free_;
    std::vector<std::int32_t> order_;
    std::unordered_set<std::int64_t> first_, last_;
};

struct Lost {
    std::uint32_t why;
    std::uint64_t event;
};

class Walk {
public:
    Walk(const trace_history* history, const trace_rules* rules, trace_layout* layout)
        : history_(*history), rules_(*rules), layout_(*layout), holes_(layout->domains) {}

    void run(Column<std::int64_t>& growths, Column<std::int64_t>& watched) {
        for (std::uint64_t i = 0; i < layout_.alone; ++i)
            holes_.enclose(layout_.alone_start[i], layout_.alone_end[i]);
        for (std::uint64_t i = 0; i < layout_.holes; ++i)
            holes_.add(layout_.hole_domain[i], layout_.hole_start[i], layout_.hole_end[i]);
        // Rows count from 1 here; 0: the event gives no block back.
        std::vector<std::uint32_t> ended(history_.events);
        for (std::uint64_t row = 0; row < layout_.blocks; ++row)
            if (const auto end = static_cast<std::uint64_t>(layout_.end[row]); end < history_.events)
                ended[end] = static_cast<std::uint32_t>(row) + 1;
        std::uint64_t row = layout_.early, change = 0, watch = 0;
        for (std::uint64_t event = 0; event < history_.events; ++event) {
            const auto at = static_cast<std::int64_t>(event);
            for (; watch < layout_.watched && layout_.watch[watch] == at; ++watch) holes_.tell_all(at, watched);
            const std::uint8_t action = history_.action[event];
            const std::int64_t address = history_.address[event];
            if (action == TRACE_ALLOC) {
                place(event, row++, address);
            } else if (ended[event] != 0) {
                const std::uint32_t gone = ended[event] - 1;
                holes_.add(layout_.domain[gone], address, address + layout_.size[gone]);
            } else if (action >= TRACE_SEGMENT_ALLOC && action <= TRACE_SEGMENT_UNMAP) {
                resize(event, layout_.change_domain[change++], address, address + history_.size[event], growths);
            }
        }
    }

private:
    // Puts a block into the hole at its address. On NPUs large blocks of expandable segments begin at rounded addresses
    // inside of a hole.
    void place(std::uint64_t event, std::uint64_t row, std::int64_t address) {
        const std::int64_t needed = rules_.rounded(history_.size[event]);
        const Holes::Place hole = holes_.find(address, rules_.expandable != 0);
        if (!holes_.suffices(hole, address + needed)) throw Lost{TRACE_LOST_PLACE, event};
        const auto [until, domain] = hole->second;
        const bool large = layout_.large[domain] != 0;
        const std::int64_t end = rules_.splits(needed, until - address - needed, large) ? address + needed : until;
        holes_.take(hole, address, end);
        layout_.size[row] = end - address;
        layout_.domain[row] = domain;
    }

    // Memory is taken from the device or given back to it.
    void resize(std::uint64_t event, std::int32_t domain, std::int64_t start, std::int64_t end,
                Column<std::int64_t>& growths) {
        const std::uint8_t action = history_.action[event];
        if (action == TRACE_SEGMENT_FREE || action == TRACE_SEGMENT_UNMAP) {
            const Holes::Place hole = holes_.find(start, true);
            if (!holes_.suffices(hole, end)) throw Lost{TRACE_LOST_RELEASE, event};
            holes_.take(hole, start, end);
            if (action == TRACE_SEGMENT_FREE) holes_.disclose(start, end);
            return;
        }
        const std::int32_t call = history_.call[event];
        if (growths.size() == 0 || call < 0 || call != grown_call_ || domain != grown_domain_)
            holes_.tell(static_cast<std::int64_t>(event), domain, growths);
        grown_call_ = call, grown_domain_ = domain;
        if (action == TRACE_SEGMENT_ALLOC) holes_.enclose(start, end);
        holes_.add(domain, start, end);
    }

    const trace_history history_;
    const scan::Rules rules_;
    const trace_layout layout_;
    Holes holes_;
    std::int32_t grown_call_ = 0;
    std::int32_t grown_domain_ = 0;
};

}  // namespace

int trace_follow(const trace_history* history, const trace_rules* rules, trace_layout* layout) {
    return scan::guarded([&]() -> int {
        Column<std::int64_t> growths, watched;
        layout->lost = TRACE_LOST_NOT;
        try {
            Walk(history, rules, layout).run(growths, watched);
        } catch (const Lost& lost) {
            layout->lost = lost.why;
            layout->lost_event = lost.event;
        }
        layout->growths = scan::taken(growths, 5);
        layout->free = scan::taken(watched, 5);
        return TRACE_SCAN_OK;
    });
}
