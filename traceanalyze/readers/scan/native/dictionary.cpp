#include "dictionary.h"

#include <algorithm>
#include <array>
#include <random>

namespace scan {
namespace {

int hex_digit(Byte c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// The code unit of \uXXXX at `p`, -1 if it is not one.
int code_unit(const Byte* p, const Byte* end) {
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return -1;
    int unit = 0;
    for (int i = 2; i < 6; ++i) {
        const int digit = hex_digit(p[i]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

bool high_surrogate(int unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool low_surrogate(int unit) { return unit >= 0xDC00 && unit < 0xE000; }

Byte* put_utf8(Byte* out, unsigned point) {
    const auto put = [&out](unsigned byte) { *out++ = static_cast<Byte>(byte); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0 | point >> 6);
        put(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        put(0xE0 | point >> 12);
        put(0x80 | (point >> 6 & 0x3F));
        put(0x80 | (point & 0x3F));
    } else {
        put(0xF0 | point >> 18);
        put(0x80 | (point >> 12 & 0x3F));
        put(0x80 | (point >> 6 & 0x3F));
        put(0x80 | (point & 0x3F));
    }
    return out;
}

// Decodes \uXXXX, or the pair of surrogates it begins, at `p`; leaves `p` alone if it is not one.
Byte* decode_unit(const Byte*& p, const Byte* end, Byte* out) {
    const int unit = code_unit(p, end);
    if (unit < 0) return out;
    p += 6;
    auto point = static_cast<unsigned>(unit);
    if (high_surrogate(unit)) {
        const int low = code_unit(p, end);
        if (low_surrogate(low)) {
            p += 6;
            point = 0x10000u + ((point - 0xD800u) << 10) + (static_cast<unsigned>(low) - 0xDC00u);
        } else {
            point = 0xFFFD;
        }
    } else if (low_surrogate(unit)) {
        point = 0xFFFD;
    }
    return put_utf8(out, point);
}

// What a backslash and `c` stand for, 0 if nothing.
Byte unescaped(Byte c) {
    switch (c) {
        case '"': case '\\': case '/': return c;
        case 'b': return '\b';
        case 'f': return '\f';
        case 'n': return '\n';
        case 'r': return '\r';
        case 't': return '\t';
        default: return 0;
    }
}

// Decodes the escape at `p`; one that means nothing stays as written.
Byte* decode_escape(const Byte*& p, const Byte* end, Byte* out) {
    const Byte plain = unescaped(p[1]);
    if (plain != 0) {
        p += 2;
        *out++ = plain;
        return out;
    }
    const Byte* before = p;
    out = decode_unit(p, end, out);
    if (p != before) return out;
    *out++ = *p++;
    *out++ = *p++;
    return out;
}

// Decodes `content`, which every escape makes shorter or leaves as long as it was, and returns the end of the result.
Byte* decode(Text content, Byte* out) {
    const Byte* p = content.begin;
    while (p < content.end) {
        const Vector v = load16(p);
        std::memcpy(out, &v, sizeof v);
        const unsigned plain = lowest(mask16(equal(v, '\\')) | 0x10000);
        const auto left = static_cast<std::size_t>(content.end - p);
        if (plain >= left) return out + left;
        p += plain;
        out += plain;
        if (plain < 16) out = decode_escape(p, content.end, out);
    }
    return out;
}

constexpr std::size_t kFirstSlots = 1024;

}  // namespace

Strings::Strings() {
    // Once a process: to draw them takes longer than the rest of what a scan begins with.
    static const auto keys = [] {
        std::random_device random;
        std::array<std::uint64_t, 4> drawn;
        for (std::uint64_t& key : drawn) key = (std::uint64_t{random()} << 32 | random()) | 1;
        return drawn;
    }();
    std::copy(keys.begin(), keys.end(), key_);
    offsets_.push(0);
    blob_.reserve(kPadding);
    widen();
    code({blob_.data(), blob_.data()});
}

std::int32_t Strings::insert(Text text, std::uint32_t hash, std::size_t slot) {
    const std::size_t count = offsets_.size() - 1;
    if (count >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) throw TooLarge();
    const std::size_t size = text.size();
    std::memcpy(blob_.reserve(size + kPadding), text.begin, size);
    offsets_.reserve(1);
    if (2 * (count + 1) > mask_) {
        widen();
        for (slot = hash & mask_; table_[slot].code != kVacant;) slot = (slot + 1) & mask_;
    }
    table_[slot] = {hash, static_cast<std::int32_t>(count)};
    blob_.grown(size);
    offsets_.push(static_cast<std::int64_t>(blob_.size()));
    return static_cast<std::int32_t>(count);
}

void Strings::widen() {
    const std::size_t slots = table_ == nullptr ? kFirstSlots : 2 * (mask_ + 1);
    Memory entries;
    if (!entries.resize(slots * sizeof(Entry))) throw std::bad_alloc();
    auto* table = static_cast<Entry*>(entries.data());
    std::fill_n(table, slots, Entry{0, kVacant});
    for (std::size_t i = 0; table_ != nullptr && i <= mask_; ++i) {
        if (table_[i].code == kVacant) continue;
        std::size_t slot = table_[i].hash & (slots - 1);
        while (table[slot].code != kVacant) slot = (slot + 1) & (slots - 1);
        table[slot] = table_[i];
    }
    entries_ = std::move(entries);
    table_ = table;
    mask_ = slots - 1;
}

std::int32_t Strings::decoded_code(Text content) {
    Byte* out = scratch_.reserve(content.size() + kPadding);
    return code({out, decode(content, out)});
}

void Strings::freeze() {
    entries_.resize(0);
    table_ = nullptr;
    scratch_ = Column<Byte>();
}

}  // namespace scan
