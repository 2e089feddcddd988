// Longest paths over points in order of time: when each happens, if it waits for all that lead to it.
#include <algorithm>
#include <cstdint>

#include "scan.h"

int trace_longest_path(const trace_graph* graph, const std::int64_t* weight, std::int64_t* time) {
    for (std::uint64_t point = 0; point < graph->points; ++point) {
        std::int64_t latest = graph->earliest[point];
        for (std::int64_t edge = graph->bounds[point]; edge < graph->bounds[point + 1]; ++edge) {
            latest = std::max(latest, time[graph->source[edge]] + weight[edge]);
        }
        time[point] = latest;
    }
    return TRACE_SCAN_OK;
}
