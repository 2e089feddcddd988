// What every C interface does: no exception passes it, and columns become the caller's.
#pragma once

#include <new>

#include "column.h"
#include "dictionary.h"
#include "scan.h"

namespace scan {

template <class T>
trace_scan_array taken(const Column<T>& column, unsigned values_per_item = 1) {
    const std::size_t items = column.size() / values_per_item;
    // All columns are of a scan that may be changed.
    return {const_cast<Column<T>&>(column).detach(), items};
}

template <class Action>
int guarded(Action action) noexcept {
    try {
        return action();
    } catch (const std::bad_alloc&) {
        return TRACE_SCAN_NO_MEMORY;
    } catch (const scan::TooLarge&) {
        return TRACE_SCAN_TOO_LARGE;
    } catch (...) {
        return TRACE_SCAN_INTERNAL;
    }
}

}  // namespace scan
