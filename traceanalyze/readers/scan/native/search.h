// Searching in what is in order, for values that are nearly in order themselves.
#pragma once

#include <algorithm>
#include <cstdint>

namespace scan {

// How many of some ordered moments are not after an instant, looked for from a place on: the last one is mostly near.
template <class T>
std::uint64_t passed(const T* moments, std::uint64_t size, std::uint64_t near, T instant) {
    std::uint64_t low = near;
    std::uint64_t high = near;
    std::uint64_t stride = 1;
    if (near > 0 && moments[near - 1] > instant) {
        for (--high; high >= stride && moments[high - stride] > instant; stride *= 2) high -= stride;
        low = high >= stride ? high - stride + 1 : 0;
    } else {
        for (; low + stride <= size && moments[low + stride - 1] <= instant; stride *= 2) low += stride;
        if (stride == 1) return low;
        high = std::min(low + stride - 1, size);
    }
    return static_cast<std::uint64_t>(std::upper_bound(moments + low, moments + high, instant) - moments);
}

}  // namespace scan
