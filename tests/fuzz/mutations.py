"""Damage to the text of a Kineto trace, by a seed: what a reader must survive, and must not pass over in silence."""

from __future__ import annotations

import json
import random
from typing import Any

BAD_TIMES = (0, -1, None, "x", float("nan"), float("inf"), 1e30, -1e30, "", [], {}, True)
BAD_DURATIONS = (-5.0, None, "x", float("nan"), float("inf"), 1e30, "", [], {})
BAD_MEMBERS = (None, "", "\u0000", [], {}, [[]], True)


def damaged(text: bytes, seed: int) -> tuple[str, bytes]:
    """One mutation, and what it did."""
    chosen = random.Random(seed)
    if chosen.random() < 0.4:
        return _of_text(text, chosen)
    content = json.loads(text)
    done = _of_events(content["traceEvents"], chosen)
    return done, json.dumps(content).encode()


def _of_text(text: bytes, chosen: random.Random) -> tuple[str, bytes]:
    at, size = chosen.randrange(len(text)), chosen.choice((1, 2, 7, 40, 300, 5000))
    what = chosen.choice(("cut", "removed", "overwritten", "inserted", "repeated", "zeroed"))
    rest = text[at + size :]
    noise = bytes(chosen.choice(b'{}[],:"\\x0019eE+-\x00\xff') for _ in range(min(size, 40)))
    made = {
        "cut": text[:at],
        "removed": text[:at] + rest,
        "overwritten": text[:at] + noise + text[at + len(noise) :],
        "inserted": text[:at] + noise + text[at:],
        "repeated": text[: at + size] + text[at:],
        "zeroed": text[:at] + bytes(len(text[at : at + size])) + rest,
    }[what]
    return f"text: {what} {size} bytes at {at}", made


def _of_events(events: list[Any], chosen: random.Random) -> str:
    """One member of some events of one category becomes impossible, or events are repeated, mixed or no events."""
    timed = [at for at, one in enumerate(events) if one.get("ph") == "X"]
    category = events[chosen.choice(timed)].get("cat")
    same = [at for at in timed if events[at].get("cat") == category]
    some = chosen.sample(same, min(len(same), chosen.choice((1, 1, 1, 3, 20))))
    what = chosen.choice(
        ("ts", "dur", "ts", "dur", "name", "cat", "ph", "pid", "tid", "lost", "twice", "order", "none")
    )
    values = {"ts": BAD_TIMES, "dur": BAD_DURATIONS}.get(what, BAD_MEMBERS)
    value = chosen.choice(values)
    if what == "order":
        chosen.shuffle(events)
    elif what == "twice":
        events += [dict(events[at]) for at in some]
    else:
        for at in some:
            if what == "none":
                events[at] = value
            elif what == "lost":
                del events[at][key := chosen.choice([key for key in events[at] if key not in {"args", "bp"}])]
                value = key
            else:
                events[at][what] = value
    return f"{what} of {len(some)} × {category}: {value!r:.40}"
