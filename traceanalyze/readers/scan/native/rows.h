// The columns of the result, and the events that become rows of them.
#pragma once

#include <vector>

#include "schema.h"
#include "dictionary.h"

namespace scan {

// An event being read: nothing of it is in the columns before the grammar has accepted all of it.
struct Event {
    Bits present;     // slots that have a value; all else is undefined without it
    Bits valid;       // numeric slots whose text was such a number
    Bits fractional;  // of ts and dur: not whole microseconds
    Text args;  // as written
    Text id;    // as written, if not valid
    std::int64_t value[kSlots];

    void clear() { present = valid = fractional = 0; }
    bool has(unsigned slot) const { return (present & bit(slot)) != 0; }
    bool has_valid(unsigned slot) const { return (present & valid & bit(slot)) != 0; }
    std::int32_t code(unsigned slot) const { return has(slot) ? static_cast<std::int32_t>(value[slot]) : 0; }
    void set(unsigned slot, std::int64_t x) {
        value[slot] = x;
        valid |= bit(slot);
    }
    void invalidate(unsigned slot) { valid &= ~bit(slot); }
};

// How many events there are of each phase.
class Phases {
public:
    static constexpr std::int64_t kNone = -1;

    // A number for the phase: the byte itself if there is but one.
    std::int64_t number(Text content);
    void count(std::int64_t number) {
        if (number < 256) ++single_[number];
        else ++long_counts_[static_cast<std::size_t>(number - 256)];
    }

    void take(const Phases& more);
    void freeze();
    const Column<Byte>& blob() const { return blob_; }
    const Column<std::int64_t>& ends() const { return ends_; }
    const Column<std::int64_t>& counts() const { return counts_; }

private:
    void list(Text text, std::int64_t count);

    std::int64_t single_[256] = {};
    Strings long_;
    Column<std::int64_t> long_counts_;
    Column<Byte> blob_;
    Column<std::int64_t> ends_;
    Column<std::int64_t> counts_;
};

// Pairs of string codes (pid, tid), numbered by first use.
class Tracks {
public:
    std::int32_t number(std::int32_t pid, std::int32_t tid) {
        const std::uint64_t pair = static_cast<std::uint32_t>(pid) | static_cast<std::uint64_t>(tid) << 32;
        Recent& recent = recent_[(static_cast<unsigned>(pid) * 5 + static_cast<unsigned>(tid)) % kRecent];
        if (recent.pair != pair) recent = {pair, look_up(pair)};
        return recent.track;
    }

    void freeze() { pairs_.freeze(); }
    const Column<Byte>& pairs() const { return pairs_.blob(); }

    // The numbers here of other tracks, whose texts have the codes `codes` here.
    std::vector<std::int32_t> numbers(const Tracks& of, const std::vector<std::int32_t>& codes);

private:
    static constexpr unsigned kRecent = 64;

    struct Recent {
        std::uint64_t pair = ~std::uint64_t{0};
        std::int32_t track = 0;
    };

    std::int32_t look_up(std::uint64_t pair);

    Recent recent_[kRecent];
    Strings pairs_;
};

struct Field {
    std::uint32_t kind;
    Column<std::uint32_t> row;
    Column<std::int64_t> wide;   // integers, and the bits of reals
    Column<std::int32_t> codes;  // texts
};

// The fields of one list of events.
class Fields {
public:
    void build(const std::vector<FieldSlots>& fields);

    // Appends what `event` has of the fields; returns how many of its values were not of the field's kind.
    unsigned add(const Event& event, std::uint32_t row) {
        unsigned bad = 0;
        for (Bits slots = event.present & slots_; slots != 0; slots &= slots - 1) {
            const unsigned slot = lowest(slots);
            for (const Claim& claim : by_slot_[slot])
                if ((event.present & claim.before) == 0) bad += add(*claim.field, event, slot, row);
        }
        return bad;
    }

    const std::vector<Field>& all() const { return fields_; }

    // Fields of as many rows more, behind `rows`, whose texts have the codes `codes` here.
    void take(Fields& more, std::uint32_t rows, const std::vector<std::int32_t>& codes);

private:
    struct Claim {
        Field* field;
        Bits before;  // the field's keys that count before this one
    };

    static unsigned add(Field& field, const Event& event, unsigned slot, std::uint32_t row) {
        if ((event.valid & bit(slot)) == 0) return 1;
        field.row.push(row);
        if (field.kind == TRACE_SCAN_TEXT) field.codes.push(static_cast<std::int32_t>(event.value[slot]));
        else field.wide.push(event.value[slot]);
        return 0;
    }

    std::vector<Field> fields_;
    std::vector<Claim> by_slot_[kSlots];
    Bits slots_ = 0;
};

struct Instants {
    Column<std::int64_t> ts;
    Column<std::int32_t> name, cat, track;
    Fields fields;
};

struct Completes : Instants {
    Column<std::int64_t> dur;
};

struct Flows {
    Column<std::int64_t> ts, id;
    Column<std::int32_t> track, cat;
    Column<Byte> phase;
};

struct Metadata {
    Column<std::int32_t> codes;  // name, pid, tid
    Column<Byte> blob;
    Column<std::int64_t> ends;
};

struct Counts {
    std::uint64_t no_phase, no_ts, bad_ts, no_dur, bad_dur, negative_dur, no_pid, bad_value;
    bool fractional;

    void add(const Counts& more) {
        for (auto count : {&Counts::no_phase, &Counts::no_ts, &Counts::bad_ts, &Counts::no_dur, &Counts::bad_dur,
                           &Counts::negative_dur, &Counts::no_pid, &Counts::bad_value})
            this->*count += more.*count;
        fractional |= more.fractional;
    }
};

class Rows {
public:
    explicit Rows(const Schema& schema);

    // Throws std::bad_alloc or TooLarge, as all of this.
    void add(const Event& event);
    void freeze();

    // Whether `next` can be taken without what only a scan of all the text could tell.
    bool movable(const Rows& next) const;
    // Rows that follow, with their strings numbered as if they had been read here; `next` keeps nothing of use.
    void take(Rows& next);

    Strings strings;
    Phases phases;
    Tracks tracks;
    Completes completes;
    Instants instants;
    Flows flows;
    Metadata metadata;
    Counts counts{};

private:
    void add_complete(const Event& event, Byte phase);
    void add_instant(const Event& event);
    void add_flow(const Event& event, Byte phase);
    void add_metadata(const Event& event);
    bool accept_ts(const Event& event);
    bool accept_dur(const Event& event);
    std::int64_t flow_id(const Event& event);
    template <class List>
    void add_common(List& list, const Event& event);
    std::int32_t track(const Event& event) { return tracks.number(event.code(kPid), event.code(kTid)); }
};

}  // namespace scan
