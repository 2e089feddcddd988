#include "snapshot.h"

#include <cstring>
#include <string_view>

namespace scan {
namespace {

// Members that are columns. Their texts get the codes from 1 on, in this order.
enum Member : unsigned {
    kNone, kAction, kAddress, kSize, kStream, kTime, kFrames, kDeviceFree, kPool, kSegmentPool, kMetadata, kCompile,
    kFilename, kName, kLine, kOrigin, kMembers
};
constexpr const char* kKeys[] = {
    "", "action", "addr", "size", "stream", "time_us", "frames", "device_free", "pool_id", "segment_pool_id",
    "user_metadata", "compile_context", "filename", "name", "line", "fx_original_trace"};
static_assert(sizeof kKeys / sizeof *kKeys == kMembers);

constexpr std::int64_t kMostBytes = std::int64_t{1} << 42;    // no device has 4 TiB
constexpr std::int64_t kHighest = std::int64_t{1} << 62;      // addresses have room for sizes behind them
constexpr std::int64_t kLatest = std::int64_t{1} << 53;       // times are µs
constexpr std::int64_t kMostLines = std::int64_t{1} << 31;
constexpr unsigned kBits = 28;
constexpr std::uint64_t kNumber = (std::uint64_t{1} << kBits) - 1;

constexpr std::uint64_t packed(Kind kind, std::uint64_t first, std::uint64_t second = 0) {
    return static_cast<std::uint64_t>(kind) << 2 * kBits | first << kBits | second;
}
constexpr Kind kind_of(std::uint64_t object) { return static_cast<Kind>(object >> 2 * kBits); }
constexpr std::uint64_t first_of(std::uint64_t object) { return object >> kBits & kNumber; }
constexpr std::uint64_t second_of(std::uint64_t object) { return object & kNumber; }

// A number of 28 bits.
std::uint64_t numbered(std::uint64_t count) {
    if (count > kNumber) throw Unusual();
    return count;
}

std::int64_t integer(const Value* value, std::int64_t least, std::int64_t limit) {
    if (value->tag != Tag::integer || value->payload < least || value->payload >= limit) throw Unusual();
    return value->payload;
}

// Those of the upper half of all addresses are negative.
std::int64_t address(const Value* value) {
    if (value->tag == Tag::wide && value->payload >= -kHighest) return value->payload;
    return integer(value, 0, kHighest);
}

// The code of a text; 0 of everything else.
std::int64_t text_or_none(const Value* value) {
    return value != nullptr && value->tag == Tag::text ? value->payload : 0;
}

// The code of a text, 0 of none; other values have a text of their own in Python.
std::int32_t text_of(const Value* value) {
    if (value == nullptr || value->tag == Tag::none) return 0;
    if (value->tag != Tag::text) throw Unusual();
    return static_cast<std::int32_t>(value->payload);
}

}  // namespace

Snapshot::Snapshot(bool shared) : shared_(shared) {
    Byte* text = scratch_.reserve(2 * kPadding);
    for (unsigned key = 1; key < kMembers; ++key) {
        const std::size_t size = std::strlen(kKeys[key]);
        std::memcpy(text, kKeys[key], size);
        texts.code({text, text + size});
    }
}

Value Snapshot::object(Kind kind) {
    const std::size_t number = objects.size();
    if (number >= std::size_t{1} << 31) throw TooLarge();
    objects.push(packed(kind, 0));
    return {static_cast<std::int64_t>(number), Tag::object};
}

std::uint64_t Snapshot::chunk(Kind kind, const Value* begin, const Value* end, std::uint64_t before) {
    const auto count = static_cast<std::size_t>(end - begin);
    const std::uint64_t number = numbered(chunks.size() / 3);
    chunks.push(static_cast<std::int64_t>(tags.size()));
    chunks.push(static_cast<std::int64_t>(count));
    chunks.push(-1);
    std::uint8_t* tag = tags.reserve(count);
    std::int64_t* payload = payloads.reserve(count);
    for (const Value* value = begin; value < end; ++value) {
        *tag++ = static_cast<std::uint8_t>(value->tag);
        *payload++ = value->payload;
    }
    tags.grown(count);
    payloads.grown(count);
    if (kind_of(before) != kind) return packed(kind, number, number);
    chunks[3 * second_of(before) + 2] = static_cast<std::int64_t>(number);
    return packed(kind, first_of(before), number);
}

Value Snapshot::tuple(const Value* begin, const Value* end) {
    const Value made = object(Kind::tuple);
    if (end - begin == 2 && begin[0].tag == Tag::integer && begin[1].tag == Tag::integer) {
        Byte* pair = scratch_.reserve(16 + kPadding);
        std::memcpy(pair, &begin[0].payload, 8);
        std::memcpy(pair + 8, &begin[1].payload, 8);
        at(made) = packed(Kind::pool, numbered(static_cast<std::uint64_t>(pools.code({pair, pair + 16}))));
    } else {
        at(made) = chunk(Kind::tuple, begin, end, 0);
    }
    return made;
}

void Snapshot::set(Value dict, const Value* begin, const Value* end) {
    if (dict.tag != Tag::object || (end - begin) % 2 != 0) throw Unusual();
    const Kind kind = kind_of(at(dict));
    if (kind != Kind::dict && kind != Kind::map) throw Unusual();
    if (begin == end) return;
    const Value* member[kMembers] = {};
    for (const Value* key = begin; key < end; key += 2) {
        if (key->tag != Tag::text) throw Unusual();
        if (key->payload < kMembers) {
            const Value*& found = member[key->payload];
            if (found != nullptr) throw Unusual();
            found = key + 1;
        }
    }
    if (kind == Kind::dict && member[kAction] != nullptr) {
        at(dict) = event(member);
    } else if (kind == Kind::dict && member[kFilename] != nullptr) {
        at(dict) = frame(member);
    } else {
        at(dict) = chunk(Kind::map, begin, end, at(dict));
    }
}

void Snapshot::append(Value list, const Value* begin, const Value* end) {
    if (list.tag != Tag::object) throw Unusual();
    std::uint64_t& object = at(list);
    const Kind kind = kind_of(object);
    if (kind != Kind::list && kind != Kind::events && kind != Kind::stack && kind != Kind::values) throw Unusual();
    if (begin == end) return;
    if (kind != Kind::values && (extend_events(object, begin, end) || extend_stack(object, begin, end))) return;
    if (kind != Kind::list && kind != Kind::values) throw Unusual();
    object = chunk(Kind::values, begin, end, object);
}

// Events that follow each other in the file and in the list.
bool Snapshot::extend_events(std::uint64_t& list, const Value* begin, const Value* end) {
    if (kind_of(list) == Kind::stack) return false;
    const auto row = [this](const Value* value) {
        const std::uint64_t made = value->tag == Tag::object ? at(*value) : 0;
        return kind_of(made) == Kind::event ? first_of(made) : ~std::uint64_t{0};
    };
    const bool more = kind_of(list) == Kind::events;
    const std::uint64_t first = more ? first_of(list) : row(begin);
    if (first == ~std::uint64_t{0}) return false;
    std::uint64_t next = more ? first + second_of(list) : first;
    for (const Value* value = begin; value < end; ++value)
        if (row(value) != next++) throw Unusual();
    list = packed(Kind::events, first, numbered(next - first));
    return true;
}

bool Snapshot::extend_stack(std::uint64_t& list, const Value* begin, const Value* end) {
    if (kind_of(list) == Kind::events) return false;
    std::size_t had = 0;
    const Text before = kind_of(list) == Kind::stack ? stacks.text(static_cast<std::int32_t>(first_of(list))) : Text{};
    if (kind_of(list) == Kind::stack) had = before.size();
    const std::size_t size = had + static_cast<std::size_t>(end - begin) * sizeof(std::int32_t);
    Byte* sequence = scratch_.reserve(size + kPadding);
    if (had != 0) std::memcpy(sequence, before.begin, had);
    Byte* out = sequence + had;
    for (const Value* value = begin; value < end; ++value, out += sizeof(std::int32_t)) {
        const std::uint64_t made = value->tag == Tag::object ? at(*value) : 0;
        if (kind_of(made) != Kind::frame) return false;
        const auto code = static_cast<std::int32_t>(first_of(made));
        std::memcpy(out, &code, sizeof code);
    }
    list = packed(Kind::stack, numbered(static_cast<std::uint64_t>(stacks.code({sequence, sequence + size}))));
    return true;
}

// What events, frames and stacks were made of is in their columns.
Value Snapshot::made(std::size_t mark, bool dict, const Value* begin, const Value* end) {
    const bool pair = end - begin == 2 && begin[0].tag == Tag::integer && begin[1].tag == Tag::integer;
    if (pair && !dict) return tuple(begin, end);
    const Value found = object(dict ? Kind::dict : Kind::list);
    if (dict) set(found, begin, end);
    else append(found, begin, end);
    const std::uint64_t packed_object = at(found);
    const Kind kind = kind_of(packed_object);
    if (kind == Kind::map || kind == Kind::values) return found;
    objects.drop(objects.size() - mark);
    objects.push(packed_object);
    return {static_cast<std::int64_t>(mark), Tag::object};
}

// The code of what a list of frames is, 0: it has none.
std::int32_t Snapshot::stack(std::uint64_t list) {
    if (kind_of(list) == Kind::stack) return static_cast<std::int32_t>(first_of(list));
    if (kind_of(list) != Kind::list) throw Unusual();
    return 0;
}

void Snapshot::finish() {
    const std::size_t rows = shared_ ? events.frames.size() : 0;
    std::int32_t* code = events.stack.reserve(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::int32_t list = events.frames[row];
        code[row] = list < 0 ? 0 : stack(objects[static_cast<std::size_t>(list)]);
    }
    events.stack.grown(rows);
    for (Strings* each : {&texts, &frames, &stacks, &pools, &told}) each->freeze();
    scratch_ = Column<Byte>();
}

std::uint64_t Snapshot::event(const Value* const* member) {
    const std::uint64_t row = numbered(events.action.size());
    if (member[kAction]->tag != Tag::text || member[kSize] == nullptr) throw Unusual();
    if (member[kPool] != nullptr && member[kSegmentPool] != nullptr) throw Unusual();
    std::int32_t frames_object = -1, stack_code = 0;
    if (const Value* given = member[kFrames]; given != nullptr && given->tag != Tag::none) {
        if (given->tag != Tag::object) throw Unusual();
        if (shared_) frames_object = static_cast<std::int32_t>(given->payload);
        else stack_code = stack(at(*given));
    }
    const bool said = member[kMetadata] != nullptr || member[kCompile] != nullptr;
    const Value* pool_given = member[kPool] != nullptr ? member[kPool] : member[kSegmentPool];
    events.action.push(static_cast<std::int32_t>(member[kAction]->payload));
    events.address.push(member[kAddress] == nullptr ? 0 : address(member[kAddress]));
    events.size.push(integer(member[kSize], 0, kMostBytes));
    if (member[kStream] != nullptr && member[kStream]->tag != Tag::integer) throw Unusual();
    events.stream.push(member[kStream] == nullptr ? 0 : member[kStream]->payload);
    events.time.push(member[kTime] == nullptr ? 0 : integer(member[kTime], 0, kLatest));
    events.frames.push(frames_object);
    if (!shared_) events.stack.push(stack_code);
    const std::int64_t pair[] = {text_or_none(member[kMetadata]), text_or_none(member[kCompile])};
    if (pair[0] != last_told_[0] || pair[1] != last_told_[1]) {
        Byte* bytes = scratch_.reserve(sizeof pair + kPadding);
        std::memcpy(bytes, pair, sizeof pair);
        last_told_[0] = pair[0], last_told_[1] = pair[1];
        last_told_[2] = told.code({bytes, bytes + sizeof pair});
    }
    events.told.push(static_cast<std::int32_t>(last_told_[2]));
    events.pool.push(pool_given == nullptr ? 0 : pool(*pool_given));
    events.has.push(static_cast<std::uint8_t>(
        (member[kTime] != nullptr ? kHasTime : 0) | (member[kPool] != nullptr ? kHasPool : 0) |
        (member[kSegmentPool] != nullptr ? kHasSegmentPool : 0) | (said ? kHasTold : 0)));
    if (const Value* left = member[kDeviceFree];
        left != nullptr && left->tag == Tag::integer && left->payload >= 0 && left->payload < kMostBytes) {
        events.free_row.push(static_cast<std::int64_t>(row));
        events.free_bytes.push(left->payload);
    }
    return packed(Kind::event, row);
}

// Code of a pair of numbers; what is none is the default pool, but lists may become one.
std::int32_t Snapshot::pool(Value value) {
    if (value.tag != Tag::object) return 0;
    const std::uint64_t given = at(value);
    if (kind_of(given) != Kind::pool) throw Unusual();
    return static_cast<std::int32_t>(first_of(given));
}

std::uint64_t Snapshot::frame(const Value* const* member) {
    std::int32_t found[4] = {text_of(member[kName]), text_of(member[kFilename]), 0, 0};
    if (const Value* line = member[kLine]) {
        if (line->tag == Tag::yes || line->tag == Tag::no) throw Unusual();
        if (line->tag == Tag::integer && line->payload >= 0 && line->payload < kMostLines)
            found[2] = static_cast<std::int32_t>(line->payload);
    }
    found[3] = static_cast<std::int32_t>(text_or_none(member[kOrigin]));
    Byte* bytes = scratch_.reserve(sizeof found + kPadding);
    std::memcpy(bytes, found, sizeof found);
    return packed(Kind::frame, numbered(static_cast<std::uint64_t>(frames.code({bytes, bytes + sizeof found}))));
}

}  // namespace scan
