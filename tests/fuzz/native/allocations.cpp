// Fails every allocation of the library, alone and with all that follow: that ends in "no memory", or the library does
// with less, as where columns grow; nothing is left behind.
// Linked with --wrap for malloc and realloc, so that only what the library asks for fails.
#include <new>
#include <string>

#include <sanitizer/lsan_interface.h>

#include "fuzz.h"

namespace {

bool armed = false;            // inside a call of the library
std::uint64_t left = 0;        // allocations that succeed until one fails
bool lasting = false;          // all others fail then, too
bool failed = false;

bool fails() {
    if (!armed || (failed && !lasting)) return false;
    failed = failed || left-- == 0;
    return failed;
}

}  // namespace

extern "C" {
void* __real_malloc(std::size_t size);
void* __real_realloc(void* data, std::size_t size);
void* __wrap_malloc(std::size_t size) { return fails() ? nullptr : __real_malloc(size); }
void* __wrap_realloc(void* data, std::size_t size) { return fails() ? nullptr : __real_realloc(data, size); }
}

void* operator new(std::size_t size) {
    if (fails()) throw std::bad_alloc();
    if (void* made = __real_malloc(size == 0 ? 1 : size)) return made;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return fails() ? nullptr : __real_malloc(size); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }

namespace {

using fuzz::Bytes;

template <class Function, class... Arguments>
auto library(Function function, Arguments... arguments) {
    armed = true;
    auto result = function(arguments...);
    armed = false;
    return result;
}

// The status that ends it; arrays that were taken are the caller's to free. Items have at most 32 bytes.
template <class Take, class Reader>
int take(Reader* reader, std::uint32_t arrays, Take take_one) {
    for (std::uint32_t id = 0; id < arrays; ++id) {
        trace_scan_array array;
        if (const int status = library(take_one, reader, id, &array)) return status;
        trace_scan_free(array.data, array.items * 32);
    }
    return TRACE_SCAN_OK;
}

template <class Reader, class Space, class Feed>
int feed(Reader* reader, const Bytes& text, Space space, Feed feed_one) {
    constexpr std::size_t kBlock = 3000;
    for (std::size_t at = 0; at < text.size(); at += kBlock) {
        const std::size_t some = std::min(kBlock, text.size() - at);
        std::uint8_t* room = library(space, reader, some);
        if (room == nullptr) return TRACE_SCAN_NO_MEMORY;
        std::memcpy(room, text.data() + at, some);
        if (const int status = library(feed_one, reader, some)) return status;
    }
    return TRACE_SCAN_OK;
}

int scan(const Bytes& text) {
    static const trace_scan_key keys[] = {{reinterpret_cast<const std::uint8_t*>("x"), 1, 0, 0, TRACE_SCAN_TEXT},
                                          {reinterpret_cast<const std::uint8_t*>("stream"), 6, 0, 1, TRACE_SCAN_INT},
                                          {reinterpret_cast<const std::uint8_t*>("Bytes"), 5, 1, 0, TRACE_SCAN_INT}};
    const trace_scan_options options = {keys, 3, 2, 1, 1 << 26, 1, TRACE_SCAN_ROOT_NONE, 0};
    trace_scan* scan = nullptr;
    int status = library(trace_scan_open, &options, &scan);
    if (status != TRACE_SCAN_OK) return status;
    trace_scan_next next{};
    const auto space = [&next](trace_scan* each, std::size_t bytes) {
        return trace_scan_feed(each, 0, bytes, &next) == TRACE_SCAN_OK ? next.space : nullptr;
    };
    status = feed(scan, text, space, [&next](trace_scan* each, std::size_t bytes) {
        return trace_scan_feed(each, bytes, 0, &next);
    });
    if (status == TRACE_SCAN_OK) status = library(trace_scan_finish, scan);
    trace_scan_array arrays[TRACE_SCAN_FIELDS + 2 * 3] = {};
    if (status == TRACE_SCAN_OK) status = library(trace_scan_take, scan, static_cast<trace_scan_array*>(arrays));
    for (const trace_scan_array& array : arrays) trace_scan_free(array.data, array.items * 32);
    trace_scan_close(scan);
    return status;
}

int snapshot(const Bytes& text) {
    trace_snapshot* snapshot = nullptr;
    const bool is_json = text.empty() || text[0] != 0x80;
    int status = library(trace_snapshot_open, is_json, &snapshot);
    if (status != TRACE_SCAN_OK) return status;
    std::int64_t root = -1;
    status = feed(snapshot, text, trace_snapshot_space, [&root](trace_snapshot* each, std::uint64_t bytes) {
        return root < 0 ? trace_snapshot_feed(each, bytes, &root) : TRACE_SCAN_OK;
    });
    // JSON ends where nothing more is fed.
    if (status == TRACE_SCAN_OK && root < 0) status = library(trace_snapshot_feed, snapshot, 0, &root);
    if (status == TRACE_SCAN_OK && root >= 0) status = take(snapshot, 26, trace_snapshot_take);
    trace_snapshot_close(snapshot);
    return status;
}

int tree(const Bytes& text) {
    const std::size_t count = text.size() / 3;
    std::vector<std::int64_t> start(count), length(count), own(count);
    std::vector<std::int32_t> track(count);
    std::vector<std::uint8_t> rank(count);
    for (std::size_t i = 0; i < count; ++i) start[i] = text[3 * i], length[i] = text[3 * i + 1], track[i] = text[3 * i + 2] & 3;
    const trace_tree_events events = {start.data(), length.data(), track.data(), rank.data(), nullptr, count, 4, 0};
    return library(trace_tree_own, &events, own.data());
}

}  // namespace

std::uint64_t fail_allocations(const char* target, const Bytes& text) {
    const std::string name = target;
    const auto run = name == "scan" ? scan : name == "snapshot" ? snapshot : tree;
    left = ~std::uint64_t{0};
    const int whole = run(text);
    std::uint64_t count = 0;
    for (const bool all : {false, true}) {
        lasting = all;
        for (count = 0;; ++count) {
            left = count;
            failed = false;
            const int status = run(text);
            if (!failed) break;
            fuzz::require(status == TRACE_SCAN_NO_MEMORY || status == whole, "without memory it says so, or does with less");
        }
    }
    fuzz::require(__lsan_do_recoverable_leak_check() == 0, "nothing is left behind");
    return count;
}
