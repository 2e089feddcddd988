// Columns that grow without being copied, once they are large: anonymous memory whose pages the kernel moves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

// Under the address sanitizer columns are malloc'ed, so that it sees who leaves them; clang and GCC tell it differently.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRACE_SCAN_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TRACE_SCAN_SANITIZED 1
#endif

#if defined(__linux__) && !defined(TRACE_SCAN_SANITIZED)
#define TRACE_SCAN_REMAP 1
#include <sys/mman.h>
#else
#define TRACE_SCAN_REMAP 0
#endif

namespace scan {

class Memory {
public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    Memory(Memory&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Memory& operator=(Memory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Memory() { resize(0); }

    void* data() const { return data_; }
    std::size_t size() const { return size_; }

    // False, and nothing changed, when there is no memory. Contents stay, as far as they fit.
    bool resize(std::size_t size);

    // The memory becomes the caller's, cut to a size; `freed` takes it back.
    void* detach(std::size_t size) {
        resize(size);
        size_ = 0;
        return std::exchange(data_, nullptr);
    }
    static void freed(void* data, std::size_t size) {
        Memory memory;
        memory.data_ = data;
        memory.size_ = size;
    }

    // Says that the bytes from `begin` to `end` will be written soon: one call costs less than a fault for each page.
    void prepare(std::size_t begin, std::size_t end);

private:
    // Less is malloc'ed: of many small recordings each is written where the one before was, into pages that are there.
    static constexpr std::size_t kMapped = std::size_t{1} << 20;

    bool reallocate(std::size_t size);

    void* data_ = nullptr;
    std::size_t size_ = 0;
};

inline bool Memory::reallocate(std::size_t size) {
    if (size == 0) {
        std::free(data_);
        data_ = nullptr;
    } else {
        void* moved = std::realloc(data_, size);
        if (moved == nullptr) return false;
        data_ = moved;
    }
    size_ = size;
    return true;
}

#if TRACE_SCAN_REMAP
inline bool Memory::resize(std::size_t size) {
    if (size == size_) return true;
    if (std::max(size, size_) < kMapped) return reallocate(size);
    if (size != 0 && size_ != 0 && std::min(size, size_) < kMapped) {
        Memory other;
        if (!other.resize(size)) return false;
        std::memcpy(other.data_, data_, std::min(size, size_));
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return true;
    }
    if (size == 0) {
        munmap(data_, size_);
        data_ = nullptr;
    } else {
        void* moved = data_ == nullptr ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                       : mremap(data_, size_, size, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED) return false;
        data_ = moved;
    }
    size_ = size;
    return true;
}

inline void Memory::prepare(std::size_t begin, std::size_t end) {
#if defined(MADV_POPULATE_WRITE)
    if (size_ < kMapped) return;
    constexpr std::size_t page = 4096;
    begin = begin / page * page;
    // Only advice: where the kernel does not know it, pages come one by one.
    madvise(static_cast<char*>(data_) + begin, end - begin, MADV_POPULATE_WRITE);
#else
    (void)begin, (void)end;
#endif
}
#else
inline bool Memory::resize(std::size_t size) { return reallocate(size); }
inline void Memory::prepare(std::size_t, std::size_t) {}
#endif

// A vector of plain values. Growing throws std::bad_alloc.
template <class T>
class Column {
public:
    std::size_t size() const { return size_; }
    T* data() { return static_cast<T*>(memory_.data()); }
    const T* data() const { return static_cast<const T*>(memory_.data()); }
    T& operator[](std::size_t i) { return data()[i]; }
    const T& operator[](std::size_t i) const { return data()[i]; }

    void push(T value) {
        if (size_ == capacity_) reserve(1);
        data()[size_++] = value;
    }

    // Room for `count` more values; returns where they go. `grown` tells that so many were written there.
    T* reserve(std::size_t count) {
        if (capacity_ - size_ < count) grow(count);
        return data() + size_;
    }
    void grown(std::size_t count) { size_ += count; }
    void drop(std::size_t count) { size_ -= count; }

    // The values become the caller's (see Memory), and the column empty.
    T* detach() {
        const std::size_t bytes = std::exchange(size_, 0) * sizeof(T);
        capacity_ = 0;
        return static_cast<T*>(memory_.detach(bytes));
    }

private:
    // Capacity grows by an eighth, so that little memory is touched in vain; the address range below it by doubling.
    void grow(std::size_t count) {
        const std::size_t least = (size_ + count) * sizeof(T);
        const std::size_t bytes = capacity_ * sizeof(T);
        const std::size_t wanted = std::max(least, (bytes + bytes / 8 + kChunk) / kChunk * kChunk);
        if (wanted > memory_.size() && !memory_.resize(std::max(wanted, 2 * memory_.size())) && !memory_.resize(wanted))
            throw std::bad_alloc();
        memory_.prepare(bytes, wanted);
        capacity_ = wanted / sizeof(T);
    }

    static constexpr std::size_t kChunk = std::size_t{1} << 16;

    Memory memory_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

// Moves the values of a column to the end of another, each as `changed` gives it.
template <class T, class Change>
void append(Column<T>& column, Column<T>& more, Change changed) {
    const std::size_t count = more.size();
    if (count == 0) return;
    std::transform(more.data(), more.data() + count, column.reserve(count), changed);
    column.grown(count);
    more = Column<T>();
}

template <class T>
void append(Column<T>& column, Column<T>& more) {
    append(column, more, [](T value) { return value; });
}

}  // namespace scan
