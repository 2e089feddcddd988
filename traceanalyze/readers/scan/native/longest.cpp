// Longest paths over points in order of time: when each happens, if it waits for all that lead to it; and work taken
// out of what leads to them.
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

int trace_take_out(const trace_work* work, const trace_stretches* removed, std::int64_t line, std::int64_t* before,
                   std::int64_t* weight) {
    std::int64_t passed = 0;
    std::uint64_t next = 0;
    for (std::uint64_t moment = 0; moment < work->moment_count; ++moment) {
        const std::int64_t time = work->moments[moment];
        for (; next < removed->size && removed->end[next] <= time; ++next) {
            passed += removed->end[next] - removed->start[next];
        }
        before[moment] = passed;
        if (next < removed->size && removed->start[next] < time) before[moment] += time - removed->start[next];
    }
    for (std::uint64_t row = 0; row < work->size; ++row) {
        if (work->line[row] != line) continue;
        const std::int64_t gone = before[work->end[row]] - before[work->begin[row]];
        if (gone <= 0) continue;
        std::int64_t& left = weight[work->edge[row]];
        left = std::max(left - gone, std::min(work->least[row], left));
    }
    return TRACE_SCAN_OK;
}
