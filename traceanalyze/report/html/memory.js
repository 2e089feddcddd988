  // A device's memory, block by block: columns of numbers are unpacked, and what one sees is drawn from them.
  function memoryPicture(figure) {
    var packed = JSON.parse(figure.querySelector("script").textContent), words = packed.words, bytes;
    function tell(key, values) {
      var text = words[key].replace(/\{(\w+)\}/g, function (_, name) { return values[name]; });
      return text.replace(/(\S+) (\w+)\(s\)/g, function (_, count, name) { return count + " " + name + (count === "1" ? "" : "s"); });
    }
    if (typeof DecompressionStream === "undefined") { figure.prepend(make("p", words.old_browser)); return; }
    bytes = Uint8Array.from(atob(packed.data), function (letter) { return letter.charCodeAt(0); });
    figure.ready = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer()
      .then(function (buffer) { memoryOf(figure, new Uint8Array(buffer), tell, packed.resolution); });
  }

  // Texts and columns; running sums where what was packed is the distance from the number before.
  function memoryData(bytes) {
    var at = 4 + new DataView(bytes.buffer).getUint32(0, true);
    var data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, at))), counts = data.counts.slice();
    function column(sums) {
      var found = new Float64Array(counts.shift()), last = 0;
      for (var i = 0; i < found.length; i++) {
        var value = 0, power = 1, byte;
        do { byte = bytes[at++]; value += (byte & 127) * power; power *= 128; } while (byte > 127);
        found[i] = sums ? last += value : value;
      }
      return found;
    }
    data.begin = column(true);
    data.end = column().map(function (life, i) { return data.begin[i] + life; });
    data.kind = column();
    data.where = column();
    data.places = column(true).map(function (place) { return place * data.unit; });
    data.size = column();
    data.asked = column();
    data.stack = column();
    data.category = column();
    data.starts = column().map(function (place) { return place * data.unit; });
    data.lengths = column().map(function (length) { return length * data.unit; });
    data.flags = column();
    data.changed = column(true);
    data.timed = column(true);
    var since = 0;
    data.times = column().map(function (far) { return since += far % 2 ? -(far - 1) / 2 : far / 2; });
    return data;
  }
  // First place in a sorted column whose value is not below, or with `after` above, the one asked for.
  function search(sorted, value, after) {
    var low = 0, high = sorted.length;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (sorted[middle] < value || (after && sorted[middle] === value)) low = middle + 1; else high = middle;
    }
    return low;
  }
  // Blocks and segments after an event, both by their address: of a segment begin, end, domain, whether it expands.
  function memoryState(data, event) {
    var live = [], ranges = new Map(), i;
    for (i = 0; i < data.begin.length && data.begin[i] <= event; i++) if (data.end[i] > event) live.push(i);
    live.sort(function (a, b) { return data.where[a] - data.where[b]; });
    for (i = 0; i < data.starts.length; i++) {
      var change = i - data.segments, start = data.starts[i], end = start + data.lengths[i], flags = data.flags[i];
      if (change >= 0 && data.changed[change] > event) break;
      if (change < 0 || flags & 2) { ranges.set(start, [start, end, flags >> 2, flags & 1]); continue; }
      // Part of an expandable segment may go; pieces that were mapped one after another go together.
      Array.from(ranges.has(start) && ranges.get(start)[1] === end ? [ranges.get(start)] : ranges.values()).forEach(function (old) {
        if (old[1] <= start || old[0] >= end) return;
        ranges.delete(old[0]);
        if (old[0] < start) ranges.set(old[0], [old[0], start, old[2], old[3]]);
        if (old[1] > end) ranges.set(end, [end, old[1], old[2], old[3]]);
      });
    }
    var segments = [];
    Array.from(ranges.values()).sort(function (a, b) { return a[0] - b[0]; }).forEach(function (one) {
      var last = segments[segments.length - 1];
      if (last && one[3] && last[3] && last[1] === one[0] && last[2] === one[2]) last[1] = one[1];
      else segments.push(one.slice());
    });
    return {live: live, segments: segments};
  }
  // What every domain has: its pieces by address (begin, end, block or -1 where it is free, segment), and their sums.
  function memoryDomains(data, state) {
    var at = 0, found = data.domains.map(function (name) {
      return {name: name, reserved: 0, used: 0, free: 0, blocks: 0, holes: 0, largest: 0, pieces: []};
    });
    state.segments.forEach(function (segment) {
      var domain = found[segment[2]], place = segment[0];
      function hole(end) {
        if (end <= place) return;
        domain.pieces.push([place, end, -1, segment]);
        domain.free += end - place;
        domain.holes++;
        domain.largest = Math.max(domain.largest, end - place);
      }
      domain.reserved += segment[1] - segment[0];
      for (; at < state.live.length && data.places[data.where[state.live[at]]] < segment[1]; at++) {
        var block = state.live[at], start = data.places[data.where[block]], size = data.size[data.kind[block]];
        if (start < segment[0]) continue;
        hole(start);
        domain.pieces.push([start, start + size, block, segment]);
        domain.used += size;
        domain.blocks++;
        place = Math.max(place, start + size);
      }
      hole(segment[1]);
    });
    return found;
  }

  // The longest-lived below, so that they stand on one line, and what comes and goes above.
  var MEMORY_ORDER = ["preexisting", "parameters", "optimizer", "gradients", "leaked", "communication", "compile", "other", "own", "activations", "backward", "transient"];
  function memoryOf(figure, bytes, tell, resolution) {
    var data = memoryData(bytes), states = data.states, count = data.begin.length, now = 0, chosen = null, state, domains, drawn;
    var view = [0, states], off = new Set(), hidden = new Uint8Array(data.size.length), wanted = null, colours = {}, i;
    var order = data.terms.map(function (_, at) { return at; }).sort(function (a, b) {
      return MEMORY_ORDER.indexOf(data.terms[a][0]) - MEMORY_ORDER.indexOf(data.terms[b][0]) || a - b;
    });
    var used = new Float64Array(states), asked = new Float64Array(states), reserved = new Float64Array(states), most = {};
    function add(to, begin, end, value) { to[begin] += value; if (end < states) to[end] -= value; }
    for (i = 0; i < count; i++) {
      add(used, data.begin[i], data.end[i], data.size[data.kind[i]]);
      add(asked, data.begin[i], data.end[i], data.asked[data.kind[i]]);
      most[data.category[data.kind[i]]] = true;
    }
    for (i = 0; i < data.starts.length; i++) {
      var grown = i < data.segments || data.flags[i] & 2;
      add(reserved, i < data.segments ? 0 : data.changed[i - data.segments], states, grown ? data.lengths[i] : -data.lengths[i]);
    }
    for (i = 1; i < states; i++) { used[i] += used[i - 1]; asked[i] += asked[i - 1]; reserved[i] += reserved[i - 1]; }
    function size(block) { return data.size[data.kind[block]]; }
    function address(place) { return "0x" + (BigInt("0x" + data.base) + BigInt(place)).toString(16); }
    function term(block) { return data.terms[data.category[data.kind[block]]]; }
    function stackOf(block) { return data.stacks[data.stack[data.kind[block]]]; }
    function timeAt(event) {
      if (!data.timed.length || event + data.first < 0) return "";
      var up = Math.min(search(data.timed, event), data.timed.length - 1), low = Math.max(up - 1, 0);
      var gap = data.timed[up] - data.timed[low], part = gap ? Math.min(Math.max((event - data.timed[low]) / gap, 0), 1) : 1;
      return time(Math.round(data.times[low] + part * (data.times[up] - data.times[low])), resolution);
    }
    function numbered(event) { return (event + data.first).toLocaleString("en"); }
    function named(event) {
      if (event + data.first < 0) return words("begin", {});
      return words("at", {event: numbered(event)}) + (timeAt(event) ? " (" + timeAt(event) + ")" : "");
    }
    function words(key, values) { return tell(key, values || {}); }

    // What stands around the two canvases.
    var keys = make("div", undefined, "keys"), find = make("div", undefined, "find"), legend = make("ul", undefined, "legend");
    var curve = make("canvas"), scrub = make("div", undefined, "keys scrub"), map = make("canvas"), about = make("div", undefined, "about");
    var back = make("a", said.page_to_finding), text = make("input"), number = make("input"), said_ = make("output"), found = make("output", undefined, "aside");
    var held = make("table"), wrap = make("div", undefined, "wide"), block = make("div", undefined, "block"), room = make("div", undefined, "canvas"), cursor = make("div", undefined, "cursor");
    text.type = "search";
    text.placeholder = words("search_help");
    text.setAttribute("aria-label", words("search"));
    number.type = "range";
    number.min = data.first;
    number.max = data.first + states - 1;
    number.setAttribute("aria-label", words("scrub"));
    [curve, map].forEach(function (canvas) { canvas.tabIndex = 0; canvas.setAttribute("role", "img"); });
    back.hidden = true;
    find.append(text, found, back);
    scrub.append(button("◀", function () { go(now - 1); }, words("back")), number, button("▶", function () { go(now + 1); }, words("on")), said_);
    block.setAttribute("aria-live", "polite");
    room.append(curve, cursor);
    wrap.append(held);
    wrap.tabIndex = 0;
    about.append(block, wrap);
    figure.prepend(keys, find, legend, room, scrub, map, about);
    if (states < 2) [keys, room, scrub].forEach(function (part) { part.hidden = true; });
    order.forEach(function (at) {
      if (!most[at]) return;
      var one = button("", function () {
        if (off.has(at)) off.delete(at); else off.add(at);
        one.setAttribute("aria-pressed", String(!off.has(at)));
        filter();
      }), item = make("li");
      one.append(make("i", undefined, "c-" + data.terms[at][0]), data.terms[at][1]);
      one.setAttribute("aria-pressed", "true");
      item.append(one);
      legend.append(item);
    });
    var free = make("li");
    free.append(make("i", undefined, "c-free"), words("free"));
    legend.append(free);
    text.addEventListener("input", filter);
    number.addEventListener("input", function () { go(Number(number.value) - data.first); });
    function filter() {
      var said = text.value.trim().toLowerCase(), limit = /^([<>])(=?)\s*([\d.,]+)\s*([kmgt]?)i?b?$/.exec(said);
      var bytes = limit ? Number(limit[3].replace(/,/g, "")) * Math.pow(1024, " kmgt".indexOf(limit[4] || " ")) : 0;
      wanted = /^0x[0-9a-f]+$/.test(said) ? Number(BigInt(said) - BigInt("0x" + data.base)) : null;
      for (var i = 0; i < hidden.length; i++) {
        var stack = data.stacks[data.stack[i]], fits = !said || wanted !== null;
        if (limit) fits = (limit[1] === "<" ? data.size[i] < bytes : data.size[i] > bytes) || (limit[2] && data.size[i] === bytes);
        else if (!fits) {
          fits = [stack[0], data.terms[data.category[i]][1]].concat((stack[2] || stack[1]).map(function (at) { return data.frames[at]; })).join("\n").toLowerCase().indexOf(said) >= 0;
        }
        hidden[i] = off.has(data.category[i]) || !fits ? 1 : 0;
      }
      draw();
      go(now);
    }
    function shows(block) {
      if (hidden[data.kind[block]]) return false;
      var place = data.places[data.where[block]];
      return wanted === null || (place <= wanted && wanted < place + size(block));
    }
    function seen() {
      var style = getComputedStyle(figure);
      ["fore", "dim", "rule", "link", "back", "soft", "outer", "worse", "warn"].concat(MEMORY_ORDER.map(function (name) { return "c-" + name; }))
        .forEach(function (name) { colours[name] = style.getPropertyValue("--" + name).trim(); });
    }
    function fill(pen, block, odd) {
      var css = term(block)[0];
      pen.fillStyle = shows(block) ? colours["c-" + css] : colours.rule;
      pen.globalAlpha = odd ? 0.82 : 1;
    }
    function sized(canvas, height) {
      var ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, pen = canvas.getContext("2d");
      canvas.style.height = height + "px";
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.font = "11px system-ui, sans-serif";
      seen();
      return pen;
    }

    // The curve: lanes of ranges and marks, and below them every block as an area.
    var LEFT = 62, HEIGHT = 320, top = 0, lanes = [];
    data.spans.forEach(function (span) {
      if (span[3] === lanes.length) lanes.push([]);
      if (span[3] >= 0) lanes[span[3]].push(span);
    });
    var above = 22 + LANE * lanes.length, marks = data.marks.filter(function (mark) { return mark[0] !== "moment_dump"; });
    function wide() { return Math.max(curve.clientWidth - LEFT - 4, 1); }
    function x(event) { return LEFT + wide() * (event - view[0]) / (view[1] - view[0]); }
    function y(amount) { return above + HEIGHT * (1 - amount / top); }
    function draw() {
      if (!curve.clientWidth) return;
      var pen = sized(curve, above + HEIGHT + 22), columns = Math.floor(wide()), shown = [], first, sums = {}, large = [], i, at;
      // Of each pixel the event with most in blocks.
      top = 1;
      for (i = 0; i < columns; i++) {
        var low = Math.floor(view[0] + (view[1] - view[0]) * i / columns), high = Math.max(Math.ceil(view[0] + (view[1] - view[0]) * (i + 1) / columns), low + 1), best = Math.min(low, states - 1);
        for (at = low; at < Math.min(high, states); at++) {
          if (used[at] > used[best]) best = at;
          top = Math.max(top, reserved[at], used[at]);
        }
        shown.push(best);
      }
      var begin = shown[0], end = shown[columns - 1];
      first = new Int32Array(end - begin + 2);
      for (i = 0, at = begin; at <= end + 1; at++) { while (i < columns && shown[i] < at) i++; first[at - begin] = i; }
      function columnOf(event) { return event <= begin ? 0 : event > end ? columns : first[event - begin]; }
      for (i = 0; i < count && data.begin[i] <= end; i++) {
        if (data.end[i] <= begin) continue;
        var from = columnOf(data.begin[i]), until = columnOf(data.end[i]);
        if (from >= until) continue;
        var tier = shows(i) ? order.indexOf(data.category[data.kind[i]]) : order.length;
        if (size(i) * HEIGHT / top >= 1.5) large.push([tier, i, from, until]);
        if (!sums[tier]) sums[tier] = new Float64Array(columns + 1);
        sums[tier][from] += size(i);
        sums[tier][until] -= size(i);
      }
      large.sort(function (a, b) { return a[0] - b[0] || a[1] - b[1]; });
      drawn = {shown: shown, large: large, tiers: []};
      pen.textAlign = "right";
      var step = 1;
      while (top / step >= 6) step *= 2;
      for (i = 0; i <= top; i += step) {
        pen.fillStyle = colours.rule;
        pen.fillRect(LEFT, Math.round(y(i)), columns, 1);
        pen.fillStyle = colours.dim;
        pen.fillText(memory(i), LEFT - 6, y(i) + 4);
      }
      pen.fillStyle = colours.outer;
      area(pen, shown.map(function () { return 0; }), shown.map(function (event) { return reserved[event]; }));
      var ground = new Float64Array(columns), next = 0;
      Object.keys(sums).map(Number).sort(function (a, b) { return a - b; }).forEach(function (tier) {
        var base = ground.slice(), height = new Float64Array(columns), sum = 0, css = tier < order.length ? "c-" + data.terms[order[tier]][0] : "rule";
        for (var i = 0; i < columns; i++) { sum += sums[tier][i]; height[i] = sum; ground[i] += sum; }
        drawn.tiers.push([tier, height]);
        pen.fillStyle = colours[css];
        pen.globalAlpha = tier < order.length ? 0.7 : 1;
        area(pen, base, ground);
        for (; next < large.length && large[next][0] === tier; next++) {
          var one = large[next], amount = size(one[1]), start = one[2];
          fill(pen, one[1], one[1] % 2);
          for (i = one[2]; i <= one[3]; i++) {
            if (i < one[3] && base[i] === base[start]) continue;
            var height_ = amount * HEIGHT / top, edge = height_ >= 4 ? 0.6 : 0;
            pen.fillRect(LEFT + start, y(base[start] + amount) + edge, i - start, height_ - edge);
            if (one[1] === chosen) { pen.strokeStyle = colours.fore; pen.strokeRect(LEFT + start, y(base[start] + amount), i - start, height_); }
            start = i;
          }
          for (i = one[2]; i < one[3]; i++) base[i] += amount;
        }
        pen.globalAlpha = 1;
      });
      pen.strokeStyle = colours.fore;
      pen.beginPath();
      shown.forEach(function (event, i) { pen.lineTo(LEFT + i, y(reserved[event])); pen.lineTo(LEFT + i + 1, y(reserved[event])); });
      pen.stroke();
      lanes.forEach(function (lane, depth) {
        pen.textAlign = "left";
        lane.forEach(function (span) {
          var low = Math.max(x(span[1]), LEFT), size = Math.min(x(span[2]), LEFT + columns) - low;
          if (size < 0.5) return;
          pen.fillStyle = colours.soft;
          pen.fillRect(low, 20 + LANE * depth, Math.max(size - 1, 1), HIGH);
          pen.fillStyle = colours.fore;
          if (size > 30) pen.fillText(fitted(pen, span[0], size - 6), low + 3, 32 + LANE * depth);
        });
      });
      data.steps.forEach(function (step, i) {
        var room = x((data.steps[i + 1] || [view[1]])[0]) - x(step[0]);
        // Lines side by side would be a wall before the blocks.
        if (step[0] < view[0] || step[0] > view[1] || room < 4) return;
        pen.fillStyle = colours.dim;
        pen.globalAlpha = 0.5;
        pen.fillRect(x(step[0]), above, 1, HEIGHT);
        pen.globalAlpha = 1;
        pen.textAlign = "left";
        if (room > 24) pen.fillText(fitted(pen, step[1], 90), x(step[0]) + 3, above + 11);
      });
      marks.forEach(function (mark) {
        var place = x(mark[2] + 0.5), signs = {moment_oom: "✖", moment_peak: "▼", moment_reserved_peak: "▽"};
        if (place < LEFT || place > LEFT + columns) return;
        pen.fillStyle = mark[0] === "moment_oom" ? colours.worse : /retry/.test(mark[0]) ? colours.warn : colours.fore;
        pen.textAlign = "center";
        pen.fillText(signs[mark[0]] || (/retry/.test(mark[0]) ? "↻" : "▵"), place, 13);
        if (signs[mark[0]] || /retry/.test(mark[0])) pen.fillRect(place, 16, 1, above + HEIGHT - 16);
      });
      pen.textAlign = "center";
      step = round((view[1] - view[0]) * 90 / wide());
      for (at = Math.ceil((view[0] + data.first) / step) * step; at - data.first <= view[1]; at += step) {
        pen.fillStyle = colours.dim;
        pen.fillText((at || 0).toLocaleString("en"), Math.min(x(at - data.first), LEFT + columns - 20), above + HEIGHT + 15);
      }
      curve.dataset.view = Math.round(view[0]) + "," + Math.round(view[1]);
      point();
    }
    function area(pen, low, high) {
      pen.beginPath();
      for (var i = 0; i < high.length; i++) { pen.lineTo(LEFT + i, y(high[i])); pen.lineTo(LEFT + i + 1, y(high[i])); }
      for (i = low.length - 1; i >= 0; i--) { pen.lineTo(LEFT + i + 1, y(low[i])); pen.lineTo(LEFT + i, y(low[i])); }
      pen.fill();
    }
    function point() {
      cursor.style.left = x(now + 0.5) + "px";
      cursor.style.top = above + "px";
      cursor.style.height = HEIGHT + "px";
      cursor.hidden = now < view[0] || now >= view[1];
    }
    // What is under the pointer in the curve: the event, and a block or the smaller ones of a category.
    function curveAt(event) {
      var box = curve.getBoundingClientRect(), column = Math.floor(event.clientX - box.left - LEFT), py = event.clientY - box.top;
      if (!drawn || column < 0 || column >= drawn.shown.length) return null;
      var at = drawn.shown[column], amount = top * (1 - (py - above) / HEIGHT), sum = 0, hit = {event: at, block: -1, tier: -1};
      hit.mark = py > above ? null : marks.find(function (mark) { return py < 18 && Math.abs(x(mark[2] + 0.5) - event.clientX + box.left) < 6; });
      var lane = lanes[Math.floor((py - 20) / LANE)];
      hit.span = lane && lane.find(function (span) { return x(span[1]) <= LEFT + column && LEFT + column < Math.max(x(span[2]), x(span[1]) + 2); });
      if (py < above) return hit;
      drawn.tiers.forEach(function (tier) {
        var place = sum;
        if (amount >= sum && amount < sum + tier[1][column]) {
          hit.tier = tier[0];
          hit.bytes = tier[1][column];
          drawn.large.forEach(function (one) {
            if (one[0] !== tier[0] || one[2] > column || one[3] <= column) return;
            if (amount >= place && amount < place + size(one[1])) hit.block = one[1];
            place += size(one[1]);
          });
        }
        sum += tier[1][column];
      });
      return hit;
    }
    function lines(block) {
      return [make("b", memory(size(block)) + " · " + term(block)[1]), make("div", stackOf(block)[0]), make("div", address(data.places[data.where[block]]))];
    }
    function hover(event) {
      var hit = curveAt(event), parts;
      if (!hit) { tip.hidden = true; return; }
      if (hit.mark) parts = [make("b", hit.mark[1]), make("div", named(hit.mark[2])), make("div", hit.mark[3] === null ? "" : memory(hit.mark[3]))];
      else if (hit.span) parts = [make("b", hit.span[0])];
      else {
        parts = hit.block >= 0 ? lines(hit.block) : hit.tier < 0 ? [] : [make("b", (hit.tier < order.length ? data.terms[order[hit.tier]][1] + ", " : "") + words("small"))];
        parts.push(make("div", named(hit.event) + ": " + words("reserved", {reserved: memory(reserved[hit.event]), used: memory(used[hit.event])})));
      }
      tip.dataset.of = "";
      tip.replaceChildren.apply(tip, parts);
      tipAt(event);
    }
    var moves = movable(curve, view, states, 8, {
      left: function () { return LEFT; }, wide: wide, draw: draw, tell: hover,
      click: function (event) {
        var hit = curveAt(event);
        if (!hit) return;
        if (hit.block >= 0) choose(hit.block);
        go(hit.mark ? hit.mark[2] : hit.span ? hit.span[1] : hit.event);
      },
      keys: {
        Escape: function () { if (!back.hidden) back.click(); },
        Enter: function () { go(Math.floor((view[0] + view[1]) / 2)); }, ",": function () { go(now - 1); }, ".": function () { go(now + 1); }
      }
    });
    keys.append.apply(keys, moves.buttons);
    // One button a kind, which leads from one to the next.
    new Set(data.marks.map(function (mark) { return mark[1]; })).forEach(function (name) {
      var own = data.marks.filter(function (mark) { return mark[1] === name; });
      keys.append(button(own.length > 1 ? name + " (" + own.length + ")" : name, function () {
        go((own.find(function (mark) { return mark[2] > now; }) || own[0])[2]);
      }));
    });

    // The map: every domain's segments one after another, as lines of text are; filled where blocks are.
    var ROW = 15, ROWS = 22, scale = [], largest = data.domains.map(function () { return 0; }), pieces = [];
    (function () {
      var sum = largest.slice(), flags, i;
      for (i = 0; i < data.starts.length; i++) {
        flags = data.flags[i];
        sum[flags >> 2] += i < data.segments || flags & 2 ? data.lengths[i] : -data.lengths[i];
        largest[flags >> 2] = Math.max(largest[flags >> 2], sum[flags >> 2]);
      }
    })();
    var byReserve = largest.map(function (_, at) { return at; }).sort(function (a, b) { return largest[b] - largest[a]; });
    function drawMap() {
      var all = largest.reduce(function (sum, one) { return sum + one; }, 0), wide = map.clientWidth, height = 4;
      if (!wide || !all) return;
      byReserve.forEach(function (at) {
        var rows = Math.max(Math.round(ROWS * largest[at] / all), 1);
        // Whole bytes a line, so that nothing is lost where one ends.
        scale[at] = {row: Math.ceil(largest[at] / rows), bytes: Math.ceil(largest[at] / rows) / (wide - 2), top: height + 18};
        if (domains[at].reserved) height += 20 + (rows + 1) * ROW;
      });
      var request = data.marks.find(function (mark) { return mark[0] === "moment_oom" && mark[2] === now; });
      // What an OOM asked for is as long as in the largest domain: several lines where it is more than one of them.
      var most = scale[domains.indexOf(domains.reduce(function (a, b) { return a.reserved > b.reserved ? a : b; }))];
      var rows = request && request[3] ? Math.min(Math.ceil(request[3] / most.row), ROWS) : 0, asks = height + 2;
      height += rows ? ROW - 6 + 6 * rows : 0;
      var pen = sized(map, height);
      pieces = [];
      domains.forEach(function (domain, at) {
        if (!domain.reserved) return;
        var one = scale[at], place = 0, row = one.row, values = {name: domain.name, reserved: memory(domain.reserved), used: memory(domain.used), blocks: domain.blocks.toLocaleString("en"), free: memory(domain.free), holes: domain.holes.toLocaleString("en"), largest: memory(domain.largest)};
        pen.fillStyle = colours.fore;
        pen.globalAlpha = 1;
        pen.textAlign = "left";
        pen.fillText(fitted(pen, words("domain", values) + (data.exact ? words("holes", values) : ""), wide), 0, one.top - 5);
        domain.pieces.forEach(function (piece) {
          var length = piece[1] - piece[0], parts = [];
          if (piece[0] === piece[3][0]) piece.first = true;
          for (var start = place; start < place + length;) {
            var line = Math.floor(start / row), end = Math.min((line + 1) * row, place + length);
            parts.push([(start - line * row) / one.bytes, one.top + line * ROW, Math.max((end - start) / one.bytes, 0.3)]);
            start = end;
          }
          place += length;
          pieces.push([parts, piece]);
          parts.forEach(function (part, n) {
            if (piece[2] >= 0) {
              fill(pen, piece[2], piece[2] % 2);
              pen.fillRect(part[0] + (part[2] > 3 ? 0.5 : 0), part[1], Math.max(part[2] - (part[2] > 3 ? 0.5 : 0), 0.3), ROW - 2);
            } else {
              pen.globalAlpha = 1;
              pen.fillStyle = colours.outer;
              pen.fillRect(part[0], part[1], part[2], ROW - 2);
              if (length === domain.largest && data.exact) { pen.strokeStyle = colours.worse; pen.strokeRect(part[0] + 0.5, part[1] + 0.5, Math.max(part[2] - 1, 1), ROW - 3); }
            }
            pen.globalAlpha = 1;
            pen.fillStyle = colours.fore;
            if (n === 0 && piece.first) pen.fillRect(part[0], part[1] - 1, 1, ROW);
            if (chosen !== null && piece[2] === chosen) { pen.strokeStyle = colours.fore; pen.lineWidth = 2; pen.strokeRect(part[0] + 1, part[1], Math.max(part[2] - 2, 1), ROW - 2); pen.lineWidth = 1; }
          });
        });
      });
      if (rows) {
        pen.fillStyle = colours.worse;
        pen.fillText(words("request", {bytes: memory(request[3])}), 0, asks);
        for (var row = 0; row < rows; row++) pen.fillRect(0, asks + 4 + 6 * row, Math.min(request[3] - row * most.row, most.row) / most.bytes, 4);
      }
      map.setAttribute("aria-label", domains.filter(function (one) { return one.reserved; }).map(function (one) {
        return words("domain", {name: one.name, reserved: memory(one.reserved), used: memory(one.used), blocks: one.blocks});
      }).join("; "));
    }
    function mapAt(event) {
      var box = map.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top, hit = null;
      pieces.forEach(function (piece) {
        piece[0].forEach(function (part) {
          if (py >= part[1] && py < part[1] + ROW && px >= part[0] && px < part[0] + Math.max(part[2], 1)) hit = piece[1];
        });
      });
      return hit;
    }
    function ofHole(hole) {
      return [make("b", words("hole", {bytes: memory(hole[1] - hole[0])})), make("div", words("segment", {bytes: memory(hole[3][1] - hole[3][0])})), make("div", address(hole[0]))];
    }
    map.addEventListener("pointermove", function (event) {
      var hit = mapAt(event);
      if (!hit) { tip.hidden = true; return; }
      tip.dataset.of = "";
      tip.replaceChildren.apply(tip, hit[2] < 0 ? ofHole(hit) : lines(hit[2]).concat(make("div", words("segment", {bytes: memory(hit[3][1] - hit[3][0])}))));
      tipAt(event);
    });
    map.addEventListener("pointerleave", function () { tip.hidden = true; });
    map.addEventListener("click", function (event) { var hit = mapAt(event); if (hit && hit[2] >= 0) choose(hit[2]); });
    map.addEventListener("keydown", function (event) {
      var by = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10}[event.key], live = state.live.filter(shows);
      if (event.key === ",") go(now - 1); else if (event.key === ".") go(now + 1);
      if (!by || !live.length) return;
      event.preventDefault();
      var at = live.indexOf(chosen);
      choose(live[at < 0 ? 0 : Math.min(Math.max(at + by, 0), live.length - 1)]);
    });
    new ResizeObserver(drawMap).observe(map);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMap);
    matchMedia("print").addEventListener("change", drawMap);

    function choose(one) {
      chosen = one;
      var stack = stackOf(one), asks = data.asked[data.kind[one]], life = make("div"), begin = data.begin[one], end = data.end[one];
      var gone = end < states ? words("gone", {end: named(end)}) : states + data.first === data.all ? words("until_dump") : words("later");
      life.append(words("life", {begin: begin ? named(begin) : words(data.first < 0 ? "begin" : "earlier"), end: gone}) + " ");
      if (begin) life.append(button("⇤", function () { go(begin); }, words("to_begin")));
      if (end < states) life.append(" ", button("⇥", function () { go(end); }, words("to_end")));
      block.replaceChildren.apply(block, lines(one).concat(make("div", words("asked", {bytes: memory(asks)})), life));
      function frames(which) { return make("pre", which.map(function (at) { return data.frames[at]; }).join("\n")); }
      if (stack[1].length) block.append(frames(stack[1]));
      if (stack[2]) {
        var whole = make("details");
        whole.append(make("summary", words("frames", {count: stack[2].length})), frames(stack[2]));
        block.append(whole);
      }
      figure.dataset.block = one;
      draw();
      drawMap();
    }
    function holders() {
      var sums = new Map(), all = 0, bytes = 0, blocks = 0;
      state.live.forEach(function (one) {
        if (!shows(one)) return;
        var kind = data.kind[one], key = stackOf(one)[0] + "\n" + data.category[kind], sum = sums.get(key);
        if (!sum) sums.set(key, sum = [one, 0, 0]);
        sum[1]++;
        sum[2] += size(one);
        bytes += size(one);
        blocks++;
      });
      all = Math.max(used[now], 1);
      found.textContent = words("found", {count: blocks.toLocaleString("en"), bytes: memory(bytes)});
      var rows = Array.from(sums.values()).sort(function (a, b) { return b[2] - a[2]; }), rest = rows.slice(10);
      var head = make("thead"), body = make("tbody"), line = make("tr");
      data.heads.forEach(function (name, at) { line.append(make("th", name, at > 1 ? "n" : "")); });
      head.append(line);
      rows.slice(0, 10).forEach(function (sum) {
        var name = stackOf(sum[0])[0], row = make("tr"), cell = make("td"), of = make("td");
        cell.append(button(name, function () { text.value = name; filter(); }));
        of.append(make("i", undefined, "c-" + term(sum[0])[0]), term(sum[0])[1]);
        row.append(cell, of, make("td", sum[1].toLocaleString("en"), "n"), make("td", memory(sum[2]), "n bar"));
        row.lastChild.style.setProperty("--share", (sum[2] / all).toFixed(4));
        body.append(row);
      });
      if (rest.length) body.append(rowOf([words("rest"), "", [rest.reduce(function (n, one) { return n + one[1]; }, 0).toLocaleString("en"), null, "n"], [memory(rest.reduce(function (n, one) { return n + one[2]; }, 0)), null, "n"]]));
      held.replaceChildren(make("caption", words("holders")), head, body);
    }
    function go(event) {
      now = Math.min(Math.max(event, 0), states - 1);
      if (now < view[0] || now >= view[1]) moves.set(now - (view[1] - view[0]) / 2, now + (view[1] - view[0]) / 2);
      state = memoryState(data, now);
      domains = memoryDomains(data, state);
      number.value = now + data.first;
      var inside = data.spans.filter(function (span) { return span[1] <= now && now < span[2]; }).map(function (span) { return span[0]; });
      var about = [now + data.first < 0 ? words("begin") : words("event", {event: numbered(now), count: data.all.toLocaleString("en")}), timeAt(now)].filter(Boolean).concat(words("reserved", {reserved: memory(reserved[now]), used: memory(used[now])}), inside.slice(0, 3), inside.length > 3 ? "+" + (inside.length - 3) : []);
      said_.textContent = about.join(" · ");
      number.setAttribute("aria-valuetext", about[0]);
      curve.setAttribute("aria-label", figure.closest("[id]").querySelector("h3").textContent + ": " + said_.textContent);
      figure.dataset.event = now + data.first;
      point();
      drawMap();
      holders();
    }
    timelines[figure.closest("[id]").id] = function (line, card) {
      text.value = line;
      filter();
      back.href = "#" + card;
      back.hidden = false;
      figure.scrollIntoView({block: "start"});
      curve.focus({preventScroll: true});
    };
    figure.memory = {data: data, go: go, state: function () { return [state, domains]; }, drawn: function () { return [pieces, scale]; }, asked: asked, used: used, reserved: reserved};
    block.append(make("p", words("none"), "aside"));
    var start = data.marks.find(function (mark) { return mark[0] === "moment_oom"; }) || data.marks[0];
    now = start ? start[2] : states - 1;
    go(now);
    draw();
  }
