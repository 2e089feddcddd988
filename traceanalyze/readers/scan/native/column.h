// Columns that grow without being copied: anonymous memory whose pages the kernel moves.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
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
    Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
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

private:
    void* data_ = nullptr;
    std::size_t size_ = 0;
};

#if TRACE_SCAN_REMAP
inline bool Memory::resize(std::size_t size) {
    if (size == size_) return true;
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
#else
inline bool Memory::resize(std::size_t size) {
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

private:
    void grow(std::size_t count) {
        constexpr std::size_t first = (std::size_t{1} << 16) / sizeof(T);
        std::size_t capacity = capacity_ < first ? first : capacity_ * 2;
        if (capacity < size_ + count) capacity = size_ + count;
        if (!memory_.resize(capacity * sizeof(T))) throw std::bad_alloc();
        capacity_ = capacity;
    }

    Memory memory_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace scan
