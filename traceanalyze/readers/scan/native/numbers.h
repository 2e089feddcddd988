// Numbers from decimal text, exactly: no floating point on the way from microseconds to nanoseconds.
#pragma once

#include <cstdint>
#include <limits>

#include "bytes.h"
#include "grammar.h"

namespace scan {

// A piece of text.
struct Text {
    const Byte* begin;
    const Byte* end;

    std::size_t size() const { return static_cast<std::size_t>(end - begin); }
};

struct Nanoseconds {
    std::int64_t value;
    bool fractional;  // the text is not a whole number of microseconds
};

// Microseconds in decimal (digits, point, exponent) to the nearest nanosecond, ties to even; false if the text is
// anything else or the result does not fit.
bool parse_microseconds(Text text, Nanoseconds& result);

// Decimal integer in [-2^63, 2^64), wrapped into int64.
bool parse_integer(Text text, std::int64_t& result);

// Decimal integer in the one way of writing it that has no needless sign or zeros, in int64.
bool parse_canonical(Text text, std::int64_t& result);

// Finite decimal number. Throws std::bad_alloc.
bool parse_real(Text text, double& result);

// The value of eight digits, the first in the lowest byte; zero bytes count as zeros.
inline std::uint64_t eight_digits(std::uint64_t chunk) {
    chunk &= 0x0F0F0F0F0F0F0F0Fu;
    chunk = chunk * 10 + (chunk >> 8);  // pairs, in every other byte
    constexpr std::uint64_t pairs = 0x000000FF000000FFu;
    return (((chunk & pairs) * (100 + (1000000ull << 32))) + (((chunk >> 16) & pairs) * (1 + (10000ull << 32)))) >> 32;
}

// The value of `count` digits, 1 to 16.
inline std::uint64_t few_digits(const Byte* p, unsigned count) {
    if (count <= 8) return eight_digits(load8(p) << (64 - 8 * count));
    return eight_digits(load8(p) << (128 - 8 * count)) * 100000000u + eight_digits(load8(p + count - 8));
}

// The usual forms, text unseen: they return the end of the number, or null for the functions above to decide.
// The number ends where no bare word could go on.
inline const Byte* read_integer(const Byte* p, std::int64_t& result) {
    const bool negative = *p == '-';
    p += negative;
    const unsigned digits = lowest(~mask16(is_digit(load16(p))));
    if (digits == 0 || digits == 16 || kBare[p[digits]]) return nullptr;
    const auto value = static_cast<std::int64_t>(few_digits(p, digits));
    result = negative ? -value : value;
    return p + digits;
}

inline const Byte* read_microseconds(const Byte* p, Nanoseconds& result) {
    const Bits digit = mask16(is_digit(load16(p))) | mask16(is_digit(load16(p + 16))) << 16;
    const unsigned whole = lowest(~digit);
    if (whole == 0 || whole > 16) return nullptr;
    const std::uint64_t microseconds = few_digits(p, whole);
    if (microseconds >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 1000)) return nullptr;
    unsigned fraction = 0;
    const Byte* end = p + whole;
    if (*end == '.') {
        const unsigned places = lowest(~(digit >> (whole + 1)));
        if (places == 0 || places > 3) return nullptr;
        const std::uint32_t d = load4(end + 1) & (0x0F0F0F0Fu >> (32 - 8 * places));
        fraction = (d & 0xFF) * 100 + (d >> 8 & 0xFF) * 10 + (d >> 16 & 0xFF);
        end += 1 + places;
    }
    if (kBare[*end]) return nullptr;
    result.value = static_cast<std::int64_t>(microseconds * 1000 + fraction);
    result.fractional = fraction != 0;
    return end;
}

}  // namespace scan
