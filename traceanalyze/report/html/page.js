"use strict";
(function () {
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
  document.querySelectorAll("table.sortable").forEach(function (table) {
    var body = table.tBodies[0], original = Array.from(body.rows), heads = Array.from(table.tHead.lastElementChild.cells);
    table.classList.add("sorts");
    function sort(at) {
      var head = heads[at], before = head.getAttribute("aria-sort");
      var first = head.classList.contains("n") ? "descending" : "ascending";
      var second = first === "ascending" ? "descending" : "ascending";
      var now = before === null ? first : before === first ? second : null;
      heads.forEach(function (each) { each.removeAttribute("aria-sort"); });
      var rows = original.slice();
      if (now !== null) {
        head.setAttribute("aria-sort", now);
        var sign = now === "ascending" ? 1 : -1;
        rows.sort(function (x, y) {
          var a = keyOf(x, at), b = keyOf(y, at);
          // What is missing is last, whatever the direction.
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * compare(a, b);
        });
      }
      body.append.apply(body, rows);
    }
    heads.forEach(function (head, at) {
      head.tabIndex = 0;
      head.addEventListener("click", function () { sort(at); });
      head.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(at); }
      });
    });
  });

  // A link to a closed part opens it.
  function open() {
    var target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", open);
  open();

  var tip = make("div", undefined, "tip");
  tip.hidden = true;
  document.body.append(tip);

  document.querySelectorAll("figure.curve").forEach(function (figure) {
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
        var sum = data.bands.reduce(function (all, band) { return all + band.values[i]; }, 0);
        if (data.sum) tip.append(make("div", data.sum + ": " + memory(sum)));
        var number = bandAt(i, event), band = data.bands[number];
        mark(number);
        if (band) {
          tip.append(make("b", band.name));
          var count = band.blocks.length ? ", " + data.blocks + ": " + written("count", band.blocks[i], 1) : "";
          tip.append(make("div", memory(band.values[i]) + count));
          if (band.stack.length) tip.append(make("pre", band.stack.join("\n")));
        }
      }
      cursor.style.left = 100 * x + "%";
      tip.hidden = cursor.hidden = false;
      var size = tip.getBoundingClientRect();
      var left = event.clientX + 14, height = event.clientY + 14;
      if (left + size.width > window.innerWidth - 8) left = event.clientX - size.width - 14;
      if (height + size.height > window.innerHeight - 8) height = event.clientY - size.height - 14;
      tip.style.left = Math.max(left, 8) + "px";
      tip.style.top = Math.max(height, 8) + "px";
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
  });
})();
