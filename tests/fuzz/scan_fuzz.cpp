// Fuzz target of the native scanner and of the reader of snapshots: whatever the text or pickle, scanning it in blocks
// of any size, with or without learning, gives what scanning it whole gives, and what it gives holds together. With
// libFuzzer, or with the mutator below where that is not to be had:
//   scan_fuzz SECONDS SEED FILE...
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include "scan.h"

namespace {

using Bytes = std::vector<std::uint8_t>;

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

std::uint64_t mix(std::uint64_t hash, std::uint64_t x) {
    hash = (hash ^ x) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 31;
}

std::uint64_t mix(std::uint64_t hash, const void* data, std::size_t size) {
    const auto* p = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < size; ++i) hash = mix(hash, p[i]);
    return mix(hash, size);
}

void require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

// A finished scan, seen through its C interface.
class Result {
public:
    explicit Result(trace_scan* scan) : scan_(scan) {
        const auto offsets = get<std::int64_t>(TRACE_SCAN_STRING_OFFSETS);
        const auto blob = get<std::uint8_t>(TRACE_SCAN_STRING_BLOB);
        for (std::size_t i = 0; i + 1 < offsets.size; ++i) {
            require(offsets.data[i] <= offsets.data[i + 1], "string offsets ascend");
            require(static_cast<std::size_t>(offsets.data[i + 1]) <= blob.size, "strings lie in the blob");
            strings_.push_back(mix(0, blob.data + offsets.data[i], static_cast<std::size_t>(offsets.data[i + 1] - offsets.data[i])));
        }
    }

    // A digest of what the result means, so whatever codes the strings got.
    std::uint64_t digest() {
        trace_scan_summary summary;
        require(trace_scan_summarize(scan_, &summary) == TRACE_SCAN_OK, "summary");
        hash_ = mix(0, &summary, offsetof(trace_scan_summary, fractional) + sizeof summary.fractional);
        const auto tracks = get<std::int32_t>(TRACE_SCAN_TRACKS, 0, 2);
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
        const auto metadata = get<std::int32_t>(TRACE_SCAN_METADATA, 0, 3);
        add_codes({metadata.data, 3 * metadata.size});
        add_flow_ids();
        for (std::uint32_t field = 0; field < kEventFields; ++field)
            add_field(TRACE_SCAN_EVENT_FIELD_ROW, TRACE_SCAN_EVENT_FIELD_VALUE, 0, field);
        for (std::uint32_t field = 0; field < kInstantFields; ++field)
            add_field(TRACE_SCAN_INSTANT_FIELD_ROW, TRACE_SCAN_INSTANT_FIELD_VALUE, 1, field);
        return hash_;
    }

private:
    template <class T>
    struct View {
        const T* data;
        std::size_t size;
    };

    // Frees what was taken with the digest.
    struct Taken {
        void* data;
        std::size_t bytes;
        Taken(void* data, std::size_t bytes) : data(data), bytes(bytes) {}
        Taken(const Taken&) = delete;
        ~Taken() { trace_scan_free(data, bytes); }
    };

    template <class T>
    View<T> get(std::uint32_t id, std::uint32_t field = 0, std::size_t width = 1) {
        trace_scan_array array;
        require(trace_scan_take(scan_, id, field, &array) == TRACE_SCAN_OK, "array");
        const auto items = static_cast<std::size_t>(array.items);
        taken_.emplace_back(array.data, items * width * sizeof(T));
        return {static_cast<const T*>(array.data), items};
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

    void add_field(std::uint32_t row_id, std::uint32_t value_id, std::uint32_t list, std::uint32_t field) {
        const auto rows = get<std::uint32_t>(row_id, field);
        for (std::size_t i = 1; i < rows.size; ++i) require(rows.data[i - 1] < rows.data[i], "rows ascend");
        add(rows);
        std::uint32_t kind = TRACE_SCAN_INT;
        for (const Key& key : kKeys)
            if (key.list == list && key.field == field) kind = key.kind;
        if (kind == TRACE_SCAN_TEXT) add_codes(get<std::int32_t>(value_id, field));
        else add(get<std::int64_t>(value_id, field));
    }

    trace_scan* scan_;
    std::list<Taken> taken_;
    std::vector<std::uint64_t> strings_;
    std::uint64_t hash_ = 0;
};

std::uint64_t scan(const std::uint8_t* data, std::size_t size, std::size_t block, std::uint64_t longest, bool learn) {
    std::vector<trace_scan_key> keys;
    for (const Key& key : kKeys)
        keys.push_back({reinterpret_cast<const std::uint8_t*>(key.text), std::strlen(key.text), key.list, key.field, key.kind});
    const trace_scan_options options = {keys.data(), keys.size(), kEventFields, kInstantFields, longest, learn};
    trace_scan* scan = nullptr;
    require(trace_scan_open(&options, &scan) == TRACE_SCAN_OK, "open");
    while (size != 0) {
        const std::size_t some = size < block ? size : block;
        std::uint8_t* space = trace_scan_space(scan, some);
        require(space != nullptr, "space");
        std::memcpy(space, data, some);
        require(trace_scan_feed(scan, some) == TRACE_SCAN_OK, "feed");
        data += some;
        size -= some;
    }
    require(trace_scan_finish(scan) == TRACE_SCAN_OK, "finish");
    const std::uint64_t digest = Result(scan).digest();
    trace_scan_close(scan);
    return digest;
}

// A snapshot that was read, seen through its C interface.
class Read {
public:
    Read(trace_snapshot* snapshot, std::int64_t root) : snapshot_(snapshot), hash_(mix(0, static_cast<std::uint64_t>(root))) {
        const std::size_t texts = sequences(TRACE_SNAPSHOT_TEXTS, 0, 0), frames = sequences(TRACE_SNAPSHOT_FRAMES, texts, 4);
        const std::size_t stacks = sequences(TRACE_SNAPSHOT_STACKS, frames, 1), pools = sequences(TRACE_SNAPSHOT_POOLS, 0, 0);
        const std::size_t told = sequences(TRACE_SNAPSHOT_TOLD, texts, 2);
        const auto objects = take<std::uint64_t>(TRACE_SNAPSHOT_OBJECTS);
        const auto chunks = take<std::int64_t>(TRACE_SNAPSHOT_CHUNKS, 3);
        const auto tags = take<std::uint8_t>(TRACE_SNAPSHOT_TAGS);
        const auto payloads = take<std::int64_t>(TRACE_SNAPSHOT_PAYLOADS);
        const std::size_t rows = codes(TRACE_SNAPSHOT_ACTION, texts, 0);
        require(codes(TRACE_SNAPSHOT_FRAMES_OF, objects.size(), -1) == rows, "columns are equally long");
        require(codes(TRACE_SNAPSHOT_TOLD_OF, told, 0) == rows, "columns are equally long");
        require(codes(TRACE_SNAPSHOT_STACK_OF, stacks, 0) == rows, "columns are equally long");
        require(codes(TRACE_SNAPSHOT_POOL_OF, pools, 0) == rows, "columns are equally long");
        for (auto id = TRACE_SNAPSHOT_ADDRESS; id <= TRACE_SNAPSHOT_TIME; id = static_cast<trace_snapshot_array_id>(id + 1))
            require(take<std::int64_t>(id).size() == rows, "columns are equally long");
        require(take<std::uint8_t>(TRACE_SNAPSHOT_HAS).size() == rows, "columns are equally long");
        for (const std::int64_t row : take<std::int64_t>(TRACE_SNAPSHOT_FREE_ROW))
            require(row >= 0 && static_cast<std::size_t>(row) < rows, "failed requests are events");
        take<std::int64_t>(TRACE_SNAPSHOT_FREE_BYTES);
        require(root >= 0 && static_cast<std::size_t>(root) < objects.size(), "the root is an object");
        require(tags.size() == payloads.size(), "values have a tag");
        for (std::size_t i = 0; i < chunks.size(); i += 3) {
            require(static_cast<std::size_t>(chunks[i] + chunks[i + 1]) <= tags.size(), "chunks hold values");
            require(chunks[i + 2] == -1 || static_cast<std::size_t>(chunks[i + 2]) * 3 > i, "chunks follow each other");
            require(chunks[i + 2] < static_cast<std::int64_t>(chunks.size() / 3), "the next chunk is one");
        }
        for (std::size_t i = 0; i < tags.size(); ++i) {
            require(tags[i] < 8, "tags are known");
            const std::size_t limit = tags[i] == 6 ? texts : objects.size();
            if (tags[i] >= 6) require(payloads[i] >= 0 && static_cast<std::size_t>(payloads[i]) < limit, "values exist");
        }
        for (const std::uint64_t object : objects) {
            const std::size_t first = object >> 28 & 0xFFFFFFF, second = object & 0xFFFFFFF, all = chunks.size() / 3;
            const std::size_t limits[] = {1, rows, frames, all, 1, rows - second + 1, stacks, all, pools, all};
            require(object >> 56 < 10 && first < limits[object >> 56], "objects exist");
        }
    }
    std::uint64_t digest() const { return hash_; }

private:
    template <class T>
    std::vector<T> take(std::uint32_t id, std::size_t width = 1) {
        trace_scan_array array;
        require(trace_snapshot_take(snapshot_, id, &array) == TRACE_SCAN_OK, "array");
        const auto* data = static_cast<const T*>(array.data);
        const auto items = static_cast<std::size_t>(array.items) * width;
        const std::vector<T> values(data, data + items);
        if (array.data != nullptr) trace_scan_free(array.data, items * sizeof(T));
        hash_ = mix(hash_, values.data(), items * sizeof(T));
        return values;
    }

    std::size_t codes(std::uint32_t id, std::size_t limit, std::int64_t least) {
        const auto values = take<std::int32_t>(id);
        for (const std::int32_t code : values) require(code >= least && code < static_cast<std::int64_t>(limit), "codes exist");
        return values.size();
    }

    // How many sequences there are; 1: of codes below `limit`, 2: of wide ones, 4: of frames, 0: of anything else.
    std::size_t sequences(std::uint32_t id, std::size_t limit, unsigned kind) {
        const auto blob = take<std::uint8_t>(id);
        const auto offsets = take<std::int64_t>(id + 1);
        require(!offsets.empty() && static_cast<std::size_t>(offsets.back()) == blob.size(), "sequences fill their bytes");
        const std::size_t width = kind == 2 ? 8 : 4;
        for (std::size_t at = 0; kind != 0 && at < blob.size(); at += width) {
            std::int64_t code = 0;
            std::memcpy(&code, blob.data() + at, width);
            const bool line = kind == 4 && at / width % 4 == 2;
            require(line || static_cast<std::size_t>(code) < limit, "codes of sequences exist");
        }
        return offsets.size() - 1;
    }

    trace_snapshot* snapshot_;
    std::uint64_t hash_;
};

std::uint64_t read(const std::uint8_t* data, std::size_t size, std::size_t block, bool is_json) {
    trace_snapshot* snapshot = nullptr;
    require(trace_snapshot_open(is_json, &snapshot) == TRACE_SCAN_OK, "open");
    std::int64_t root = -1;
    int status = TRACE_SCAN_OK;
    for (bool more = true; more && root < 0 && status == TRACE_SCAN_OK;) {
        more = size != 0;
        const std::size_t some = size < block ? size : block;
        std::uint8_t* space = trace_snapshot_space(snapshot, some + 1);
        require(space != nullptr, "space");
        std::memcpy(space, data, some);
        status = trace_snapshot_feed(snapshot, some, &root);
        data += some;
        size -= some;
    }
    require(status == TRACE_SCAN_OK || status == TRACE_SNAPSHOT_UNUSUAL, "status");
    const std::uint64_t digest = root < 0 ? static_cast<std::uint64_t>(status) : Read(snapshot, root).digest();
    trace_snapshot_close(snapshot);
    return digest;
}

}  // namespace

// The first two bytes choose the size of the blocks and the longest value; the text, or a snapshot, follows.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::size_t block = data[0] < 128 ? data[0] + 1u : (data[0] - 127u) * 61u;
    if (size > 2 && data[2] == 0x80) {
        require(read(data + 2, size - 2, block, false) == read(data + 2, size - 2, size, false), "blocks change nothing");
        return 0;
    }
    require(read(data + 2, size - 2, block, true) == read(data + 2, size - 2, size, true), "blocks change nothing");
    const std::uint64_t longest = data[1] < 64 ? data[1] * 16u : std::uint64_t{1} << 26;
    const std::uint64_t whole = scan(data + 2, size - 2, size, longest, true);
    require(scan(data + 2, size - 2, block, longest, true) == whole, "blocks change nothing");
    require(scan(data + 2, size - 2, size, longest, false) == whole, "learning changes nothing");
    return 0;
}

#ifndef TRACE_SCAN_LIBFUZZER

#include <ctime>

namespace {

constexpr const char* kTokens[] = {
    "{", "}", "[", "]", ":", ",", "\"", "\\", " ", "\n", "\t", "\r", ".", "-", "+", "e", "0", "9", "\"ph\"", "\"X\"",
    "\"i\"", "\"M\"", "\"s\"", "\"ts\"", "\"dur\"", "\"pid\"", "\"tid\"", "\"name\"", "\"cat\"", "\"args\"", "\"id\"",
    "\"x\"", "\"y\"", "\"stream\"", "\"traceEvents\"", "{\"ph\":", "\"traceEvents\":[", "null", "NaN", "[[]]", "1e5",
    "-0", "0.0005", "1.0015", "9223372036854775807", "18446744073709551616", "1e-400", "}},{", "\\u0041",
    "\\ud83d\\ude00", "\\udc00", "\\n", "\\\"", "\xff", "\xef\xbb\xbf", ", \"tid\": ", "1234567890123456.789",
    "}(", "](", "\x94", "u", "e", "a", "s", "t", "N", "\x85", "\x86", "h\x01", "q\x01", "K\x01", "\x8c\x06""action", ".",
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1.5,\"dur\":2,\"args\":{\"stream\":7,",
};
constexpr std::size_t kTokenCount = sizeof kTokens / sizeof *kTokens;
constexpr std::size_t kLargest = 20000;

class Mutator {
public:
    explicit Mutator(std::uint64_t seed) : state_(seed * 2 + 1) {}

    std::size_t below(std::size_t bound) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::size_t>(state_ % bound);
    }

    void mutate(Bytes& text, const Bytes& other) {
        for (std::size_t left = 1 + below(5); left != 0; --left) change(text, other);
        if (text.size() > kLargest) text.resize(kLargest);
    }

private:
    void insert(Bytes& text, std::size_t at, const Bytes& part) {
        text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), part.begin(), part.end());
    }
    Bytes part_of(const Bytes& text, std::size_t longest) {
        if (text.empty()) return {};
        const std::size_t at = below(text.size());
        const std::size_t size = 1 + below(longest);
        const std::size_t end = at + size < text.size() ? at + size : text.size();
        return Bytes(text.data() + at, text.data() + end);
    }
    void erase(Bytes& text, std::size_t at, std::size_t size) {
        const std::size_t end = at + size < text.size() ? at + size : text.size();
        text.erase(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end));
    }

    void change(Bytes& text, const Bytes& other) {
        const std::size_t at = below(text.size() + 1);
        const char* token = kTokens[below(kTokenCount)];
        switch (below(8)) {
            case 0:
                if (at < text.size()) text[at] = static_cast<std::uint8_t>(below(256));
                break;
            case 1:
                if (at < text.size()) text[at] ^= static_cast<std::uint8_t>(1u << below(8));
                break;
            case 2: erase(text, at, 1 + below(40)); break;
            case 3: insert(text, at, part_of(text, 200)); break;
            case 4: insert(text, at, part_of(other, 400)); break;
            case 5: insert(text, at, Bytes(token, token + std::strlen(token))); break;
            case 6:
                erase(text, at, 1 + below(4));
                insert(text, at, Bytes(token, token + std::strlen(token)));
                break;
            default:
                if (below(4) == 0) text.resize(at);
                else insert(text, at, Bytes(below(300), static_cast<std::uint8_t>(" [{\n"[below(4)])));
                break;
        }
    }

    std::uint64_t state_;
};

Bytes read_file(const char* path) {
    Bytes bytes;
    if (std::FILE* file = std::fopen(path, "rb")) {
        bytes.resize(kLargest);
        bytes.resize(std::fread(bytes.data(), 1, kLargest, file));
        std::fclose(file);
    }
    return bytes;
}

Bytes current;

// Keeps the input that brought the program down.
void save_current() {
    if (std::FILE* file = std::fopen("scan_fuzz.crash", "wb")) {
        std::fwrite(current.data(), 1, current.size(), file);
        std::fclose(file);
    }
}

}  // namespace

extern "C" void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: scan_fuzz SECONDS SEED FILE...\n");
        return 2;
    }
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_current);
    std::vector<Bytes> corpus;
    for (int i = 3; i < argc; ++i) corpus.push_back(read_file(argv[i]));
    Mutator mutator(std::strtoull(argv[2], nullptr, 10));
    const std::time_t end = std::time(nullptr) + std::atol(argv[1]);
    std::uint64_t runs = 0;
    for (; std::time(nullptr) < end; ++runs) {
        Bytes text = corpus[mutator.below(corpus.size())];
        mutator.mutate(text, corpus[mutator.below(corpus.size())]);
        current = {static_cast<std::uint8_t>(mutator.below(256)), static_cast<std::uint8_t>(mutator.below(256))};
        current.insert(current.end(), text.begin(), text.end());
        LLVMFuzzerTestOneInput(current.data(), current.size());
        // A text that survived may be the start of a stranger one.
        if (mutator.below(50) == 0 && corpus.size() < 4000) corpus.push_back(text);
    }
    std::printf("%llu inputs\n", static_cast<unsigned long long>(runs));
    return 0;
}

#endif
