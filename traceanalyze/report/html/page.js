  document.documentElement.classList.add("scripted");

  function make(tag, text, css) {
    var node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (css) node.className = css;
    return node;
  }

  // Numbers are written as the rest of the report writes them: of two equally near the even one.
  function fixed(value, digits) {
    var text = value.toFixed(digits), exact = value.toFixed(digits + 40), cut = exact.slice(0, -40).replace(/\.$/, "");
    if (/^50*$/.test(exact.slice(-40)) && /[02468]$/.test(cut)) text = cut;
    var parts = text.split(".");
    parts[0] = parts[0].replace(/\B(?=(\d{3})+$)/g, ",");
    return parts.join(".");
  }
  function memory(value) {
    var units = [["GiB", 1073741824], ["MiB", 1048576], ["KiB", 1024]];
    for (var i = 0; i < units.length; i++) {
      var unit = units[i][1], size = Math.abs(value);
      if (size >= unit) return fixed(value / unit, size < 10 * unit ? 2 : size < 100 * unit ? 1 : 0) + " " + units[i][0];
    }
    return fixed(value, 0) + " B";
  }
  function time(ns, resolution) {
    if (ns === 0) return "0 ms";
    var units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
    var unit = units.filter(function (each) { return Math.abs(ns) >= each[1]; })[0] || units[3];
    var possible = 0;
    for (var size = unit[1]; size > resolution && possible < 9; size = Math.floor(size / 10)) possible++;
    var digits = Math.max(4 - String(Math.floor(Math.abs(ns) / unit[1])).length, 0);
    return fixed(ns / unit[1], Math.min(digits, possible)) + " " + unit[0];
  }
  function written(kind, value, resolution) {
    if (value === null) return "";
    return kind === "memory" ? memory(value) : kind === "time" ? time(value, resolution) : fixed(value, value % 1 ? 1 : 0);
  }

  var said = JSON.parse(document.getElementById("words").textContent);
  function say(key, values) {
    return said[key].replace(/\{(\w+)\}/g, function (_, name) { return values[name]; });
  }
  function button(text, act, title) {
    var node = make("button", text);
    node.type = "button";
    if (title) { node.title = title; node.setAttribute("aria-label", title); }
    node.addEventListener("click", act);
    return node;
  }

  // A row of what was packed: a text, a number with its text, or all that a cell has.
  function rowOf(cells, faint) {
    var row = make("tr", undefined, faint ? "faint" : "");
    cells.forEach(function (cell) {
      var plain = typeof cell === "string", td = make("td", plain ? cell : cell[0]);
      if (!plain) {
        if (cell[1] !== null) td.dataset.value = cell[1];
        if (cell.length === 2) td.className = "n"; else if (cell[2]) td.className = cell[2];
        if (cell[3]) td.title = cell[3];
        if (cell[4]) td.style.cssText = cell[4];
      }
      row.append(td);
    });
    return row;
  }

  // Tables sort by their headings; a third click brings the first order back.
  function keyOf(row, at) {
    var cell = row.cells[at];
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    return cell.className === "nm" || cell.textContent === "" ? null : cell.textContent;
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, {numeric: true});
  }
  // Whether a row has a word in it, or a shown number above or below what is asked for; at -1 in any column.
  function has(row, at, text) {
    var asked = /^\s*([<>])\s*(-?[\d.]+)\s*$/.exec(text), word = text.trim().toLowerCase();
    var cells = at < 0 ? Array.from(row.cells) : [row.cells[at]];
    return cells.some(function (cell) {
      if (!cell) return false;
      if (!asked) return (cell.textContent + "\n" + cell.title).toLowerCase().indexOf(word) >= 0;
      var value = cell.dataset.value === undefined ? NaN : parseFloat(cell.textContent.replace(/,/g, ""));
      return asked[1] === "<" ? value < Number(asked[2]) : value > Number(asked[2]);
    });
  }
  function table(wide) {
    var node = wide.querySelector("table"), body = node.tBodies[0], cut = wide.nextElementSibling;
    var original = Array.from(body.rows), heads = node.tHead ? Array.from(node.tHead.lastElementChild.cells) : [];
    var packed = null, order = original, find = null, number = heads.findIndex(function (head) { return head.hasAttribute("aria-sort"); });
    if (cut && cut.matches(".cut")) packed = JSON.parse(cut.querySelector("script").textContent);
    function names(head) { return head.firstChild ? head.firstChild.textContent.trim() : ""; }
    function shown() {
      var text = find ? find.value : "", at = find ? Number(find.column.value) : -1;
      var kept = text.trim() ? order.filter(function (row) { return has(row, at, text); }) : order;
      body.replaceChildren.apply(body, kept);
      if (find) find.count.textContent = kept.length === order.length ? "" :
        say("page_rows_found", {count: kept.length, all: order.length});
    }
    function whole() {
      if (!packed) return;
      var faint = new Set(packed.faint);
      original = original.concat(packed.rows.map(function (cells, at) { return rowOf(cells, faint.has(at)); }));
      order = original;
      cut.textContent = packed.left;
      packed = null;
      find = make("input");
      find.type = "search";
      find.placeholder = said.page_search_help;
      find.setAttribute("aria-label", said.page_search);
      find.column = make("select");
      find.column.setAttribute("aria-label", said.page_column);
      find.column.append(new Option(said.page_column_every, -1));
      heads.forEach(function (head, at) { find.column.append(new Option(names(head), at)); });
      find.count = make("output", undefined, "aside");
      find.addEventListener("input", shown);
      find.column.addEventListener("change", shown);
      var bar = make("div", undefined, "find");
      bar.append(find, find.column, find.count);
      wide.before(bar);
      shown();
    }
    if (packed) cut.append(" ", button(said.page_rows_all, function () { whole(); find.focus(); }));
    if (!node.matches(".sortable")) return whole;
    node.classList.add("sorts");
    function sort(at) {
      whole();
      var head = heads[at], before = head.getAttribute("aria-sort");
      var first = head.classList.contains("n") ? "descending" : "ascending";
      var second = first === "ascending" ? "descending" : "ascending";
      var now = before === null ? first : before === first ? second : null;
      heads.forEach(function (each) { each.removeAttribute("aria-sort"); });
      order = original.slice();
      if (now !== null) {
        head.setAttribute("aria-sort", now);
        var sign = now === "ascending" ? 1 : -1;
        order.sort(function (x, y) {
          var a = keyOf(x, at), b = keyOf(y, at);
          // What is missing is last, whatever the direction.
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * compare(a, b);
        });
      }
      shown();
    }
    heads.forEach(function (head, at) {
      head.tabIndex = 0;
      head.addEventListener("click", function () { sort(at); });
      head.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(at); }
      });
    });
    return whole;
  }

  var tip = make("div", undefined, "tip");
  tip.hidden = true;
  document.body.append(tip);
  function tipAt(event) {
    tip.hidden = false;
    var size = tip.getBoundingClientRect(), left = event.clientX + 14, top = event.clientY + 14;
    if (left + size.width > window.innerWidth - 8) left = event.clientX - size.width - 14;
    if (top + size.height > window.innerHeight - 8) top = event.clientY - size.height - 14;
    tip.style.left = Math.max(left, 8) + "px";
    tip.style.top = Math.max(top, 8) + "px";
  }
  document.addEventListener("pointerover", function (event) {
    // All of what is cut off.
    var cell = event.target.closest && event.target.closest("td");
    if (cell && !cell.title && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent;
    var text = event.target.dataset && event.target.dataset.tip;
    if (!text) { if (tip.dataset.of === "box") { tip.hidden = true; tip.dataset.of = ""; } return; }
    tip.replaceChildren.apply(tip, text.split("\n").map(function (line) { return make("div", line); }));
    tip.dataset.of = "box";
    tipAt(event);
  });

  function curve(figure) {
    var data = JSON.parse(figure.querySelector("script").textContent);
    var room = figure.querySelector(".room"), svg = room.querySelector("svg"), full = svg.viewBox.baseVal;
    var wide = full.width, high = full.height, labels = figure.querySelectorAll(".x span");
    var at = data.at, first = at[0], span = Math.max(at[at.length - 1] - first, 1);
    var from = 0, width = 1, dragged = null;
    var cursor = make("div", undefined, "cursor"), chosen = make("div", undefined, "chosen");
    cursor.hidden = chosen.hidden = true;
    room.append(cursor, chosen);
    var legend = figure.nextElementSibling;
    var marked = Array.from(figure.querySelectorAll("[data-band]"));
    if (legend && legend.matches(".bands")) marked = marked.concat(Array.from(legend.children));
    var top = Number(figure.dataset.top);

    function mark(band) {
      marked.forEach(function (each) { each.classList.toggle("hot", Number(each.dataset.band) === band); });
    }
    function show(start, size) {
      from = start; width = size;
      svg.setAttribute("viewBox", start * wide + " 0 " + size * wide + " " + high);
      labels.forEach(function (label, i) {
        var place = first + span * (start + size * i / (labels.length - 1));
        label.textContent = written(data.kind, Math.floor(place), data.resolution);
      });
    }
    function share(event) {
      var box = room.getBoundingClientRect();
      return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    }
    function pointAt(place) {
      var low = 0, up = at.length - 1;
      while (low < up) {
        var middle = (low + up + 1) >> 1;
        if (at[middle] <= place) low = middle; else up = middle - 1;
      }
      return low;
    }
    function bandAt(i, event) {
      var box = room.getBoundingClientRect();
      var height = (1 - (event.clientY - box.top) / box.height) * top;
      for (var sum = 0, band = 0; band < data.bands.length; band++) {
        sum += data.bands[band].values[i];
        if (height < sum) return band;
      }
      return -1;
    }
    function hide() { tip.hidden = cursor.hidden = true; mark(-1); }
    function tell(event) {
      var x = share(event), i = pointAt(first + span * (from + width * x) + 1e-6);
      tip.replaceChildren();
      data.shown.forEach(function (column) {
        if (column.values[i] !== null) {
          tip.append(make("div", column.name + ": " + written(column.kind, column.values[i], data.resolution)));
        }
      });
      if (data.bands.length) {
        var number = bandAt(i, event), band = data.bands[number];
        mark(number);
        if (band) {
          tip.append(make("b", band.name), make("div", memory(band.values[i])));
        }
      }
      cursor.style.left = 100 * x + "%";
      cursor.hidden = false;
      tip.dataset.of = "";
      tipAt(event);
    }
    room.addEventListener("pointermove", function (event) {
      tell(event);
      if (dragged !== null) {
        var x = share(event);
        chosen.hidden = false;
        chosen.style.left = 100 * Math.min(x, dragged) + "%";
        chosen.style.width = 100 * Math.abs(x - dragged) + "%";
      }
    });
    room.addEventListener("pointerleave", hide);
    room.addEventListener("pointerdown", function (event) {
      if (event.button !== 0) return;
      dragged = share(event);
      if (event.isTrusted) room.setPointerCapture(event.pointerId);
    });
    room.addEventListener("pointerup", function (event) {
      var start = dragged, end = share(event);
      dragged = null;
      chosen.hidden = true;
      // Less is a click, or more than the picture can show.
      if (start !== null && Math.abs(end - start) > 0.01 && width > 1e-3) {
        show(from + width * Math.min(start, end), width * Math.abs(end - start));
      }
    });
    room.addEventListener("pointercancel", function () { dragged = null; chosen.hidden = true; hide(); });
    room.addEventListener("dblclick", function () { show(0, 1); });
    if (legend && legend.matches(".bands")) {
      Array.from(legend.children).forEach(function (item) {
        item.addEventListener("pointerenter", function () { mark(Number(item.dataset.band)); });
        item.addEventListener("pointerleave", function () { mark(-1); });
      });
    }
  }

  // A canvas of which a part is in view, moved and zoomed by pointer, wheel, keys and buttons; `view` is changed in place.
  function movable(canvas, view, length, least, of) {
    var dragged = null, moved = false, from = null;
    function set(start, end) {
      var size = Math.min(Math.max(end - start, least), length);
      view[0] = Math.min(Math.max(start, 0), length - size);
      view[1] = view[0] + size;
      of.draw();
    }
    function zoom(factor, around) {
      var middle = around === undefined ? (view[0] + view[1]) / 2 : around;
      set(middle - (middle - view[0]) * factor, middle + (view[1] - middle) * factor);
    }
    function pan(share) { var size = view[1] - view[0]; set(view[0] + share * size, view[1] + share * size); }
    function under(event) {
      return view[0] + (event.clientX - canvas.getBoundingClientRect().left - of.left()) / of.wide() * (view[1] - view[0]);
    }
    var acts = Object.assign({
      ArrowLeft: function () { pan(-0.2); }, ArrowRight: function () { pan(0.2); },
      ArrowUp: function () { zoom(0.5); }, ArrowDown: function () { zoom(2); },
      "+": function () { zoom(0.5); }, "=": function () { zoom(0.5); }, "-": function () { zoom(2); },
      Home: function () { set(0, length); }
    }, of.keys);
    canvas.addEventListener("keydown", function (event) {
      if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      acts[event.key]();
    });
    canvas.addEventListener("wheel", function (event) {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.pow(1.0015, event.deltaY), under(event));
    }, {passive: false});
    canvas.addEventListener("pointerdown", function (event) {
      if (event.button !== 0) return;
      dragged = event.clientX;
      moved = false;
      from = view.slice();
      if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", function (event) {
      if (dragged === null) { of.tell(event); return; }
      var by = (dragged - event.clientX) / of.wide() * (from[1] - from[0]);
      if (Math.abs(dragged - event.clientX) > 3) moved = true;
      if (moved) { tip.hidden = true; set(from[0] + by, from[1] + by); }
    });
    canvas.addEventListener("pointerup", function (event) {
      var clicked = dragged !== null && !moved;
      dragged = null;
      if (clicked) of.click(event);
    });
    canvas.addEventListener("pointercancel", function () { dragged = null; });
    canvas.addEventListener("pointerleave", function () { tip.hidden = true; });
    canvas.addEventListener("dblclick", function (event) { zoom(0.25, under(event)); });
    new ResizeObserver(of.draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", of.draw);
    matchMedia("print").addEventListener("change", of.draw);
    return {set: set, under: under, buttons: [
      button("+", function () { zoom(0.5); }, said.page_zoom_in), button("−", function () { zoom(2); }, said.page_zoom_out),
      button("⌂", function () { set(0, length); }, said.page_zoom_all)
    ]};
  }

  // Time as a picture: lanes of boxes on a canvas, of a part of it that is moved and zoomed.
  var TOP = 24, BOTTOM = 22, LANE = 20, HIGH = 17, BETWEEN = 8, timelines = {}, details = {};
  function round(least) {
    var power = Math.pow(10, Math.floor(Math.log10(least)));
    return Math.max([1, 2, 5, 10].find(function (digit) { return digit * power >= least; }) * power, 1);
  }
  // Text in a row of so much room, cut where it has to be.
  function fitted(pen, text, room) {
    if (room < 14) return "";
    if (pen.measureText(text).width <= room) return text;
    var low = 0, high = text.length;
    while (low < high) {
      var middle = (low + high + 1) >> 1;
      if (pen.measureText(text.slice(0, middle) + "…").width <= room) low = middle; else high = middle - 1;
    }
    return low >= 3 ? text.slice(0, low) + "…" : "";
  }
  function timeline(figure) {
    var data = JSON.parse(figure.querySelector("script").textContent), canvas = figure.querySelector("canvas");
    var pen = canvas.getContext("2d"), home = data.view || [0, data.length], view = home.slice();
    var lanes = data.lanes.slice(), at = TOP, gone = null, colours = {};
    if (data.marks && data.marks.length) lanes.unshift({kind: "marks", name: data.findings, boxes: [], apart: false});
    lanes.forEach(function (lane) { if (lane.apart) at += BETWEEN; lane.top = at; at += LANE; });
    var bottom = at, bar = make("div", undefined, "keys"), back = make("a", said.page_to_finding);
    back.hidden = true;
    bar.append(back);
    canvas.before(bar);
    canvas.style.height = bottom + BOTTOM + "px";

    function left() { return Math.min(150, canvas.clientWidth * 0.24); }
    function wide() { return Math.max(canvas.clientWidth - left() - 6, 1); }
    function x(ns) { return left() + wide() * (ns - view[0]) / (view[1] - view[0]); }
    var moves = movable(canvas, view, data.length, 20, {left: left, wide: wide, draw: draw, tell: tell, keys: {
      Enter: nearest, Escape: function () { if (!back.hidden) back.click(); }
    }, click: function (event) {
      var found = under(event);
      if (found && found.mark) read(found.mark);
    }});
    bar.prepend.apply(bar, moves.buttons);
    function seen() {
      var style = getComputedStyle(figure), mark;
      ["fore", "dim", "rule", "link", "back", "worse", "warn", "base"].forEach(function (name) { colours[name] = style.getPropertyValue("--" + name); });
      figure.querySelectorAll("i.k").forEach(function (each) {
        mark = getComputedStyle(each).getPropertyValue("--c");
        each.classList.forEach(function (css) { if (css !== "k") colours["k-" + css] = mark; });
      });
    }
    // Where a finding is, its own picture knows more than the whole: that stands there once there is room for it.
    function parts(lane) {
      var found = [], free = [[view[0], view[1]]];
      (details[figure.parentNode.id] || []).forEach(function (each) {
        var own = each.lanes.find(function (one) { return one.key === lane.key; }), shift = each.start - data.start;
        if (!own || x(shift + each.length) - x(shift) < 120) return;
        free = free.reduce(function (all, gap) {
          var low = Math.max(gap[0], shift), high = Math.min(gap[1], shift + each.length);
          if (low >= high) return all.concat([gap]);
          found.push([each, own.boxes, shift, low, high]);
          return all.concat([[gap[0], low], [high, gap[1]]].filter(function (rest) { return rest[0] < rest[1]; }));
        }, []);
      });
      return found.concat(free.map(function (gap) { return [data, lane.boxes, 0, gap[0], gap[1]]; }));
    }
    function boxes(lane, act) {
      parts(lane).forEach(function (part) {
        var of = part[0], flat = part[1], shift = part[2];
        for (var i = 0; i < flat.length; i += 6) {
          var start = Math.max(flat[i] + shift, part[3]), end = Math.min(flat[i + 1] + shift, part[4]);
          if (start >= end) continue;
          act(x(start), Math.max(x(end) - x(start), 0.8), {
            start: flat[i] + shift, end: flat[i + 1] + shift, names: of.names[flat[i + 2]], kind: of.kinds[flat[i + 3]],
            count: flat[i + 4], busy: flat[i + 5]
          });
        }
      });
    }
    function marks(act) {
      // What is worth most covers the others.
      (data.marks || []).slice().reverse().forEach(function (mark) {
        mark.times.forEach(function (time) {
          if (time[1] > view[0] && time[0] < view[1]) act(x(Math.max(time[0], view[0])), Math.max(x(Math.min(time[1], view[1])) - x(Math.max(time[0], view[0])), 3), mark, time);
        });
      });
    }
    function labelled(lane, box) {
      var name = lane.kind === "idle" ? box.kind[1] : box.names[0];
      return box.count > 1 ? box.count.toLocaleString("en") + " × " + name : name;
    }
    function draw() {
      var ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = bottom + BOTTOM;
      if (!width) return;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.font = "11px system-ui, sans-serif";
      pen.lineWidth = 1;
      seen();
      var step = round((view[1] - view[0]) * 90 / wide());
      for (var tick = Math.ceil(view[0] / step) * step; tick <= view[1]; tick += step) {
        pen.fillStyle = colours.rule;
        pen.fillRect(x(tick), TOP - 4, 1, bottom - TOP + 8);
        pen.fillStyle = colours.dim;
        pen.textAlign = "center";
        pen.fillText(tick ? time(tick, 1).replace(/\.?0+ /, " ") : "0", Math.min(x(tick), width - 24), bottom + 16);
      }
      var band = data.instance || gone;
      if (band) {
        var low = Math.max(x(band[0]), left()), high = Math.min(x(band[1]), width - 6);
        if (high >= left() && low <= width) {
          pen.fillStyle = colours.link;
          pen.globalAlpha = 0.14;
          pen.fillRect(low, TOP - 4, Math.max(high - low, 1), bottom - TOP + 8);
          pen.globalAlpha = 1;
          pen.fillStyle = colours.fore;
          pen.textAlign = "center";
          pen.fillText(band[2] || "", Math.min(Math.max((low + high) / 2, left() + 30), width - 30), TOP - 9);
        }
      }
      lanes.forEach(function (lane) {
        pen.textAlign = "left";
        pen.fillStyle = colours.dim;
        pen.fillText(fitted(pen, lane.name, left() - 8), 0, lane.top + HIGH - 4);
        boxes(lane, function (low, size, box) {
          var full = box.count < 2 || box.busy >= 0.9 * (box.end - box.start);
          var part = full ? HIGH : Math.max(HIGH * box.busy / Math.max(box.end - box.start, 1), 1.5);
          pen.fillStyle = pen.strokeStyle = colours["k-" + box.kind[0]] || colours.dim;
          pen.globalAlpha = box.kind[0] === "untraced" ? 0.14 : 0.42;
          pen.fillRect(low, lane.top + HIGH - part, size, part);
          pen.globalAlpha = 1;
          if (full && size > 3) pen.strokeRect(low + 0.5, lane.top + 0.5, size - 1, HIGH - 1);
          if (size < 22) return;
          var text = fitted(pen, labelled(lane, box), size - 6);
          pen.fillStyle = colours.fore;
          if (text) pen.fillText(text, low + 3, lane.top + HIGH - 5);
        });
        if (lane.kind === "marks") marks(function (low, size, mark) {
          pen.fillStyle = colours[mark.css === "high" ? "worse" : mark.css === "medium" ? "warn" : "base"];
          pen.fillRect(low, lane.top + 3, size, HIGH - 6);
        });
      });
      if (data.launch && data.launch.length) {
        var call = x(data.launch[0]), work = x(data.launch[1]), y = lanes[data.launch[2]].top + HIGH, to = lanes[data.launch[3]].top;
        if (Math.min(call, work) >= left()) {
          pen.strokeStyle = pen.fillStyle = colours.fore;
          pen.beginPath();
          pen.moveTo(call, y);
          pen.bezierCurveTo(call, (y + to) / 2, work, (y + to) / 2, work, to - 3);
          pen.stroke();
          pen.beginPath();
          pen.moveTo(work, to);
          pen.lineTo(work - 3, to - 6);
          pen.lineTo(work + 3, to - 6);
          pen.fill();
        }
      }
      canvas.dataset.view = Math.round(view[0]) + "," + Math.round(view[1]);
    }
    function under(event) {
      var box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top, found = null;
      var lane = lanes.find(function (each) { return py >= each.top && py < each.top + LANE; });
      if (!lane || px < left()) return null;
      boxes(lane, function (low, size, one) { if (px >= low - 1 && px <= low + size + 1) found = {lane: lane, box: one}; });
      if (lane.kind === "marks") marks(function (low, size, mark, time) {
        if (px >= low - 2 && px <= low + size + 2) found = {mark: mark, time: time};
      });
      return found;
    }
    function tell(event) {
      var found = under(event), text;
      canvas.style.cursor = found && found.mark ? "pointer" : "";
      if (!found) { tip.hidden = true; return; }
      var span = found.mark ? found.time : [found.box.start, found.box.end], box = found.box;
      var length = time(span[1] - span[0], data.resolution) + " (+" + time(span[0], data.resolution) + ")";
      if (found.mark) text = found.mark.name;
      else {
        text = box.names[1] || box.names[0];
        var whole = text || box.kind[1];
        if (box.count > 1) whole = say(text ? "excerpt_several" : "excerpt_several_unnamed", {count: box.count, busy: time(box.busy, data.resolution), name: text});
        text = whole + (text && found.lane.kind !== "steps" ? " · " + box.kind[1] : "");
      }
      tip.dataset.of = "";
      tip.replaceChildren(make("b", text), make("div", length));
      tipAt(event);
    }
    function read(mark) { location.hash = mark.at; arrive(); }
    function nearest() {
      var middle = (view[0] + view[1]) / 2, best = null;
      (data.marks || []).forEach(function (mark) {
        mark.times.forEach(function (time) {
          var far = Math.max(time[0] - middle, middle - time[1], 0);
          if (!best || far < best[0]) best = [far, mark];
        });
      });
      if (best) read(best[1]);
    }
    if (data.of) (details[data.of] = details[data.of] || []).push(data);
    else timelines[figure.parentNode.id] = function (span, card) {
      var start = span[0] - data.start, end = span[1] - data.start, room = Math.max(end - start, 10);
      gone = [start, end, time(end - start, data.resolution)];
      back.href = "#" + card;
      back.hidden = false;
      moves.set(start - room, end + room);
      canvas.focus({preventScroll: true});
      figure.scrollIntoView({block: "center"});
    };
    draw();
  }

  // What is closed has no elements until it is opened.
  function unfold(details) {
    var closed = details.querySelector(":scope > noscript");
    if (!closed) return;
    var room = make("div");
    room.innerHTML = closed.textContent;
    closed.replaceWith.apply(closed, Array.from(room.childNodes));
    alive(details).forEach(function (whole) { whole(); });
  }
  function alive(part) {
    part.querySelectorAll("figure.timeline").forEach(timeline);
    part.querySelectorAll("figure.curve").forEach(curve);
    part.querySelectorAll("figure.memory").forEach(function (figure) { memoryPicture(figure); });
    part.querySelectorAll(".command code").forEach(function (code) {
      var copy = button(said.page_copy, function () {
        getSelection().selectAllChildren(code);
        if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).catch(function () {});
        copy.textContent = said.page_copied;
      });
      code.after(" ", copy);
    });
    return Array.from(part.querySelectorAll(".wide"), table);
  }
  alive(document);
  document.addEventListener("toggle", function (event) {
    if (event.target.tagName === "DETAILS" && event.target.open) unfold(event.target);
  }, true);
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a.place");
    if (!link) return;
    arrive(link.hash);
    var at = link.hash.slice(1), blocks = document.getElementById(at).querySelector("figure.memory");
    function go() {
      timelines[at](link.dataset.line === undefined ? link.dataset.span.split(",").map(Number) : link.dataset.line, link.closest(".card").id);
    }
    if (!timelines[at] && !(blocks && blocks.ready)) return;
    event.preventDefault();
    history.pushState(null, "", link.hash);
    if (timelines[at]) go(); else blocks.ready.then(go);
  });

  // A link to a closed part opens it, and all around it.
  function arrive(hash) {
    var target = document.getElementById(decodeURIComponent((typeof hash === "string" ? hash : location.hash).slice(1)));
    if (!target) return;
    for (var part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") { unfold(part); part.open = true; }
    }
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", arrive);
  arrive();
