#include "numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#include <string>

namespace scan {
namespace {

constexpr std::uint64_t kMaxInt64 = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

bool digit(Byte c) { return c >= '0' && c <= '9'; }

const Byte* skip_digits(const Byte* p, const Byte* end) { return std::find_if_not(p, end, digit); }

bool skip_sign(const Byte*& p, const Byte* end) {
    if (p == end || (*p != '+' && *p != '-')) return false;
    return *p++ == '-';
}

// A magnitude and its sign, if it fits.
bool apply_sign(std::uint64_t magnitude, bool negative, std::int64_t& result) {
    if (magnitude > kMaxInt64 + negative) return false;
    result = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
    return true;
}

// [+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)? taken apart.
class Decimal {
public:
    bool parse(Text text) {
        const Byte* p = text.begin;
        negative_ = skip_sign(p, text.end);
        whole_ = {p, skip_digits(p, text.end)};
        p = whole_.end;
        fraction_ = {p, p};
        if (p < text.end && *p == '.') {
            fraction_ = {p + 1, skip_digits(p + 1, text.end)};
            p = fraction_.end;
        }
        return count() != 0 && parse_exponent(p, text.end);
    }

    bool negative() const { return negative_; }

    // All digits, point left out.
    std::int64_t count() const { return static_cast<std::int64_t>(whole_.size() + fraction_.size()); }
    unsigned at(std::int64_t i) const {
        const auto whole = static_cast<std::int64_t>(whole_.size());
        return static_cast<unsigned>((i < whole ? whole_.begin[i] : fraction_.begin[i - whole]) - '0');
    }

    // How many of them are left of the point once the exponent is applied; may lie outside of them.
    std::int64_t point() const { return static_cast<std::int64_t>(whole_.size()) + exponent_; }

    bool nonzero_from(std::int64_t i) const {
        for (i = std::max<std::int64_t>(i, 0); i < count(); ++i)
            if (at(i) != 0) return true;
        return false;
    }
    std::int64_t leading_zeros() const {
        std::int64_t i = 0;
        while (i < count() && at(i) == 0) ++i;
        return i;
    }

private:
    bool parse_exponent(const Byte* p, const Byte* end) {
        exponent_ = 0;
        if (p == end) return true;
        if (*p != 'e' && *p != 'E') return false;
        ++p;
        const bool negative = skip_sign(p, end);
        if (p == end || skip_digits(p, end) != end) return false;
        // Saturates far beyond any number of digits that memory holds.
        constexpr std::int64_t limit = std::int64_t{1} << 55;
        for (; p < end; ++p) exponent_ = std::min(exponent_ * 10 + (*p - '0'), limit);
        if (negative) exponent_ = -exponent_;
        return true;
    }

    bool negative_ = false;
    Text whole_{};
    Text fraction_{};
    std::int64_t exponent_ = 0;
};

bool rounds_up(const Decimal& decimal, std::int64_t point, bool odd) {
    const unsigned first = decimal.at(point);
    return first > 5 || (first == 5 && (odd || decimal.nonzero_from(point + 1)));
}

// Digits with an optional sign, at most 20 of them significant.
bool parse_magnitude(const Byte* p, const Byte* end, std::uint64_t& result) {
    if (p == end) return false;
    result = 0;
    for (; p < end; ++p) {
        if (!digit(*p) || __builtin_mul_overflow(result, 10u, &result) ||
            __builtin_add_overflow(result, static_cast<unsigned>(*p - '0'), &result)) {
            return false;
        }
    }
    return true;
}

}  // namespace

bool parse_microseconds(Text text, Nanoseconds& result) {
    Decimal decimal;
    if (!decimal.parse(text)) return false;
    result = {0, false};
    const std::int64_t first = decimal.leading_zeros();
    if (first == decimal.count()) return true;
    const std::int64_t point = decimal.point() + 3;  // of nanoseconds
    result.fractional = decimal.nonzero_from(point - 3);
    if (point < first) return true;        // less than a tenth
    if (point - first > 19) return false;  // 10^19 is more than 2^63
    std::uint64_t magnitude = 0;
    for (std::int64_t i = first; i < point; ++i) magnitude = magnitude * 10 + (i < decimal.count() ? decimal.at(i) : 0);
    if (point < decimal.count() && rounds_up(decimal, point, (magnitude & 1) != 0)) ++magnitude;
    return apply_sign(magnitude, decimal.negative(), result.value);
}

bool parse_integer(Text text, std::int64_t& result) {
    const Byte* p = text.begin;
    const bool negative = skip_sign(p, text.end);
    std::uint64_t magnitude;
    if (!parse_magnitude(p, text.end, magnitude)) return false;
    if (negative) return apply_sign(magnitude, negative, result);
    result = static_cast<std::int64_t>(magnitude);
    return true;
}

bool parse_canonical(Text text, std::int64_t& result) {
    const Byte* p = text.begin;
    const bool negative = p != text.end && *p == '-';
    p += negative;
    std::uint64_t magnitude;
    if (!parse_magnitude(p, text.end, magnitude)) return false;
    if (*p == '0' && (negative || text.end - p > 1)) return false;
    return apply_sign(magnitude, negative, result);
}

bool parse_real(Text text, double& result) {
    if (!Decimal().parse(text)) return false;
    // strtod knows the point of the process's locale only.
    static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", locale_t{});
    const std::string copy(reinterpret_cast<const char*>(text.begin), text.size());
    result = strtod_l(copy.c_str(), nullptr, c_locale);
    return std::isfinite(result);
}

}  // namespace scan
