// Which members of an event are kept, and in which slot of the event being read.
#pragma once

#include <string>
#include <vector>

#include "scan.h"

#include "bytes.h"
#include "numbers.h"

namespace scan {

// What becomes of a member's value.
enum class Action : std::uint8_t {
    end,  // no value: the event is complete
    skip,
    text,          // code of its text
    microseconds,  // ns
    integer,
    real,
    phase,
    id,     // as an integer if it is one
    args,   // only its place
    mixed,  // a key of fields of several kinds
};

// Slots of the event's own members; those of fields follow.
enum Slot : std::uint8_t {
    kName,
    kCat,
    kPid,
    kTid,
    kPhase,
    kTs,
    kDur,
    kId,
    kArgs,
    kFirstField,
};

constexpr unsigned kSlots = 64;
constexpr std::uint8_t kNoSlot = 255;

constexpr Bits bit(unsigned slot) { return Bits{1} << slot; }

struct Target {
    Action action;
    std::uint8_t slot;
};

// A field of one list: every key has a slot for each kind it is read as, a field as many slots as it has keys.
struct FieldSlots {
    std::uint32_t kind = TRACE_SCAN_INT;
    std::vector<std::uint8_t> slots;  // the first that an event has counts
};

class Schema {
public:
    // Returns false if the options make no sense.
    bool build(const trace_scan_options& options);

    Target of_event(Text key) const;
    Target of_args(Text key) const;

    const std::vector<FieldSlots>& fields(trace_scan_list list) const { return fields_[list]; }

    // The slots, by kind, of a key with Action::mixed; kNoSlot where there is none.
    const std::uint8_t* slots_by_kind(std::uint8_t mixed) const { return keys_[mixed].slots; }

private:
    struct Key {
        std::string text;
        std::uint8_t slots[3] = {kNoSlot, kNoSlot, kNoSlot};
        Target target = {Action::skip, 0};
    };

    Key& key(std::string text);
    static Target resolve(const Key& key, std::size_t index);

    std::vector<Key> keys_;
    std::vector<FieldSlots> fields_[2];
};

}  // namespace scan
