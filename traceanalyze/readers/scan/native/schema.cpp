#include "schema.h"

#include <algorithm>

namespace scan {
namespace {

bool same(Text text, const char* chars, std::size_t size) {
    return text.size() == size && std::memcmp(text.begin, chars, size) == 0;
}

struct Member {
    const char* key;
    std::uint8_t size;
    Target target;
};

constexpr Member kMembers[] = {
    {"ph", 2, {Action::phase, kPhase}},      {"cat", 3, {Action::text, kCat}}, {"name", 4, {Action::text, kName}},
    {"pid", 3, {Action::text, kPid}},        {"tid", 3, {Action::text, kTid}}, {"ts", 2, {Action::microseconds, kTs}},
    {"dur", 3, {Action::microseconds, kDur}}, {"id", 2, {Action::id, kId}},    {"args", 4, {Action::args, kArgs}},
};

}  // namespace

bool Schema::build(const trace_scan_options& options) {
    fields_[TRACE_SCAN_EVENTS].resize(options.event_fields);
    fields_[TRACE_SCAN_INSTANTS].resize(options.instant_fields);
    unsigned slots = kFirstField;
    for (std::uint64_t i = 0; i < options.key_count; ++i) {
        const trace_scan_key& given = options.keys[i];
        if (given.list > TRACE_SCAN_INSTANTS || given.kind > TRACE_SCAN_TEXT) return false;
        if (given.field >= fields_[given.list].size()) return false;
        std::uint8_t& slot = key({reinterpret_cast<const char*>(given.key), given.key_size}).slots[given.kind];
        if (slot == kNoSlot) {
            if (slots == kSlots) return false;
            slot = static_cast<std::uint8_t>(slots++);
        }
        FieldSlots& field = fields_[given.list][given.field];
        field.kind = given.kind;
        field.slots.push_back(slot);
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i].target = resolve(keys_[i], i);
    return true;
}

Schema::Key& Schema::key(std::string text) {
    const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const Key& key) { return key.text == text; });
    if (found != keys_.end()) return *found;
    keys_.emplace_back();
    keys_.back().text = std::move(text);
    return keys_.back();
}

Target Schema::resolve(const Key& key, std::size_t index) {
    static constexpr Action actions[] = {Action::integer, Action::real, Action::text};
    Target target = {Action::skip, 0};
    for (unsigned kind = 0; kind < 3; ++kind) {
        if (key.slots[kind] == kNoSlot) continue;
        if (target.action != Action::skip) return {Action::mixed, static_cast<std::uint8_t>(index)};
        target = {actions[kind], key.slots[kind]};
    }
    return target;
}

Target Schema::of_event(Text key) const {
    for (const Member& member : kMembers)
        if (same(key, member.key, member.size)) return member.target;
    return {Action::skip, 0};
}

Target Schema::of_args(Text key) const {
    for (const Key& known : keys_)
        if (same(key, known.text.data(), known.text.size())) return known.target;
    return {Action::skip, 0};
}

}  // namespace scan
