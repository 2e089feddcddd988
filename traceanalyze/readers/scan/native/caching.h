// How PyTorch's caching allocator rounds requests and splits blocks, as `Rules` in caching.py tells.
#pragma once

#include <cstdint>

#include "scan.h"

namespace scan {

constexpr std::int64_t kAlign = 512;
constexpr std::int64_t kSmall = std::int64_t{1} << 20;

constexpr std::int64_t up(std::int64_t size, std::int64_t to) { return (size + to - 1) / to * to; }

struct Rules : trace_rules {
    explicit Rules(const trace_rules& given) : trace_rules(given) {}

    bool limited() const { return max_split >= 0; }

    std::int64_t rounded(std::int64_t requested) const {
        const std::int64_t size = requested + pad;
        if (size <= kAlign) return kAlign;
        if (division_count == 0) return up(size, kAlign);
        std::uint64_t index = 0;
        while (index + 1 < division_count && size >> (21 + index) != 0) ++index;
        const std::int64_t parts = divisions[index];
        if (parts <= 1 || size / parts < kAlign || size == kAlign * parts) return up(size, kAlign);
        const int top = 63 - __builtin_clzll(static_cast<unsigned long long>(size));
        const std::int64_t part = std::int64_t{1} << top >> (63 - __builtin_clzll(static_cast<unsigned long long>(parts)));
        return size == std::int64_t{1} << top ? size : up(size, part);
    }

    bool splits(std::int64_t size, std::int64_t rest, bool large) const {
        if (expandable != 0 || !large) return rest >= kAlign;
        return rest > kSmall && (!limited() || size < max_split);
    }
};

}  // namespace scan
