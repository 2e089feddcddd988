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

    // The code of a JSON value: of what a string stands for, of anything else as written.
    std::int32_t value_code(Text value) {
        return *value.begin == '"' ? decoded_code({value.begin + 1, value.end - 1}) : code(value);
    }

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
    };

    static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
        const auto product = static_cast<unsigned __int128>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }

    // Keyed, so that no text can be made to collide with itself again and again. The last 32 bytes go without a branch:
    // most strings are no longer, and their lengths cannot be foreseen.
    std::uint32_t digest(const Byte* p, std::size_t size) const {
        std::uint64_t a = key_[0] ^ size;
        std::uint64_t b = key_[1];
        std::size_t left = size;
        for (; left > 32; left -= 32, p += 32) {
            a = mix(load8(p) ^ a, load8(p + 8) ^ key_[2]);
            b = mix(load8(p + 16) ^ b, load8(p + 24) ^ key_[3]);
        }
        std::uint64_t last[4];
        const Vector low = load16(p) & first_bytes(left);
        const Vector high = load16(p + 16) & first_bytes(left, 16);
        std::memcpy(last, &low, sizeof low);
        std::memcpy(last + 2, &high, sizeof high);
        a = mix(last[0] ^ a, last[1] ^ key_[2]);
        b = mix(last[2] ^ b, last[3] ^ key_[3]);
        const std::uint64_t hash = mix(a ^ b, key_[1] ^ size);
        return static_cast<std::uint32_t>(hash ^ hash >> 32);
    }

    bool equals(const Entry& entry, const Byte* p, std::size_t size) const {
        const auto code = static_cast<std::size_t>(entry.code);
        if (static_cast<std::size_t>(offsets_[code + 1] - offsets_[code]) != size) return false;
        const Byte* q = blob_.data() + offsets_[code];
        for (; size > 32; size -= 32, p += 32, q += 32)
            if (!is_zero((load16(p) ^ load16(q)) | (load16(p + 16) ^ load16(q + 16)))) return false;
        const Vector low = (load16(p) ^ load16(q)) & first_bytes(size);
        const Vector high = (load16(p + 16) ^ load16(q + 16)) & first_bytes(size, 16);
        return is_zero(low | high);
    }

    // Ones for those of the 16 bytes from `at` on that are among the first `count`, at most 32.
    static Vector first_bytes(std::size_t count, std::size_t at = 0) {
        static constexpr struct Window {
            Byte bytes[64];
            constexpr Window() : bytes() {
                for (unsigned i = 0; i < 32; ++i) bytes[i] = 255;
            }
        } window;
        return load16(window.bytes + 32 - count + at);
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
