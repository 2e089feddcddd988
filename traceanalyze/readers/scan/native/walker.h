// A walk over the text of a snapshot as it comes, which hands its values over.
#pragma once

#include <cstddef>
#include <memory>

#include "document.h"
#include "snapshot.h"

namespace scan {

constexpr std::size_t kLongest = std::size_t{64} << 20;  // bytes of one text
constexpr std::size_t kDeepest = std::size_t{1} << 24;   // values that wait for their list or dictionary

class Walker {
public:
    explicit Walker(bool shared) : snapshot(shared) {}
    Walker(const Walker&) = delete;
    Walker& operator=(const Walker&) = delete;
    virtual ~Walker() = default;

    Buffer buffer;
    Snapshot snapshot;
    Value root{};
    bool done = false;

    // Takes all that is complete; at the `end` there is no more to come.
    virtual void walk(bool end) = 0;

protected:
    void push(Value value) {
        if (stack.size() >= kDeepest) throw Unusual();
        stack.push(value);
    }
    void cut(std::size_t size) { stack.drop(stack.size() - size); }

    // What only the walk needs.
    void release() {
        buffer.release();
        stack = Column<Value>();
        snapshot.finish();
    }

    Column<Value> stack;
};

std::unique_ptr<Walker> pickle_walker();
std::unique_ptr<Walker> json_walker();

}  // namespace scan
