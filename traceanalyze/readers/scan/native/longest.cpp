// Points in order of time and their edges: by where they lead, and when each point happens if it waits for all of them.
#include <algorithm>
#include <cstdint>

#include "scan.h"

void trace_by_target(const std::int32_t* target, std::uint64_t edges, std::int64_t* bounds, std::uint64_t points,
                     std::int32_t* number) {
    // While edges get their numbers, the bound after that of a point is where its next edge goes.
    std::fill(bounds, bounds + points + 1, 0);
    for (std::uint64_t edge = 0; edge < edges; ++edge) {
        if (target[edge] + 2 <= static_cast<std::int64_t>(points)) ++bounds[target[edge] + 2];
    }
    for (std::uint64_t point = 2; point <= points; ++point) bounds[point] += bounds[point - 1];
    for (std::uint64_t edge = 0; edge < edges; ++edge) {
        number[edge] = static_cast<std::int32_t>(bounds[target[edge] + 1]++);
    }
}

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
