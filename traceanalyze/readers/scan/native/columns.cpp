// Values of columns that only some rows have.
#include <cstdint>

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

}  // namespace

void trace_take_wide(const trace_sparse* column, const std::int64_t* rows, std::uint64_t count, std::int64_t missing,
                     std::int64_t* found) {
    take(column, rows, count, missing, found);
}

void trace_take_narrow(const trace_sparse* column, const std::int64_t* rows, std::uint64_t count, std::int32_t missing,
                       std::int32_t* found) {
    take(column, rows, count, missing, found);
}
