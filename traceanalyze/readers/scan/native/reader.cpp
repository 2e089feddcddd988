#include "reader.h"

namespace scan {
namespace {

// The content of a string without escaped tabs at its end: the tools of Ascend put them behind numbers.
Text trimmed(Text content) {
    while (content.size() >= 2 && content.end[-1] == 't' && content.end[-2] == '\\') content.end -= 2;
    return content;
}

// What may be a number: a string's content undecoded, or any other value as written.
Text number_text(Text value) {
    return *value.begin == '"' ? trimmed({value.begin + 1, value.end - 1}) : value;
}

}  // namespace

Reader::Reader(const Schema& schema, Rows& rows, bool learn)
    : schema_(schema), rows_(rows), automaton_(schema, rows, learn), node_(automaton_.start()) {}

Outcome Reader::read(const Byte*& p, const Byte* end, std::size_t max_bytes, const Byte*& element) {
    const Byte* at = p;
    Node* node = node_;
    const Edge* edge = std::exchange(first_, nullptr);
    Outcome outcome = Outcome::complete;
    event_.clear();
    for (bool first = true;; first = false, edge = node->match(at)) {
        if (edge == nullptr) {
            outcome = automaton_.derive(*node, at, end, edge);
            if (outcome != Outcome::complete) return outcome;
        }
        if (first) element = at + edge->element;
        apply(*edge, at);
        at += edge->length;
        node = edge->next;
        if (edge->action() == Action::end) break;
        at = value(*edge, at, end, outcome);
        if (at == nullptr) return outcome;
    }
    if (static_cast<std::size_t>(at - element) > max_bytes) return Outcome::malformed;
    rows_.add(event_);
    node_ = node;
    p = at;
    return Outcome::complete;
}

inline void Reader::apply(const Edge& edge, const Byte* literal) {
    event_.present |= edge.sets;
    if (edge.constants) {
        std::int64_t* value = event_.value;
        for (unsigned i = 0; i < Edge::kConstants; ++i) value[i] = (value[i] & edge.untouched[i]) | edge.constant[i];
    }
    if (edge.braces) {
        if (edge.args_end != 0) event_.args.end = literal + edge.args_end;
        if (edge.args_begin != 0) event_.args.begin = literal + edge.args_begin;
    }
}

// Reads the value whose text, behind any quote or bracket, begins at `p`; null, and the outcome, if it is not complete.
inline const Byte* Reader::value(const Edge& edge, const Byte* p, const Byte* end, Outcome& outcome) {
    const unsigned slot = edge.slot;
    const Byte* done = nullptr;
    switch (edge.operation) {
        case operation(Action::skip, Form::string): {
            const Byte* quote = find_quote_or_escape(p, end);
            if (quote != nullptr && *quote == '"') return quote + 1;
            break;
        }
        case operation(Action::skip, Form::bare): return skip_bare(p);
        case operation(Action::skip, Form::array):
            done = skip_plain_array(p, end, edge.next->level == Level::args ? 3 : 2);
            break;
        case operation(Action::text, Form::string): done = text_string(slot, p, end); break;
        case operation(Action::text, Form::bare):
            done = skip_bare(p);
            if (done == end) return any_value(edge, p, end, outcome);
            event_.set(slot, rows_.strings.code({p, done}));
            break;
        case operation(Action::text, Form::array):
            done = skip_plain_array(p, end, edge.next->level == Level::args ? 3 : 2);
            if (done != nullptr) event_.set(slot, rows_.strings.code({p - 1, done}));
            break;
        case operation(Action::integer, Form::bare): {
            std::int64_t integer;
            done = read_integer(p, integer);
            if (done != nullptr) event_.set(slot, integer);
            break;
        }
        case operation(Action::id, Form::bare): {
            std::int64_t integer;
            if (*p != '0' && *p != '-') done = read_integer(p, integer);
            if (done != nullptr) event_.set(slot, integer);
            break;
        }
        case operation(Action::microseconds, Form::bare):
        case operation(Action::microseconds, Form::string): {
            Nanoseconds ns;
            done = read_microseconds(p, ns);
            if (done != nullptr && edge.form == Form::string) done = *done == '"' ? done + 1 : nullptr;
            if (done == nullptr) break;
            event_.set(slot, ns.value);
            event_.fractional = (event_.fractional & ~bit(slot)) | static_cast<Bits>(ns.fractional) << slot;
            break;
        }
        default: break;
    }
    return done != nullptr ? done : any_value(edge, p, end, outcome);
}

inline const Byte* Reader::text_string(unsigned slot, const Byte* p, const Byte* end) {
    const Byte* quote = find_quote_or_escape(p, end);
    if (quote == nullptr || *quote != '"') return nullptr;
    event_.set(slot, rows_.strings.code({p, quote}));
    return quote + 1;
}

// The same for every action and form.
const Byte* Reader::any_value(const Edge& edge, const Byte* p, const Byte* end, Outcome& outcome) {
    const Byte* begin = p - (edge.form != Form::bare);
    p = begin;
    outcome = skip_value(p, end, edge.next->level == Level::args ? 3 : 2);
    // A bare word may go on in the text to come, and its first half is no string to keep.
    if (outcome == Outcome::complete && p == end) outcome = Outcome::unfinished;
    if (outcome != Outcome::complete) return nullptr;
    if (edge.action() == Action::mixed) store_mixed(edge.slot, {begin, p});
    else if (edge.action() != Action::skip) store(edge.action(), edge.slot, {begin, p});
    return p;
}

void Reader::store(Action action, unsigned slot, Text value) {
    std::int64_t number = 0;
    bool valid = true;
    switch (action) {
        case Action::text: number = rows_.strings.value_code(value); break;
        case Action::microseconds: {
            Nanoseconds ns{0, false};
            valid = parse_microseconds(number_text(value), ns);
            number = ns.value;
            event_.fractional = (event_.fractional & ~bit(slot)) | static_cast<Bits>(ns.fractional) << slot;
            break;
        }
        case Action::integer: valid = parse_integer(number_text(value), number); break;
        case Action::real: {
            double real = 0;
            valid = parse_real(number_text(value), real);
            std::memcpy(&number, &real, sizeof number);
            break;
        }
        case Action::phase:
            number = *value.begin == '"' ? rows_.phases.number({value.begin + 1, value.end - 1}) : Phases::kNone;
            break;
        case Action::id:
            event_.id = value;
            valid = false;
            break;
        case Action::args: event_.args = value; break;
        case Action::end: case Action::skip: case Action::mixed: break;
    }
    event_.set(slot, number);
    if (!valid) event_.invalidate(slot);
}

void Reader::store_mixed(unsigned key, Text value) {
    static constexpr Action actions[] = {Action::integer, Action::real, Action::text};
    const std::uint8_t* slots = schema_.slots_by_kind(static_cast<std::uint8_t>(key));
    for (unsigned kind = 0; kind < 3; ++kind)
        if (slots[kind] != kNoSlot) store(actions[kind], slots[kind], value);
}

}  // namespace scan
