// Allocator snapshots straight from the pickle: a walk over the opcodes that plain values are written with. Whatever
// else a file holds, or asks for, ends the walk, and the caller unpickles it with all due care.
#include <memory>

#include "boundary.h"
#include "walker.h"

namespace {

using scan::Byte;
using scan::Column;
using scan::Tag;
using scan::Unusual;
using scan::Value;

using scan::kDeepest;
using scan::kLongest;

constexpr std::uint64_t kMostPayload = std::uint64_t{1} << 56;

std::uint64_t little(const Byte* p, std::size_t bytes) {
    std::uint64_t x = 0;
    for (std::size_t i = 0; i < bytes; ++i) x |= std::uint64_t{p[i]} << 8 * i;
    return x;
}

class Pickle final : public scan::Walker {
public:
    Pickle() : Walker(true) {}

    void walk(bool) override {
        const Byte* p = buffer.begin();
        while (!done) {
            const Byte* next = step(p, buffer.end());
            if (next == nullptr) break;
            p = next;
        }
        buffer.consume(p);
        if (buffer.size() > kLongest + 16) throw Unusual();
        if (!done) return;
        marks_ = Column<std::size_t>();
        memo_ = Column<std::uint64_t>();
        release();
    }

private:
    // What comes after the opcode at `p`, nullptr when it is not complete.
    const Byte* step(const Byte* p, const Byte* end) {
        if (p == end) return nullptr;
        const auto left = static_cast<std::size_t>(end - p) - 1;
        const Byte* operand = p + 1;
        switch (*p) {
            case 0x80:  // PROTO
                if (left < 1) return nullptr;
                if (buffer.offset(p) != 0 || *operand < 2 || *operand > 5) throw Unusual();
                return operand + 1;
            case 'h':  // BINGET
                if (left < 1) return nullptr;
                push(remembered(*operand));
                return operand + 1;
            case 'j':  // LONG_BINGET
                if (left < 4) return nullptr;
                push(remembered(scan::load4(operand)));
                return operand + 4;
            case 'K':  // BININT1
                if (left < 1) return nullptr;
                push({*operand, Tag::integer});
                return operand + 1;
            case 'M':  // BININT2
                if (left < 2) return nullptr;
                push({static_cast<std::int64_t>(little(operand, 2)), Tag::integer});
                return operand + 2;
            case 'J':  // BININT
                if (left < 4) return nullptr;
                push({static_cast<std::int32_t>(scan::load4(operand)), Tag::integer});
                return operand + 4;
            case 0x8A:  // LONG1
                if (left < 1 || left - 1 < *operand) return nullptr;
                push(whole(operand + 1, *operand));
                return operand + 1 + *operand;
            case 0x8C:  // SHORT_BINUNICODE
                if (left < 1) return nullptr;
                return text(operand + 1, left - 1, *operand);
            case 'X':  // BINUNICODE
                if (left < 4) return nullptr;
                return text(operand + 4, left - 4, scan::load4(operand));
            case 'G':  // BINFLOAT
                if (left < 8) return nullptr;
                push({static_cast<std::int64_t>(__builtin_bswap64(scan::load8(operand))), Tag::real});
                return operand + 8;
            case 'N': push({0, Tag::none}); return operand;
            case 0x88: push({0, Tag::yes}); return operand;
            case 0x89: push({0, Tag::no}); return operand;
            case '}': push(snapshot.dict()); return operand;
            case ']': push(snapshot.list()); return operand;
            case ')': push(snapshot.tuple(nullptr, nullptr)); return operand;
            case 0x94: remember(memo_.size()); return operand;  // MEMOIZE
            case 'q':                                           // BINPUT
                if (left < 1) return nullptr;
                remember(*operand);
                return operand + 1;
            case 'r':  // LONG_BINPUT
                if (left < 4) return nullptr;
                remember(scan::load4(operand));
                return operand + 4;
            case '(':  // MARK
                if (marks_.size() >= kDeepest) throw Unusual();
                marks_.push(stack.size());
                return operand;
            case 'u': fill(marked(), true); return operand;     // SETITEMS
            case 's': fill(above(2), true); return operand;     // SETITEM
            case 'e': fill(marked(), false); return operand;    // APPENDS
            case 'a': fill(above(1), false); return operand;    // APPEND
            case 't': gather(marked()); return operand;         // TUPLE
            case 0x85: gather(above(1)); return operand;
            case 0x86: gather(above(2)); return operand;
            case 0x87: gather(above(3)); return operand;
            case 0x95:  // FRAME
                if (left < 8) return nullptr;
                open_frame(buffer.offset(operand + 8), scan::load8(operand));
                return operand + 8;
            case '.':  // STOP
                if (marks_.size() != 0 || stack.size() != 1 || stack[0].tag != Tag::object) throw Unusual();
                if (buffer.offset(operand) < frame_end_) throw Unusual();
                root = stack[0];
                done = true;
                return operand;
            default: throw Unusual();
        }
    }

    // Values below the last mark are out of reach.
    std::size_t fence() const { return marks_.size() == 0 ? 0 : marks_[marks_.size() - 1]; }
    std::size_t above(std::size_t count) const {
        if (stack.size() < fence() + count) throw Unusual();
        return stack.size() - count;
    }
    std::size_t marked() {
        if (marks_.size() == 0) throw Unusual();
        const std::size_t found = fence();
        marks_.drop(1);
        return found;
    }

    void fill(std::size_t first, bool dict) {
        if (first <= fence()) throw Unusual();
        const Value* values = stack.data();
        const Value into = values[first - 1];
        if (dict) snapshot.set(into, values + first, values + stack.size());
        else snapshot.append(into, values + first, values + stack.size());
        cut(first);
    }
    void gather(std::size_t first) {
        const Value made = snapshot.tuple(stack.data() + first, stack.data() + stack.size());
        cut(first);
        push(made);
    }

    // The memo grows by one at a time: a file that leaves room in it claims more than it holds.
    void remember(std::size_t place) {
        const Value value = stack[above(1)];
        if (place != memo_.size() || (value.tag != Tag::text && value.tag != Tag::object)) throw Unusual();
        memo_.push(static_cast<std::uint64_t>(value.tag) * kMostPayload | static_cast<std::uint64_t>(value.payload));
    }
    Value remembered(std::size_t place) const {
        if (place >= memo_.size()) throw Unusual();
        const std::uint64_t found = memo_[place];
        return {static_cast<std::int64_t>(found % kMostPayload), static_cast<Tag>(found / kMostPayload)};
    }

    static Value whole(const Byte* p, std::size_t bytes) {
        const std::uint64_t low = little(p, bytes < 8 ? bytes : 8);
        if (bytes == 9 && p[8] == 0 && low >> 63 != 0) return {static_cast<std::int64_t>(low), Tag::wide};
        if (bytes > 8) throw Unusual();
        if (bytes == 0) return {0, Tag::integer};
        const auto unused = static_cast<unsigned>(64 - 8 * bytes);
        return {static_cast<std::int64_t>(low << unused) >> unused, Tag::integer};
    }

    const Byte* text(const Byte* p, std::size_t left, std::size_t size) {
        if (size > kLongest) throw Unusual();
        if (left < size) return nullptr;
        push({snapshot.texts.code({p, p + size}), Tag::text});
        return p + size;
    }

    // A frame begins where the last one ended, or later, and the file must hold all of it.
    void open_frame(std::uint64_t begin, std::uint64_t size) {
        if (begin - 9 < frame_end_ || size > kLongest) throw Unusual();
        frame_end_ = begin + size;
    }

    Column<std::size_t> marks_;
    Column<std::uint64_t> memo_;
    std::uint64_t frame_end_ = 0;
};

}  // namespace

std::unique_ptr<scan::Walker> scan::pickle_walker() { return std::make_unique<Pickle>(); }

struct trace_snapshot {
    std::unique_ptr<scan::Walker> walker;
    bool broken = false;

    template <class Action>
    int advance(Action action) noexcept {
        if (broken || walker->done) return TRACE_SCAN_INTERNAL;
        const int status = scan::guarded([&]() -> int {
            try {
                return action();
            } catch (const Unusual&) {
                return TRACE_SNAPSHOT_UNUSUAL;
            }
        });
        broken = status != TRACE_SCAN_OK;
        return status;
    }
};

namespace {

trace_scan_array array(scan::Snapshot& from, std::uint32_t id) {
    using scan::taken;
    const scan::Happened& events = from.events;
    const scan::Strings* sequences[] = {&from.texts, &from.frames, &from.stacks, &from.pools, &from.told};
    if (id < TRACE_SNAPSHOT_OBJECTS) {
        const scan::Strings& each = *sequences[id / 2];
        return id % 2 == 0 ? taken(each.blob()) : taken(each.offsets());
    }
    switch (id) {
        case TRACE_SNAPSHOT_OBJECTS: return taken(from.objects);
        case TRACE_SNAPSHOT_CHUNKS: return taken(from.chunks, 3);
        case TRACE_SNAPSHOT_TAGS: return taken(from.tags);
        case TRACE_SNAPSHOT_PAYLOADS: return taken(from.payloads);
        case TRACE_SNAPSHOT_ACTION: return taken(events.action);
        case TRACE_SNAPSHOT_ADDRESS: return taken(events.address);
        case TRACE_SNAPSHOT_SIZE: return taken(events.size);
        case TRACE_SNAPSHOT_STREAM: return taken(events.stream);
        case TRACE_SNAPSHOT_TIME: return taken(events.time);
        case TRACE_SNAPSHOT_FRAMES_OF: return taken(events.frames);
        case TRACE_SNAPSHOT_TOLD_OF: return taken(events.told);
        case TRACE_SNAPSHOT_POOL_OF: return taken(events.pool);
        case TRACE_SNAPSHOT_HAS: return taken(events.has);
        case TRACE_SNAPSHOT_STACK_OF: return taken(events.stack);
        case TRACE_SNAPSHOT_FREE_ROW: return taken(events.free_row);
        case TRACE_SNAPSHOT_FREE_BYTES: return taken(events.free_bytes);
        default: return {nullptr, 0};
    }
}

}  // namespace

extern "C" {

int trace_snapshot_open(uint32_t is_json, trace_snapshot** snapshot) {
    return scan::guarded([&]() -> int {
        auto made = std::make_unique<trace_snapshot>();
        made->walker = is_json != 0 ? scan::json_walker() : scan::pickle_walker();
        *snapshot = made.release();
        return TRACE_SCAN_OK;
    });
}

uint8_t* trace_snapshot_space(trace_snapshot* snapshot, uint64_t bytes) {
    uint8_t* space = nullptr;
    snapshot->advance([&]() -> int {
        if (bytes > kLongest) return TRACE_SCAN_NO_MEMORY;
        space = snapshot->walker->buffer.space(bytes);
        return TRACE_SCAN_OK;
    });
    return space;
}

int trace_snapshot_feed(trace_snapshot* snapshot, uint64_t bytes, int64_t* root) {
    return snapshot->advance([&]() -> int {
        scan::Walker& walker = *snapshot->walker;
        if (!walker.buffer.has_space(bytes)) return TRACE_SCAN_INTERNAL;
        walker.buffer.filled(bytes);
        walker.walk(bytes == 0);
        *root = walker.done ? walker.root.payload : -1;
        return TRACE_SCAN_OK;
    });
}

int trace_snapshot_take(trace_snapshot* snapshot, uint32_t array_id, trace_scan_array* result) {
    if (snapshot->broken || !snapshot->walker->done) return TRACE_SCAN_INTERNAL;
    *result = array(snapshot->walker->snapshot, array_id);
    return TRACE_SCAN_OK;
}

void trace_snapshot_close(trace_snapshot* snapshot) { delete snapshot; }

}  // extern "C"
