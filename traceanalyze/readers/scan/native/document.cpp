#include "document.h"

#include <algorithm>

namespace scan {
namespace {

constexpr char kEvents[] = "traceEvents";
constexpr std::size_t kEventsSize = sizeof kEvents - 1;

// White space allowed in the patterns that tell where to go on after malformed text.
constexpr std::ptrdiff_t kMaxGap = 256;

// Separators worth learning as part of an event's first literal.
constexpr std::ptrdiff_t kMaxSeparator = 32;

// Events larger than this would not fit the 32-bit offsets of an edge.
constexpr std::size_t kMaxValueBytes = std::size_t{1} << 31;

// A buffer beyond this is given back once the value that needed it is through.
constexpr std::size_t kMaxIdleBuffer = std::size_t{1} << 24;

enum class Match : std::uint8_t { no, yes, unfinished };

// Matches patterns against text that may end too early.
class Matcher {
public:
    Matcher(const Byte* p, const Byte* end) : p_(p), end_(end) {}

    bool gap() {
        const Byte* limit = p_ + std::min(kMaxGap, end_ - p_);
        while (p_ < limit && is_space(*p_)) ++p_;
        return true;
    }
    bool literal(const char* chars, std::size_t size) {
        const auto left = static_cast<std::size_t>(end_ - p_);
        ended_ = left < size && std::memcmp(p_, chars, left) == 0;
        if (left < size || std::memcmp(p_, chars, size) != 0) return false;
        p_ += size;
        return true;
    }
    bool event_key() {
        for (const char* key : {"\"ph\"", "\"name\"", "\"cat\"", "\"ts\"", "\"pid\"", "\"tid\""})
            if (literal(key, std::strlen(key)) || ended_) return !ended_;
        return false;
    }
    Match result(bool matched) const { return matched ? Match::yes : ended_ ? Match::unfinished : Match::no; }
    const Byte* at() const { return p_; }

private:
    const Byte* p_;
    const Byte* end_;
    bool ended_ = false;
};

// {"ph": or another key of events, at the brace.
Match opens_event(const Byte* p, const Byte* end) {
    Matcher matcher(p + 1, end);
    return matcher.result(matcher.gap() && matcher.event_key() && matcher.gap() && matcher.literal(":", 1));
}

// "traceEvents": [ at the quote; `resume` is behind the bracket.
Match opens_list(const Byte* p, const Byte* end, const Byte*& resume) {
    Matcher matcher(p, end);
    const bool matched = matcher.literal("\"traceEvents\"", kEventsSize + 2) && matcher.gap() &&
                         matcher.literal(":", 1) && matcher.gap() && matcher.literal("[", 1);
    resume = matcher.at();
    return matcher.result(matched);
}

// Whether an object at `p` would be the value of a member, so belongs to something larger.
bool is_member_value(const Byte* p, const Byte* floor) {
    floor = p - std::min(kMaxGap, p - floor);
    while (p > floor && is_space(p[-1])) --p;
    return p > floor && p[-1] == ':';
}

const Byte* find_byte(const Byte* p, const Byte* end, int c) {
    const void* found = std::memchr(p, c, static_cast<std::size_t>(end - p));
    return found == nullptr ? end : static_cast<const Byte*>(found);
}

const Byte* skip_separators(const Byte* p) {
    while (is_space(*p) || *p == ',') ++p;
    return p;
}

void append(Header& header, Text text) {
    if (text.size() != 0) std::memcpy(header.blob.reserve(text.size()), text.begin, text.size());
    header.blob.grown(text.size());
    header.ends.push(static_cast<std::int64_t>(header.blob.size()));
}

}  // namespace

Byte* Buffer::space(std::size_t bytes) {
    const std::size_t kept = size();
    const std::size_t needed = kept + bytes + kPadding;
    if (begin_ != 0) {
        std::memmove(data(), begin(), kept);
        base_ += begin_;
        begin_ = 0;
        end_ = kept;
    }
    const bool idle = memory_.size() > kMaxIdleBuffer && memory_.size() / 4 > needed;
    if (memory_.size() < needed || idle) {
        const std::size_t ample = idle ? needed : std::max(needed, 2 * memory_.size());
        if (!memory_.resize(ample) && !memory_.resize(needed)) throw std::bad_alloc();
    }
    return data() + end_;
}

void Buffer::filled(std::size_t bytes) {
    end_ += bytes;
    std::memset(data() + end_, 0, kPadding);
}

Document::Document(const Schema& schema, Rows& rows, const trace_scan_options& options)
    : max_value_bytes_(std::min<std::uint64_t>(options.max_value_bytes, kMaxValueBytes)),
      begun_at_(options.begin),
      reader_(std::in_place, schema, rows, options.learn != 0) {
    summary_.fault = -1;
    if (options.root == TRACE_SCAN_ROOT_NONE) return;
    state_ = State::list;
    in_object_ = options.root == TRACE_SCAN_ROOT_OBJECT;
    summary_.root = options.root;
    summary_.size = options.begin;
    buffer_.begin_at(options.begin);
}

void Document::feed(std::size_t bytes) {
    buffer_.filled(bytes);
    summary_.size += bytes;
    if (buffer_.size() >= wanted_) run();
}

void Document::finish() {
    if (buffer_.size() == 0) buffer_.space(0);
    buffer_.filled(0);
    final_ = true;
    run();
    buffer_.release();
    reader_.reset();
    summary_.trailing_bytes = summary_.size - std::min(tail_from_, summary_.size);
}

bool Document::leads_to(const Document& next) {
    if (wanted_ > 0) {  // it waited for more
        buffer_.filled(0);
        run();
    }
    return state_ == State::list && buffer_.size() == 0 && summary_.size == next.begun_at_ &&
           summary_.root == next.summary_.root;
}

void Document::go_on(Document& next) {
    const trace_scan_summary found = next.summary_;
    summary_.malformed += found.malformed;
    summary_.skipped_bytes += found.skipped_bytes;
    summary_.not_object += found.not_object;
    summary_.size = found.size;
    if (summary_.fault < 0) summary_.fault = found.fault;
    const std::int64_t before = static_cast<std::int64_t>(header_.blob.size());
    append(header_.blob, next.header_.blob);
    append(header_.ends, next.header_.ends, [before](std::int64_t end) { return before + end; });
    buffer_ = std::move(next.buffer_);
    state_ = next.state_;
    wanted_ = next.wanted_;
    failed_at_ = next.failed_at_;
    seek_from_ = next.seek_from_;
    tail_from_ = next.tail_from_;
}

void Document::run() {
    wanted_ = 0;
    while (step()) {
    }
}

// Each of the following passes over some text and says whether to go on, or waits for more text.
bool Document::step() {
    switch (state_) {
        case State::root: return root();
        case State::member: return member();
        case State::list: return list();
        case State::next_event: return next_event();
        case State::next_list: return next_list();
        case State::tail: return tail();
        case State::done: break;
    }
    buffer_.consume(buffer_.end());
    return false;
}

// Tries again when there is twice as much of what begins at `p`: so even the largest value costs linear time.
bool Document::wait(const Byte* p) {
    buffer_.consume(p);
    wanted_ = 2 * buffer_.size();
    if (buffer_.size() <= max_value_bytes_) wanted_ = std::min(wanted_, max_value_bytes_ + 1);
    return false;
}

bool Document::end_of_text() {
    summary_.truncated = 1;
    state_ = State::done;
    return true;
}

bool Document::fail(const Byte* begin, State next) {
    ++summary_.malformed;
    failed_at_ = buffer_.offset(begin);
    seek_from_ = failed_at_ + 1;
    if (summary_.fault < 0) summary_.fault = static_cast<std::int64_t>(failed_at_);
    state_ = next;
    buffer_.consume(begin);
    return true;
}

bool Document::root() {
    const Byte* p = buffer_.begin();
    const Byte mark[] = {0xEF, 0xBB, 0xBF};
    if (buffer_.offset(p) == 0) {
        const std::size_t seen = std::min(buffer_.size(), sizeof mark);
        if (std::memcmp(p, mark, seen) == 0) {
            if (seen == sizeof mark) p += seen;
            else if (!final_) return false;
        }
    }
    p = skip_space(p);
    if (p == buffer_.end() && !final_) {
        buffer_.consume(p);
        return false;
    }
    in_object_ = *p == '{';
    const bool is_list = *p == '[';
    summary_.root = in_object_ ? TRACE_SCAN_ROOT_OBJECT : is_list ? TRACE_SCAN_ROOT_LIST : TRACE_SCAN_ROOT_NONE;
    state_ = in_object_ ? State::member : is_list ? State::list : State::done;
    if (state_ != State::done) buffer_.consume(p + 1);
    return true;
}

bool Document::member() {
    const Byte* begin = skip_separators(buffer_.begin());
    buffer_.consume(begin);
    if (begin == buffer_.end()) return final_ && end_of_text();
    if (*begin == '}') {
        buffer_.consume(begin + 1);
        state_ = State::tail;
        return true;
    }
    const Byte* p = begin;
    const Outcome outcome = read_member(p);
    if (outcome == Outcome::unfinished && !final_) return wait(begin);
    if (outcome != Outcome::complete) return fail(begin, State::next_list);
    buffer_.consume(p);
    return true;
}

// A member of the root: into the header, or only up to its bracket if it is the event list.
Outcome Document::read_member(const Byte*& p) {
    const Byte* end = buffer_.end();
    const auto stopped = [&] { return p >= end ? Outcome::unfinished : Outcome::malformed; };
    if (*p != '"') return stopped();
    const Text key = {p + 1, find_string_end(p + 1, end)};
    if (key.end == nullptr) return Outcome::unfinished;
    p = skip_space(key.end + 1);
    if (*p != ':') return stopped();
    p = skip_space(p + 1);
    if (*p == '[' && key.size() == kEventsSize && std::memcmp(key.begin, kEvents, kEventsSize) == 0) {
        ++p;
        state_ = State::list;
        return Outcome::complete;
    }
    const Byte* value = p;
    const Outcome outcome = read_value(p);
    if (outcome == Outcome::complete) {
        append(header_, key);
        append(header_, {value, p});
    }
    return outcome;
}

// A value of the root or of the event list that is no event.
Outcome Document::read_value(const Byte*& p) {
    const Byte* begin = p;
    const Byte* end = buffer_.end();
    Outcome outcome = skip_value(p, end, 1);
    // A bare word may go on in the text to come.
    if (outcome == Outcome::complete && p == end && kBare[*begin] && !final_) outcome = Outcome::unfinished;
    const Byte* reached = outcome == Outcome::unfinished ? end : p;
    return static_cast<std::size_t>(reached - begin) > max_value_bytes_ ? Outcome::malformed : outcome;
}

bool Document::list() {
    for (;;) {
        const Byte* p = buffer_.begin();
        if (reader_->expects(p)) {
            if (!element(p, p)) return false;
        } else {
            const Byte* begin = skip_separators(p);
            if (begin - p > kMaxSeparator) p = begin;
            if (begin == buffer_.end()) {
                buffer_.consume(begin);
                return final_ && end_of_text();
            }
            if (*begin == ']') {
                buffer_.consume(begin + 1);
                state_ = in_object_ ? State::member : State::tail;
                return true;
            }
            if (!(*begin == '{' ? element(p, begin) : other_element(begin))) return false;
        }
        if (state_ != State::list) return true;
    }
}

// An event; `p` is at the separators before it. `begin` is its brace unless the reader knows better.
bool Document::element(const Byte* p, const Byte* begin) {
    Outcome outcome = reader_->read(p, buffer_.end(), max_value_bytes_, begin);
    if (outcome == Outcome::unfinished && static_cast<std::size_t>(buffer_.end() - begin) > max_value_bytes_)
        outcome = Outcome::malformed;
    return settle(outcome, begin, p, nullptr);
}

bool Document::other_element(const Byte* p) {
    const Byte* begin = p;
    const Outcome outcome = read_value(p);
    return settle(outcome, begin, p, &summary_.not_object);
}

bool Document::settle(Outcome outcome, const Byte* begin, const Byte* end, std::uint64_t* counter) {
    if (outcome == Outcome::unfinished && !final_) return wait(begin);
    if (outcome != Outcome::complete) return fail(begin, State::next_event);
    if (counter != nullptr) ++*counter;
    buffer_.consume(end);
    return true;
}

bool Document::next_event() {
    const Byte* floor = buffer_.begin();
    const Byte* end = buffer_.end();
    for (const Byte* p = seek_begin();; ++p) {
        p = find_byte(p, end, '{');
        const Match match = p == end || is_member_value(p, floor) ? Match::no : opens_event(p, end);
        if (match == Match::yes) return recovered(p, p);
        if (p == end || (match == Match::unfinished && !final_)) return seek_on(p, p - std::min(kMaxGap, p - floor));
    }
}

bool Document::next_list() {
    const Byte* end = buffer_.end();
    for (const Byte* p = seek_begin();; ++p) {
        p = find_byte(p, end, '"');
        const Byte* resume = p;
        const Match match = p == end ? Match::no : opens_list(p, end, resume);
        if (match == Match::yes) return recovered(p, resume);
        if (p == end || (match == Match::unfinished && !final_)) return seek_on(p, p);
    }
}

// Reading goes on at `resume`, the text before `p` is lost.
bool Document::recovered(const Byte* p, const Byte* resume) {
    summary_.skipped_bytes += buffer_.offset(p) - failed_at_;
    buffer_.consume(resume);
    state_ = State::list;
    return true;
}

// There is no place before `p` to go on at; the text from `keep` on still matters to those behind.
bool Document::seek_on(const Byte* p, const Byte* keep) {
    seek_from_ = buffer_.offset(p);
    buffer_.consume(keep);
    if (!final_) return false;
    summary_.skipped_bytes += summary_.size - failed_at_;
    return end_of_text();
}

bool Document::tail() {
    const Byte* p = skip_space(buffer_.begin());
    buffer_.consume(p);
    if (p == buffer_.end()) return false;
    tail_from_ = buffer_.offset(p);
    state_ = State::done;
    return true;
}

}  // namespace scan
