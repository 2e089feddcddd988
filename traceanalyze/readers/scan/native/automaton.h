// The text between two values of an event, learned.
//
// A profiler writes the same few keys in the same few orders with the same white space. What stands between the end of
// one value and the begin of the next (`, "tid": `) is a step of the grammar; the automaton keeps the steps it has seen
// as edges, literal text with what it means, and matches them with a few wide comparisons. Values that hardly vary
// (phase, category, process, thread, and flags that nobody asks for) become part of the literal.
//
// A node stands for a state of the grammar (its level), and an edge holds exactly what the grammar makes of its literal
// in that state. So an edge that matches says what the grammar would have said, and learning changes no result.
#pragma once

#include <deque>
#include <unordered_map>

#include "rows.h"

namespace scan {

// Where the last value ended.
enum class Level : std::uint8_t {
    list,   // between the elements of the event list
    event,  // in the event object
    args,   // in its args
};

struct Node;

constexpr unsigned kForms = 4;

// What to do with a value: the action and the form it begins with.
constexpr unsigned operation(Action action, Form form) {
    return static_cast<unsigned>(action) * kForms + static_cast<unsigned>(form);
}

// What the grammar makes of a literal.
struct Edge {
    static constexpr unsigned kConstants = kPhase - kName + 1;

    Node* next = nullptr;
    Bits sets = 0;  // slots that the constants and the value fill
    std::uint32_t length = 0;
    std::uint32_t hits = 0;
    std::uint8_t operation = 0;
    std::uint8_t slot = 0;
    Form form = Form::string;
    bool constants = false;         // there are some
    bool braces = false;            // of args are in the literal
    std::uint32_t element = 0;      // offset of the event's brace, at level list
    std::uint32_t args_begin = 0;   // offset of the brace that opens args, if not 0
    std::uint32_t args_end = 0;     // offset behind the brace that closes them, if not 0
    std::int64_t constant[kConstants] = {};  // of the slots from kName to kPhase
    std::int64_t untouched[kConstants] = {-1, -1, -1, -1, -1};  // zero where there is a constant

    Action action() const { return static_cast<Action>(operation / kForms); }
};

// An edge with its literal, which ends with the quote or bracket that begins the value, if one does.
struct LearnedEdge : Edge {
    static constexpr unsigned kLongest = kPadding;  // a comparison may begin where the text ends
    static constexpr unsigned kBlock = sizeof(Vector);

    struct {
        Vector literal, within;  // the latter ones up to its end
    } block[kLongest / kBlock];

    LearnedEdge(const Edge& edge, const Byte* text);
    bool matches(const Byte* text) const;
};

// By its phase and category so far: events of a kind share nodes.
struct EventKind {
    std::uint64_t digest = 0;
    bool few_names = false;  // an instant or an arrow: their names are constants, too
};

struct Node {
    static constexpr unsigned kWidest = 16;

    Node(Level level_, EventKind kind_) : level(level_), kind(kind_) {}

    Level level;
    bool learns = true;
    unsigned count = 0;
    EventKind kind;
    LearnedEdge* edges[kWidest] = {};

    const Edge* match(const Byte* text);
};

inline bool LearnedEdge::matches(const Byte* text) const {
    const auto differ = [&](unsigned i) { return (load16(text + kBlock * i) ^ block[i].literal) & block[i].within; };
    unsigned i = 0;
    do {
        if (!is_zero(differ(i) | differ(i + 1))) return false;
        i += 2;
    } while (kBlock * i < length);
    return form != Form::bare || kBare[text[length]];
}

inline const Edge* Node::match(const Byte* text) {
    for (unsigned i = 0; i < count; ++i) {
        LearnedEdge* edge = edges[i];
        if (!edge->matches(text)) continue;
        ++edge->hits;
        if (i > 0 && edge->hits > edges[i - 1]->hits) std::swap(edges[i], edges[i - 1]);
        return edge;
    }
    return nullptr;
}

class Automaton {
public:
    Automaton(const Schema& schema, Rows& rows, bool learn);

    // Between elements, after an event of the given kind.
    Node* start() { return start_; }

    // The step from `text` on, derived from the grammar, and learned if there is room. The edge is good until the next
    // call. At level list there must be an object behind the separators.
    Outcome derive(Node& node, const Byte* text, const Byte* end, const Edge*& edge);

private:
    struct Step;

    Outcome walk(Step& step);
    Outcome member(Step& step);
    static bool foldable(const Step& step, Target target);
    bool fold(Step& step, Target target);
    const Edge* keep(Node& node, const Step& step);
    Node* find(Level level, EventKind kind, std::uint64_t key);

    const Schema& schema_;
    Rows& rows_;
    bool learn_;
    std::deque<Node> nodes_;
    std::deque<LearnedEdge> edges_;
    std::unordered_map<std::uint64_t, Node*> index_;
    Node lost_[3];  // one a level: they learn nothing
    Node* start_;
    Edge unlearned_;
};

}  // namespace scan
