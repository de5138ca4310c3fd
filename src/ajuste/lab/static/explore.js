// All trials of a run as linked plots: what is chosen in one is chosen in all. Columns of plain numbers, drawn on canvas.
(function () {
  "use strict";
  const about = JSON.parse(document.getElementById("explored").textContent);
  const place = (id) => document.getElementById(id);
  const chooseY = place("metric-y"), chooseX = place("metric-x");
  const WARM_UP = 3, MOST_VECTORS = 20000, FONT = "12px system-ui, sans-serif";
  const columns = new Map();
  const off = new Set();
  let configuration = new Int32Array(0), status = new Int32Array(0);
  let x = new Float64Array(0), y = new Float64Array(0);
  let shown = new Uint32Array(0);
  let chosen = null; // a byte for each trial, or null: nothing is chosen
  let brush = null; // { view, x0, x1, y0, y1 } in the figures of the view
  let waiting = false;

  async function column(key, name, kind) {
    const address = `/runs/${encodeURIComponent(about.run)}/column?${key}=${encodeURIComponent(name)}`;
    if (!columns.has(address)) {
      const answer = await fetch(address);
      if (!answer.ok) throw new Error(answer.statusText || "not found");
      columns.set(address, new kind(await answer.arrayBuffer()));
    }
    return columns.get(address);
  }

  const hue = (at) => axes.series(about.configurations[at].hue);
  const metricOf = (name) => about.metrics.find((one) => one.name === name) || { title: name, unit: "" };
  const titled = (name) => { const one = metricOf(name); return one.unit && one.unit !== "1" && one.unit !== "count" ? `${one.title}, ${one.unit}` : one.title; };

  // Two pens that draw the same: on a canvas, or as SVG.
  function canvasPen(context) {
    return {
      line(points, colour, width, alpha, dash) {
        context.globalAlpha = alpha === undefined ? 1 : alpha;
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.setLineDash(dash || []);
        context.beginPath();
        points.forEach(([a, b], n) => (n ? context.lineTo(a, b) : context.moveTo(a, b)));
        context.stroke();
        context.globalAlpha = 1;
      },
      text(words, a, b, colour, align) {
        context.font = FONT;
        context.fillStyle = colour;
        context.textAlign = align || "start";
        context.fillText(words, a, b);
      },
      dots(xs, ys, count, colour, size, alpha) {
        context.globalAlpha = alpha;
        context.fillStyle = colour;
        const half = size / 2;
        for (let n = 0; n < count; n++) context.fillRect(xs[n] - half, ys[n] - half, size, size);
        context.globalAlpha = 1;
      },
    };
  }

  function svgPen(parts) {
    const escaped = (text) => text.replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one]);
    const round = (value) => Math.round(value * 100) / 100;
    return {
      line(points, colour, width, alpha, dash) {
        const way = points.map(([a, b]) => `${round(a)},${round(b)}`).join(" ");
        parts.push(`<polyline points="${way}" fill="none" stroke="${colour}" stroke-width="${width}"${alpha === undefined ? "" : ` opacity="${alpha}"`}${dash ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`);
      },
      text(words, a, b, colour, align) {
        const anchor = { end: "end", center: "middle" }[align] || "start";
        parts.push(`<text x="${round(a)}" y="${round(b)}" fill="${colour}" text-anchor="${anchor}" font-size="12" font-family="system-ui, sans-serif">${escaped(words)}</text>`);
      },
      dots(xs, ys, count, colour, size, alpha) {
        if (count > MOST_VECTORS) {
          // So many squares no program opens quickly: they become one picture.
          const sheet = document.createElement("canvas");
          sheet.width = 2 * svgPen.width;
          sheet.height = 2 * svgPen.height;
          const context = sheet.getContext("2d");
          context.scale(2, 2);
          canvasPen(context).dots(xs, ys, count, colour, size, alpha);
          parts.push(`<image width="${svgPen.width}" height="${svgPen.height}" href="${sheet.toDataURL()}"/>`);
          return;
        }
        const squares = [];
        for (let n = 0; n < count; n++) squares.push(`M${round(xs[n] - size / 2)} ${round(ys[n] - size / 2)}h${size}v${size}h-${size}z`);
        parts.push(`<path d="${squares.join("")}" fill="${colour}" opacity="${alpha}"/>`);
      },
    };
  }

  function extent(values, among) {
    let low = Infinity, high = -Infinity;
    for (let n = 0; n < among.length; n++) {
      const value = values[among[n]];
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low <= high ? axes.padded(low, high) : [0, 1];
  }

  // The room of a plot between its axes, and the ways from figures to pixels and back.
  function frame(view, across, up) {
    const marksUp = axes.ticks(up[0], up[1], 5), textsUp = view.upLabels || axes.labels(marksUp);
    const left = 12 + 7 * Math.max(2, ...textsUp.map((one) => one.length));
    const room = { left: left, right: view.width - 14, top: 24, bottom: view.height - 40 };
    return {
      room, across, up, marksUp, textsUp,
      x: (value) => room.left + ((room.right - room.left) * (value - across[0])) / (across[1] - across[0]),
      y: (value) => room.bottom - ((room.bottom - room.top) * (value - up[0])) / (up[1] - up[0]),
      fromX: (pixel) => across[0] + ((across[1] - across[0]) * (pixel - room.left)) / (room.right - room.left),
      fromY: (pixel) => up[0] + ((up[1] - up[0]) * (room.bottom - pixel)) / (room.bottom - room.top),
    };
  }

  function drawAxes(pen, own, titleAcross, titleUp) {
    const { room, across } = own, muted = axes.colour("muted"), grid = axes.colour("grid"), line = axes.colour("line");
    own.marksUp.forEach((mark, n) => {
      pen.line([[room.left, own.y(mark)], [room.right, own.y(mark)]], grid, 1);
      pen.text(own.textsUp[n], room.left - 7, own.y(mark) + 4, muted, "end");
    });
    const marks = axes.ticks(across[0], across[1], Math.max(2, Math.floor((room.right - room.left) / 90)));
    axes.labels(marks).forEach((text, n) => {
      pen.line([[own.x(marks[n]), room.bottom], [own.x(marks[n]), room.bottom + 4]], line, 1);
      pen.text(text, own.x(marks[n]), room.bottom + 17, muted, "center");
    });
    pen.line([[room.left, room.top], [room.left, room.bottom], [room.right, room.bottom]], line, 1);
    pen.text(titleUp, 4, 14, muted, "start");
    pen.text(titleAcross, room.right, room.bottom + 34, muted, "end");
  }

  function perConfiguration(among) {
    const counts = new Uint32Array(about.configurations.length);
    for (let n = 0; n < among.length; n++) counts[configuration[among[n]]]++;
    const lists = Array.from(counts, (count) => new Uint32Array(count));
    counts.fill(0);
    for (let n = 0; n < among.length; n++) { const at = configuration[among[n]]; lists[at][counts[at]++] = among[n]; }
    return lists;
  }

  function dots(pen, own, valuesX, among, alpha, only) {
    const size = among.length > 20000 ? 2 : among.length > 2000 ? 3 : 6;
    perConfiguration(among).forEach((list, at) => {
      const xs = new Float32Array(list.length), ys = new Float32Array(list.length);
      let count = 0;
      for (let n = 0; n < list.length; n++) {
        const trial = list[n];
        if (only && !only[trial]) continue;
        xs[count] = own.x(valuesX ? valuesX[trial] : trial);
        ys[count++] = own.y(y[trial]);
      }
      if (count) pen.dots(xs, ys, count, hue(at), size, alpha);
    });
  }

  function ecdfLines(pen, own, among, alpha, only) {
    perConfiguration(among).forEach((list, at) => {
      let values;
      if (only) {
        values = Float64Array.from(list.filter((trial) => only[trial]), (trial) => y[trial]).sort();
      } else {
        values = lists.sorted[at] || (lists.sorted[at] = Float64Array.from(list, (trial) => y[trial]).sort());
      }
      if (!values.length) return;
      const step = Math.max(1, Math.floor(values.length / 1500)), points = [[own.x(values[0]), own.y(0)]];
      for (let n = 0; n < values.length; n += step) {
        if (values.length <= 300) points.push([own.x(values[n]), own.y(n / values.length)]);
        points.push([own.x(values[n]), own.y((n + 1) / values.length)]);
      }
      points.push([own.x(values[values.length - 1]), own.y(1)]);
      pen.line(points, hue(at), 2, alpha);
    });
  }
  const lists = { sorted: [] };

  // Levels as numbers where all are, or else in their order.
  const levels = about.factors.map((name) => {
    const texts = [...new Set(about.configurations.map((one) => one.levels[name] || ""))];
    const numbers = texts.map(Number), plain = texts.every((one) => one.trim() !== "") && numbers.every(Number.isFinite);
    const order = plain ? texts.slice().sort((a, b) => a - b) : texts;
    return { name, order, at: (one) => order.indexOf(one.levels[name] || "") / Math.max(1, order.length - 1) };
  });

  function means(among, only) {
    const sums = new Float64Array(about.configurations.length), counts = new Uint32Array(about.configurations.length);
    for (let n = 0; n < among.length; n++) {
      const trial = among[n];
      if (only && !only[trial]) continue;
      sums[configuration[trial]] += y[trial];
      counts[configuration[trial]]++;
    }
    return Array.from(sums, (sum, at) => (counts[at] ? sum / counts[at] : NaN));
  }

  const views = {
    order: {
      frame(view) { return frame(view, [-0.5, Math.max(1, about.count) - 0.5], extent(y, shown)); },
      axes(pen, own) { drawAxes(pen, own, "trials in order", titled(chooseY.value)); },
      marks(pen, own, alpha, only) { dots(pen, own, null, shown, alpha, only); },
      within(trial, one) { return trial >= one.x0 && trial <= one.x1 && y[trial] >= one.y0 && y[trial] <= one.y1; },
    },
    ecdf: {
      frame(view) { return frame(view, extent(y, shown), [0, 1]); },
      axes(pen, own) { drawAxes(pen, own, titled(chooseY.value), "share of trials up to this value"); },
      marks(pen, own, alpha, only) { ecdfLines(pen, own, shown, alpha, only); },
      within(trial, one) { return y[trial] >= one.x0 && y[trial] <= one.x1; },
      tall: true,
    },
    scatter: {
      frame(view) { return frame(view, extent(x, shown), extent(y, shown)); },
      axes(pen, own) { drawAxes(pen, own, titled(chooseX.value), titled(chooseY.value)); },
      marks(pen, own, alpha, only) { dots(pen, own, x, shown, alpha, only); },
      within(trial, one) { return x[trial] >= one.x0 && x[trial] <= one.x1 && y[trial] >= one.y0 && y[trial] <= one.y1; },
    },
    parallel: {
      frame(view) {
        const room = { left: 70, right: view.width - 80, top: 28, bottom: view.height - 20 };
        const found = means(shown, null), finite = found.filter(Number.isFinite);
        const [low, high] = finite.length ? axes.padded(Math.min(...finite), Math.max(...finite)) : [0, 1];
        return {
          room, low, high,
          x: (value) => room.left + ((room.right - room.left) * value) / levels.length,
          y: (value) => room.bottom - (room.bottom - room.top) * value,
          fromX: (pixel) => ((pixel - room.left) / (room.right - room.left)) * levels.length,
          fromY: (pixel) => (room.bottom - pixel) / (room.bottom - room.top),
        };
      },
      axes(pen, own) {
        const muted = axes.colour("muted"), line = axes.colour("line");
        [...levels.map((one) => one.name), titled(chooseY.value)].forEach((name, at) => {
          pen.line([[own.x(at), own.room.top], [own.x(at), own.room.bottom]], line, 1);
          pen.text(name.length > 24 ? name.slice(0, 23) + "…" : name, own.x(at), 16, muted, "center");
          const few = at < levels.length && levels[at].order.length <= 12 ? levels[at].order : null;
          if (few) few.forEach((text, n) => pen.text(text.length > 12 ? text.slice(0, 11) + "…" : text, own.x(at) + 6, own.y(n / Math.max(1, few.length - 1)) + 4, muted, "start"));
        });
        [own.low, own.high].forEach((value, n) => pen.text(axes.figure(value), own.x(levels.length) + 6, own.y(n) + 4, muted, "start"));
      },
      marks(pen, own, alpha, only) {
        means(shown, only).forEach((value, at) => {
          if (!Number.isFinite(value)) return;
          const points = levels.map((one, n) => [own.x(n), own.y(one.at(about.configurations[at]))]);
          points.push([own.x(levels.length), own.y((value - own.low) / (own.high - own.low))]);
          pen.line(points, hue(at), about.configurations.length > 60 ? 1 : 2, alpha * 0.85);
        });
      },
      // The axis in the middle of the rectangle decides.
      prepared(one, own) {
        const axis = Math.max(0, Math.min(levels.length, Math.round((one.x0 + one.x1) / 2)));
        return means(shown, null).map((value, at) => {
          const height = axis < levels.length ? levels[axis].at(about.configurations[at]) : (value - own.low) / (own.high - own.low);
          return height >= one.y0 && height <= one.y1;
        });
      },
      within(trial, one) { return one.which[configuration[trial]]; },
    },
  };

  function draw(name, withBase) {
    const view = views[name];
    if (!view.canvas || !view.width) return;
    const scale = view.scale, context = view.canvas.getContext("2d");
    if (withBase) {
      view.own = view.frame(view);
      view.base = view.base || document.createElement("canvas");
      view.base.width = view.canvas.width;
      view.base.height = view.canvas.height;
      const under = view.base.getContext("2d");
      under.setTransform(scale, 0, 0, scale, 0, 0);
      view.marks(canvasPen(under), view.own, shown.length > 5000 ? 0.35 : 0.8, null);
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, view.canvas.width, view.canvas.height);
    context.globalAlpha = chosen ? 0.16 : 1;
    context.drawImage(view.base, 0, 0);
    context.globalAlpha = 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const pen = canvasPen(context);
    view.axes(pen, view.own);
    if (chosen) view.marks(pen, view.own, 0.9, chosen);
    if (brush && brush.view === name) {
      const own = view.own, a = own.x(brush.x0), b = own.x(brush.x1);
      const top = view.tall ? own.room.top : own.y(brush.y1), bottom = view.tall ? own.room.bottom : own.y(brush.y0);
      pen.line([[a, top], [b, top], [b, bottom], [a, bottom], [a, top]], axes.colour("accent"), 1.5, 1, [4, 3]);
    }
  }

  function drawAll(withBase) {
    Object.keys(views).forEach((name) => draw(name, withBase));
  }

  function soon(withBase) {
    soon.base = soon.base || withBase;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const base = soon.base;
      soon.base = false;
      drawAll(base);
    });
  }

  function choose() {
    if (!brush) {
      chosen = null;
    } else {
      const view = views[brush.view];
      if (view.prepared) brush.which = view.prepared(brush, view.own || view.frame(view));
      chosen = chosen || new Uint8Array(about.count);
      chosen.fill(0);
      for (let n = 0; n < shown.length; n++) if (view.within(shown[n], brush)) chosen[shown[n]] = 1;
    }
    summarise();
  }

  function summarise() {
    let count = 0;
    if (chosen) for (let n = 0; n < chosen.length; n++) count += chosen[n];
    const all = shown.length.toLocaleString("en");
    place("explore-status").textContent = chosen ? `${count.toLocaleString("en")} of ${all} trials are chosen.` : `${all} trials are shown.`;
    clearTimeout(summarise.later);
    summarise.later = setTimeout(() => { fillSummary(); remember(); }, 120);
  }

  function fillSummary() {
    const table = place("explore-summary");
    table.replaceChildren();
    const caption = table.createCaption();
    caption.textContent = titled(chooseY.value) + (chosen ? ", chosen trials" : "");
    caption.className = "unseen";
    const head = table.createTHead().insertRow();
    ["Configuration", "Trials", "Mean", "Median", "SD", "Least", "Most"].forEach((text, n) => {
      const cell = document.createElement("th");
      cell.textContent = text;
      cell.scope = "col";
      if (n) cell.className = "figure";
      head.append(cell);
    });
    const body = table.createTBody();
    perConfiguration(shown).slice(0, 200).forEach((list, at) => {
      const own = chosen ? list.filter((trial) => chosen[trial]) : list;
      if (!own.length) return;
      const values = Float64Array.from(own, (trial) => y[trial]).sort();
      const mean = values.reduce((sum, one) => sum + one, 0) / values.length;
      const sd = values.length > 1 ? Math.sqrt(values.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (values.length - 1)) : NaN;
      const middle = values.length >> 1, median = values.length % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
      const row = body.insertRow();
      const name = document.createElement("th");
      name.scope = "row";
      name.textContent = about.configurations[at].name;
      row.append(name);
      [values.length.toLocaleString("en"), ...[mean, median, sd, values[0], values[values.length - 1]].map(axes.figure)].forEach((text) => {
        const cell = row.insertCell();
        cell.className = "figure";
        cell.textContent = text;
      });
    });
  }

  function filter() {
    const every = place("all-statuses").checked, found = [];
    for (let trial = 0; trial < about.count; trial++) {
      if ((every || status[trial] === 0) && !off.has(configuration[trial]) && Number.isFinite(y[trial])) found.push(trial);
    }
    shown = Uint32Array.from(found);
    lists.sorted = [];
    choose();
    soon(true);
  }

  // What is shown is in the address, so that others see the same.
  function remember() {
    const said = new URLSearchParams({ y: chooseY.value, x: chooseX.value });
    if (off.size) said.set("off", [...off].join(","));
    if (place("all-statuses").checked) said.set("all", "yes");
    if (brush) said.set("chosen", [brush.view, brush.x0, brush.x1, brush.y0, brush.y1].join(","));
    history.replaceState(null, "", location.pathname + "#" + said);
  }

  function recall() {
    const said = new URLSearchParams(location.hash.slice(1));
    const known = (name) => about.metrics.some((one) => one.name === name);
    if (known(said.get("y"))) chooseY.value = said.get("y");
    chooseX.value = known(said.get("x")) ? said.get("x") : (about.metrics.find((one) => one.name !== chooseY.value) || about.metrics[0]).name;
    (said.get("off") || "").split(",").filter(Boolean).forEach((one) => off.add(Number(one)));
    place("all-statuses").checked = said.get("all") === "yes";
    const [view, ...ends] = (said.get("chosen") || "").split(",");
    if (views[view] && ends.length === 4 && ends.every((one) => Number.isFinite(Number(one)))) {
      const [x0, x1, y0, y1] = ends.map(Number);
      brush = { view, x0, x1, y0, y1 };
    }
  }

  async function load() {
    try {
      [configuration, status, y, x] = await Promise.all([
        column("name", "configuration", Int32Array),
        column("name", "status", Int32Array),
        column("metric", chooseY.value, Float64Array),
        column("metric", chooseX.value, Float64Array),
      ]);
    } catch (error) {
      place("explore-status").textContent = "The trials could not be loaded: " + error.message;
      return;
    }
    filter();
    document.documentElement.dataset.explored = "yes";
  }

  function legend() {
    place("explore-legend").replaceChildren(
      ...about.configurations.slice(0, 60).map((one, at) => {
        const item = document.createElement("li"), button = document.createElement("button"), swatch = document.createElement("span");
        button.type = "button";
        button.setAttribute("aria-pressed", String(!off.has(at)));
        swatch.className = "swatch";
        swatch.style.background = hue(at);
        button.append(swatch, one.name + (one.baseline ? " (baseline)" : ""));
        button.addEventListener("click", () => {
          if (off.has(at)) off.delete(at);
          else off.add(at);
          button.setAttribute("aria-pressed", String(!off.has(at)));
          filter();
        });
        item.append(button);
        return item;
      })
    );
  }

  function setBrush(name, a, b, c, d) {
    brush = { view: name, x0: Math.min(a, b), x1: Math.max(a, b), y0: Math.min(c, d), y1: Math.max(c, d) };
    choose();
    soon(false);
  }

  function clear() {
    brush = null;
    place("from").value = place("to").value = "";
    choose();
    soon(false);
  }

  function brushing(name, canvas) {
    const view = views[name];
    let from = null;
    const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener("pointerdown", (event) => { from = at(event); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) return;
      const [a, b] = at(event), own = view.own;
      if (Math.abs(a - from[0]) < 3 && Math.abs(b - from[1]) < 3) return;
      setBrush(name, own.fromX(from[0]), own.fromX(a), own.fromY(from[1]), own.fromY(b));
    });
    canvas.addEventListener("pointerup", (event) => {
      if (from && at(event).every((one, n) => Math.abs(one - from[n]) < 3)) clear();
      from = null;
    });
    // Without a pointer: arrows move a window over the plot, up and down make it wider and narrower.
    canvas.addEventListener("keydown", (event) => {
      const own = view.own, low = own.fromX(own.room.left), high = own.fromX(own.room.right), all = high - low;
      const had = brush && brush.view === name ? brush : { x0: low, x1: low + all / 10 };
      const width = had.x1 - had.x0;
      const steps = { ArrowRight: [width / 2, 0], ArrowLeft: [-width / 2, 0], ArrowUp: [-all / 40, all / 40], ArrowDown: [all / 80, -all / 80] };
      if (event.key === "Escape") clear();
      if (!steps[event.key]) return;
      event.preventDefault();
      const sideways = event.key === "ArrowRight" || event.key === "ArrowLeft", [a, b] = steps[event.key];
      const x0 = had.x0 + a, x1 = sideways ? x0 + width : Math.max(x0 + all / 100, had.x1 + b);
      setBrush(name, Math.max(low, x0), Math.min(high, x1), own.fromY(own.room.bottom), own.fromY(own.room.top));
    });
  }

  function saveView(name, form) {
    const view = views[name], stem = `${about.run}-${name}`;
    if (form === "png") {
      const sheet = document.createElement("canvas");
      sheet.width = view.canvas.width;
      sheet.height = view.canvas.height;
      const context = sheet.getContext("2d");
      context.fillStyle = axes.colour("card");
      context.fillRect(0, 0, sheet.width, sheet.height);
      context.drawImage(view.canvas, 0, 0);
      sheet.toBlob((blob) => axes.save(stem + ".png", blob));
      return;
    }
    const parts = [];
    svgPen.width = view.width;
    svgPen.height = view.height;
    const pen = svgPen(parts);
    view.axes(pen, view.own);
    if (chosen) {
      view.marks(pen, view.own, 0.12, null);
      view.marks(pen, view.own, 0.9, chosen);
    } else {
      view.marks(pen, view.own, 0.8, null);
    }
    const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${view.width} ${view.height}" width="${view.width}" height="${view.height}"><rect width="100%" height="100%" fill="${axes.colour("card")}"/>`;
    axes.save(stem + ".svg", head + parts.join("") + "</svg>", "image/svg+xml");
  }

  // Spreadsheets read what begins with = as a formula: it is text here.
  function quoted(text) {
    const plain = /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return '"' + plain.replaceAll('"', '""') + '"';
  }

  async function saveCsv() {
    const [block, position] = await Promise.all([column("name", "block", Int32Array), column("name", "position", Int32Array)]);
    const lines = [["block", "position", "configuration", "status", chooseY.value, chooseX.value].map(quoted).join(",")];
    for (let n = 0; n < shown.length; n++) {
      const trial = shown[n];
      if (chosen && !chosen[trial]) continue;
      const word = status[trial] === WARM_UP ? "warm-up" : about.statuses[status[trial]];
      lines.push([block[trial], position[trial], quoted(about.configurations[configuration[trial]].name), word, y[trial], Number.isNaN(x[trial]) ? "" : x[trial]].join(","));
    }
    axes.save(about.run + "-trials.csv", lines.join("\r\n") + "\r\n", "text/csv");
  }

  document.querySelectorAll("[data-view]").forEach((figure) => {
    const name = figure.dataset.view;
    if (name === "parallel" && about.factors.length < 2) {
      figure.remove();
      return;
    }
    const view = views[name];
    view.canvas = figure.querySelector("canvas");
    view.canvas.setAttribute("aria-label", figure.querySelector(".caption").textContent + ". Drag, or use the arrow keys, to choose trials; Escape clears.");
    figure.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => saveView(name, button.dataset.save)));
    brushing(name, view.canvas);
    new ResizeObserver(() => {
      view.scale = Math.min(2, window.devicePixelRatio || 1);
      view.width = view.canvas.clientWidth;
      view.height = view.canvas.clientHeight;
      view.canvas.width = Math.round(view.width * view.scale);
      view.canvas.height = Math.round(view.height * view.scale);
      soon(true);
    }).observe(view.canvas);
  });

  place("explore-form").addEventListener("submit", (event) => event.preventDefault());
  place("all-statuses").addEventListener("change", filter);
  chooseY.addEventListener("change", () => { brush = null; load(); });
  chooseX.addEventListener("change", () => { if (brush && brush.view === "scatter") brush = null; load(); });
  [place("from"), place("to")].forEach((input) =>
    input.addEventListener("change", () => {
      const bound = (one, otherwise) => (one.value.trim() && Number.isFinite(Number(one.value)) ? Number(one.value) : otherwise);
      setBrush("ecdf", bound(place("from"), -Number.MAX_VALUE), bound(place("to"), Number.MAX_VALUE), 0, 1);
    })
  );
  place("clear-selection").addEventListener("click", clear);
  place("save-csv").addEventListener("click", saveCsv);
  place("copy-address").addEventListener("click", async (event) => {
    remember();
    try {
      await navigator.clipboard.writeText(location.href);
      event.target.textContent = "Copied";
    } catch (error) {
      event.target.textContent = "It is in the address bar";
    }
    setTimeout(() => { event.target.textContent = "Copy address"; }, 2000);
  });
  place("theme").addEventListener("click", () => { legend(); soon(true); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { legend(); soon(true); });

  if (about.metrics.length) {
    recall();
    legend();
    load();
  } else {
    place("explore-status").textContent = "No trial has a metric.";
  }
})();
