// The page Explore: linked plots of all trials of a run; what is chosen in one is chosen in all.
(function () {
  "use strict";
  const { about } = trials;
  const place = (id) => document.getElementById(id);
  const chooseY = place("metric-y"), chooseX = place("metric-x");
  const shownViews = Object.entries(views.all).map(([name, view]) => ({ name, view, figure: document.querySelector(`[data-view=${name}]`) }));
  const off = new Set();
  let brush = null; // { view, x0, x1, y0, y1 } in the figures of the view
  let waiting = false, renew = false, rechoose = false;

  function tellSettings() {
    Object.assign(views.said, { y: chooseY.value, x: chooseX.value });
    ["across", "up", "align"].forEach((name) => { views.said[name] = place(name).value; });
  }

  // All trials lie below, drawn once; what is chosen is drawn above them again and again.
  function draw({ name, view, figure }) {
    if (figure.hidden || !view.width || !view.near) return;
    const scale = view.scale, context = view.canvas.getContext("2d");
    if (view.old) {
      view.old = false;
      view.own = view.frame(view);
      view.base = view.base || document.createElement("canvas");
      view.base.width = view.canvas.width;
      view.base.height = view.canvas.height;
      const under = view.base.getContext("2d");
      under.setTransform(scale, 0, 0, scale, 0, 0);
      view.marks(pens.onCanvas(under), view.own, 0.8, null);
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, view.canvas.width, view.canvas.height);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const pen = pens.onCanvas(context);
    view.axes(pen, view.own);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalAlpha = trials.chosen ? 0.16 : 1;
    context.drawImage(view.base, 0, 0);
    context.globalAlpha = 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    if (trials.chosen) view.marks(pen, view.own, 0.9, trials.chosen);
    if (brush && brush.view === name) {
      const own = view.own, a = own.x(brush.x0), b = own.x(brush.x1);
      const top = view.tall ? own.room.top : own.y(brush.y1), bottom = view.tall ? own.room.bottom : own.y(brush.y0);
      pen.clip(own.room);
      pen.line([[a, top], [b, top], [b, bottom], [a, bottom], [a, top]], axes.colour("accent"), 1.5, 1, [4, 3]);
      pen.unclip();
    }
  }

  // Once in a frame, however much was asked for. ``anew``: also what is drawn once.
  function soon(anew) {
    renew = renew || anew;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (rechoose) choose();
      if (renew) shownViews.forEach(({ view }) => { view.old = true; });
      renew = false;
      shownViews.forEach(draw);
    });
  }

  function choose() {
    rechoose = false;
    if (!brush) {
      trials.chosen = null;
    } else {
      const view = views.all[brush.view];
      if (view.old) view.own = view.frame(view);
      if (view.prepared) brush.which = view.prepared(brush, view.own);
      trials.choose((trial) => view.within(trial, brush));
    }
    summarise();
  }

  function summarise() {
    const all = trials.shown.length.toLocaleString("en"), count = trials.count();
    place("explore-status").textContent = trials.chosen ? `${count.toLocaleString("en")} of ${all} trials are chosen.` : `${all} trials are shown.`;
    place("zoom").disabled = !count && !trials.framed;
    clearTimeout(summarise.later);
    summarise.later = setTimeout(() => { fillSummary(); remember(); }, 120);
  }

  function fillSummary() {
    const table = place("explore-summary"), cell = (row, kind, text, className, scope) => {
      const made = document.createElement(kind);
      made.textContent = text;
      if (className) made.className = className;
      if (scope) made.scope = scope;
      row.append(made);
    };
    table.replaceChildren();
    const caption = table.createCaption();
    caption.textContent = trials.titled(chooseY.value) + (trials.chosen ? ", chosen trials" : "");
    caption.className = "unseen";
    const head = table.createTHead().insertRow(), body = table.createTBody();
    ["Configuration", "Trials", "Mean", "Median", "SD", "Least", "Most"].forEach((text, n) => cell(head, "th", text, n ? "figure" : "", "col"));
    trials.designed.slice(0, 200).forEach((at) => {
      const list = trials.sorted()[at];
      const values = Array.from(trials.chosen ? list.filter((trial) => trials.chosen[trial]) : list, (trial) => trials.y[trial]);
      if (!values.length) return;
      const mean = values.reduce((sum, one) => sum + one, 0) / values.length;
      const sd = values.length > 1 ? Math.sqrt(values.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (values.length - 1)) : NaN;
      const middle = values.length >> 1, median = values.length % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
      const row = body.insertRow();
      cell(row, "th", views.called(at), "", "row");
      [values.length.toLocaleString("en"), ...[mean, median, sd, values[0], values[values.length - 1]].map(axes.figure)].forEach((text) => cell(row, "td", text, "figure"));
    });
  }

  function filter() {
    trials.filter(off, place("all-statuses").checked);
    place("zoom").textContent = "Zoom to chosen";
    rechoose = true;
    soon(true);
  }

  function zoom(wanted) {
    trials.framed = wanted && trials.chosen && trials.count() ? trials.picked(trials.chosen) : null;
    place("zoom").textContent = trials.framed ? "Show all" : "Zoom to chosen";
    summarise();
    soon(true);
  }

  // What is shown is in the address, so that others see the same.
  function remember() {
    const said = new URLSearchParams({ y: chooseY.value, x: chooseX.value });
    if (off.size) said.set("off", [...off].join(","));
    if (place("all-statuses").checked) said.set("all", "yes");
    ["across", "up", "align"].forEach((name) => { if (place(name).selectedIndex > (name === "up" ? 1 : 0)) said.set(name, place(name).value); });
    if (brush) said.set("chosen", [brush.view, brush.x0, brush.x1, brush.y0, brush.y1].join(","));
    if (trials.framed) said.set("zoom", "yes");
    history.replaceState(null, "", location.pathname + "#" + said);
  }

  function recall(said) {
    const known = (name) => about.metrics.some((one) => one.name === name);
    if (known(said.get("y"))) chooseY.value = said.get("y");
    chooseX.value = known(said.get("x")) ? said.get("x") : (about.metrics.find((one) => one.name !== chooseY.value) || about.metrics[0]).name;
    (said.get("off") || "").split(",").filter(Boolean).forEach((one) => off.add(Number(one)));
    place("all-statuses").checked = said.get("all") === "yes";
    const [view, ...ends] = (said.get("chosen") || "").split(",");
    if (Object.hasOwn(views.all, view) && ends.length === 4 && ends.every((one) => Number.isFinite(Number(one)))) {
      const [x0, x1, y0, y1] = ends.map(Number);
      return { view, x0, x1, y0, y1 };
    }
    return null;
  }

  async function load() {
    try {
      await trials.load(chooseY.value, chooseX.value);
    } catch (error) {
      place("explore-status").textContent = "The trials could not be loaded: " + error.message;
      return false;
    }
    tellSettings();
    filter();
    return true;
  }

  function legend() {
    place("explore-of").textContent = about.of && about.of.length ? about.of.join(", ") + ":" : "";
    place("explore-legend").replaceChildren(
      ...trials.designed.slice(0, 60).map((at) => {
        const one = about.configurations[at];
        const item = document.createElement("li"), button = document.createElement("button"), swatch = document.createElement("span");
        button.type = "button";
        button.setAttribute("aria-pressed", String(!off.has(at)));
        swatch.className = "swatch";
        swatch.style.background = trials.hue(at);
        button.title = one.name;
        button.append(swatch, views.called(at) + (one.baseline ? " (baseline)" : ""));
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
    rechoose = true;
    soon(false);
  }

  function clear() {
    brush = null;
    place("from").value = place("to").value = "";
    rechoose = true;
    soon(false);
  }

  function brushing(name, canvas) {
    const view = views.all[name];
    let from = null;
    const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener("pointerdown", (event) => { from = at(event); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (!from || !view.own) return;
      const [a, b] = at(event), own = view.own;
      if (Math.abs(a - from[0]) < 3 && Math.abs(b - from[1]) < 3) return;
      setBrush(name, own.fromX(from[0]), own.fromX(a), own.fromY(from[1]), own.fromY(b));
    });
    canvas.addEventListener("pointerup", (event) => {
      if (from && at(event).every((one, n) => Math.abs(one - from[n]) < 3)) clear();
      from = null;
    });
    canvas.addEventListener("pointercancel", () => { from = null; });
    // Without a pointer: arrows move a window over the plot, up and down make it wider and narrower.
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "Escape") clear();
      if (!view.own) return;
      const own = view.own, low = own.fromX(own.room.left), high = own.fromX(own.room.right), all = high - low;
      const had = brush && brush.view === name ? brush : { x0: low, x1: low + all / 10 };
      const width = had.x1 - had.x0;
      const steps = { ArrowRight: [width / 2, 0], ArrowLeft: [-width / 2, 0], ArrowUp: [-all / 40, all / 40], ArrowDown: [all / 80, -all / 80] };
      if (!steps[event.key]) return;
      event.preventDefault();
      const sideways = event.key === "ArrowRight" || event.key === "ArrowLeft", [a, b] = steps[event.key];
      const x0 = had.x0 + a, x1 = sideways ? x0 + width : Math.max(x0 + all / 100, had.x1 + b);
      setBrush(name, Math.max(low, x0), Math.min(high, x1), own.fromY(own.room.bottom), own.fromY(own.room.top));
    });
  }

  // Spreadsheets read what begins with = as a formula: it is text here.
  function quoted(value) {
    if (typeof value === "number") return Number.isNaN(value) ? "" : String(value);
    const plain = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
    return '"' + plain.replaceAll('"', '""') + '"';
  }

  function saveRows(stem, head, rows) {
    const text = [head, ...rows].map((row) => row.map(quoted).join(",") + "\r\n").join("");
    axes.save(stem + ".csv", text, "text/csv");
  }

  function saveView(name, form) {
    const view = views.all[name], stem = `${about.run}-${name}`;
    if (form === "csv") {
      saveRows(stem, view.head(), view.rows(trials.chosen, view.own));
    } else if (form === "png") {
      const sheet = document.createElement("canvas");
      sheet.width = view.canvas.width;
      sheet.height = view.canvas.height;
      const context = sheet.getContext("2d");
      context.fillStyle = axes.colour("card");
      context.fillRect(0, 0, sheet.width, sheet.height);
      context.drawImage(view.canvas, 0, 0);
      sheet.toBlob((blob) => axes.save(stem + ".png", blob));
    } else {
      const pen = pens.asSvg(view.width, view.height, axes.colour("card"));
      view.axes(pen, view.own);
      view.marks(pen, view.own, trials.chosen ? 0.12 : 0.8, null);
      if (trials.chosen) view.marks(pen, view.own, 0.9, trials.chosen);
      axes.save(stem + ".svg", pen.ended(), "image/svg+xml");
    }
  }

  function saveTrials() {
    const { x, y, block, position, configuration } = trials, only = trials.chosen;
    const rows = Array.from(trials.picked(only), (t) => [block[t], position[t], views.named(configuration[t]), trials.word(t), y[t], x[t]]);
    saveRows(about.run + "-trials", ["block", "position", "configuration", "status", chooseY.value, chooseX.value], rows);
  }

  // What there is to see of the views that only some runs have, and what can be chosen in them.
  function offer(said) {
    const fill = (select, options, chosen) => {
      select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
      select.value = options.some(([value]) => value === chosen) ? chosen : (options[select.id === "up" && options.length > 1 ? 1 : 0] || [""])[0];
      select.closest("label").hidden = options.length < 2 || (select.id !== "align" && options.length < 3);
    };
    const numeric = views.numeric().map((one) => [one, one]);
    fill(place("across"), numeric, said.get("across"));
    fill(place("up"), numeric, said.get("up"));
    const events = views.events().map((one) => [one, trials.metric(one).title]);
    fill(place("align"), views.figures() ? [["start", "the workload's start"], ["end", "the workload's end"], ...events] : [], said.get("align"));
    tellSettings();
    shownViews.forEach(({ view, figure }) => { figure.hidden = Boolean(view.here) && !view.here(); });
    views.all.timelines.canvas.style.height = 60 + 110 * views.figures() + "px";
  }

  function prepare({ name, view, figure }) {
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
      view.old = true;
      soon(false);
    }).observe(view.canvas);
    // Nobody sees what is far off the screen: it is drawn when it comes near.
    new IntersectionObserver(([seen]) => { view.near = seen.isIntersecting; if (view.near) soon(false); }, { rootMargin: "100px" }).observe(view.canvas);
  }

  async function begin() {
    const said = new URLSearchParams(location.hash.slice(1)), wanted = recall(said);
    shownViews.forEach(prepare);
    offer(said);
    legend();
    if (!(await load())) return;
    let problem = "";
    try {
      await views.analysed();
      offer(said);
      legend();
    } catch (error) {
      problem = " What the analysis found could not be loaded: " + error.message;
    }
    if (wanted && !shownViews.find(({ name }) => name === wanted.view).figure.hidden) brush = wanted;
    choose();
    zoom(said.get("zoom") === "yes");
    place("explore-status").textContent += problem;
    document.documentElement.dataset.explored = "yes";
  }

  place("explore-form").addEventListener("submit", (event) => event.preventDefault());
  place("all-statuses").addEventListener("change", filter);
  chooseY.addEventListener("change", () => { brush = null; load(); });
  chooseX.addEventListener("change", () => { if (brush && brush.view === "scatter") brush = null; load(); });
  ["across", "up", "align"].forEach((id) => place(id).addEventListener("change", () => {
    if (brush && brush.view === (id === "align" ? "timelines" : "surface")) brush = null;
    tellSettings();
    rechoose = true;
    soon(true);
  }));
  [place("from"), place("to")].forEach((input) =>
    input.addEventListener("change", () => {
      const bound = (one, otherwise) => (one.value.trim() && Number.isFinite(Number(one.value)) ? Number(one.value) : otherwise);
      setBrush("ecdf", bound(place("from"), -Number.MAX_VALUE), bound(place("to"), Number.MAX_VALUE), 0, 1);
    })
  );
  place("clear-selection").addEventListener("click", clear);
  place("zoom").addEventListener("click", () => zoom(!trials.framed));
  place("save-csv").addEventListener("click", saveTrials);
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
  document.addEventListener("recolour", () => { legend(); soon(true); });

  if (about.metrics.length) begin();
  else place("explore-status").textContent = "No trial has a metric.";
})();
