// Reads one event after another: literals by the automaton, values by what they are for.
#pragma once

#include "automaton.h"

namespace scan {

class Reader {
public:
    Reader(const Schema& schema, Rows& rows, bool learn);

    // Whether the text goes on with separators and the begin of an event in a way seen before. If so, or if an object
    // is known to follow the separators, `read` may be called with the same text.
    bool expects(const Byte* text) { return (first_ = node_->match(text)) != nullptr; }

    // Reads an event and makes it a row. Sets `p` behind it if complete; `element` is its brace in any case.
    Outcome read(const Byte*& p, const Byte* end, std::size_t max_bytes, const Byte*& element);

private:
    const Byte* value(const Edge& edge, const Byte* p, const Byte* end, Outcome& outcome);
    const Byte* text_string(unsigned slot, const Byte* p, const Byte* end);
    const Byte* any_value(const Edge& edge, const Byte* p, const Byte* end, Outcome& outcome);
    void apply(const Edge& edge, const Byte* literal);
    void store(Action action, unsigned slot, Text value);
    void store_mixed(unsigned key, Text value);

    const Schema& schema_;
    Rows& rows_;
    Automaton automaton_;
    Node* node_;
    const Edge* first_ = nullptr;
    Event event_{};
};

}  // namespace scan
