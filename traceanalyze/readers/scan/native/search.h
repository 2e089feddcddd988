// Searching in what is in order, for values that are nearly in order themselves.
#pragma once

#include <algorithm>
#include <cstdint>

namespace scan {

// The same from a place that is not near.
template <class T>
std::uint64_t passed_far(const T* moments, std::uint64_t size, std::uint64_t from, T instant) {
    std::uint64_t low = from;
    std::uint64_t high = from;
    std::uint64_t stride = 1;
    if (from > 0 && moments[from - 1] > instant) {
        for (--high; high >= stride && moments[high - stride] > instant; stride *= 2) high -= stride;
        low = high >= stride ? high - stride + 1 : 0;
    } else {
        for (; low + stride <= size && moments[low + stride - 1] <= instant; stride *= 2) low += stride;
        high = std::min(low + stride - 1, size);
    }
    return static_cast<std::uint64_t>(std::upper_bound(moments + low, moments + high, instant) - moments);
}

// How many of some ordered moments are not after an instant, looked for from a place on: the last one is mostly near.
template <class T>
inline std::uint64_t passed(const T* moments, std::uint64_t size, std::uint64_t near, T instant) {
    if (near == 0 || moments[near - 1] <= instant) {
        const std::uint64_t few = std::min(size, near + 4);
        while (near < few && moments[near] <= instant) ++near;
        if (near == size || moments[near] > instant) return near;
    }
    return passed_far(moments, size, near, instant);
}

}  // namespace scan
