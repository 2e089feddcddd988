// The lenient JSON grammar: what is white space, a string, a bare word, an array or an object.
//
// Every function reads text that is followed by kPadding zero bytes. A zero byte is neither white space nor part of a
// bare word nor punctuation, so only strings have to look where the text ends.
#pragma once

#include <array>

#include "bytes.h"

namespace scan {

constexpr unsigned kMaxDepth = 64;

enum class Outcome : std::uint8_t {
    complete,
    unfinished,  // the text ended before the grammar could decide
    malformed,
};

// How the text of a value begins.
enum class Form : std::uint8_t { string, bare, array, object };

constexpr std::array<bool, 256> make_bare_table() {
    std::array<bool, 256> table{};
    for (unsigned c = 0; c < 256; ++c) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        table[c] = letter || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == '_';
    }
    return table;
}

inline constexpr std::array<bool, 256> kBare = make_bare_table();

inline bool is_space(Byte c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

inline const Byte* skip_space(const Byte* p) {
    while (is_space(*p)) ++p;
    return p;
}

inline const Byte* skip_bare(const Byte* p) {
    for (;; p += 16) {
        const Bits others = ~mask16(is_bare(load16(p))) & 0xFFFF;
        if (others != 0) return p + lowest(others);
    }
}

// First quote or backslash at or after `p`, null if there is none before `end`.
inline const Byte* find_quote_or_escape(const Byte* p, const Byte* end) {
    const auto special = [](Vector v) { return mask16(equal(v, '"') | equal(v, '\\')); };
    for (; p < end; p += 16) {
        const Bits found = special(load16(p));
        if (found != 0) return p + lowest(found);
    }
    return nullptr;
}

// The closing quote of the string whose content begins at `p`, null if the text ends first.
const Byte* find_string_end(const Byte* p, const Byte* end);

// Passes over the value at `p`; `level` is the depth it has if it is an array or an object. Sets `p` behind the value.
// A bare word at the very end of the text counts as complete.
Outcome skip_value(const Byte*& p, const Byte* end, unsigned level);

// Passes over an array of strings, bare words and arrays, `p` being behind its bracket; null if it is anything else or
// the text ends inside, for skip_value to decide. Bit masks of 64 bytes make this several times faster.
const Byte* skip_plain_array(const Byte* p, const Byte* end, unsigned level);

}  // namespace scan
