// What the fuzz targets of the native library share: each takes any bytes, and knows how to change some sensibly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "scan.h"

namespace fuzz {

using Bytes = std::vector<std::uint8_t>;

inline void require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t x) {
    hash = (hash ^ x) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 31;
}

inline std::uint64_t mix(std::uint64_t hash, const void* data, std::size_t size) {
    const auto* p = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < size; ++i) hash = mix(hash, p[i]);
    return mix(hash, size);
}

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(mix(seed, 1) | 1) {}

    std::size_t below(std::size_t bound) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::size_t>(state_ % bound);
    }

private:
    std::uint64_t state_;
};

inline void insert(Bytes& text, std::size_t at, const Bytes& part) {
    text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), part.begin(), part.end());
}

inline Bytes part_of(const Bytes& text, std::size_t at, std::size_t size) {
    const std::size_t end = size < text.size() - at ? at + size : text.size();
    return Bytes(text.data() + at, text.data() + end);
}

inline void erase(Bytes& text, std::size_t at, std::size_t size) {
    const std::size_t end = size < text.size() - at ? at + size : text.size();
    text.erase(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end));
}

struct Target {
    const char* name;
    // Aborts where a promise is broken.
    void (*run)(const std::uint8_t* data, std::size_t size);
    // Small changes; `other` is one more input, to take parts from.
    void (*mutate)(Bytes& text, const Bytes& other, Random& random);
};

extern const Target kScan, kSnapshot, kTree;

}  // namespace fuzz
