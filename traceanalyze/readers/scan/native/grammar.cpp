#include "grammar.h"

namespace scan {
namespace {

// The open containers of a value: one bit each, set for objects, the innermost lowest.
class Nesting {
public:
    explicit Nesting(unsigned level) : room_(kMaxDepth + 1 - level) {}

    bool open(bool object) {
        if (depth_ == room_) return false;
        kinds_ = kinds_ << 1 | static_cast<Bits>(object);
        ++depth_;
        return true;
    }
    void close() {
        kinds_ >>= 1;
        --depth_;
    }
    bool outside() const { return depth_ == 0; }
    bool in_object() const { return (kinds_ & 1) != 0; }
    Byte closer() const { return in_object() ? '}' : ']'; }

private:
    Bits kinds_ = 0;
    unsigned depth_ = 0;
    unsigned room_;
};

Outcome stopped(const Byte* p, const Byte* end) { return p >= end ? Outcome::unfinished : Outcome::malformed; }

// From a key to its value.
Outcome skip_key(const Byte*& p, const Byte* end) {
    if (*p != '"') return stopped(p, end);
    const Byte* quote = find_string_end(p + 1, end);
    if (quote == nullptr) return Outcome::unfinished;
    p = skip_space(quote + 1);
    if (*p != ':') return stopped(p, end);
    p = skip_space(p + 1);
    return Outcome::complete;
}

// From behind a value, or an opening bracket, to the next value or out of the outermost container.
Outcome skip_to_value(const Byte*& p, const Byte* end, Nesting& nesting, bool opened) {
    for (; !nesting.outside(); opened = false) {
        p = skip_space(p);
        bool next = opened;
        if (!opened && *p == ',') {
            p = skip_space(p + 1);
            next = true;
        }
        if (*p == nesting.closer()) {
            ++p;
            nesting.close();
            continue;
        }
        if (!next) return stopped(p, end);
        return nesting.in_object() ? skip_key(p, end) : Outcome::complete;
    }
    return Outcome::complete;
}

}  // namespace

const Byte* find_string_end(const Byte* p, const Byte* end) {
    while ((p = find_quote_or_escape(p, end)) != nullptr) {
        if (*p == '"') return p;
        p += 2;
    }
    return nullptr;
}

Outcome skip_value(const Byte*& p, const Byte* end, unsigned level) {
    Nesting nesting(level);
    do {
        bool opened = false;
        if (*p == '"') {
            const Byte* quote = find_string_end(p + 1, end);
            if (quote == nullptr) return Outcome::unfinished;
            p = quote + 1;
        } else if (*p == '[' || *p == '{') {
            if (!nesting.open(*p == '{')) return Outcome::malformed;
            ++p;
            opened = true;
        } else if (kBare[*p]) {
            p = skip_bare(p);
        } else {
            return stopped(p, end);
        }
        const Outcome outcome = skip_to_value(p, end, nesting, opened);
        if (outcome != Outcome::complete) return outcome;
    } while (!nesting.outside());
    return Outcome::complete;
}

const Byte* skip_plain_array(const Byte* p, const Byte* end, unsigned level) {
    constexpr unsigned size = Block::kSize;
    constexpr Bits all = (Bits{1} << size) - 1;
    Bits in_string = 0;    // all ones if the block begins inside a string
    Bits in_bare = 0;      // 1 if it begins inside a bare word
    Bits after_value = 0;  // 1 if the last byte before it other than white space ends a value
    for (unsigned depth = level; p < end; p += size) {
        const Block block(p);
        const Bits quote = block.equals('"');
        Bits text = 0;
        Bits begins = 0;  // of values
        Bits inside = 0;  // strings, without their closing quotes
        if ((quote | in_string) != 0) {
            if (block.equals('\\') != 0) return nullptr;
            inside = running_parity(quote) ^ in_string;
            text = inside | quote;
            begins = quote & inside;
        }
        const Bits open = block.equals('[') & ~text;
        const Bits close = block.equals(']') & ~text;
        const Bits comma = block.equals(',') & ~text;
        const Bits space = block.where([](Vector v) { return equal(v, ' ') | equal(v, '\n'); }) & ~text;
        const Bits bare = block.where(is_numeric) & ~text;

        // A value's end reaches over white space to the next byte: the carry of an addition runs through the ones.
        const Bits value = text | bare | close;
        const Bits next = value << 1 | after_value;
        const Bits behind_value = (next | ((next & space) + space)) & ~space;

        begins |= open | (bare & ~(bare << 1 | in_bare));
        const Bits wrong = (begins & behind_value) | (comma & ~behind_value) | (all & ~(value | open | comma | space));

        for (Bits brackets = open | close; brackets != 0; brackets &= brackets - 1) {
            const Bits bracket = brackets & (0 - brackets);
            if ((open & bracket) != 0) {
                if (++depth > kMaxDepth) return nullptr;
            } else if (depth-- == level) {
                return (wrong & (bracket - 1)) == 0 ? p + lowest(bracket) + 1 : nullptr;
            }
        }
        if (wrong != 0) return nullptr;
        in_string = inside >> (size - 1) != 0 ? all : 0;
        in_bare = bare >> (size - 1);
        after_value = behind_value >> size & 1;
    }
    return nullptr;
}

}  // namespace scan
