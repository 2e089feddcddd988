// The document around the events: root, header, event list, and the way back after malformed text.
#pragma once

#include <optional>

#include "reader.h"
#include "scan.h"

namespace scan {

// Text that has arrived and is not scanned yet, followed by kPadding zero bytes.
class Buffer {
public:
    const Byte* begin() const { return data() + begin_; }
    const Byte* end() const { return data() + end_; }
    std::size_t size() const { return end_ - begin_; }

    // Bytes of the document before `p`.
    std::uint64_t offset(const Byte* p) const { return base_ + static_cast<std::uint64_t>(p - data()); }

    // Forgets the text before `p`.
    void consume(const Byte* p) { begin_ = static_cast<std::size_t>(p - data()); }

    // Room for `bytes` bytes at end(). Throws std::bad_alloc.
    Byte* space(std::size_t bytes);
    void filled(std::size_t bytes);
    bool has_space(std::size_t bytes) const { return end_ + bytes + kPadding <= memory_.size(); }
    void release() { memory_.resize(0); }
    void begin_at(std::uint64_t offset) { base_ = offset; }

private:
    Byte* data() const { return static_cast<Byte*>(memory_.data()); }

    Memory memory_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::uint64_t base_ = 0;  // bytes of the document before the buffer
};

struct Header {
    Column<Byte> blob;
    Column<std::int64_t> ends;
};

class Document {
public:
    Document(const Schema& schema, Rows& rows, const trace_scan_options& options);

    Buffer& buffer() { return buffer_; }
    void feed(std::size_t bytes);
    void finish();

    // Whether all of the text has been read, up to between the two events where that of `next` began.
    bool leads_to(const Document& next);
    // Takes over what `next` has come to, but for its rows.
    void go_on(Document& next);

    const Header& header() const { return header_; }
    // What the document knows; the other counts are up to Rows.
    const trace_scan_summary& summary() const { return summary_; }

private:
    enum class State : std::uint8_t {
        root,         // before the first byte of the document
        member,       // between the members of the root
        list,         // between the elements of the event list
        next_event,   // malformed text: looking for the next event
        next_list,    // malformed text: looking for the event list
        tail,         // behind the document
        done,         // nothing that follows matters
    };

    void run();
    bool step();
    bool root();
    bool member();
    bool list();
    bool element(const Byte* p, const Byte* begin);
    bool other_element(const Byte* p);
    bool next_event();
    bool next_list();
    bool tail();

    Outcome read_member(const Byte*& p);
    Outcome read_value(const Byte*& p);
    bool settle(Outcome outcome, const Byte* begin, const Byte* end, std::uint64_t* counter);
    bool wait(const Byte* p);
    bool fail(const Byte* begin, State next);
    bool recovered(const Byte* p, const Byte* resume);
    bool seek_on(const Byte* p, const Byte* keep);
    const Byte* seek_begin() const { return buffer_.begin() + (seek_from_ - buffer_.offset(buffer_.begin())); }
    bool end_of_text();

    std::size_t max_value_bytes_;
    std::uint64_t begun_at_;  // of a text that begins inside the event list
    Buffer buffer_;
    std::optional<Reader> reader_;  // until the text is complete
    Header header_;
    State state_ = State::root;
    bool in_object_ = false;      // the root is an object
    bool final_ = false;          // all of the text is in the buffer
    std::size_t wanted_ = 0;      // bytes in the buffer that make another attempt worth while
    std::uint64_t failed_at_ = 0; // where the malformed element or member begins
    std::uint64_t seek_from_ = 0; // before this nothing follows it that reading could go on at
    std::uint64_t tail_from_ = ~std::uint64_t{0};  // where text goes on behind the document
    trace_scan_summary summary_{};
};

}  // namespace scan
