// The C interface: no exception passes it.
#include "scan.h"

#include <memory>

#include "boundary.h"
#include "document.h"

namespace {

using scan::guarded;
using scan::taken;

// A block of text at most this large keeps offsets into the buffer within 32 bits.
constexpr std::uint64_t kMaxBlock = std::uint64_t{1} << 30;

}  // namespace

struct trace_scan {
    enum class Stage : std::uint8_t { reading, finished, broken };

    scan::Schema schema;
    std::unique_ptr<scan::Rows> rows;
    std::unique_ptr<scan::Document> document;  // its header outlives the scanning
    Stage stage = Stage::reading;

    template <class Action>
    int advance(Action action) noexcept {
        if (stage != Stage::reading) return TRACE_SCAN_INTERNAL;
        const int status = guarded(action);
        if (status != TRACE_SCAN_OK) stage = Stage::broken;
        return status;
    }
};

namespace {

trace_scan_array array(const trace_scan& scan, std::uint32_t id) {
    const scan::Rows& rows = *scan.rows;
    switch (id) {
        case TRACE_SCAN_STRING_BLOB: return taken(rows.strings.blob());
        case TRACE_SCAN_STRING_OFFSETS: return taken(rows.strings.offsets());
        case TRACE_SCAN_TRACKS: return taken(rows.tracks.pairs(), 2 * sizeof(std::int32_t));
        case TRACE_SCAN_EVENT_TS: return taken(rows.completes.ts);
        case TRACE_SCAN_EVENT_DUR: return taken(rows.completes.dur);
        case TRACE_SCAN_EVENT_NAME: return taken(rows.completes.name);
        case TRACE_SCAN_EVENT_CAT: return taken(rows.completes.cat);
        case TRACE_SCAN_EVENT_TRACK: return taken(rows.completes.track);
        case TRACE_SCAN_INSTANT_TS: return taken(rows.instants.ts);
        case TRACE_SCAN_INSTANT_NAME: return taken(rows.instants.name);
        case TRACE_SCAN_INSTANT_CAT: return taken(rows.instants.cat);
        case TRACE_SCAN_INSTANT_TRACK: return taken(rows.instants.track);
        case TRACE_SCAN_FLOW_TS: return taken(rows.flows.ts);
        case TRACE_SCAN_FLOW_TRACK: return taken(rows.flows.track);
        case TRACE_SCAN_FLOW_CAT: return taken(rows.flows.cat);
        case TRACE_SCAN_FLOW_ID: return taken(rows.flows.id);
        case TRACE_SCAN_FLOW_PHASE: return taken(rows.flows.phase);
        case TRACE_SCAN_METADATA: return taken(rows.metadata.codes, 3);
        case TRACE_SCAN_METADATA_BLOB: return taken(rows.metadata.blob);
        case TRACE_SCAN_METADATA_ENDS: return taken(rows.metadata.ends);
        case TRACE_SCAN_HEADER_BLOB: return taken(scan.document->header().blob);
        case TRACE_SCAN_HEADER_ENDS: return taken(scan.document->header().ends);
        case TRACE_SCAN_PHASE_BLOB: return taken(rows.phases.blob());
        case TRACE_SCAN_PHASE_ENDS: return taken(rows.phases.ends());
        case TRACE_SCAN_PHASE_COUNTS: return taken(rows.phases.counts());
        default: return {nullptr, 0};
    }
}

// Bytes that analysing them took at most, by kinds of events and of names (`python -m tests.bombs`): of each event with its
// place in call trees, of each argument, of each distinct text with its row in reports, and of the text of JSON as objects;
// a thread stands for the time that it takes, 0.2 ms.
constexpr std::uint64_t kEvent = 260, kArgument = 16, kText = 2400, kByte = 2, kByteOfJson = 40, kThread = 6000;

std::uint64_t needs(const trace_scan& scan) {
    const scan::Rows& rows = *scan.rows;
    std::uint64_t values = 0;
    for (const auto* fields : {&rows.completes.fields, &rows.instants.fields})
        for (const scan::Field& field : fields->all()) values += field.row.size();
    const std::uint64_t events =
        rows.completes.ts.size() + rows.instants.ts.size() + rows.flows.ts.size() + rows.metadata.ends.size();
    const std::uint64_t json = rows.metadata.blob.size() + scan.document->header().blob.size();
    const std::uint64_t threads = rows.tracks.pairs().size() / (2 * sizeof(std::int32_t));
    const std::uint64_t texts = rows.strings.offsets().size() * kText + rows.strings.blob().size() * kByte;
    return events * kEvent + threads * kThread + values * kArgument + texts + json * kByteOfJson;
}

}  // namespace

extern "C" {

uint32_t trace_scan_abi_version(void) { return TRACE_SCAN_ABI_VERSION; }

int trace_scan_open(const trace_scan_options* options, trace_scan** scan) {
    return guarded([&]() -> int {
        auto opened = std::make_unique<trace_scan>();
        if (!opened->schema.build(*options)) return TRACE_SCAN_BAD_OPTIONS;
        opened->rows = std::make_unique<scan::Rows>(opened->schema);
        opened->document = std::make_unique<scan::Document>(opened->schema, *opened->rows, *options);
        *scan = opened.release();
        return TRACE_SCAN_OK;
    });
}

int trace_scan_feed(trace_scan* scan, uint64_t bytes, uint64_t room, trace_scan_next* next) {
    return scan->advance([&]() -> int {
        auto& buffer = scan->document->buffer();
        if (room > kMaxBlock) return TRACE_SCAN_NO_MEMORY;
        if (bytes != 0) {
            if (!buffer.has_space(bytes)) return TRACE_SCAN_INTERNAL;
            scan->document->feed(bytes);
        }
        *next = {buffer.space(room), needs(*scan)};
        return TRACE_SCAN_OK;
    });
}

int trace_scan_join(trace_scan* scan, trace_scan* next, uint32_t* joined) {
    return scan->advance([&]() -> int {
        if (next->stage != trace_scan::Stage::reading) return TRACE_SCAN_INTERNAL;
        *joined = scan->document->leads_to(*next->document) && scan->rows->movable(*next->rows);
        if (*joined == 0) return TRACE_SCAN_OK;
        next->stage = trace_scan::Stage::broken;
        scan->rows->take(*next->rows);
        scan->document->go_on(*next->document);
        return TRACE_SCAN_OK;
    });
}

int trace_scan_finish(trace_scan* scan) {
    return scan->advance([&]() -> int {
        scan->document->finish();
        scan->rows->freeze();
        scan->stage = trace_scan::Stage::finished;
        return TRACE_SCAN_OK;
    });
}

int trace_scan_summarize(const trace_scan* scan, trace_scan_summary* summary) {
    if (scan->stage != trace_scan::Stage::finished) return TRACE_SCAN_INTERNAL;
    const scan::Counts& counts = scan->rows->counts;
    *summary = scan->document->summary();
    summary->no_phase = counts.no_phase;
    summary->no_ts = counts.no_ts;
    summary->bad_ts = counts.bad_ts;
    summary->no_dur = counts.no_dur;
    summary->bad_dur = counts.bad_dur;
    summary->negative_dur = counts.negative_dur;
    summary->no_pid = counts.no_pid;
    summary->bad_value = counts.bad_value;
    summary->fractional = counts.fractional;
    return TRACE_SCAN_OK;
}

int trace_scan_take(trace_scan* scan, trace_scan_array* arrays) {
    if (scan->stage != trace_scan::Stage::finished) return TRACE_SCAN_INTERNAL;
    for (std::uint32_t id = 0; id < TRACE_SCAN_FIELDS; ++id) *arrays++ = array(*scan, id);
    for (const auto* fields : {&scan->rows->completes.fields, &scan->rows->instants.fields}) {
        for (const scan::Field& field : fields->all()) {
            *arrays++ = taken(field.row);
            *arrays++ = field.kind == TRACE_SCAN_TEXT ? taken(field.codes) : taken(field.wide);
        }
    }
    return TRACE_SCAN_OK;
}

void trace_scan_free(void* data, uint64_t bytes) { scan::Memory::freed(data, bytes); }

void trace_scan_close(trace_scan* scan) { delete scan; }

}  // extern "C"
