// Fuzzes one target, by its name. With libFuzzer (-DFUZZ_LIBFUZZER; the environment names it in FUZZ_TARGET), or alone:
// an input that reaches a branch, or reaches one more often, than any before is kept, and changed further.
//   fuzz TARGET SECONDS SEED FILE...   fuzz TARGET allocations FILE...
#include <algorithm>

#include "fuzz.h"

namespace {

using fuzz::Bytes;
using fuzz::Random;

constexpr const fuzz::Target* kTargets[] = {&fuzz::kScan, &fuzz::kSnapshot, &fuzz::kTree};
constexpr std::size_t kLargest = 20000;

const fuzz::Target* target(const char* name) {
    for (const fuzz::Target* each : kTargets)
        if (name != nullptr && std::strcmp(each->name, name) == 0) return each;
    std::fprintf(stderr, "no target\n");
    std::exit(2);
}

}  // namespace

#ifdef FUZZ_LIBFUZZER

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

std::size_t changed(const Bytes& one, const Bytes& other, std::uint8_t* out, std::size_t most, unsigned seed) {
    Random random(seed);
    Bytes text = one;
    target(std::getenv("FUZZ_TARGET"))->mutate(text, other, random);
    const std::size_t size = std::min(text.size(), most);
    std::copy_n(text.data(), size, out);
    return size;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::Target* const chosen = target(std::getenv("FUZZ_TARGET"));
    chosen->run(data, size);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    if (seed % 3 == 0) return LLVMFuzzerMutate(data, size, most);
    const Bytes text(data, data + size);
    return changed(text, text, data, most, seed);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b,
                                                 std::size_t b_size, std::uint8_t* out, std::size_t most, unsigned seed) {
    return changed(Bytes(a, a + a_size), Bytes(b, b + b_size), out, most, seed);
}

#else

#include <ctime>

#include <sys/time.h>
#include <unistd.h>

#include <csignal>

std::uint64_t fail_allocations(const char* target, const Bytes& text);

namespace {

std::uint8_t hits[1 << 16];  // how often the edges between basic blocks were passed, by their hash
std::uintptr_t last;

// The bit of a count: what matters is its magnitude.
std::uint8_t magnitude(std::uint8_t count) {
    return count == 0 ? 0 : static_cast<std::uint8_t>(1u << (count < 4 ? count - 1 : count < 8 ? 3 : count < 16 ? 4 : count < 32 ? 5 : count < 128 ? 6 : 7));
}

std::uint8_t seen[sizeof hits];
std::size_t edges;

bool anything_new() {
    bool found = false;
    for (std::size_t i = 0; i < sizeof hits; ++i) {
        const std::uint8_t bit = magnitude(hits[i]);
        if ((bit & ~seen[i]) == 0) continue;
        edges += seen[i] == 0;
        seen[i] |= bit;
        found = true;
    }
    return found;
}

Bytes current;
const char* target_name;

// Keeps the input that brought the program down.
void save_current() {
    char path[64];
    std::snprintf(path, sizeof path, "%s.crash", target_name);
    if (std::FILE* file = std::fopen(path, "wb")) {
        if (!current.empty()) std::fwrite(current.data(), 1, current.size(), file);
        std::fclose(file);
    }
}

void take_too_long(int) {
    save_current();
    std::fprintf(stderr, "%s: an input takes more than 20 s of CPU time\n", target_name);
    _exit(1);
}

bool run(const fuzz::Target& target, const Bytes& text) {
    current = text;
    std::memset(hits, 0, sizeof hits);
    last = 0;
    // CPU time, for a machine may be busy.
    const itimerval longest = {{0, 0}, {20, 0}};
    setitimer(ITIMER_PROF, &longest, nullptr);
    target.run(current.data(), current.size());
    return anything_new();
}

Bytes read_file(const char* path) {
    Bytes bytes(kLargest);
    std::FILE* file = std::fopen(path, "rb");
    fuzz::require(file != nullptr, path);
    bytes.resize(std::fread(bytes.data(), 1, kLargest, file));
    std::fclose(file);
    return bytes;
}

}  // namespace

// GCC and clang call it at the begin of every basic block of the library, which alone is compiled so.
extern "C" void __sanitizer_cov_trace_pc(void) {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    const std::uintptr_t edge = (here ^ last) * 0x9E3779B97F4A7C15u >> 48;
    if (hits[edge] != 255) ++hits[edge];
    last = here >> 1;
}

extern "C" void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    target_name = argv[1];
    const fuzz::Target& chosen = *target(target_name);
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_current);
    std::signal(SIGPROF, take_too_long);
    if (std::strcmp(argv[2], "allocations") == 0) {
        std::uint64_t count = 0;
        for (int i = 3; i < argc; ++i) count += fail_allocations(chosen.name, current = read_file(argv[i]));
        std::printf("%s: %llu allocations of %d inputs failed cleanly\n", target_name, static_cast<unsigned long long>(count), argc - 3);
        return 0;
    }
    const std::time_t end = std::time(nullptr) + std::atol(argv[2]);
    Random random(std::strtoull(argv[3], nullptr, 10));
    std::vector<Bytes> corpus;
    for (int i = 4; i < argc; ++i) {
        corpus.push_back(read_file(argv[i]));
        run(chosen, corpus.back());
    }
    std::uint64_t runs = 0;
    for (; std::time(nullptr) < end; ++runs) {
        // Every other time one of the newest: what was found last has been changed least.
        const std::size_t some = random.below(2) == 0 ? corpus.size() : std::min<std::size_t>(corpus.size(), 40);
        Bytes text = corpus[corpus.size() - 1 - random.below(some)];
        chosen.mutate(text, corpus[random.below(corpus.size())], random);
        if (text.size() > kLargest) text.resize(kLargest);
        if (run(chosen, text)) corpus.push_back(text);
    }
    std::printf("%s: %llu inputs of seed %s in %s s, %zu edges, %zu inputs kept\n", target_name,
                static_cast<unsigned long long>(runs), argv[3], argv[2], edges, corpus.size());
    return 0;
}

#endif
