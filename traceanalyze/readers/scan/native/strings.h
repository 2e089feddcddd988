// The dictionary of distinct byte strings.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "bytes.h"
#include "column.h"
#include "numbers.h"

namespace scan {

// More rows or strings than the columns can number.
struct TooLarge : std::length_error {
    TooLarge() : std::length_error("more rows or strings than the columns can number") {}
};

class Strings {
public:
    // Code 0 is the empty string. Throws std::bad_alloc.
    Strings();

    // The code of a string, new or not. The text must be followed by kPadding readable bytes.
    std::int32_t code(Text text) {
        const std::size_t size = text.size();
        const std::uint32_t hash = digest(text.begin, size);
        for (std::size_t slot = hash & mask_;; slot = (slot + 1) & mask_) {
            const Entry entry = table_[slot];
            if (entry.code == kVacant) return insert(text, hash, slot);
            if (entry.hash == hash && equals(entry, text.begin, size)) return entry.code;
        }
    }

    // The code of what the content of a JSON string stands for.
    std::int32_t decoded_code(Text content);

    Text text(std::int32_t code) const {
        const auto i = static_cast<std::size_t>(code);
        return {blob_.data() + offsets_[i], blob_.data() + offsets_[i + 1]};
    }
    const Column<Byte>& blob() const { return blob_; }
    const Column<std::int64_t>& offsets() const { return offsets_; }

    // Frees what only `code` needs.
    void freeze();

private:
    static constexpr std::int32_t kVacant = -1;

    struct Entry {
        std::uint32_t hash;
        std::int32_t code;
        std::int64_t offset;
    };

    static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
        const auto product = static_cast<unsigned __int128>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }

    // Keyed, so that no text can be made to collide with itself again and again.
    std::uint32_t digest(const Byte* p, std::size_t size) const {
        std::uint64_t a = key_[0] ^ size;
        std::uint64_t b = key_[1];
        std::size_t left = size;
        for (; left > 32; left -= 32, p += 32) {
            a = mix(load8(p) ^ a, load8(p + 8) ^ key_[2]);
            b = mix(load8(p + 16) ^ b, load8(p + 24) ^ key_[3]);
        }
        a = mix(prefix(p, left, 0) ^ a, prefix(p, left, 8) ^ key_[2]);
        if (left > 16) b = mix(prefix(p, left, 16) ^ b, prefix(p, left, 24) ^ key_[3]);
        const std::uint64_t hash = mix(a ^ b, key_[1] ^ size);
        return static_cast<std::uint32_t>(hash ^ hash >> 32);
    }

    // Eight bytes from `at` on, those from `size` on as zeros.
    static std::uint64_t prefix(const Byte* p, std::size_t size, std::size_t at) {
        if (size >= at + 8) return load8(p + at);
        return size <= at ? 0 : load8(p + at) & (~std::uint64_t{0} >> (64 - 8 * (size - at)));
    }

    bool equals(const Entry& entry, const Byte* p, std::size_t size) const {
        const auto code = static_cast<std::size_t>(entry.code);
        if (static_cast<std::size_t>(offsets_[code + 1] - entry.offset) != size) return false;
        const Byte* q = blob_.data() + entry.offset;
        for (; size > 16; size -= 16, p += 16, q += 16)
            if (!is_zero(load16(p) ^ load16(q))) return false;
        return is_zero((load16(p) ^ load16(q)) & first_bytes(size));
    }

    static Vector first_bytes(std::size_t count) {
        static constexpr Byte window[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
        return load16(window + 16 - count);
    }

    std::int32_t insert(Text text, std::uint32_t hash, std::size_t slot);
    void widen();

    Column<Byte> blob_;  // with kPadding bytes of room behind the last string
    Column<std::int64_t> offsets_;
    Memory entries_;
    Entry* table_ = nullptr;
    std::size_t mask_ = 0;
    std::uint64_t key_[4];
    Column<Byte> scratch_;
};

}  // namespace scan
