#include "rows.h"

#include <limits>

namespace scan {
namespace {

// Rows are numbered by uint32.
constexpr std::size_t kMaxRows = std::numeric_limits<std::uint32_t>::max();

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

Rows::Rows(const Schema& schema) {
    completes.fields.build(schema.fields(TRACE_SCAN_EVENTS));
    instants.fields.build(schema.fields(TRACE_SCAN_INSTANTS));
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
    return std::numeric_limits<std::int64_t>::min() + code;
}

void Rows::add_metadata(const Event& event) {
    for (const Slot slot : {kName, kPid, kTid}) metadata.codes.push(event.code(slot));
    if (event.has(kArgs)) append(metadata.blob, event.args);
    metadata.ends.push(static_cast<std::int64_t>(metadata.blob.size()));
}

}  // namespace scan
