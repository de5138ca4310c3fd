// The plots of the page Explore that are made of all trials. Each has a frame, axes, marks of all trials or of some
// ``only``, which trials are within a rectangle, and rows for a spreadsheet.
const views = (function () {
  "use strict";
  const { about } = trials;
  const said = { y: "", x: "" }; // the metrics that were chosen
  const named = (at) => about.configurations[at].name;
  const called = (at) => about.configurations[at].short || named(at); // in what people read
  const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

  // Levels as numbers where all are, or else in their order.
  function levels() {
    if (levels.found) return levels.found;
    levels.found = about.factors.map((name) => {
      const texts = [...new Set(about.configurations.map((one) => one.levels[name] || ""))];
      const plain = texts.every((one) => one.trim() !== "" && Number.isFinite(Number(one)));
      const order = plain ? texts.slice().sort((a, b) => a - b) : texts;
      const places = new Map(order.map((text, n) => [text, n / Math.max(1, order.length - 1)]));
      return { name, order, plain, shown: (about.shown || {})[name] || {}, at: (one) => places.get(one.levels[name] || "") };
    }).filter((one) => one.order.length > 1);
    return levels.found;
  }

  function dots(pen, own, valuesX, alpha, only) {
    const { shown, configuration, y } = trials, count = shown.length;
    const size = count > 20000 ? 2 : count > 2000 ? 3 : 6;
    if (!own.px) {
      own.px = Float32Array.from(shown, (trial) => own.x(valuesX ? valuesX[trial] : trial));
      own.py = Float32Array.from(shown, (trial) => own.y(y[trial]));
      own.hues = Uint8Array.from(shown, (trial) => about.configurations[configuration[trial]].hue % axes.SERIES);
    }
    let { px, py, hues } = own, kept = count;
    if (only) {
      own.some = own.some || { px: new Float32Array(count), py: new Float32Array(count), hues: new Uint8Array(count) };
      kept = 0;
      for (let n = 0; n < count; n++) {
        if (!only[shown[n]]) continue;
        own.some.px[kept] = px[n];
        own.some.py[kept] = py[n];
        own.some.hues[kept++] = hues[n];
      }
      ({ px, py, hues } = own.some);
    }
    pen.clip(own.room);
    pen.dots(px, py, hues, kept, Array.from({ length: axes.SERIES }, (_, n) => axes.series(n)), size, !only && count > 5000 ? 0.35 : alpha);
    pen.unclip();
  }

  // The figures of those that count, in order.
  function ordered(list, only) {
    const { y } = trials, values = new Float64Array(list.length);
    let count = 0;
    for (let n = 0; n < list.length; n++) if (!only || only[list[n]]) values[count++] = y[list[n]];
    return values.subarray(0, count);
  }

  function steps(values, most) {
    const step = Math.max(1, Math.floor(values.length / most)), found = [];
    for (let n = step - 1; n < values.length; n += step) found.push([values[n], (n + 1) / values.length]);
    if (values.length && (values.length - step) % step) found.push([values[values.length - 1], 1]);
    return found;
  }

  // How densely figures lie, as a smoothed histogram whose area is 1.
  const BINS = 160;
  function density(values, low, high) {
    const bins = new Float64Array(BINS), width = (high - low) / BINS, count = values.length;
    let sum = 0, squares = 0;
    for (let n = 0; n < count; n++) {
      const from = values[n] - low, at = Math.floor(from / width);
      if (at >= 0 && at < BINS) bins[at]++;
      sum += from;
      squares += from * from;
    }
    const sd = Math.sqrt(Math.max(0, squares / count - (sum / count) ** 2));
    const reach = Math.max(1.5, Math.min(BINS / 6, (0.9 * sd * count ** -0.2) / width)); // Silverman's rule
    const around = Math.ceil(3 * reach), weights = Array.from({ length: 2 * around + 1 }, (_, k) => Math.exp(-0.5 * ((k - around) / reach) ** 2));
    const whole = weights.reduce((a, b) => a + b, 0) * count * width;
    const smooth = new Float64Array(BINS);
    for (let n = 0; n < BINS; n++) {
      for (let k = Math.max(-around, -n); k <= around && n + k < BINS; k++) smooth[n] += (weights[k + around] * bins[n + k]) / whole;
    }
    return smooth;
  }

  const shownRows = (only) => Array.from(trials.picked(only));
  const inColumns = (trial, one) => trials.y[trial] >= one.x0 && trials.y[trial] <= one.x1;
  const inRectangle = (a, b, one) => a >= one.x0 && a <= one.x1 && b >= one.y0 && b <= one.y1;

  const found = {
    order: {
      frame: (view) => pens.frame(view, trials.framed ? axes.padded(trials.framed[0], trials.framed[trials.framed.length - 1]) : [-0.5, Math.max(1, about.count) - 0.5], trials.extent(trials.y)),
      axes(pen, own) { pens.drawAxes(pen, own, "trials in order", trials.titled(said.y)); },
      marks(pen, own, alpha, only) { dots(pen, own, null, alpha, only); },
      within: (trial, one) => inRectangle(trial, trials.y[trial], one),
      head: () => ["trial", "block", "position", "configuration", "status", said.y],
      rows: (only) => shownRows(only).map((t) => [t, trials.block[t], trials.position[t], named(trials.configuration[t]), trials.word(t), trials.y[t]]),
    },
    ecdf: {
      tall: true,
      frame: (view) => pens.frame(view, trials.extent(trials.y), [0, 1]),
      axes(pen, own) { pens.drawAxes(pen, own, trials.titled(said.y), "share of trials up to this value"); },
      marks(pen, own, alpha, only) {
        pen.clip(own.room);
        trials.sorted().forEach((list, at) => {
          const values = ordered(list, only);
          if (!values.length) return;
          const points = [[own.x(values[0]), own.y(0)]];
          let before = 0;
          steps(values, 1500).forEach(([value, share]) => {
            if (values.length <= 300) points.push([own.x(value), own.y(before)]);
            points.push([own.x(value), own.y(share)]);
            before = share;
          });
          pen.line(points, trials.hue(at), 2, alpha);
        });
        pen.unclip();
      },
      within: inColumns,
      head: () => ["configuration", said.y, "share"],
      rows: (only) => trials.sorted().flatMap((list, at) => steps(ordered(list, only), Infinity).map(([value, share]) => [named(at), value, share])),
    },
    ridge: {
      tall: true,
      frame(view) {
        const kept = trials.designed.filter((at) => trials.sorted()[at].length).slice(0, 24);
        const own = pens.frame(view, trials.extent(trials.y), { 0: 0, 1: Math.max(1, kept.length), marks: [], texts: [""] });
        own.kept = kept;
        own.of = (only) => kept.map((at) => {
          const values = ordered(trials.sorted()[at], only);
          return values.length > 1 ? density(values, own.across[0], own.across[1]).map((one) => (one * values.length) / trials.sorted()[at].length) : null;
        });
        own.all = own.of(null);
        own.most = Math.max(1e-300, ...own.all.flatMap((one) => (one ? [Math.max(...one)] : [])));
        return own;
      },
      axes(pen, own) {
        pens.drawAxes(pen, own, trials.titled(said.y), "density of each configuration");
        own.kept.forEach((at, n) => {
          const most = Math.floor((own.room.right - own.room.left) / 7), base = own.y(own.kept.length - 1 - n);
          pen.line([[own.room.left, base], [own.room.right, base]], axes.colour("grid"), 1);
          if (own.kept.length > 12) return;
          const found = own.all[n], right = !found || found.indexOf(Math.max(...found)) < BINS / 2;
          pen.text(short(called(at), most), right ? own.room.right - 4 : own.room.left + 6, base - 5, axes.colour("muted"), right ? "end" : "start");
        });
      },
      marks(pen, own, alpha, only) {
        const { kept, across } = own, high = 0.95 * (own.y(0) - own.y(1));
        pen.clip(own.room);
        (only ? own.of(only) : own.all).forEach((found, n) => {
          if (!found) return;
          const base = own.y(kept.length - 1 - n), colour = trials.hue(kept[n]);
          const points = Array.from(found, (one, k) => [own.x(across[0] + ((across[1] - across[0]) * (k + 0.5)) / BINS), base - (high * one) / own.most]);
          pen.area([[points[0][0], base], ...points, [points[BINS - 1][0], base]], colour, 0.25 * alpha);
          pen.line(points, colour, 1.5, alpha);
        });
        pen.unclip();
      },
      within: inColumns,
      head: () => ["configuration", said.y, "density"],
      rows(only, own) {
        const [low, high] = own.across;
        return own.of(only).flatMap((one, n) => Array.from(one || [], (value, k) => [named(own.kept[n]), low + ((high - low) * (k + 0.5)) / BINS, value]));
      },
    },
    scatter: {
      frame: (view) => pens.frame(view, trials.extent(trials.x), trials.extent(trials.y)),
      axes(pen, own) { pens.drawAxes(pen, own, trials.titled(said.x), trials.titled(said.y)); },
      marks(pen, own, alpha, only) { dots(pen, own, trials.x, alpha, only); },
      within: (trial, one) => inRectangle(trials.x[trial], trials.y[trial], one),
      head: () => ["trial", "configuration", said.x, said.y],
      rows: (only) => shownRows(only).map((t) => [t, named(trials.configuration[t]), trials.x[t], trials.y[t]]),
    },
    parallel: {
      here: () => levels().length > 1,
      frame(view) {
        const room = { left: 70, right: view.width - 80, top: 28, bottom: view.height - 20 }, count = levels().length;
        const means = trials.means(null), finite = means.filter(Number.isFinite);
        const [low, high] = finite.length ? axes.padded(Math.min(...finite), Math.max(...finite)) : [0, 1];
        return {
          room, low, high, means,
          x: (value) => room.left + ((room.right - room.left) * value) / count,
          y: (value) => room.bottom - (room.bottom - room.top) * value,
          fromX: (pixel) => ((pixel - room.left) / (room.right - room.left)) * count,
          fromY: (pixel) => (room.bottom - pixel) / (room.bottom - room.top),
        };
      },
      axes(pen, own) {
        const muted = axes.colour("muted"), line = axes.colour("line"), count = levels().length;
        const room = Math.floor((own.x(1) - own.x(0)) / 7.5);
        [...levels().map((one) => one.name), trials.titled(said.y)].forEach((name, at) => {
          pen.line([[own.x(at), own.room.top], [own.x(at), own.room.bottom]], line, 1);
          pen.text(short(name, Math.min(30, room)), at ? (at < count ? own.x(at) : own.x(at) + 76) : 4, 16, muted, at ? (at < count ? "center" : "end") : "start");
          const texts = at < count ? levels()[at].order : [];
          const word = (text) => (at < count && levels()[at].shown[text]) || text;
          const few = texts.length <= 12 ? texts.map((text, n) => [text, n]) : [[texts[0], 0], [texts[texts.length - 1], texts.length - 1]];
          few.forEach(([text, n]) => pen.text(short(word(text), 12), own.x(at) + 6, own.y(n / Math.max(1, texts.length - 1)) + 4, muted, "start"));
        });
        [own.low, own.high].forEach((value, n) => pen.text(axes.figure(value), own.x(count) + 6, own.y(n) + 4, muted, "start"));
      },
      marks(pen, own, alpha, only) {
        (only ? trials.means(only) : own.means).forEach((value, at) => {
          if (!Number.isFinite(value)) return;
          const points = levels().map((one, n) => [own.x(n), own.y(one.at(about.configurations[at]))]);
          points.push([own.x(levels().length), own.y((value - own.low) / (own.high - own.low))]);
          pen.line(points, trials.hue(at), about.configurations.length > 60 ? 1 : 2, alpha * 0.85);
        });
      },
      // The axis in the middle of the rectangle decides.
      prepared(one, own) {
        const axis = Math.max(0, Math.min(levels().length, Math.round((one.x0 + one.x1) / 2)));
        return own.means.map((value, at) => {
          const height = axis < levels().length ? levels()[axis].at(about.configurations[at]) : (value - own.low) / (own.high - own.low);
          return height >= one.y0 && height <= one.y1;
        });
      },
      within: (trial, one) => one.which[trials.configuration[trial]],
      head: () => ["configuration", ...about.factors, "mean of " + said.y],
      rows: (only) => trials.means(only).flatMap((value, at) => (Number.isFinite(value) ? [[named(at), ...about.factors.map((one) => about.configurations[at].levels[one] || ""), value]] : [])),
    },
  };
  return { said, levels, named, called, all: found };
})();
