// Points in order of time and their edges: by where they lead, and when each point happens if it waits for all of them;
// device events that are shorter, and what is then gone of the gaps before them.
#include <algorithm>
#include <cstdint>

#include "scan.h"

void trace_by_target(const trace_edges* given, std::uint64_t points, std::int64_t* bounds, std::int32_t* source,
                     std::int32_t* number, std::int64_t* weight) {
    // While edges get their numbers, the bound after that of a point is where its next edge goes.
    std::fill(bounds, bounds + points + 1, 0);
    for (std::uint64_t edge = 0; edge < given->size; ++edge) {
        if (given->target[edge] + 2 <= static_cast<std::int64_t>(points)) ++bounds[given->target[edge] + 2];
    }
    for (std::uint64_t point = 2; point <= points; ++point) bounds[point] += bounds[point - 1];
    for (std::uint64_t edge = 0; edge < given->size; ++edge) {
        number[edge] = static_cast<std::int32_t>(bounds[given->target[edge] + 1]++);
        source[number[edge]] = given->source[edge];
        weight[number[edge]] = given->weight[edge];
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

void trace_shorten(const trace_busy* busy, const std::int64_t* shorter, const std::int64_t* length,
                   std::int64_t* weight) {
    for (std::uint64_t row = 0; row < busy->size; ++row) {
        const std::int64_t event = busy->event[row];
        const std::int64_t gone = row < busy->follows ? shorter[event] : std::min(shorter[event], length[event]);
        std::int64_t& left = weight[busy->edge[row]];
        left = std::max<std::int64_t>(left - gone, 0);
    }
}

std::int64_t trace_gone(const trace_gaps* gaps, const std::int64_t* time, const std::int64_t* lasted, std::int64_t began,
                        std::int64_t* start, std::int64_t* end) {
    std::int64_t found = 0;
    std::int64_t event = 0;
    std::int64_t reach = began;
    for (std::uint64_t gap = 0; gap < gaps->size; ++gap) {
        for (; event < gaps->at[gap]; ++event) {
            reach = std::max(reach, time[gaps->point[event]] + lasted[gaps->event[event]]);
        }
        const std::int64_t idle = time[gaps->point[event]] - reach;
        const std::int64_t gone = std::min(gaps->length[gap] - idle, gaps->length[gap]);
        if (gone <= 0) continue;
        start[found] = gaps->end[gap] - gone;
        end[found++] = gaps->end[gap];
    }
    return found;
}
