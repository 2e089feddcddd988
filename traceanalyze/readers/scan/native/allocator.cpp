// The requests of a program through a model of PyTorch's caching allocator, which caching.py specifies.
#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "boundary.h"
#include "caching.h"

namespace {

constexpr std::int64_t kSmallSegment = std::int64_t{2} << 20;
constexpr std::int64_t kLargeSegment = std::int64_t{20} << 20;
constexpr std::int64_t kLarge = std::int64_t{10} << 20;
constexpr std::int64_t kAligned = std::int64_t{16} << 10;
constexpr std::int64_t kAligns = std::int64_t{2} << 20;
constexpr std::int64_t kSpace = std::int64_t{1} << 50;
constexpr std::int64_t kMost = std::int64_t{1} << 62;
constexpr std::int64_t kUnlimited = -1;
constexpr std::int64_t kNoBase = INT64_MIN;  // addresses of the upper half are negative

// More memory than 64 bits address: Python's numbers are larger.
struct Unusual {};

struct Domain {
    std::int64_t pool;
    std::int64_t stream;
    bool large;

    bool operator==(const Domain& other) const {
        return pool == other.pool && stream == other.stream && large == other.large;
    }
};

enum class State : std::uint8_t { free, used, unmapped };

struct Area;

struct Block {
    std::int64_t address;
    std::int64_t size;
    std::int64_t base;
    std::int64_t number;  // makes each differ, in order of making
    std::int64_t born;
    Area* area;
    Block* before;
    Block* after;
    State state;

    bool expands() const { return base != kNoBase; }
};

struct BySize {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const {
        return std::tie(a->size, a->address, a->number) < std::tie(b->size, b->address, b->number);
    }
    bool operator()(const Block* a, std::int64_t size) const { return a->size < size; }
};
struct ByAddress {
    bool operator()(const Block* a, const Block* b) const {
        return std::tie(a->address, a->number) < std::tie(b->address, b->number);
    }
};

// The memory of a domain.
struct Area {
    Domain domain;
    std::set<Block*, BySize> free;
    std::set<Block*, ByAddress> unmapped;
    bool known = false;  // had something free

    std::int64_t granule() const { return domain.large ? kLargeSegment : kSmallSegment; }
};

class Allocator {
public:
    explicit Allocator(const trace_rules& rules) : rules_(rules) {}

    std::int64_t limit = kUnlimited;
    std::int64_t reserved = 0, grown = 0, retries = 0;
    std::unordered_map<std::int64_t, std::vector<std::int64_t>> places;  // those to use first at the end

    Block* malloc(std::int64_t requested, std::int64_t pool, std::int64_t stream) {
        const std::int64_t need = rules_.rounded(requested);
        Area& area = of({pool, stream, need > scan::kSmall});
        const bool collects = rules_.collect > 0 && limit != kUnlimited;
        calls_ += collects && area.domain.large;
        Block* block = fitting(area, need);
        if (block == nullptr && collects) collect();
        if (block == nullptr) block = grow(area, need);
        if (block == nullptr) {
            ++retries;
            if (rules_.limited() && give_oversized(area, need)) block = grow(area, need);
        }
        if (block == nullptr) {
            empty_cache([](std::int64_t each) { return each == 0; });
            block = grow(area, need);
        }
        return block == nullptr ? nullptr : split(block, need);
    }

    Block* beyond(std::int64_t requested, std::int64_t pool, std::int64_t stream) {
        const std::int64_t before = std::exchange(limit, kUnlimited);
        Block* block = malloc(requested, pool, stream);
        limit = before;
        return block;
    }

    void free(Block* block) {
        block->state = State::free;
        put(merged(block));
    }

    template <class Chosen>
    void empty_cache(Chosen chosen) {
        for (Area* area : order_) {
            if (!chosen(area->domain.pool)) continue;
            for (Block* block : std::vector<Block*>(area->free.begin(), area->free.end())) give_back(block);
        }
    }

    Area& of(const Domain& domain) {
        if (last_ != nullptr && last_->domain == domain) return *last_;
        std::vector<Area*>& same = areas_[domain.stream];
        for (Area* area : same)
            if (area->domain == domain) return *(last_ = area);
        all_.push_back(std::make_unique<Area>());
        all_.back()->domain = domain;
        same.push_back(all_.back().get());
        return *(last_ = same.back());
    }

    // One more piece of a segment, behind those before it; in an expandable one what lies between is not mapped.
    struct Segment {
        Area& area;
        std::int64_t base;
        std::int64_t end;
        Block* last = nullptr;
    };
    Block* adopt(Segment& segment, std::int64_t start, std::int64_t end, bool used) {
        Area& area = segment.area;
        if (segment.base != kNoBase && start > segment.end)
            segment.last = behind(segment.last, make(area, segment.end, start - segment.end, State::unmapped, segment.base));
        Block* block = make(area, start, end - start, used ? State::used : State::free, segment.base);
        segment.last = behind(segment.last, block);
        segment.end = end;
        add(end - start);
        if (!used) put(block);
        return block;
    }
    void close(Segment& segment) {
        if (segment.base != kNoBase) behind(segment.last, make(segment.area, segment.end, kSpace, State::unmapped, segment.base));
    }

    void reserve(Area& area, std::int64_t size) {
        const std::int64_t before = std::exchange(limit, kUnlimited);
        const std::int64_t each = rules_.expandable != 0 || !area.domain.large ? area.granule() : size;
        for (std::int64_t left = size > 0 ? scan::up(size, each) / each : 0; left > 0; --left) {
            Block* block = rules_.expandable != 0 && area.domain.pool == 0
                               ? map_piece(*std::prev(unmapped(area).end()), each)
                               : grow(area, each);
            if (block != nullptr) put(block);
        }
        limit = before;
    }

private:
    Block* make(Area& area, std::int64_t address, std::int64_t size, State state, std::int64_t base) {
        Block* block = spare_;
        if (block != nullptr) {
            spare_ = block->after;
        } else {
            if (left_ == 0) {
                left_ = 4096;
                chunks_.push_back(std::make_unique<Block[]>(left_));
            }
            block = &chunks_.back()[--left_];
        }
        *block = Block{address, size, base, ++number_, 0, &area, nullptr, nullptr, state};
        return block;
    }
    void drop(Block* block) {
        block->after = spare_;
        spare_ = block;
    }

    void add(std::int64_t size) {
        reserved += size;
        if (reserved > kMost) throw Unusual();
    }
    std::int64_t room_at_end(std::int64_t size) {
        const std::int64_t found = next_;
        if (size > kMost - next_) throw Unusual();
        next_ += size;
        return found;
    }

    Block* fitting(Area& area, std::int64_t need) {
        auto at = area.free.lower_bound(need);
        if (at == area.free.end()) return nullptr;
        Block* block = *at;
        if (block->expands()) {
            // One that can grow counts as large as it can become, so that the growing end is kept for the last.
            for (auto next = std::next(at);
                 next != area.free.end() && (room(*next) < room(block) || block->size - skipped(block, need) < need);
                 ++next) {
                at = next;
                block = *at;
            }
            if (block->size - skipped(block, need) < need) return nullptr;
        }
        if (rules_.limited() && (need < rules_.max_split ? block->size >= rules_.max_split
                                                         : block->size >= need + rules_.oversize))
            return nullptr;
        area.free.erase(at);
        return block;
    }

    // Bytes that a free block can become, where unmapped memory follows.
    static std::int64_t room(const Block* block) {
        const Block* after = block->after;
        return block->size + (after != nullptr && after->state == State::unmapped ? after->size : 0);
    }

    // Bytes left free before a block that begins at a rounded address.
    std::int64_t skipped(const Block* block, std::int64_t need) const {
        return rules_.aligned != 0 && block->expands() && need >= kAligns ? -block->address & (kAligned - 1) : 0;
    }

    Block* grow(Area& area, std::int64_t need) {
        if (rules_.expandable != 0 && area.domain.pool == 0) return map(area, need);
        const std::int64_t size = !area.domain.large ? kSmallSegment
                                  : need < kLarge    ? kLargeSegment
                                                     : scan::up(need, kSmallSegment);
        if (full(size)) return nullptr;
        const auto known = places.find(size);
        std::int64_t address = 0;
        if (known != places.end() && !known->second.empty()) {
            address = known->second.back();
            known->second.pop_back();
        } else {
            address = room_at_end(size);
        }
        add(size);
        ++grown;
        return make(area, address, size, State::free, kNoBase);
    }
    bool full(std::int64_t size) const { return limit != kUnlimited && reserved + size > limit; }

    // Free and unmapped memory in a row at the lowest address where it suffices, mapped as far as needed.
    Block* map(Area& area, std::int64_t need) {
        const auto& all = unmapped(area);
        const auto found = std::find_if(all.begin(), all.end(), [&](Block* one) { return suffices(one, need); });
        if (found == all.end()) throw Unusual();
        Block* block = *found;
        if (block->before != nullptr && block->before->state == State::free) block = block->before;
        need += skipped(block, need);
        if (block->state == State::unmapped) block = map_piece(block, std::min(block->size, need));
        else take(block);
        while (block != nullptr && block->size < need) {
            Block* following = block->after;
            put(block);
            block = map_piece(following, std::min(need - block->size, following->size));
        }
        return block;
    }

    std::set<Block*, ByAddress>& unmapped(Area& area) {
        if (area.unmapped.empty()) {
            const std::int64_t base = room_at_end(2 * kSpace);
            behind(nullptr, make(area, base, kSpace, State::unmapped, base));
        }
        return area.unmapped;
    }

    bool suffices(const Block* block, std::int64_t need) const {
        if (block->before != nullptr && block->before->state == State::free) block = block->before;
        need += skipped(block, need);
        for (; block != nullptr && block->state != State::used && need > 0; block = block->after) need -= block->size;
        return need <= 0;
    }

    // Maps the begin of unmapped memory, joined with the free memory beside it and in no list.
    Block* map_piece(Block* block, std::int64_t size) {
        size = std::min(scan::up(size, block->area->granule()), block->size);
        if (full(size)) return nullptr;
        block->area->unmapped.erase(block);
        if (size < block->size) cut(block, size, State::unmapped);
        block->state = State::free;
        add(size);
        ++grown;
        return merged(block);
    }

    // The part of a free block that a request gets; the others stay free.
    Block* split(Block* block, std::int64_t need) {
        if (const std::int64_t before = skipped(block, need); before != 0) {
            Block* rest = cut(block, before, State::free);
            put(block);
            block = rest;
        }
        if (rules_.splits(need, block->size - need, block->area->domain.large)) put(cut(block, need, State::free));
        block->state = State::used;
        return block;
    }

    // Shortens a block to a size; the rest as a block of its own.
    Block* cut(Block* block, std::int64_t size, State state) {
        Block* rest = make(*block->area, block->address + size, block->size - size, state, block->base);
        block->size = size;
        Block* following = block->after;
        behind(block, rest);
        rest->after = following;
        if (following != nullptr) following->before = rest;
        return rest;
    }

    // A free block that is in no list with the free ones beside it; in no list.
    Block* merged(Block* block) {
        Block* before = block->before;
        Block* after = block->after;
        if (after != nullptr && after->state == State::free) {
            take(after);
            join(block, after);
        }
        if (before != nullptr && before->state == State::free) {
            take(before);
            join(before, block);
            return before;
        }
        return block;
    }

    void join(Block* block, Block* after) {
        block->size += after->size;
        block->after = after->after;
        if (after->after != nullptr) after->after->before = block;
        drop(after);
    }

    Block* behind(Block* block, Block* made) {
        made->before = block;
        if (block != nullptr) block->after = made;
        if (made->state == State::unmapped) made->area->unmapped.insert(made);
        return made;
    }

    void put(Block* block) {
        block->born = calls_;
        Area& area = *block->area;
        if (!area.known) order_.push_back(&area);
        area.known = true;
        area.free.insert(block);
    }
    static void take(Block* block) { block->area->free.erase(block); }

    // A free block that is a whole segment; of an expandable one its granules. Bytes given back.
    std::int64_t give_back(Block* block) {
        if (!block->expands()) {
            if (block->before != nullptr || block->after != nullptr) return 0;
            take(block);
            reserved -= block->size;
            const std::int64_t size = block->size;
            drop(block);
            return size;
        }
        const std::int64_t each = block->area->granule();
        const std::int64_t before = ((block->base - block->address) % each + each) % each;
        const std::int64_t size = block->size < before ? 0 : (block->size - before) / each * each;
        if (size <= 0) return 0;
        take(block);
        if (before != 0) {
            Block* gone = cut(block, before, State::free);
            put(block);
            block = gone;
        }
        if (size < block->size) put(cut(block, size, State::free));
        unmap(block);
        return size;
    }

    // A whole free block, which is in no list, becomes address space again.
    void unmap(Block* block) {
        std::set<Block*, ByAddress>& all = block->area->unmapped;
        reserved -= block->size;
        block->state = State::unmapped;
        Block* before = block->before;
        if (Block* after = block->after; after != nullptr && after->state == State::unmapped) {
            all.erase(after);
            join(block, after);
        }
        if (before != nullptr && before->state == State::unmapped) {
            join(before, block);
            block = before;
        } else {
            all.insert(block);
        }
        if (block->before == nullptr && block->after == nullptr) {
            all.erase(block);
            drop(block);
        }
    }

    // Gives back blocks that must not be split: one that suffices, else from the largest on until they do.
    bool give_oversized(Area& area, std::int64_t need) {
        const std::int64_t least = std::max(need, rules_.max_split);
        if (const auto at = area.free.lower_bound(least); at != area.free.end()) return give_back(*at) > 0;
        std::int64_t released = 0;
        const std::vector<Block*> all(area.free.rbegin(), area.free.rend());
        for (Block* block : all) {
            if (released >= least || block->size < rules_.max_split) break;
            released += give_back(block);
        }
        return released >= least;
    }

    // Gives back large segments that were free for longest, until so much is below the threshold.
    void collect() {
        std::int64_t wanted = reserved - static_cast<std::int64_t>(rules_.collect * static_cast<double>(limit));
        while (wanted > 0) {
            std::vector<Block*> whole;
            std::int64_t total = 0;
            for (Area* area : order_) {
                if (area->domain.pool != 0 || !area->domain.large) continue;
                for (Block* block : area->free) {
                    if (block->expands() || block->before != nullptr || block->after != nullptr) continue;
                    whole.push_back(block);
                    total += calls_ - block->born;
                }
            }
            // At least as old as the mean.
            const auto count = static_cast<std::int64_t>(whole.size());
            const auto young = [&](const Block* block) { return (calls_ - block->born) * count < total; };
            whole.erase(std::remove_if(whole.begin(), whole.end(), young), whole.end());
            if (whole.empty()) return;
            for (Block* block : whole)
                if (wanted > 0) wanted -= give_back(block);
        }
    }

    const scan::Rules rules_;
    std::unordered_map<std::int64_t, std::vector<Area*>> areas_;  // by stream
    std::vector<std::unique_ptr<Area>> all_;
    std::vector<Area*> order_;  // as they first had something free
    Area* last_ = nullptr;
    std::vector<std::unique_ptr<Block[]>> chunks_;
    std::size_t left_ = 0;
    Block* spare_ = nullptr;
    std::int64_t next_ = kSpace, number_ = 0, calls_ = 0;
};

void begin(Allocator& allocator, const trace_beginning& given, const trace_program& program, std::vector<Block*>& live) {
    // Those to use first come last.
    for (std::uint64_t i = 0; i < given.places; ++i)
        allocator.places[given.place_size[i]].push_back(given.place_address[i]);
    for (std::uint64_t i = 0; i < given.segments; ++i) {
        Area& area = allocator.of({given.pool[i], given.stream[i], given.large[i] != 0});
        const auto first = given.bounds[i], last = given.bounds[i + 1];
        if (given.anew != 0) {
            const std::int64_t before = allocator.reserved;
            for (auto piece = first; piece < last; ++piece) {
                const auto row = static_cast<std::size_t>(given.row[piece]);
                live[row] = allocator.malloc(program.requested[row], area.domain.pool, area.domain.stream);
            }
            allocator.reserve(area, given.total[i] - (allocator.reserved - before));
            continue;
        }
        Allocator::Segment segment{area, given.base[i], given.base[i]};
        for (auto piece = first; piece < last; ++piece) {
            const std::int32_t row = given.row[piece];
            Block* block = allocator.adopt(segment, given.start[piece], given.end[piece], row >= 0);
            if (row >= 0) live[static_cast<std::size_t>(row)] = block;
        }
        allocator.close(segment);
    }
}

void replay(Allocator& allocator, const trace_program& program, std::int64_t pad, std::vector<Block*>& live,
            trace_outcome& outcome) {
    const std::int64_t limit = outcome.limit;
    const auto at_once = [](std::int64_t pool) { return pool == 0; };
    if (limit != kUnlimited && allocator.reserved > limit) allocator.empty_cache(at_once);
    outcome.start = allocator.reserved;
    const std::int64_t grown = allocator.grown;
    if (limit != kUnlimited && outcome.start > limit)
        outcome.failed = TRACE_FAILED_BEFORE, outcome.missing = outcome.start - limit;
    allocator.limit = limit;
    std::uint64_t emptied = 0;
    for (std::uint64_t i = 0; i < program.operations; ++i) {
        const std::uint8_t what = program.operation[i];
        if (what == TRACE_EMPTY) {
            const std::int64_t* pools = program.emptied + program.emptied_bounds[emptied];
            const std::int64_t* end = program.emptied + program.emptied_bounds[++emptied];
            allocator.empty_cache([&](std::int64_t pool) { return std::find(pools, end, pool) != end; });
        } else if (what == TRACE_GIVE_BACK) {
            Block*& block = live[static_cast<std::size_t>(program.row[i])];
            if (block == nullptr) throw Unusual();
            allocator.free(std::exchange(block, nullptr));
        } else {
            // What the program would have done with a request that failed nobody knows: it goes on without.
            const bool failing = what == TRACE_FAILING;
            const auto row = static_cast<std::size_t>(program.row[i]);
            const auto event = static_cast<std::size_t>(program.event[i]);
            const std::int64_t size = failing ? program.size[event] - pad : program.requested[row];
            const std::int64_t pool = failing ? 0 : program.pool[row], stream = program.stream[event];
            Block* block = allocator.malloc(size, pool, stream);
            const bool full = block == nullptr;
            if (full) {
                block = allocator.beyond(size, pool, stream);
                if (outcome.failed == TRACE_FAILED_NEVER && limit != kUnlimited)
                    outcome.failed = static_cast<std::int64_t>(i), outcome.missing = allocator.reserved - limit;
            }
            if (!failing) live[row] = block;
            else allocator.free(block);
            if (failing && full) allocator.empty_cache(at_once);
        }
        program.reserved[i] = allocator.reserved;
    }
    outcome.growths = allocator.grown - grown;
    outcome.retries = allocator.retries;
}

}  // namespace

int trace_replay(const trace_rules* rules, const trace_beginning* given, const trace_program* program,
                 trace_outcome* outcome) {
    return scan::guarded([&]() -> int {
        try {
            Allocator allocator(*rules);
            std::vector<Block*> live(program->blocks);
            outcome->failed = TRACE_FAILED_NEVER;
            begin(allocator, *given, *program, live);
            replay(allocator, *program, rules->pad, live, *outcome);
            return TRACE_SCAN_OK;
        } catch (const Unusual&) {
            return TRACE_SNAPSHOT_UNUSUAL;
        }
    });
}
