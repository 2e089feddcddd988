// Fuzz target of the native scanner: whatever the text, scanning it in blocks of any size, with or without learning,
// gives what scanning it whole gives, and what it gives holds together.
#include "fuzz.h"

namespace fuzz {
namespace {

struct Key {
    const char* text;
    std::uint32_t list, field, kind;
};

constexpr Key kKeys[] = {
    {"correlation", 0, 0, TRACE_SCAN_INT}, {"External id", 0, 1, TRACE_SCAN_INT}, {"external id", 0, 1, TRACE_SCAN_INT},
    {"stream", 0, 2, TRACE_SCAN_INT},      {"Input Dims", 0, 3, TRACE_SCAN_TEXT}, {"Input type", 0, 4, TRACE_SCAN_TEXT},
    {"Call stack", 0, 5, TRACE_SCAN_TEXT}, {"x", 0, 6, TRACE_SCAN_REAL},          {"x", 0, 7, TRACE_SCAN_INT},
    {"x", 0, 8, TRACE_SCAN_TEXT},          {"y", 0, 8, TRACE_SCAN_TEXT},          {"Bytes", 1, 0, TRACE_SCAN_INT},
    {"y", 1, 1, TRACE_SCAN_TEXT},          {"x", 1, 1, TRACE_SCAN_TEXT},
};
constexpr std::uint32_t kEventFields = 9;
constexpr std::uint32_t kInstantFields = 2;

// A finished scan, seen through its C interface.
class Result {
public:
    explicit Result(trace_scan* scan) : scan_(scan) {
        require(trace_scan_take(scan_, arrays_) == TRACE_SCAN_OK, "arrays");
        const auto offsets = get<std::int64_t>(TRACE_SCAN_STRING_OFFSETS);
        const auto blob = get<std::uint8_t>(TRACE_SCAN_STRING_BLOB);
        for (std::size_t i = 0; i + 1 < offsets.size; ++i) {
            require(offsets.data[i] <= offsets.data[i + 1], "string offsets ascend");
            require(static_cast<std::size_t>(offsets.data[i + 1]) <= blob.size, "strings lie in the blob");
            strings_.push_back(mix(0, blob.data + offsets.data[i], static_cast<std::size_t>(offsets.data[i + 1] - offsets.data[i])));
        }
    }

    Result(const Result&) = delete;
    // Items have at most 12 bytes.
    ~Result() {
        for (const trace_scan_array& array : arrays_) trace_scan_free(array.data, array.items * 12);
    }

    // A digest of what the result means, so whatever codes the strings got.
    std::uint64_t digest() {
        trace_scan_summary summary;
        require(trace_scan_summarize(scan_, &summary) == TRACE_SCAN_OK, "summary");
        hash_ = mix(0, &summary, offsetof(trace_scan_summary, fractional) + sizeof summary.fractional);
        const auto tracks = get<std::int32_t>(TRACE_SCAN_TRACKS);
        add_codes({tracks.data, 2 * tracks.size});
        for (const auto id : {TRACE_SCAN_EVENT_TS, TRACE_SCAN_EVENT_DUR, TRACE_SCAN_INSTANT_TS, TRACE_SCAN_FLOW_TS,
                              TRACE_SCAN_METADATA_ENDS, TRACE_SCAN_HEADER_ENDS, TRACE_SCAN_PHASE_COUNTS}) {
            add(get<std::int64_t>(id));
        }
        for (const auto id : {TRACE_SCAN_EVENT_NAME, TRACE_SCAN_EVENT_CAT, TRACE_SCAN_INSTANT_NAME, TRACE_SCAN_INSTANT_CAT, TRACE_SCAN_FLOW_CAT})
            add_codes(get<std::int32_t>(id));
        for (const auto id : {TRACE_SCAN_EVENT_TRACK, TRACE_SCAN_INSTANT_TRACK, TRACE_SCAN_FLOW_TRACK})
            add(get<std::int32_t>(id));
        for (const auto id : {TRACE_SCAN_FLOW_PHASE, TRACE_SCAN_METADATA_BLOB, TRACE_SCAN_HEADER_BLOB, TRACE_SCAN_PHASE_BLOB})
            add(get<std::uint8_t>(id));
        const auto metadata = get<std::int32_t>(TRACE_SCAN_METADATA);
        add_codes({metadata.data, 3 * metadata.size});
        add_flow_ids();
        for (std::uint32_t field = 0; field < kEventFields; ++field) add_field(0, field, field);
        for (std::uint32_t field = 0; field < kInstantFields; ++field) add_field(1, field, kEventFields + field);
        return hash_;
    }

private:
    template <class T>
    struct View {
        const T* data;
        std::size_t size;
    };

    template <class T>
    View<T> get(std::uint32_t id) const {
        return {static_cast<const T*>(arrays_[id].data), static_cast<std::size_t>(arrays_[id].items)};
    }

    template <class T>
    void add(View<T> view) {
        hash_ = mix(hash_, view.data, view.size * sizeof(T));
    }

    void add_codes(View<std::int32_t> view) {
        for (std::size_t i = 0; i < view.size; ++i) {
            require(view.data[i] >= 0 && static_cast<std::size_t>(view.data[i]) < strings_.size(), "codes name strings");
            hash_ = mix(hash_, strings_[static_cast<std::size_t>(view.data[i])]);
        }
        hash_ = mix(hash_, view.size);
    }

    void add_flow_ids() {
        const auto ids = get<std::int64_t>(TRACE_SCAN_FLOW_ID);
        for (std::size_t i = 0; i < ids.size; ++i) {
            const std::uint64_t code = static_cast<std::uint64_t>(ids.data[i]) - (std::uint64_t{1} << 63);
            hash_ = mix(hash_, code < strings_.size() ? strings_[code] : code);
        }
    }

    void add_field(std::uint32_t list, std::uint32_t field, std::uint32_t place) {
        const std::uint32_t id = TRACE_SCAN_FIELDS + 2 * place;
        const auto rows = get<std::uint32_t>(id);
        for (std::size_t i = 1; i < rows.size; ++i) require(rows.data[i - 1] < rows.data[i], "rows ascend");
        add(rows);
        std::uint32_t kind = TRACE_SCAN_INT;
        for (const Key& key : kKeys)
            if (key.list == list && key.field == field) kind = key.kind;
        if (kind == TRACE_SCAN_TEXT) add_codes(get<std::int32_t>(id + 1));
        else add(get<std::int64_t>(id + 1));
    }

    trace_scan* scan_;
    trace_scan_array arrays_[TRACE_SCAN_FIELDS + 2 * (kEventFields + kInstantFields)];
    std::vector<std::uint64_t> strings_;
    std::uint64_t hash_ = 0;
};

void feed(trace_scan* scan, const std::uint8_t* data, std::size_t size, std::size_t block) {
    trace_scan_next next;
    require(trace_scan_feed(scan, 0, block, &next) == TRACE_SCAN_OK, "space");
    while (size != 0) {
        const std::size_t some = size < block ? size : block;
        std::memcpy(next.space, data, some);
        require(trace_scan_feed(scan, some, block, &next) == TRACE_SCAN_OK, "feed");
        data += some;
        size -= some;
    }
}

// What is behind `cut` is read by another scan, where there is a cut.
std::uint64_t scan(const std::uint8_t* data, std::size_t size, std::size_t block, std::uint64_t longest, bool learn,
                   std::size_t cut = 0) {
    std::vector<trace_scan_key> keys;
    for (const Key& key : kKeys)
        keys.push_back({reinterpret_cast<const std::uint8_t*>(key.text), std::strlen(key.text), key.list, key.field, key.kind});
    const trace_scan_options options = {keys.data(), keys.size(), kEventFields, kInstantFields, longest, learn,
                                        TRACE_SCAN_ROOT_NONE, 0};
    trace_scan* scan = nullptr;
    require(trace_scan_open(&options, &scan) == TRACE_SCAN_OK, "open");
    feed(scan, data, cut == 0 ? size : cut, block);
    if (cut != 0) {
        trace_scan_options later = options;
        later.root = data[0] == '{' ? TRACE_SCAN_ROOT_OBJECT : TRACE_SCAN_ROOT_LIST;
        later.begin = cut;
        trace_scan* next = nullptr;
        std::uint32_t joined = 0;
        require(trace_scan_open(&later, &next) == TRACE_SCAN_OK, "open");
        feed(next, data + cut, size - cut, block);
        require(trace_scan_join(scan, next, &joined) == TRACE_SCAN_OK, "join");
        trace_scan_close(next);
        if (joined == 0) feed(scan, data + cut, size - cut, block);
    }
    require(trace_scan_finish(scan) == TRACE_SCAN_OK, "finish");
    const std::uint64_t digest = Result(scan).digest();
    trace_scan_close(scan);
    return digest;
}

void run(const std::uint8_t* data, std::size_t size) {
    const std::uint64_t chosen = mix(0, data, size);
    const std::size_t block = chosen & 1 ? 1 + (chosen >> 8 & 127) : 61 * (1 + (chosen >> 8 & 127));
    const std::uint64_t longest = chosen & 2 ? std::uint64_t{1} << 26 : (chosen >> 16 & 63) * 16;
    const std::uint64_t whole = scan(data, size, size, longest, true);
    require(scan(data, size, block, longest, true) == whole, "blocks change nothing");
    require(scan(data, size, size, longest, false) == whole, "learning changes nothing");
    for (std::size_t cut = 1 + block % 7; cut < size; cut += 1 + size / 8)
        require(scan(data, size, block, longest, true, cut) == whole, "cuts change nothing");
}

constexpr const char* kTokens[] = {
    "{", "}", "[", "]", ":", ",", "\"", "\\", " ", "\n", "\t", "\r", ".", "-", "+", "e", "0", "9", "\"ph\"", "\"X\"",
    "\"i\"", "\"M\"", "\"s\"", "\"ts\"", "\"dur\"", "\"pid\"", "\"tid\"", "\"name\"", "\"cat\"", "\"args\"", "\"id\"",
    "\"x\"", "\"y\"", "\"stream\"", "\"traceEvents\"", "{\"ph\":", "\"traceEvents\":[", "null", "NaN", "[[]]", "1e5",
    "-0", "0.0005", "1.0015", "9223372036854775807", "18446744073709551616", "1e-400", "}},{", "\\u0041",
    "\\ud83d\\ude00", "\\udc00", "\\n", "\\\"", "\xff", "\xef\xbb\xbf", ", \"tid\": ", "1234567890123456.789",
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1.5,\"dur\":2,\"args\":{\"stream\":7,",
};

// A value, or a member or an element with what separates it, near a place.
Bytes value_at(const Bytes& text, std::size_t& at) {
    while (at < text.size() && std::strchr("{[\",:", text[at]) == nullptr) ++at;
    std::size_t end = at, depth = 0;
    bool quoted = false;
    for (; end < text.size(); ++end) {
        const std::uint8_t c = text[end];
        if (quoted && c == '\\') ++end;
        else if (c == '"') quoted = !quoted;
        else if (!quoted && (c == '{' || c == '[')) ++depth;
        else if (!quoted && (c == '}' || c == ']') && depth-- <= 1) break;
        if (!quoted && depth == 0 && end > at && (end + 1 == text.size() || std::strchr(",]}", text[end + 1]))) break;
    }
    return at < text.size() ? part_of(text, at, end + 1 - at) : Bytes();
}

void change(Bytes& text, const Bytes& other, Random& random) {
    std::size_t at = random.below(text.size() + 1);
    const char* token = kTokens[random.below(sizeof kTokens / sizeof *kTokens)];
    const Bytes piece(token, token + std::strlen(token));
    switch (random.below(10)) {
        case 0:
            if (at < text.size()) text[at] ^= static_cast<std::uint8_t>(1u << random.below(8));
            break;
        case 1: erase(text, at, 1 + random.below(40)); break;
        case 2: insert(text, at, part_of(text, at, random.below(200))); break;
        case 3: insert(text, at, part_of(other, random.below(other.size() + 1), random.below(400))); break;
        case 4: insert(text, at, piece); break;
        case 5:
            erase(text, at, 1 + random.below(4));
            insert(text, at, piece);
            break;
        case 6: erase(text, at, value_at(text, at).size()); break;
        case 7: case 8: {
            std::size_t from = random.below(other.size() + 1);
            const Bytes value = value_at(other, from), old = value_at(text, at);
            if (random.below(2) == 0) erase(text, at, old.size());
            insert(text, at, value);
            break;
        }
        default:
            if (random.below(4) == 0) text.resize(at);
            else insert(text, at, Bytes(random.below(300), static_cast<std::uint8_t>(" [{\n"[random.below(4)])));
            break;
    }
}

void mutate(Bytes& text, const Bytes& other, Random& random) {
    for (std::size_t left = 1 + random.below(4); left != 0; --left) change(text, other, random);
}

}  // namespace

const Target kScan = {"scan", run, mutate};

}  // namespace fuzz
