// Fuzz target of the reader of snapshots: whatever the pickle or JSON, reading it in blocks of any size gives what reading it
// whole gives, and what it gives holds together.
#include "fuzz.h"

namespace fuzz {
namespace {

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

// A pickle says so in its first byte.
bool is_pickle(const std::uint8_t* data, std::size_t size) { return size != 0 && data[0] == 0x80; }

void run(const std::uint8_t* data, std::size_t size) {
    const std::size_t block = 1 + mix(0, data, size) % 300;
    const bool is_json = !is_pickle(data, size);
    require(read(data, size, block, is_json) == read(data, size, size, is_json), "blocks change nothing");
}

// How many bytes the opcode at a place has.
std::size_t length(const Bytes& text, std::size_t at) {
    const auto number = [&](std::size_t bytes) {
        std::size_t value = 0;
        for (std::size_t i = 0; i < bytes && at + 1 + i < text.size(); ++i) value |= std::size_t{text[at + 1 + i]} << 8 * i;
        return value % 4096;
    };
    switch (text[at]) {
        case 0x80: case 'h': case 'q': case 'K': return 2;
        case 'M': return 3;
        case 'j': case 'r': case 'J': return 5;
        case 'G': case 0x95: return 9;
        case 0x8A: case 0x8C: case 'C': return 2 + number(1);
        case 'X': case 'B': case 0x8B: return 5 + number(4);
        default: return 1;
    }
}

std::vector<Bytes> opcodes(const Bytes& text) {
    std::vector<Bytes> found;
    for (std::size_t at = 0; at < text.size(); at += found.back().size()) found.push_back(part_of(text, at, length(text, at)));
    return found;
}

constexpr const char* kTexts[] = {
    "action", "addr", "size", "stream", "time_us", "frames", "device_free", "pool_id", "segment_pool_id",
    "user_metadata", "compile_context", "filename", "name", "line", "fx_original_trace", "alloc", "oom", "\xff", "",
    "device_traces", "segments"};
constexpr char kPlain[] = "N}])(usaet.0\x85\x86\x87\x88\x89\x94";

Bytes any_opcode(Random& random) {
    const auto byte = static_cast<std::uint8_t>(random.below(random.below(4) == 0 ? 256 : 6));
    switch (random.below(8)) {
        case 0: return {'K', byte};
        case 1: return {'h', byte};
        case 2: return {'q', byte};
        case 3: {
            Bytes wide = {0x8A, static_cast<std::uint8_t>(random.below(12))};
            for (std::size_t i = 0; i < wide[1]; ++i) wide.push_back(static_cast<std::uint8_t>(random.below(3) * 127));
            return wide;
        }
        case 4: case 5: {
            const char* text = kTexts[random.below(sizeof kTexts / sizeof *kTexts)];
            Bytes said = {0x8C, static_cast<std::uint8_t>(std::strlen(text))};
            said.insert(said.end(), text, text + std::strlen(text));
            return said;
        }
        default: return {static_cast<std::uint8_t>(kPlain[random.below(sizeof kPlain - 1)])};
    }
}

void mutate(Bytes& text, const Bytes& other, Random& random) {
    if (!is_pickle(text.data(), text.size())) {
        kScan.mutate(text, other, random);
        return;
    }
    std::vector<Bytes> made = opcodes(text);
    const std::vector<Bytes> more = opcodes(other);
    // A frame has a length, which nothing that is changed inside keeps.
    const bool framed = random.below(16) == 0;
    for (std::size_t left = 1 + random.below(4); left != 0; --left) {
        const auto place = [&](const std::vector<Bytes>& all) { return static_cast<std::ptrdiff_t>(random.below(all.size() + 1)); };
        const auto at = made.begin() + place(made);
        switch (random.below(6)) {
            case 0: made.erase(at, at + static_cast<std::ptrdiff_t>(random.below(static_cast<std::size_t>(made.end() - at) % 4 + 1))); break;
            case 1: case 2: made.insert(at, any_opcode(random)); break;
            case 3:
                if (at != made.end()) *at = any_opcode(random);
                break;
            case 4:
                if (at != made.end()) (*at)[random.below(at->size())] = static_cast<std::uint8_t>(random.below(256));
                break;
            default: {
                const auto from = more.begin() + place(more);
                const auto end = from + static_cast<std::ptrdiff_t>(random.below(static_cast<std::size_t>(more.end() - from) % 40 + 1));
                made.insert(at, from, end);
                break;
            }
        }
    }
    text.clear();
    for (const Bytes& each : made)
        if (framed || each[0] != 0x95) text.insert(text.end(), each.begin(), each.end());
}

}  // namespace

const Target kSnapshot = {"snapshot", run, mutate};

}  // namespace fuzz
