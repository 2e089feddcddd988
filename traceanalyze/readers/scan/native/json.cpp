// Allocator snapshots as JSON. Nothing is shared there, so that what a list or dictionary was made of can be forgotten
// as soon as it has become an event, a frame or a stack.
#include <cstring>
#include <memory>

#include "numbers.h"
#include "walker.h"

namespace {

using scan::Byte;
using scan::Column;
using scan::Tag;
using scan::Unusual;
using scan::Value;

constexpr std::size_t kMostOpen = 64;  // lists and dictionaries within each other
constexpr std::ptrdiff_t kLongestWord = 400;

class Json final : public scan::Walker {
public:
    Json() : Walker(false) {}

    void walk(bool end) override {
        const Byte* p = buffer.begin();
        for (const Byte* next = p; next != nullptr; p = next != nullptr ? next : p) {
            while (p < buffer.end() && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
            next = p < buffer.end() ? step(p, buffer.end()) : nullptr;
        }
        buffer.consume(p);
        if (buffer.size() > scan::kLongest) throw Unusual();
        if (!end) return;
        if (buffer.size() != 0 || state_ != State::over) throw Unusual();
        root = stack[0];
        done = true;
        release();
    }

private:
    enum class State : std::uint8_t { value, first, member, key, colon, next, over };
    struct Open {
        std::size_t values;   // on the stack before it
        std::size_t objects;  // made before it
        bool dict;
    };

    // What comes after the token at `p`, nullptr when it is not complete.
    const Byte* step(const Byte* p, const Byte* end) {
        switch (*p) {
            case '{':
            case '[': open(*p == '{'); return p + 1;
            case '}':
            case ']': close(*p == '}'); return p + 1;
            case ':':
                require(state_ == State::colon);
                state_ = State::value;
                return p + 1;
            case ',':
                require(state_ == State::next);
                state_ = open_[depth_ - 1].dict ? State::key : State::value;
                return p + 1;
            case '"': return text(p + 1, end);
            default: return word(p, end);
        }
    }

    static void require(bool right) {
        if (!right) throw Unusual();
    }

    void add(Value value) {
        require(depth_ != 0 && (state_ == State::value || state_ == State::first));
        push(value);
        state_ = State::next;
    }

    void open(bool dict) {
        require(depth_ < kMostOpen && (state_ == State::value || state_ == State::first));
        open_[depth_++] = {stack.size(), snapshot.mark(), dict};
        state_ = dict ? State::member : State::first;
    }

    void close(bool dict) {
        require(depth_ != 0 && open_[depth_ - 1].dict == dict);
        require(state_ == State::next || state_ == (dict ? State::member : State::first));
        const Open& opened = open_[--depth_];
        const Value made =
            snapshot.made(opened.objects, dict, stack.data() + opened.values, stack.data() + stack.size());
        cut(opened.values);
        push(made);
        state_ = depth_ == 0 ? State::over : State::next;
    }

    const Byte* text(const Byte* begin, const Byte* end) {
        const Byte* p = begin + scanned_;
        for (; p < end && *p != '"'; ++p) {
            if (*p < 0x20) throw Unusual();
            if (*p != '\\') continue;
            if (end - p < 2 || (p[1] == 'u' && end - p < 12)) break;  // two surrogates are as long
            escaped_ = true;
            p = escape(p + 1);
        }
        scanned_ = static_cast<std::size_t>(p - begin);
        if (p >= end || *p != '"') return nullptr;
        const scan::Text content{begin, p};
        const Value found{escaped_ ? snapshot.texts.decoded_code(content) : snapshot.texts.code(content), Tag::text};
        scanned_ = 0, escaped_ = false;
        if (state_ == State::member || state_ == State::key) {
            push(found);
            state_ = State::colon;
        } else {
            add(found);
        }
        return p + 1;
    }

    // The last byte of the escape whose backslash comes before `p`. Half of a pair of surrogates is no text in UTF-8.
    static const Byte* escape(const Byte* p) {
        switch (*p) {
            case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': return p;
            case 'u': break;
            default: throw Unusual();
        }
        const unsigned unit = hexadecimal(p + 1);
        if (unit < 0xD800 || unit > 0xDFFF) return p + 4;
        require(unit < 0xDC00 && p[5] == '\\' && p[6] == 'u');
        const unsigned low = hexadecimal(p + 7);
        require(low >= 0xDC00 && low <= 0xDFFF);
        return p + 10;
    }
    static unsigned hexadecimal(const Byte* p) {
        unsigned found = 0;
        for (int i = 0; i < 4; ++i) {
            const Byte letter = p[i] | 0x20;
            const bool digit = p[i] >= '0' && p[i] <= '9';
            require(digit || (letter >= 'a' && letter <= 'f'));
            found = found << 4 | static_cast<unsigned>(digit ? p[i] - '0' : letter - 'a' + 10);
        }
        return found;
    }

    const Byte* word(const Byte* begin, const Byte* end) {
        const Byte* p = begin;
        while (p < end && *p > ' ' && *p != ',' && *p != ']' && *p != '}') ++p;
        require(p - begin <= kLongestWord);
        if (p == end) return nullptr;
        const scan::Text word{begin, p};
        if (is(word, "null")) add({0, Tag::none});
        else if (is(word, "true")) add({0, Tag::yes});
        else if (is(word, "false")) add({0, Tag::no});
        else add(number(word));
        return p;
    }
    static bool is(scan::Text word, const char* other) {
        return word.size() == std::strlen(other) && std::memcmp(word.begin, other, word.size()) == 0;
    }

    static Value number(scan::Text word) {
        const Byte* p = word.begin + (*word.begin == '-');
        const auto digits = [&] {
            const Byte* first = p;
            while (p < word.end && *p >= '0' && *p <= '9') ++p;
            require(p > first);
            return p - first;
        };
        const bool zero = p < word.end && *p == '0';
        require(digits() == 1 || !zero);
        Value found{0, Tag::integer};
        if (p == word.end) {
            if (scan::parse_canonical(word, found.payload)) return found;
            if (zero) return {0, Tag::integer};  // -0
            require(*word.begin != '-' && scan::parse_integer(word, found.payload));
            return {found.payload, Tag::wide};
        }
        if (*p == '.') ++p, digits();
        if (p < word.end && (*p == 'e' || *p == 'E')) {
            ++p;
            if (p < word.end && (*p == '+' || *p == '-')) ++p;
            digits();
        }
        double real;
        require(p == word.end && scan::parse_real(word, real));
        std::memcpy(&found.payload, &real, sizeof real);
        found.tag = Tag::real;
        return found;
    }

    std::size_t scanned_ = 0;  // of a text that is not complete
    bool escaped_ = false;
    Open open_[kMostOpen];
    std::size_t depth_ = 0;
    State state_ = State::value;
};

}  // namespace

std::unique_ptr<scan::Walker> scan::json_walker() { return std::make_unique<Json>(); }
