/* C interface of the native library: the event scanner (text of a Chrome trace in, columns out), call trees,
 * intervals, what a replay needs (longest paths and time taken out), and allocator snapshots.
 *
 *   trace_scan *s = NULL;
 *   trace_scan_open(&options, &s);
 *   trace_scan_feed(s, 0, 1 << 18, &next);
 *   while ((n = read(fd, next.space, 1 << 18)) > 0) trace_scan_feed(s, n, 1 << 18, &next);
 *   trace_scan_finish(s);
 *   trace_scan_summarize(s, &summary);  trace_scan_take(s, arrays);  ...
 *   trace_scan_close(s);                 // frees the columns not taken
 *
 * One thread at a time may use a scan; different scans are independent. No function throws or aborts: after a status
 * other than TRACE_SCAN_OK the scan is only good for trace_scan_close.
 */
#ifndef TRACE_SCAN_H
#define TRACE_SCAN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TRACE_SCAN_API __attribute__((visibility("default")))
#else
#define TRACE_SCAN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever a function, structure or code below does: the caller compares it before anything else. */
#define TRACE_SCAN_ABI_VERSION 14

typedef struct trace_scan trace_scan;

enum trace_scan_status {
    TRACE_SCAN_OK = 0,
    TRACE_SCAN_NO_MEMORY = 1,
    TRACE_SCAN_TOO_LARGE = 2, /* more rows or strings than the columns can number */
    TRACE_SCAN_BAD_OPTIONS = 3,
    TRACE_SCAN_INTERNAL = 4,
    TRACE_SNAPSHOT_UNUSUAL = 5 /* Python has to do it, which takes longer */
};

enum trace_scan_kind { TRACE_SCAN_INT = 0, TRACE_SCAN_REAL = 1, TRACE_SCAN_TEXT = 2 };

enum trace_scan_list { TRACE_SCAN_EVENTS = 0, TRACE_SCAN_INSTANTS = 1 };

enum trace_scan_root { TRACE_SCAN_ROOT_NONE = 0, TRACE_SCAN_ROOT_OBJECT = 1, TRACE_SCAN_ROOT_LIST = 2 };

/* One key that a field of events or instants goes by; of several the first that an event has counts. */
typedef struct {
    const uint8_t *key;
    uint64_t key_size;
    uint32_t list;  /* trace_scan_list */
    uint32_t field; /* number of the field in its list */
    uint32_t kind;  /* trace_scan_kind; equal for all keys of a field */
} trace_scan_key;

typedef struct {
    const trace_scan_key *keys;
    uint64_t key_count;
    uint32_t event_fields;
    uint32_t instant_fields;
    uint64_t max_value_bytes;
    uint32_t learn; /* 0: derive every step from the grammar (for tests; the result is the same, slower) */
    uint32_t root;  /* trace_scan_root, of a text that begins inside the event list of one, before an event; else NONE */
    uint64_t begin; /* how many bytes of the document are before such a text */
} trace_scan_options;

enum trace_scan_array_id {
    TRACE_SCAN_STRING_BLOB = 0,    /* uint8 */
    TRACE_SCAN_STRING_OFFSETS = 1, /* int64, one more than there are strings */
    TRACE_SCAN_TRACKS = 2,         /* int32 pairs: codes of pid and tid */
    TRACE_SCAN_EVENT_TS = 3,       /* int64 */
    TRACE_SCAN_EVENT_DUR = 4,      /* int64 */
    TRACE_SCAN_EVENT_NAME = 5,     /* int32 */
    TRACE_SCAN_EVENT_CAT = 6,      /* int32 */
    TRACE_SCAN_EVENT_TRACK = 7,    /* int32 */
    TRACE_SCAN_INSTANT_TS = 8,
    TRACE_SCAN_INSTANT_NAME = 9,
    TRACE_SCAN_INSTANT_CAT = 10,
    TRACE_SCAN_INSTANT_TRACK = 11,
    TRACE_SCAN_FLOW_TS = 12,
    TRACE_SCAN_FLOW_TRACK = 13,
    TRACE_SCAN_FLOW_CAT = 14,
    TRACE_SCAN_FLOW_ID = 15,       /* int64 */
    TRACE_SCAN_FLOW_PHASE = 16,    /* uint8 */
    TRACE_SCAN_METADATA = 17,      /* int32 triples: codes of name, pid and tid */
    TRACE_SCAN_METADATA_BLOB = 18, /* uint8: the args texts one after another */
    TRACE_SCAN_METADATA_ENDS = 19, /* int64: where each ends */
    TRACE_SCAN_HEADER_BLOB = 20,   /* uint8: key, value, key, value ... */
    TRACE_SCAN_HEADER_ENDS = 21,   /* int64: where each ends */
    TRACE_SCAN_PHASE_BLOB = 22,    /* uint8: the distinct phase texts */
    TRACE_SCAN_PHASE_ENDS = 23,    /* int64 */
    TRACE_SCAN_PHASE_COUNTS = 24,  /* int64 */
    /* From here on two of each field, of those of events, then of instants: */
    TRACE_SCAN_FIELDS = 25         /* uint32, its rows; int64, double or int32 by kind, its values */
};

/* In place of the duration of events that were written as two: this one begins, or ends, one. */
#define TRACE_SCAN_BEGIN (-1)
#define TRACE_SCAN_END (-2)

typedef struct {
    void *data; /* NULL of no items */
    uint64_t items;
} trace_scan_array;

typedef struct {
    uint64_t malformed;
    uint64_t skipped_bytes;
    uint64_t trailing_bytes;
    uint64_t not_object;
    uint64_t no_phase;
    uint64_t no_ts;
    uint64_t bad_ts;
    uint64_t no_dur;
    uint64_t bad_dur;
    uint64_t negative_dur;
    uint64_t no_pid;
    uint64_t bad_value;
    uint64_t size;
    int64_t fault; /* -1: none */
    uint32_t root; /* trace_scan_root */
    uint32_t truncated;
    uint32_t fractional;
} trace_scan_summary;

TRACE_SCAN_API uint32_t trace_scan_abi_version(void);

TRACE_SCAN_API int trace_scan_open(const trace_scan_options *options, trace_scan **scan);

typedef struct {
    uint8_t *space; /* where the next bytes of text go, until the next call */
    uint64_t needs; /* bytes of memory that it may take to analyse what was found so far */
} trace_scan_next;

/* Scans the `bytes` bytes just written to the space of the call before, none in the first call, and gives space for `room`
 * more. */
TRACE_SCAN_API int trace_scan_feed(trace_scan *scan, uint64_t bytes, uint64_t room, trace_scan_next *next);

/* Takes over all that `next` has found, which may only be closed then, and goes on where it is: as if this scan had read
 * its text, too. Only where this one, between two events, has come to where the text of `next` began; else `joined` is 0
 * and both are as they were. */
TRACE_SCAN_API int trace_scan_join(trace_scan *scan, trace_scan *next, uint32_t *joined);

/* The text is complete: scans what is left and frees everything but the result. */
TRACE_SCAN_API int trace_scan_finish(trace_scan *scan);

TRACE_SCAN_API int trace_scan_summarize(const trace_scan *scan, trace_scan_summary *summary);

/* The arrays of a finished scan, TRACE_SCAN_FIELDS of them and those of its fields: the caller's from now on, and no more
 * there for another call. */
TRACE_SCAN_API int trace_scan_take(trace_scan *scan, trace_scan_array *arrays);

/* Frees an array that was taken; of no items there is none. */
TRACE_SCAN_API void trace_scan_free(void *data, uint64_t bytes);

TRACE_SCAN_API void trace_scan_close(trace_scan *scan);

/* Events of any threads; `track` numbers the threads from 0 to below `tracks`. */
typedef struct {
    const int64_t *start;
    const int64_t *length;
    const int32_t *track;
    const uint8_t *rank; /* of events with equal bounds the lower one is the outer; if equal too, the earlier one */
    const int32_t *rows; /* those to nest; null: all, in their order */
    uint64_t size;       /* so many are to be nested */
    uint64_t tracks;
    int64_t tick; /* by how much an event may outlast its parent and still be its child */
} trace_tree_events;

/* Their call trees, one thread after another, parents before children: a subtree is the rows [i, stop[i]).
 * The caller gives arrays of `size` items. */
typedef struct {
    int32_t *order;  /* the row of the event at each place */
    int32_t *parent; /* place of its parent, -1: none */
    int32_t *stop;   /* place after its last descendant */
    int64_t *start;
    int64_t *end;    /* cut so that children lie inside their parents and siblings beside each other */
    int64_t *own;    /* time in none of its children */
    int64_t *bounds; /* the places of each thread; there are tracks + 1 */
    uint64_t broken; /* events cut short because a later one outlasts them by more than a tick */
} trace_tree;

TRACE_SCAN_API int trace_tree_build(const trace_tree_events *events, trace_tree *tree);

/* Only the time of each event in none of its children, by its row. Events whose rank is TRACE_TREE_NONE are in no tree,
 * and theirs stays as it is. */
#define TRACE_TREE_NONE 255
TRACE_SCAN_API int trace_tree_own(const trace_tree_events *events, int64_t *own);

/* Which events of a tree are not inside an event of the same key; keys are numbers from 0 to below `keys`. */
TRACE_SCAN_API int trace_tree_outermost(const int32_t *stop, const int32_t *key, uint64_t size, uint64_t keys,
                                        uint8_t *outer);

/* How many of some events of a tree (places, -1 for none) each event is or contains; `before` has room for size + 1. */
TRACE_SCAN_API void trace_tree_inside(const int32_t *stop, uint64_t size, const int32_t *some, uint64_t number,
                                      int32_t *before, int32_t *inside);

/* Place of the innermost event of a thread each that runs at an instant, -1: none, as of threads that are none; -2: it
 * is not among so many around the last that began. */
TRACE_SCAN_API void trace_tree_innermost(const trace_tree *tree, uint64_t tracks, const int32_t *track,
                                         const int64_t *instants, uint64_t count, uint64_t around, int64_t *places);

/* Points in order of time. The edges that lead to point i are [bounds[i], bounds[i + 1]), each from an earlier point;
 * there are points + 1 bounds. */
typedef struct {
    const int64_t *bounds;
    const int32_t *source;
    const int64_t *earliest; /* no point happens before */
    uint64_t points;
} trace_graph;

/* Edges in any order. */
typedef struct {
    const int32_t *source;
    const int32_t *target;
    const int64_t *weight;
    uint64_t size;
} trace_edges;

/* The bounds of points (room for points + 1), sources and weights in order of the points that their edges lead to, and
 * the number of each edge in it; of those of one point in the order given. */
TRACE_SCAN_API void trace_by_target(const trace_edges *given, uint64_t points, int64_t *bounds, int32_t *source,
                                    int32_t *number, int64_t *weight);

/* When each point happens: not before its earliest time, nor before any of its edges allows, which is the time of the
 * edge's source and its weight later. */
TRACE_SCAN_API int trace_longest_path(const trace_graph *graph, const int64_t *weight, int64_t *time);

/* Edges with the duration of a device event in their weight; those from `follows` on lead to the host, which waits for no
 * more than the event. */
typedef struct {
    const int64_t *edge;
    const int64_t *event;
    uint64_t size;
    uint64_t follows;
} trace_busy;

/* Weights where each device event is over so much sooner; none below 0. */
TRACE_SCAN_API void trace_shorten(const trace_busy *busy, const int64_t *shorter, const int64_t *length, int64_t *weight);

/* Gaps of a device in their order: the row of its event that ends each, when, and for how long the device is idle. */
typedef struct {
    const int64_t *event; /* of the device, by start */
    const int64_t *point; /* at which each begins */
    const int64_t *at;
    const int64_t *end;
    const int64_t *length;
    uint64_t size;
} trace_gaps;

/* What is gone of the gaps, their ends, where points are at other times and events last otherwise; how many there are. */
TRACE_SCAN_API int64_t trace_gone(const trace_gaps *gaps, const int64_t *time, const int64_t *lasted, int64_t began,
                                  int64_t *start, int64_t *end);

/* Stretches of time in their order, none of which touches another. */
typedef struct {
    const int64_t *start;
    const int64_t *end;
    uint64_t size;
} trace_stretches;

/* Pieces that two lists of stretches have in common, and the row of each list that each lies in. */
typedef struct {
    int64_t *start;
    int64_t *end;
    int64_t *first;
    int64_t *second;
} trace_pieces;

/* How many pieces there are; writes as many as there is room for. Only b must be in order. */
TRACE_SCAN_API int64_t trace_overlaps(const trace_stretches *a, const trace_stretches *b, trace_pieces *pieces,
                                      int64_t room);

/* Joins stretches, of which none, some or all touch, to as many; -1 where they are not in order of their starts. */
TRACE_SCAN_API int64_t trace_join(const trace_stretches *given, int64_t *start, int64_t *end);

/* The same of some rows of events. */
TRACE_SCAN_API int64_t trace_active(const int64_t *begin, const int64_t *length, const int32_t *rows, uint64_t count,
                                    int64_t *start, int64_t *end);

/* What is in one of two sets, in both, and in a but not in b: how many stretches; there is room for all of both. */
TRACE_SCAN_API int64_t trace_union(const trace_stretches *a, const trace_stretches *b, int64_t *start, int64_t *end);
TRACE_SCAN_API int64_t trace_intersect(const trace_stretches *a, const trace_stretches *b, int64_t *start,
                                       int64_t *end);
TRACE_SCAN_API int64_t trace_subtract(const trace_stretches *a, const trace_stretches *b, int64_t *start, int64_t *end);

/* Those of a, which may touch, and in the time between them those of b, with the label of each: how many; there is room
 * for all of b and twice all of a. */
TRACE_SCAN_API int64_t trace_beside(const trace_stretches *a, const uint8_t *of_a, const trace_stretches *b,
                                    const uint8_t *of_b, int64_t *start, int64_t *end, uint8_t *of);

/* Work of a host, each on one edge of a graph. */
typedef struct {
    const int32_t *edge;
    const int64_t *start;
    const int64_t *end;
    const int64_t *least; /* what is left of the weight without the work */
    const int32_t *line;  /* which threads do it */
    uint64_t size;
} trace_work;

/* Weights without the work that one line does in a set. The caller gives room for one number a member, and one more. */
TRACE_SCAN_API int trace_take_out(const trace_work *work, const trace_stretches *removed, int64_t line,
                                  int64_t *before, int64_t *weight);

/* How much of each window lies inside a set. The caller gives room for one number a member, and one more. */
TRACE_SCAN_API void trace_coverage(const trace_stretches *set, const trace_stretches *windows, int64_t *before,
                                   int64_t *covered);

/* A column that only some rows have: rows ascend; values are of eight bytes or of four. */
typedef struct {
    const uint32_t *rows;
    const void *values;
    uint64_t size;
} trace_sparse;

/* Its values at some rows (any order, faster where nearly in order), `missing` where there is none. */
TRACE_SCAN_API void trace_take_wide(const trace_sparse *column, const int64_t *rows, uint64_t count, int64_t missing,
                                    int64_t *found);
TRACE_SCAN_API void trace_take_narrow(const trace_sparse *column, const int64_t *rows, uint64_t count, int32_t missing,
                                      int32_t *found);

/* Marks the codes, numbers of four or eight `bytes`, that a column has in a table; not OK if one is outside of it. */
TRACE_SCAN_API int trace_mark(const void *codes, uint32_t bytes, uint64_t count, uint8_t *marked, uint64_t size);

/* Rows, ascending, in which a column has a number from `first` to `last`, not all that there are: how many; there is room
 * for all rows. */
TRACE_SCAN_API int64_t trace_rows_of(const uint8_t *values, uint64_t count, uint8_t first, uint8_t last, int64_t *rows);

/* How many of some moments (ascending) are not after each instant. */
TRACE_SCAN_API void trace_passed(const int64_t *moments, uint64_t size, const int64_t *instants, uint64_t count,
                                 int64_t *passed);

/* An allocator snapshot, read from its pickle or JSON like a scan from its text: events and distinct stacks as columns, the
 * rest as it was written. snapshot.h tells what the arrays hold. */
typedef struct trace_snapshot trace_snapshot;

enum trace_snapshot_array_id {
    /* Distinct sequences: uint8 one after another; int64, where each begins, and the end. */
    TRACE_SNAPSHOT_TEXTS = 0,
    TRACE_SNAPSHOT_FRAMES = 2,
    TRACE_SNAPSHOT_STACKS = 4,
    TRACE_SNAPSHOT_POOLS = 6,
    TRACE_SNAPSHOT_TOLD = 8,
    TRACE_SNAPSHOT_OBJECTS = 10,   /* uint64 */
    TRACE_SNAPSHOT_CHUNKS = 11,    /* int64 triples */
    TRACE_SNAPSHOT_TAGS = 12,      /* uint8 */
    TRACE_SNAPSHOT_PAYLOADS = 13,  /* int64 */
    /* Of events */
    TRACE_SNAPSHOT_ACTION = 14,    /* int32 */
    TRACE_SNAPSHOT_ADDRESS = 15,   /* int64 */
    TRACE_SNAPSHOT_SIZE = 16,      /* int64 */
    TRACE_SNAPSHOT_STREAM = 17,    /* int64 */
    TRACE_SNAPSHOT_TIME = 18,      /* int64, µs */
    TRACE_SNAPSHOT_FRAMES_OF = 19, /* int32 */
    TRACE_SNAPSHOT_TOLD_OF = 20,   /* int32 */
    TRACE_SNAPSHOT_POOL_OF = 21,   /* int32 */
    TRACE_SNAPSHOT_HAS = 22,       /* uint8 */
    TRACE_SNAPSHOT_STACK_OF = 23,  /* int32 */
    TRACE_SNAPSHOT_FREE_ROW = 24,  /* int64, of those that tell what the device had left */
    TRACE_SNAPSHOT_FREE_BYTES = 25 /* int64 */
};

TRACE_SCAN_API int trace_snapshot_open(uint32_t is_json, trace_snapshot **snapshot);

/* As of a scan. */
TRACE_SCAN_API uint8_t *trace_snapshot_space(trace_snapshot *snapshot, uint64_t bytes);

/* Reads the `bytes` bytes just written to trace_snapshot_space, none at the end of the file. `root` is the number of the
 * object that the file is, -1 as long as it goes on; JSON does so to the end. */
TRACE_SCAN_API int trace_snapshot_feed(trace_snapshot *snapshot, uint64_t bytes, int64_t *root);

/* An array of a file that was read to its end, as of a scan; trace_scan_free frees it. */
TRACE_SCAN_API int trace_snapshot_take(trace_snapshot *snapshot, uint32_t array_id, trace_scan_array *array);

TRACE_SCAN_API void trace_snapshot_close(trace_snapshot *snapshot);

/* How an allocator rounds requests and splits blocks: `Rules` in caching.py tells what the members mean. */
typedef struct {
    int64_t pad;
    int64_t max_split; /* -1: none */
    int64_t oversize;
    double collect;
    const int64_t *divisions;
    uint64_t division_count;
    uint32_t expandable;
    uint32_t aligned; /* as on NPUs */
} trace_rules;

/* Events of an allocator; codes of actions are those of `Action` in model/snapshot.py. */
typedef struct {
    const uint8_t *action;
    const int64_t *address;
    const int64_t *size;
    const int32_t *call;
    uint64_t events;
} trace_history;

#define TRACE_ALLOC 0
#define TRACE_SEGMENT_ALLOC 3
#define TRACE_SEGMENT_FREE 4
#define TRACE_SEGMENT_MAP 5
#define TRACE_SEGMENT_UNMAP 6

enum { TRACE_LOST_NOT = 0, TRACE_LOST_PLACE = 1, TRACE_LOST_RELEASE = 2 };

/* What there was before the first event, and what becomes of it: see layout.py. Domains are numbers. */
typedef struct {
    const int64_t *end; /* event that gives each block back */
    uint64_t blocks;
    uint64_t early; /* so many are from before; the others begin with an allocation each */
    const uint8_t *large; /* of each domain */
    uint64_t domains;
    const int64_t *hole_start;
    const int64_t *hole_end;
    const int32_t *hole_domain;
    uint64_t holes;
    const int64_t *alone_start; /* segments over whose borders nothing merges */
    const int64_t *alone_end;
    uint64_t alone;
    const int32_t *change_domain; /* of what each growth and release took or gave back */
    const int64_t *watch; /* events, ascending */
    uint64_t watched;
    int64_t *size; /* of each block; those of the early ones are known, the others are found */
    int32_t *domain;
    trace_scan_array growths; /* int64: event, domain, free bytes, holes, the largest of them, just before each growth */
    trace_scan_array free; /* the same of every domain just before the watched events; both are for the caller to free */
    uint64_t lost_event;
    uint32_t lost;
} trace_layout;

TRACE_SCAN_API int trace_follow(const trace_history *history, const trace_rules *rules, trace_layout *layout);

/* What an allocator has before the first event: segments, each of pieces that follow each other; or, `anew`, domains
 * whose blocks are requested again, in this order, and what is reserved besides. See whatif.py. */
typedef struct {
    const int64_t *pool;
    const int64_t *stream;
    const uint8_t *large;
    const int64_t *base;   /* where an expandable segment begins, INT64_MIN: it is none */
    const int64_t *total;  /* bytes of a domain */
    const int64_t *bounds; /* of the pieces of each; there are segments + 1 */
    uint64_t segments;
    const int64_t *start;
    const int64_t *end;
    const int32_t *row; /* of a block in use, -1: it is free */
    uint32_t anew;
    const int64_t *place_size; /* addresses of segments by their size, those to use first at the end */
    const int64_t *place_address;
    uint64_t places;
} trace_beginning;

enum { TRACE_REQUEST = 1, TRACE_GIVE_BACK = 2, TRACE_EMPTY = 3, TRACE_FAILING = 4 };

/* What the program does. */
typedef struct {
    const int64_t *event;
    const uint8_t *operation;
    const int32_t *row; /* of the block; of what fails there is none */
    uint64_t operations;
    const int64_t *size; /* of each event of the history */
    const int64_t *stream;
    const int64_t *requested; /* of each block */
    const int32_t *pool;
    uint64_t blocks;
    const int64_t *emptied; /* pools that each emptying of the cache is about, and their bounds */
    const int64_t *emptied_bounds;
    int64_t *reserved; /* after each operation */
} trace_program;

#define TRACE_FAILED_NEVER (-1)
#define TRACE_FAILED_BEFORE (-2)
typedef struct {
    int64_t limit; /* bytes that the device has, -1: any number */
    int64_t start; /* bytes reserved before the first operation */
    int64_t growths;
    int64_t retries;
    int64_t failed; /* first operation that failed even so */
    int64_t missing;
} trace_outcome;

TRACE_SCAN_API int trace_replay(const trace_rules *rules, const trace_beginning *beginning,
                                const trace_program *program, trace_outcome *outcome);

#ifdef __cplusplus
}
#endif

#endif
