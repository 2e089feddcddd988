// The rows of an allocator snapshot: dictionaries and lists come in, columns of events and distinct stacks come out.
// Whatever is neither is kept as it was written; what this does not know how to keep ends the reading (Unusual).
#pragma once

#include <cstdint>

#include "column.h"
#include "dictionary.h"

namespace scan {

// The caller is to read the file in another way.
struct Unusual {};

enum class Tag : std::uint32_t { none, no, yes, integer, wide, real, text, object };

// `payload` is the number itself (wide: as unsigned, real: its bits), the code of a text, or the number of an object.
struct Value {
    std::int64_t payload;
    Tag tag;
};

// What an object has become, with two numbers: see Snapshot::objects.
enum class Kind : std::uint8_t { dict, event, frame, map, list, events, stack, values, pool, tuple };

// Events, a column each; codes are of texts, 0 where there is none.
struct Happened {
    Column<std::int32_t> action;
    Column<std::int64_t> address;
    Column<std::int64_t> size;
    Column<std::int64_t> stream;
    Column<std::int64_t> time;
    Column<std::int32_t> frames;  // number of the object, -1: none, or nothing is shared
    Column<std::int32_t> told;    // code of a pair
    Column<std::int32_t> pool;    // code of a pair
    Column<std::uint8_t> has;     // which members it has: kHas...
    Column<std::int32_t> stack;   // code of what the list `frames` is in the end, 0: none
    Column<std::int64_t> free_row;
    Column<std::int64_t> free_bytes;
};

constexpr std::uint8_t kHasTime = 1, kHasPool = 2, kHasSegmentPool = 4, kHasTold = 8;

// All of it throws std::bad_alloc, TooLarge and Unusual.
class Snapshot {
public:
    // Whether one object may be in several lists and dictionaries, and be filled later on.
    explicit Snapshot(bool shared);

    Value dict() { return object(Kind::dict); }
    Value list() { return object(Kind::list); }
    Value tuple(const Value* begin, const Value* end);

    // Puts keys and values, alternating, into a dictionary; values at the end of a list.
    void set(Value dict, const Value* begin, const Value* end);
    void append(Value list, const Value* begin, const Value* end);

    // A list or dictionary of a file that shares nothing, of which all is known. Objects made since the mark are in it.
    std::size_t mark() const { return objects.size(); }
    Value made(std::size_t mark, bool dict, const Value* begin, const Value* end);

    // There is no more to come: looks up the stacks of events, and frees what only the rest needs.
    void finish();

    Strings texts;
    Happened events;
    // Distinct sequences, as bytes: four int32 a frame (codes of name and file, line, code of the trace of its graph),
    // an int32 for each frame of a stack, two int64 a pool, two int64 (codes) a pair of texts told.
    Strings frames, stacks, pools, told;
    // Kind in the highest byte, then two numbers of 28 bits: of an event, frame, stack and pool its row or code; of
    // events the first and how many; of a map, values and a tuple the first and the last of their chunks.
    Column<std::uint64_t> objects;
    // Values of maps, lists and tuples: chunks of three numbers each (first value, how many, next chunk or -1).
    Column<std::int64_t> chunks;
    Column<std::uint8_t> tags;
    Column<std::int64_t> payloads;

private:
    Value object(Kind kind);
    std::uint64_t& at(Value object) { return objects[static_cast<std::size_t>(object.payload)]; }
    std::uint64_t chunk(Kind kind, const Value* begin, const Value* end, std::uint64_t before);
    std::uint64_t event(const Value* const* member);
    std::uint64_t frame(const Value* const* member);
    bool extend_events(std::uint64_t& list, const Value* begin, const Value* end);
    bool extend_stack(std::uint64_t& list, const Value* begin, const Value* end);
    std::int32_t pool(Value value);

    std::int32_t stack(std::uint64_t list);

    bool shared_;
    Column<Byte> scratch_;
    std::int64_t last_told_[3] = {-1, -1, 0};
};

}  // namespace scan
