// Values of columns that only some rows have, codes that a column has, and rows that have a value.
#include <cstdint>

#include "bytes.h"
#include "scan.h"
#include "search.h"

namespace {

template <class T>
void take(const trace_sparse* column, const std::int64_t* rows, std::uint64_t count, T missing, T* found) {
    const T* values = static_cast<const T*>(column->values);
    std::uint64_t near = 0;
    for (std::uint64_t at = 0; at < count; ++at) {
        found[at] = missing;
        if (rows[at] < 0) continue;
        const auto row = static_cast<std::uint32_t>(rows[at]);
        near = scan::passed(column->rows, column->size, near, row);
        if (near > 0 && column->rows[near - 1] == row) found[at] = values[near - 1];
    }
}

template <class T>
int mark(const T* codes, std::uint64_t count, std::uint8_t* marked, std::uint64_t size) {
    for (std::uint64_t at = 0; at < count; ++at) {
        // What is below 0 is above all others.
        const auto code = static_cast<std::uint64_t>(static_cast<std::int64_t>(codes[at]));
        if (code >= size) return TRACE_SCAN_INTERNAL;
        marked[code] = 1;
    }
    return TRACE_SCAN_OK;
}

}  // namespace

int trace_mark(const void* codes, std::uint32_t bytes, std::uint64_t count, std::uint8_t* marked, std::uint64_t size) {
    if (bytes == sizeof(std::int64_t)) return mark(static_cast<const std::int64_t*>(codes), count, marked, size);
    return mark(static_cast<const std::int32_t*>(codes), count, marked, size);
}

std::int64_t trace_rows_of(const std::uint8_t* values, std::uint64_t count, std::uint8_t first, std::uint8_t last,
                           std::int64_t* rows) {
    std::int64_t* next = rows;
    std::uint64_t at = 0;
    for (; at + scan::Block::kSize <= count; at += scan::Block::kSize) {
        const auto wanted = [=](scan::Vector v) { return scan::in_range(v, first, last - first + 1); };
        scan::Bits found = scan::Block(values + at).where(wanted);
        for (; found != 0; found &= found - 1) *next++ = static_cast<std::int64_t>(at + scan::lowest(found));
    }
    for (; at < count; ++at)
        if (values[at] >= first && values[at] <= last) *next++ = static_cast<std::int64_t>(at);
    return next - rows;
}

void trace_take_wide(const trace_sparse* column, const std::int64_t* rows, std::uint64_t count, std::int64_t missing,
                     std::int64_t* found) {
    take(column, rows, count, missing, found);
}

void trace_take_narrow(const trace_sparse* column, const std::int64_t* rows, std::uint64_t count, std::int32_t missing,
                       std::int32_t* found) {
    take(column, rows, count, missing, found);
}
