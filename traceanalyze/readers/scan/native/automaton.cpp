#include "automaton.h"

namespace scan {
namespace {

// A trace needs some hundred of each; more are a sign of text that never repeats.
constexpr std::size_t kMaxNodes = 2048;
constexpr std::size_t kMaxEdges = 8192;

// Longest constant worth comparing as part of a literal.
constexpr std::size_t kLongestConstant = 40;

// The same of one that nobody asks for: a flag, or a number of two digits.
constexpr std::size_t kLongestFlag = 2;

// Where flags, and names that are constants, begin at most: there is more room left for the next key than without them.
constexpr std::uint32_t kLatest = LearnedEdge::kLongest / 2 - 16;

// A node with so many edges gets no more with flags in them, as a full one gets none with constants: an edge that ends
// before such a value goes on with any, and comes first where they vary.
constexpr unsigned kFew = 6;

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

}  // namespace

// A step of the grammar being derived: from the end of a value to the begin of the next, or out of the event.
struct Automaton::Step {
    const Byte* begin;
    const Byte* end;
    const Byte* at;
    Level level;
    bool opened;  // the last thing passed was an opening brace
    unsigned edges;  // that the node has
    EventKind kind;
    std::uint64_t key = 0;
    Edge edge;

    std::uint32_t offset() const { return static_cast<std::uint32_t>(at - begin); }
    void space() { at = skip_space(at); }
    Outcome stop() const { return stopped(at, end); }

    void finish(Action action, unsigned slot, Form form) {
        edge.operation = static_cast<std::uint8_t>(operation(action, form));
        edge.slot = static_cast<std::uint8_t>(slot);
        edge.form = form;
        edge.length = offset();
    }
};

Automaton::Automaton(const Schema& schema, Rows& rows, bool learn)
    : schema_(schema),
      rows_(rows),
      learn_(learn),
      lost_{Node(Level::list, {}), Node(Level::event, {}), Node(Level::args, {})} {
    for (Node& node : lost_) node.learns = false;
    start_ = find(Level::list, {}, 0);
}

Outcome Automaton::derive(Node& node, const Byte* text, const Byte* end, const Edge*& edge) {
    Step step{text, end, text, node.level, false, node.count, node.kind, 0, {}};
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
        step.kind = EventKind();
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
    step.key = digest(0, key);
    step.finish(target.action, target.slot, form);
    return Outcome::complete;
}

bool Automaton::foldable(const Step& step, Target target) {
    const bool constant = step.edges < Node::kWidest;
    const bool flag = step.edges < kFew && step.offset() <= kLatest;
    switch (target.action) {
        case Action::phase: return constant;
        case Action::skip: return flag;
        case Action::text:
            if (target.slot == kName) return flag && step.kind.few_names;
            return constant && target.slot <= kPhase;
        default: return false;
    }
}

// Makes a short, plain value part of the literal.
bool Automaton::fold(Step& step, Target target) {
    const Byte* p = step.at;
    const bool quoted = *p == '"';
    const Byte* value = p + quoted;
    const Byte* stop;
    if (quoted) {
        stop = find_quote_or_escape(value, step.end);
        if (stop == nullptr || *stop != '"') return false;
    } else {
        stop = skip_bare(p);
        if (stop == p || stop == step.end) return false;
    }
    const Text text = {value, stop};
    const bool phase = target.action == Action::phase;
    const bool skipped = target.action == Action::skip;
    if (text.size() > (skipped ? kLongestFlag : kLongestConstant)) return false;
    if (phase && (!quoted || text.size() == 0)) return false;
    step.at = stop + quoted;
    if (skipped) return true;
    step.edge.constant[target.slot] = phase ? rows_.phases.number(text) : rows_.strings.code(text);
    step.edge.untouched[target.slot] = 0;
    step.edge.constants = true;
    step.edge.sets |= bit(target.slot);
    if (phase) step.kind.few_names = text.size() == 1 && std::memchr("iIstf", *text.begin, 5) != nullptr;
    if (phase || target.slot == kCat) step.kind.digest = digest(step.kind.digest * 31 + target.slot, text);
    return true;
}

const Edge* Automaton::keep(Node& node, const Step& step) {
    unlearned_ = step.edge;
    unlearned_.next = find(step.level, step.kind, step.key);
    if (!node.learns || step.edge.length > LearnedEdge::kLongest) return &unlearned_;
    const LearnedEdge edge(unlearned_, step.begin);
    // The last is little used.
    if (node.count == Node::kWidest) return &(*node.edges[Node::kWidest - 1] = edge);
    if (edges_.size() == kMaxEdges) return &unlearned_;
    edges_.push_back(edge);
    return node.edges[node.count++] = &edges_.back();
}

LearnedEdge::LearnedEdge(const Edge& edge, const Byte* text) : Edge(edge), block{} {
    for (unsigned at = 0; at < length; ++at) {
        block[at / kBlock].literal[at % kBlock] = text[at];
        block[at / kBlock].within[at % kBlock] = 255;
    }
}

Node* Automaton::find(Level level, EventKind kind, std::uint64_t key) {
    Node* lost = &lost_[static_cast<unsigned>(level)];
    if (!learn_) return lost;
    const std::uint64_t state = (kind.digest * 0x9E3779B97F4A7C15u ^ key) * 4 + static_cast<unsigned>(level);
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
