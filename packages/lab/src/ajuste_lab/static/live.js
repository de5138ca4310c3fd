// A run while it goes on: trials as they are measured, intervals as they narrow.
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const drawn = JSON.parse(document.getElementById("drawn").textContent);
  const place = (id) => document.getElementById(id);
  const chooser = place("live-metric");
  const trials = [];
  const configurations = drawn.configurations.slice();
  let verdicts = [], names = {};

  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    Object.entries(attributes || {}).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function metric() {
    const name = chooser ? chooser.value : (drawn.metrics[0] || { name: "" }).name;
    return drawn.metrics.find((one) => one.name === name) || drawn.metrics[0];
  }

  function shape(kind, x, y, colour, hollow) {
    const style = hollow ? { fill: "none", stroke: colour, "stroke-width": 1.5 } : { fill: colour };
    if (kind === 1) return element("rect", { x: x - 3.5, y: y - 3.5, width: 7, height: 7, ...style });
    if (kind === 2) return element("path", { d: `M${x} ${y - 5}l5 5-5 5-5-5z`, ...style });
    if (kind === 3) return element("path", { d: `M${x} ${y - 4.6}l4.6 8h-9.2z`, ...style });
    return element("circle", { cx: x, cy: y, r: 4, ...style });
  }

  function drawTrials() {
    const box = place("live-plot");
    const own = metric();
    const shown = own ? trials.filter((one) => Number.isFinite(one.m[own.name])) : [];
    const width = Math.max(280, box.clientWidth), height = 280;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    if (shown.length) {
      const values = shown.map((one) => one.m[own.name]);
      const [low, high] = axes.padded(Math.min(...values), Math.max(...values));
      const marks = axes.ticks(low, high, 5);
      const texts = axes.labels(marks);
      const left = 14 + 7.2 * Math.max(...texts.map((one) => one.length));
      const room = { right: width - 12, top: 22, bottom: height - 28 };
      const x = (n) => left + 10 + ((room.right - left - 20) * (n + 0.5)) / Math.max(shown.length, 12);
      const y = (v) => room.bottom - ((room.bottom - room.top) * (v - low)) / (high - low);
      marks.forEach((mark, n) => {
        svg.append(element("line", { class: "grid", x1: left, x2: room.right, y1: y(mark), y2: y(mark) }));
        svg.append(element("text", { x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, texts[n]));
      });
      svg.append(element("line", { class: "axis", x1: left, x2: room.right, y1: room.bottom, y2: room.bottom }));
      svg.append(element("text", { x: left, y: 13 }, own.unit ? own.title + ", " + own.unit : own.title));
      svg.append(element("text", { x: room.right, y: height - 8, "text-anchor": "end" }, "trials in order"));
      shown.forEach((one, n) => {
        const at = configurations.indexOf(one.c);
        const mark = shape(at % 4, x(n), y(one.m[own.name]), axes.series(at), one.s !== "ok" || one.w);
        mark.append(element("title", {}, `${one.c}, block ${one.b}: ${axes.figure(one.m[own.name])} ${own.unit}${one.s !== "ok" ? ", " + one.s : ""}`));
        svg.append(mark);
      });
    }
    box.replaceChildren(svg);
    box.setAttribute("aria-label", own ? `${own.title} of ${shown.length} trials, in order` : "No trials yet");
    if (own) place("live-caption").textContent = own.title + " of each trial, in order";
  }

  function drawLegend() {
    const glyph = (n) => {
      const svg = element("svg", { class: "glyph", viewBox: "-7 -7 14 14", "aria-hidden": "true" });
      svg.append(shape(n % 4, 0, 0, axes.series(n), false));
      return svg;
    };
    place("live-legend").replaceChildren(
      ...configurations.slice(0, 24).map((name, n) => {
        const item = document.createElement("li");
        const text = document.createElement("span");
        text.textContent = (names[name] || name) + (name === drawn.baseline ? " (baseline)" : "");
        text.title = name;
        item.append(glyph(n), text);
        return item;
      })
    );
  }

  function badge(row) {
    const made = document.createElement("span");
    made.className = "badge " + row.verdict;
    const sign = document.createElement("span");
    sign.className = "sign";
    sign.setAttribute("aria-hidden", "true");
    sign.textContent = row.sign;
    made.append(sign, row.verdict + (row.open && row.verdict !== "undecided" ? ", not precise yet" : ""));
    return made;
  }

  // Intervals of one metric on one scale, so that they can be compared by eye. An end that is beyond the picture is an
  // arrow; one that is not known yet is dashed, too.
  function interval(row, rows) {
    const same = rows.filter((one) => one.metric === row.metric && one.scale === row.scale);
    const ratio = row.scale === "ratio";
    const to = (v) => (ratio ? Math.log(Math.max(v, 1e-9)) : v);
    const sizes = (values) => values.filter((v) => v !== null).map((v) => Math.abs(to(v))).filter(Number.isFinite);
    const near = Math.max(...sizes(same.map((one) => one.at)), ratio ? 2 * drawn.smallest : 1e-12);
    const ends = Math.max(0, ...sizes(same.flatMap((one) => [one.low, one.high])));
    const reach = 1.1 * Math.max(near, Math.min(8 * near, ends));
    const W = 300, H = 26, M = H / 2;
    const x = (v) => W / 2 + (Math.max(-1, Math.min(1, v / reach)) * (W - 16)) / 2;
    const svg = element("svg", { class: "interval", viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    if (ratio) {
      const a = x(Math.log(1 - drawn.smallest)), b = x(Math.log(1 + drawn.smallest));
      svg.append(element("rect", { x: a, y: 2, width: Math.max(1, b - a), height: H - 4, fill: axes.colour("band") }));
    }
    svg.append(element("line", { x1: W / 2, x2: W / 2, y1: 0, y2: H, stroke: axes.colour("muted"), "stroke-dasharray": "3 3" }));
    if (row.at === null) return svg;
    const colour = axes.colour(row.verdict), middle = x(to(row.at));
    [[row.low, -1], [row.high, 1]].forEach(([bound, side]) => {
      const known = bound !== null && Number.isFinite(to(bound));
      const cut = !known || Math.abs(to(bound)) > reach;
      const end = x(known ? to(bound) : side * reach);
      const line = { x1: middle, x2: end, y1: M, y2: M, stroke: colour, "stroke-width": 3 };
      svg.append(element("line", known ? line : { ...line, "stroke-dasharray": "7 6" }));
      if (cut) svg.append(element("path", { class: "open-end", d: `M${end + 8 * side} ${M}l${-11 * side} -8v16z`, fill: colour }));
    });
    svg.append(element("rect", { x: middle - 3, y: M - 6, width: 6, height: 12, rx: 2, fill: colour }));
    return svg;
  }

  function drawEffects() {
    if (!verdicts.length) return;
    const table = document.createElement("table");
    table.className = "stacked effects";
    const cell = (row, kind, label, ...content) => {
      const made = document.createElement(kind);
      if (label) made.dataset.label = label;
      made.append(...content);
      row.append(made);
      return made;
    };
    const head = table.createTHead().insertRow();
    ["Configuration", "Effect", "Interval", "Verdict"].forEach((text) => (cell(head, "th", "", text).scope = "col"));
    const groups = new Map();
    verdicts.slice(0, 200).forEach((row) => groups.set(row.metric, [...(groups.get(row.metric) || []), row]));
    groups.forEach((rows, name) => {
      const body = table.createTBody();
      if (groups.size > 1) {
        const title = body.insertRow();
        title.className = "group";
        const head = cell(title, "th", "", name);
        head.colSpan = 4;
        head.scope = "rowgroup";
      }
      rows.forEach((row) => {
        const line = body.insertRow();
        cell(line, "th", "", row.name).scope = "row";
        const effect = document.createElement("span");
        effect.append(row.estimate, " ", Object.assign(document.createElement("span"), { className: "spread", textContent: row.interval }));
        cell(line, "td", "Effect", effect);
        cell(line, "td", "Interval", interval(row, verdicts));
        cell(line, "td", "Verdict", badge(row));
      });
    });
    place("live-effects").replaceChildren(table);
  }

  function showState(state) {
    const parts = [`${state.blocks} of at most ${state.most_blocks.toLocaleString("en")} blocks`, `${state.count.toLocaleString("en")} trials`];
    if (state.flagged) parts.push(state.flagged + " flagged");
    if (state.failed) parts.push(state.failed + " failed");
    if (state.left) parts.push(state.left);
    place("live-status").textContent = state.problem || (state.count ? parts.join(" · ") : state.going_on ? "No trial is finished yet." : "Nothing was measured yet.");
    place("live-progress").value = state.blocks;
    place("live-doing").textContent = state.going_on && state.doing && !state.count ? state.doing[0].toUpperCase() + state.doing.slice(1) + "…" : "";
    const mark = place("live-state");
    mark.classList.toggle("running", state.going_on);
    mark.lastChild.textContent = state.going_on ? "running" : "paused";
    if (state.going_on !== wasGoingOn && wasGoingOn !== undefined) setTimeout(() => location.reload(), 400);
    wasGoingOn = state.going_on;
  }
  let wasGoingOn;

  function add(more) {
    more.forEach((one) => {
      if (!configurations.includes(one.c)) configurations.push(one.c);
      trials.push(one);
    });
    if (trials.length > 4000) trials.splice(0, trials.length - 4000);
    document.documentElement.dataset.trials = trials.length;
    drawTrials();
    drawLegend();
  }

  const source = new EventSource("/runs/" + encodeURIComponent(drawn.run) + "/events");
  source.addEventListener("begin", (event) => {
    const found = JSON.parse(event.data);
    trials.length = 0;
    add(found.trials);
    showState(found);
  });
  source.addEventListener("trials", (event) => add(JSON.parse(event.data).trials));
  source.addEventListener("state", (event) => showState(JSON.parse(event.data)));
  source.addEventListener("verdicts", (event) => {
    ({ rows: verdicts, names } = JSON.parse(event.data));
    drawEffects();
    drawLegend();
  });
  source.addEventListener("full", (event) => { place("live-status").textContent = JSON.parse(event.data).message; source.close(); });
  source.addEventListener("end", () => {
    source.close();
    place("live-status").textContent = "It has ended. Writing the report…";
    setTimeout(() => location.reload(), 300);
  });
  window.addEventListener("pagehide", () => source.close());
  if (chooser) chooser.addEventListener("change", drawTrials);
  new ResizeObserver(drawTrials).observe(place("live-plot"));
  document.addEventListener("recolour", () => { drawTrials(); drawLegend(); drawEffects(); });
  drawLegend();
})();
