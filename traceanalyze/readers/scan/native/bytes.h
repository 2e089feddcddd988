// Sixteen and thirty-two bytes at a time: SSE2, NEON, or whatever the compiler makes of generic vectors.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "digits and bit masks are read in little-endian order"
#endif

namespace scan {

using Byte = std::uint8_t;
using Bits = std::uint64_t;

// Text is always followed by this many zero bytes, so that blocks may be loaded past its end.
constexpr std::size_t kPadding = 192;

inline std::uint64_t load8(const Byte* p) {
    std::uint64_t x;
    std::memcpy(&x, p, sizeof x);
    return x;
}

inline std::uint32_t load4(const Byte* p) {
    std::uint32_t x;
    std::memcpy(&x, p, sizeof x);
    return x;
}

inline unsigned lowest(Bits bits) { return static_cast<unsigned>(__builtin_ctzll(bits)); }

using Vector = Byte __attribute__((vector_size(16)));

inline Vector load16(const Byte* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline Vector splat(Byte c) { return Vector{} + c; }

inline Vector equal(Vector v, char c) { return reinterpret_cast<Vector>(v == splat(static_cast<Byte>(c))); }

// Bytes in [first, first + count). One signed comparison: SSE2 has no unsigned one.
inline Vector in_range(Vector v, int first, int count) {
    using Signed = signed char __attribute__((vector_size(16)));
    const Vector moved = v - splat(static_cast<Byte>(first + 128));
    const Vector limit = splat(static_cast<Byte>(count + 128));
    return reinterpret_cast<Vector>(reinterpret_cast<Signed>(moved) < reinterpret_cast<Signed>(limit));
}

inline Vector is_digit(Vector v) { return in_range(v, '0', 10); }

// [0-9\-.], what most bare words in arrays consist of.
inline Vector is_numeric(Vector v) { return in_range(v, '-', 13) & ~equal(v, '/'); }

// [A-Za-z0-9+\-._]: '+' to '9' is one range but for ',' and '/'.
inline Vector is_bare(Vector v) {
    const Vector letter = in_range(v | splat(0x20), 'a', 26);
    const Vector number = in_range(v, '+', 15) & ~(equal(v, ',') | equal(v, '/'));
    return letter | number | equal(v, '_');
}

// One bit for each byte of a comparison's result.
inline Bits mask16(Vector v) {
#if defined(__SSE2__)
    return static_cast<Bits>(static_cast<unsigned>(_mm_movemask_epi8(reinterpret_cast<__m128i>(v))));
#elif defined(__aarch64__)
    const uint8x16_t weights = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bits = vandq_u8(reinterpret_cast<uint8x16_t>(v), weights);
    return static_cast<Bits>(vaddv_u8(vget_low_u8(bits))) | static_cast<Bits>(vaddv_u8(vget_high_u8(bits))) << 8;
#else
    std::uint64_t half[2];
    std::memcpy(half, &v, sizeof v);
    const auto gather = [](std::uint64_t x) { return ((x >> 7) & 0x0101010101010101u) * 0x0102040810204080u >> 56; };
    return gather(half[0]) | gather(half[1]) << 8;
#endif
}

inline bool is_zero(Vector v) {
#if defined(__aarch64__)
    return vmaxvq_u8(reinterpret_cast<uint8x16_t>(v)) == 0;
#elif defined(__SSE2__)
    return mask16(equal(v, 0)) == 0xFFFF;
#else
    std::uint64_t half[2];
    std::memcpy(half, &v, sizeof v);
    return (half[0] | half[1]) == 0;
#endif
}

// 32 bytes, classified into masks.
class Block {
public:
    static constexpr unsigned kSize = 32;

    explicit Block(const Byte* p) : low_(load16(p)), high_(load16(p + 16)) {}

    template <class Test>
    Bits where(Test test) const {
        return mask16(test(low_)) | mask16(test(high_)) << 16;
    }

    Bits equals(char c) const {
        return where([c](Vector v) { return equal(v, c); });
    }

private:
    Vector low_;
    Vector high_;
};

// Bit i is the parity of bits 0..i, for a block's bits.
inline Bits running_parity(Bits bits) {
    for (unsigned shift = 1; shift < Block::kSize; shift *= 2) bits ^= bits << shift;
    return bits & 0xFFFFFFFF;
}

}  // namespace scan
