#include "automaton.h"

#include <algorithm>

namespace scan {
namespace {

// A trace needs some hundred of each; more are a sign of text that never repeats.
constexpr std::size_t kMaxNodes = 2048;
constexpr std::size_t kMaxEdges = 8192;

// Longest constant worth comparing as part of a literal.
constexpr std::size_t kLongestConstant = 40;

// Edges thrown away with fewer hits than this were useless; so many of them in a row are a pattern.
constexpr std::uint32_t kUseful = 4;
constexpr unsigned kPatience = 16;

std::uint64_t digest(std::uint64_t seed, Text text) {
    std::uint64_t hash = seed ^ 0xCBF29CE484222325u;
    for (const Byte* p = text.begin; p < text.end; ++p) hash = (hash ^ *p) * 0x100000001B3u;
    return hash ^ hash >> 29;
}

Outcome stopped(const Byte* p, const Byte* end) { return p >= end ? Outcome::unfinished : Outcome::malformed; }

bool form_of(Byte c, Form& form) {
    if (c == '"') form = Form::string;
    else if (c == '[') form = Form::array;
    else if (c == '{') form = Form::object;
    else if (kBare[c]) form = Form::bare;
    else return false;
    return true;
}

std::uint64_t state_of(Level level, std::uint64_t kind, std::uint64_t key) {
    return (kind * 0x9E3779B97F4A7C15u ^ key) * 4 + static_cast<unsigned>(level);
}

}  // namespace

// A step of the grammar being derived: from the end of a value to the begin of the next, or out of the event.
struct Automaton::Step {
    const Byte* begin;
    const Byte* end;
    const Byte* at;
    Level level;
    bool opened;  // the last thing passed was an opening brace
    bool folds;
    std::uint64_t kind;
    std::uint64_t key = 0;
    Edge edge;

    std::uint32_t offset() const { return static_cast<std::uint32_t>(at - begin); }
    void space() { at = skip_space(at); }
    Outcome stop() const { return stopped(at, end); }

    void finish(Action action, unsigned slot, Form form) {
        edge.operation = static_cast<std::uint8_t>(operation(action, form));
        edge.slot = static_cast<std::uint8_t>(slot);
        edge.form = form;
        edge.watched = (action == Action::skip || action == Action::integer || (action == Action::text && slot == kName)) &&
                       (form == Form::bare || form == Form::string);
        edge.length = offset();
    }
};

Automaton::Automaton(const Schema& schema, Rows& rows, bool learn)
    : schema_(schema),
      rows_(rows),
      learn_(learn),
      lost_{Node(Level::list, 0), Node(Level::event, 0), Node(Level::args, 0)} {
    for (Node& node : lost_) node.learns = false;
    start_ = find(Level::list, 0, 0);
}

Outcome Automaton::derive(Node& node, const Byte* text, const Byte* end, Edge*& edge) {
    Step step{text, end, text, node.level, false, node.folds, node.kind, 0, {}};
    const Outcome outcome = walk(step);
    if (outcome == Outcome::complete) edge = keep(node, step);
    return outcome;
}

Outcome Automaton::walk(Step& step) {
    if (step.level == Level::list) {
        while (is_space(*step.at) || *step.at == ',') ++step.at;
        step.edge.element = step.offset();
        ++step.at;
        step.level = Level::event;
        step.opened = true;
        step.kind = 0;
    }
    for (;;) {
        step.space();
        const bool comma = !step.opened && *step.at == ',';
        if (comma) {
            ++step.at;
            step.space();
        }
        if (*step.at == '}') {
            ++step.at;
            step.opened = false;
            if (step.level == Level::event) {
                step.finish(Action::end, 0, Form::object);
                step.level = Level::list;
                return Outcome::complete;
            }
            step.level = Level::event;
            step.edge.braces = true;
            step.edge.args_end = step.offset();
            continue;
        }
        if (!comma && !step.opened) return step.stop();
        const Outcome outcome = member(step);
        if (outcome != Outcome::complete || step.edge.length != 0) return outcome;
    }
}

// Passes over a key and what belongs to the literal behind it; sets the edge's length if a value to be read follows.
Outcome Automaton::member(Step& step) {
    if (*step.at != '"') return step.stop();
    const Byte* quote = find_string_end(step.at + 1, step.end);
    if (quote == nullptr) return Outcome::unfinished;
    const Text key = {step.at + 1, quote};
    step.at = quote + 1;
    step.space();
    if (*step.at != ':') return step.stop();
    ++step.at;
    step.space();
    step.opened = false;

    const Target target = step.level == Level::event ? schema_.of_event(key) : schema_.of_args(key);
    if (target.action == Action::args && *step.at == '{') {
        step.edge.sets |= bit(kArgs);
        step.edge.braces = true;
        step.edge.args_begin = step.offset();
        ++step.at;
        step.level = Level::args;
        step.opened = true;
        return Outcome::complete;
    }
    step.key = digest(0, key);
    if (foldable(step, target) && fold(step, target)) return Outcome::complete;
    Form form;
    if (!form_of(*step.at, form)) return step.stop();
    if (form != Form::bare) ++step.at;
    if (target.action != Action::skip && target.action != Action::mixed) step.edge.sets |= bit(target.slot);
    if (target.action == Action::mixed)
        for (unsigned kind = 0; kind < 3; ++kind) {
            const std::uint8_t slot = schema_.slots_by_kind(target.slot)[kind];
            if (slot != kNoSlot) step.edge.sets |= bit(slot);
        }
    step.edge.key = state_of(step.level, step.kind, step.key);
    step.finish(target.action, target.slot, form);
    return Outcome::complete;
}

// Whether a value should be part of the literal, if it is short and plain.
bool Automaton::foldable(const Step& step, Target target) const {
    if (!step.folds || step.edge.constants == Edge::kConstants) return false;
    switch (target.action) {
        case Action::phase: return true;
        case Action::text: if (target.slot >= kCat && target.slot <= kTid) return true; break;
        case Action::skip: case Action::integer: break;
        default: return false;
    }
    return steady_.count(state_of(step.level, step.kind, step.key)) != 0;
}

// Makes a short, plain value part of the literal.
bool Automaton::fold(Step& step, Target target) {
    const bool quoted = *step.at == '"';
    const Byte* begin = step.at + quoted;
    const Byte* end = quoted ? find_quote_or_escape(begin, step.end) : skip_bare(begin);
    if (end == nullptr || (quoted ? *end != '"' : end == begin || end == step.end)) return false;
    const Text text = {begin, end};
    if (text.size() > kLongestConstant || step.offset() + text.size() > Edge::kLongest) return false;
    std::int64_t value = 0;
    switch (target.action) {
        case Action::phase:
            if (!quoted || text.size() == 0) return false;
            value = rows_.phases.number(text);
            break;
        case Action::integer:
            if (!parse_integer(text, value)) return false;
            break;
        case Action::text: value = rows_.strings.code(text); break;
        default: break;
    }
    if (target.action != Action::skip) {
        step.edge.constant[step.edge.constants++] = {target.slot, step.offset(), value};
        step.edge.sets |= bit(target.slot);
    }
    if (target.slot == kPhase || target.slot == kCat) step.kind = digest(step.kind * 31 + target.slot, text);
    step.at = end + quoted;
    return true;
}

void Automaton::observe(Node& node, Edge& edge, Text value) {
    const std::uint64_t first = load8(value.begin);
    const std::uint64_t seen = value.size() < 8 ? first & ((std::uint64_t{1} << 8 * value.size()) - 1) : first;
    edge.streak = seen == edge.seen ? static_cast<std::uint16_t>(edge.streak + 1) : std::uint16_t{0};
    edge.seen = seen;
    if (edge.streak != Edge::kSteady || !node.folds || steady_.size() == kMaxNodes) return;
    steady_.insert(edge.key);
    node.drop(&edge);  // to be derived again, with the value in the literal
}

void Node::drop(const Edge* edge) {
    Edge** last = edges + count;
    Edge** found = std::find(edges, last, edge);
    if (found == last) return;
    std::move(found + 1, last, found);
    --count;
}

Edge* Automaton::keep(Node& node, const Step& step) {
    unlearned_ = step.edge;
    unlearned_.next = find(step.level, step.kind, step.key);
    if (!node.learns || step.edge.length > Edge::kLongest) return &unlearned_;
    Edge* edge = room_in(node);
    if (edge == nullptr) return &unlearned_;
    *edge = unlearned_;
    std::memcpy(edge->literal, step.begin, edge->length);
    return edge;
}

// A place for another edge of the node: new, or that of an edge little used.
Edge* Automaton::room_in(Node& node) {
    if (node.count < Node::kWidest) {
        if (edges_.size() == kMaxEdges) return nullptr;
        edges_.emplace_back();
        return node.edges[node.count++] = &edges_.back();
    }
    Edge* last = node.edges[Node::kWidest - 1];
    node.wasted = last->hits < kUseful ? node.wasted + 1 : 0;
    if (!node.folds || node.wasted < kPatience) return last;
    // Some constant is none: literals end before it from now on. The old edges are lost, but only once a node.
    node.folds = false;
    node.count = 0;
    return nullptr;
}

Node* Automaton::find(Level level, std::uint64_t kind, std::uint64_t key) {
    Node* lost = &lost_[static_cast<unsigned>(level)];
    if (!learn_) return lost;
    const std::uint64_t state = state_of(level, kind, key);
    Node*& node = index_[state];
    if (node == nullptr && nodes_.size() < kMaxNodes) {
        nodes_.emplace_back(level, kind);
        node = &nodes_.back();
    }
    if (node == nullptr) {
        index_.erase(state);
        return lost;
    }
    return node;
}

}  // namespace scan
