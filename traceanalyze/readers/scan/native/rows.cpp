#include "rows.h"

#include <algorithm>
#include <limits>

namespace scan {
namespace {

// Rows are numbered by uint32.
constexpr std::size_t kMaxRows = std::numeric_limits<std::uint32_t>::max();

// Codes of texts are added to this where they stand for an id.
constexpr std::int64_t kTextIds = std::numeric_limits<std::int64_t>::min();

// What numbers have become elsewhere.
auto numbered(const std::vector<std::int32_t>& numbers) {
    return [&numbers](std::int32_t number) { return numbers[static_cast<std::size_t>(number)]; };
}

void append(Column<Byte>& blob, Text text) {
    if (text.size() == 0) return;
    std::memcpy(blob.reserve(text.size()), text.begin, text.size());
    blob.grown(text.size());
}

}  // namespace

std::int64_t Phases::number(Text content) {
    if (content.size() <= 1) return content.size() == 0 ? kNone : *content.begin;
    const auto code = static_cast<std::size_t>(long_.code(content));
    while (long_counts_.size() <= code) long_counts_.push(0);
    return static_cast<std::int64_t>(code) + 256;
}

void Phases::freeze() {
    for (unsigned c = 0; c < 256; ++c) {
        const auto byte = static_cast<Byte>(c);
        list({&byte, &byte + 1}, single_[c]);
    }
    for (std::size_t i = 0; i < long_counts_.size(); ++i)
        list(long_.text(static_cast<std::int32_t>(i)), long_counts_[i]);
    long_.freeze();
}

void Phases::list(Text text, std::int64_t count) {
    if (count == 0) return;
    append(blob_, text);
    ends_.push(static_cast<std::int64_t>(blob_.size()));
    counts_.push(count);
}

void Phases::take(const Phases& more) {
    for (unsigned c = 0; c < 256; ++c) single_[c] += more.single_[c];
    for (std::size_t i = 0; i < more.long_counts_.size(); ++i) {
        const Text text = more.long_.text(static_cast<std::int32_t>(i));
        if (text.size() > 1) long_counts_[static_cast<std::size_t>(number(text) - 256)] += more.long_counts_[i];
    }
}

std::vector<std::int32_t> Tracks::numbers(const Tracks& of, const std::vector<std::int32_t>& codes) {
    std::vector<std::int32_t> found;
    const Column<Byte>& pairs = of.pairs_.blob();
    for (std::size_t at = 0; at < pairs.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t pair = load8(pairs.data() + at);
        found.push_back(number(codes[pair & 0xFFFFFFFF], codes[pair >> 32]));
    }
    return found;
}

std::int32_t Tracks::look_up(std::uint64_t pair) {
    Byte text[sizeof pair + kPadding] = {};
    std::memcpy(text, &pair, sizeof pair);
    return pairs_.code({text, text + sizeof pair}) - 1;  // code 0 is the empty string
}

void Fields::build(const std::vector<FieldSlots>& fields) {
    fields_.resize(fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
        fields_[i].kind = fields[i].kind;
        Bits before = 0;
        for (const unsigned slot : fields[i].slots) {
            by_slot_[slot].push_back({&fields_[i], before});
            before |= bit(slot);
        }
        slots_ |= before;
    }
}

void Fields::take(Fields& more, std::uint32_t rows, const std::vector<std::int32_t>& codes) {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
        Field& field = fields_[i];
        append(field.row, more.fields_[i].row, [rows](std::uint32_t row) { return rows + row; });
        append(field.wide, more.fields_[i].wide);
        append(field.codes, more.fields_[i].codes, numbered(codes));
    }
}

Rows::Rows(const Schema& schema) {
    completes.fields.build(schema.fields(TRACE_SCAN_EVENTS));
    instants.fields.build(schema.fields(TRACE_SCAN_INSTANTS));
}

bool Rows::movable(const Rows& next) const {
    const auto room = [](const auto& list, const auto& more) { return list.ts.size() + more.ts.size() <= kMaxRows; };
    // Of an id that is a text, its code is kept, in a range that numbers may be in, too.
    const auto textual = [](std::int64_t id) { return id < kTextIds + std::numeric_limits<std::int32_t>::max(); };
    const std::int64_t* ids = next.flows.id.data();
    return room(completes, next.completes) && room(instants, next.instants) && room(flows, next.flows) &&
           std::none_of(ids, ids + next.flows.id.size(), textual);
}

void Rows::take(Rows& next) {
    std::vector<std::int32_t> codes(next.strings.offsets().size() - 1);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = strings.code(next.strings.text(static_cast<std::int32_t>(i)));
    const std::vector<std::int32_t> numbers = tracks.numbers(next.tracks, codes);
    const auto common = [&](Instants& list, Instants& more) {
        list.fields.take(more.fields, static_cast<std::uint32_t>(list.ts.size()), codes);
        append(list.ts, more.ts);
        append(list.name, more.name, numbered(codes));
        append(list.cat, more.cat, numbered(codes));
        append(list.track, more.track, numbered(numbers));
    };
    phases.take(next.phases);
    common(completes, next.completes);
    append(completes.dur, next.completes.dur);
    common(instants, next.instants);
    append(flows.ts, next.flows.ts);
    append(flows.id, next.flows.id);
    append(flows.track, next.flows.track, numbered(numbers));
    append(flows.cat, next.flows.cat, numbered(codes));
    append(flows.phase, next.flows.phase);
    const auto before = static_cast<std::int64_t>(metadata.blob.size());
    append(metadata.codes, next.metadata.codes, numbered(codes));
    append(metadata.blob, next.metadata.blob);
    append(metadata.ends, next.metadata.ends, [before](std::int64_t end) { return before + end; });
    counts.add(next.counts);
}

void Rows::freeze() {
    strings.freeze();
    phases.freeze();
    tracks.freeze();
}

void Rows::add(const Event& event) {
    const std::int64_t phase = event.has(kPhase) ? event.value[kPhase] : Phases::kNone;
    if (phase == Phases::kNone) {
        ++counts.no_phase;
        return;
    }
    phases.count(phase);
    switch (phase) {
        case 'X': case 'B': case 'E': return add_complete(event, static_cast<Byte>(phase));
        case 'i': case 'I': return add_instant(event);
        case 's': case 't': case 'f': return add_flow(event, static_cast<Byte>(phase));
        case 'M': return add_metadata(event);
        default: return;
    }
}

bool Rows::accept_ts(const Event& event) {
    if (event.has_valid(kTs)) return true;
    ++(event.has(kTs) ? counts.bad_ts : counts.no_ts);
    return false;
}

bool Rows::accept_dur(const Event& event) {
    std::int64_t end;
    if (!event.has(kDur)) {
        ++counts.no_dur;
    } else if (!event.has_valid(kDur) || __builtin_add_overflow(event.value[kTs], event.value[kDur], &end)) {
        ++counts.bad_dur;
    } else if (event.value[kDur] < 0) {
        ++counts.negative_dur;
    } else {
        return true;
    }
    return false;
}

template <class List>
void Rows::add_common(List& list, const Event& event) {
    const std::size_t row = list.ts.size();
    if (row == kMaxRows) throw TooLarge();
    list.ts.push(event.value[kTs]);
    list.name.push(event.code(kName));
    list.cat.push(event.code(kCat));
    list.track.push(track(event));
    counts.bad_value += list.fields.add(event, static_cast<std::uint32_t>(row));
}

void Rows::add_complete(const Event& event, Byte phase) {
    const bool whole = phase == 'X';
    if (!accept_ts(event) || (whole && !accept_dur(event))) return;
    counts.no_pid += !event.has(kPid);
    counts.fractional |= (event.fractional & (whole ? bit(kTs) | bit(kDur) : bit(kTs))) != 0;
    completes.dur.push(whole ? event.value[kDur] : phase == 'B' ? TRACE_SCAN_BEGIN : TRACE_SCAN_END);
    add_common(completes, event);
}

void Rows::add_instant(const Event& event) {
    if (!accept_ts(event)) return;
    counts.fractional |= (event.fractional & bit(kTs)) != 0;
    add_common(instants, event);
}

void Rows::add_flow(const Event& event, Byte phase) {
    if (!accept_ts(event)) return;
    counts.fractional |= (event.fractional & bit(kTs)) != 0;
    if (flows.ts.size() == kMaxRows) throw TooLarge();
    flows.ts.push(event.value[kTs]);
    flows.track.push(track(event));
    flows.cat.push(event.code(kCat));
    flows.id.push(flow_id(event));
    flows.phase.push(phase);
}

std::int64_t Rows::flow_id(const Event& event) {
    if (event.has_valid(kId)) return event.value[kId];
    const std::int32_t code = event.has(kId) ? strings.value_code(event.id) : 0;
    std::int64_t id;
    if (parse_canonical(strings.text(code), id)) return id;
    return kTextIds + code;
}

void Rows::add_metadata(const Event& event) {
    for (const Slot slot : {kName, kPid, kTid}) metadata.codes.push(event.code(slot));
    if (event.has(kArgs)) append(metadata.blob, event.args);
    metadata.ends.push(static_cast<std::int64_t>(metadata.blob.size()));
}

}  // namespace scan
