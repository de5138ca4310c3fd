// The plots of the page Explore that need what the analysis found: the surface with the set of the best, timelines.
(function () {
  "use strict";
  const { about } = trials;
  const { said, named, levels } = views;
  const HEAT = 5;
  let analysed = { surfaces: [], timelines: [] };
  const heats = () => Array.from({ length: HEAT }, (_, n) => axes.colour("heat-" + n));
  const numeric = () => levels().filter((one) => one.plain);

  // Half way to the neighbours, and as far at the ends.
  function edges(at) {
    const middles = at.slice(1).map((one, n) => (at[n] + one) / 2);
    return [2 * at[0] - middles[0], ...middles, 2 * at[at.length - 1] - middles[middles.length - 1]];
  }

  function axisOf(name) {
    const one = numeric().find((other) => other.name === name) || numeric()[0];
    const values = one.order.map(Number), wide = values[0] > 0 && values[values.length - 1] >= 10 * values[0];
    const at = wide ? values.map(Math.log10) : values, bounds = edges(at);
    const every = Math.ceil(values.length / 8);
    const marks = at.filter((_, n) => n % every === 0), texts = one.order.filter((_, n) => n % every === 0);
    return { name: one.name, wide, at, bounds, place: (configuration) => at[one.order.indexOf(configuration.levels[one.name])], span: { 0: bounds[0], 1: bounds[bounds.length - 1], marks, texts: texts.map((text) => one.shown[text] || axes.figure(Number(text))) } };
  }

  const best = () => new Set((analysed.surfaces.find((one) => one.metric === said.y) || { best_set: [] }).best_set);

  views.all.surface = {
    here: () => numeric().length > 1,
    frame(view) {
      const across = axisOf(said.across), up = axisOf(said.up);
      const own = pens.frame(view, across.span, up.span);
      const means = trials.means(null), finite = means.filter(Number.isFinite);
      own.low = Math.min(...finite);
      own.high = Math.max(...finite);
      own.places = about.configurations.map((one) => [across.place(one), up.place(one)]);
      own.cells = across.at.length <= 24 && up.at.length <= 24 && means.every((value, at) => !Number.isFinite(value) || own.places[at].every(Number.isFinite));
      own.box = (at) => {
        const [a, b] = own.places[at];
        if (!own.cells) return [own.x(a) - 6, own.y(b) - 6, own.x(a) + 6, own.y(b) + 6];
        const i = across.at.indexOf(a), j = up.at.indexOf(b);
        return [own.x(across.bounds[i]) + 1, own.y(up.bounds[j + 1]) + 1, own.x(across.bounds[i + 1]) - 1, own.y(up.bounds[j]) - 1];
      };
      // Configurations that share a place, where there are more than two factors, are one cell.
      own.grouped = (values) => {
        const cells = new Map();
        values.forEach((value, at) => {
          if (!Number.isFinite(value) || !own.places[at].every(Number.isFinite)) return;
          const cell = cells.get(own.places[at].join()) || { at: [], sum: 0 };
          cell.at.push(at);
          cell.sum += value;
          cells.set(own.places[at].join(), cell);
        });
        return [...cells.values()].map(({ at, sum }) => ({ at, value: sum / at.length }));
      };
      own.titles = [across, up].map((one) => one.name + (one.wide ? ", logarithmic" : ""));
      own.all = own.grouped(means);
      return own;
    },
    axes(pen, own) {
      pens.drawAxes(pen, own, own.titles[0], own.titles[1], true);
      const heat = heats(), { right } = own.room;
      const texts = [axes.figure(own.low), axes.figure(own.high)], muted = axes.colour("muted");
      const from = right - 7 * texts[1].length - 8 - 12 * HEAT;
      heat.forEach((colour, n) => pen.area([[from + 12 * n, 5], [from + 12 * n + 12, 5], [from + 12 * n + 12, 15], [from + 12 * n, 15]], colour, 1));
      pen.text(texts[0], from - 5, 14, muted, "end");
      pen.text(texts[1], right, 14, muted, "end");
    },
    marks(pen, own, alpha, only) {
      const heat = heats(), among = best();
      const cells = only ? own.grouped(trials.means(only)) : own.all;
      pen.clip(own.room);
      cells.forEach(({ at, value }) => {
        const [left, top, right, bottom] = own.box(at[0]), share = (value - own.low) / (own.high - own.low || 1);
        pen.area([[left, top], [right, top], [right, bottom], [left, bottom]], pens.between(heat, share), only ? 1 : Math.max(0.9, alpha));
        const words = axes.figure(value);
        if (right - left > 7 * words.length + 4 && bottom - top > 16) pen.text(words, (left + right) / 2, (top + bottom) / 2 + 4, axes.colour(share > 0.6 ? "page" : "ink"), "center");
        if (at.some((one) => about.configurations[one].baseline)) pen.line([[left + 4, top + 4], [right - 4, top + 4], [right - 4, bottom - 4], [left + 4, bottom - 4], [left + 4, top + 4]], axes.colour(share > 0.6 ? "page" : "ink"), 1.5, 1, [4, 3]);
        if (at.some((one) => among.has(named(one)))) pen.line([[left, top], [right, top], [right, bottom], [left, bottom], [left, top]], axes.colour("ink"), 2.5);
      });
      pen.unclip();
    },
    prepared: (one, own) => own.places.map(([a, b]) => a >= one.x0 && a <= one.x1 && b >= one.y0 && b <= one.y1),
    within: (trial, one) => one.which[trials.configuration[trial]],
    head: () => ["configuration", axisOf(said.across).name, axisOf(said.up).name, "mean of " + said.y, "in the set of the best"],
    rows(only) {
      const among = best(), known = among.size > 0, [a, b] = [axisOf(said.across).name, axisOf(said.up).name];
      return trials.means(only).flatMap((value, at) => (Number.isFinite(value) ? [[named(at), about.configurations[at].levels[a], about.configurations[at].levels[b], value, known ? (among.has(named(at)) ? "yes" : "no") : ""]] : []));
    },
  };

  // When what lines are aligned by happened in a trial, or nothing.
  function moment(line) {
    if (said.align === "start") return 0;
    if (said.align === "end") return line.end_s;
    const marks = analysed.timelines.flatMap((one) => one.marks);
    const mark = line.representative && marks.find((one) => one.metric === said.align && one.configuration === line.configuration);
    return mark ? mark.at_s : null;
  }

  function linesOf(figure) {
    return figure.lines.flatMap((line) => {
      const zero = moment(line);
      return zero === null ? [] : [{ ...line, zero, at: line.at_s.map((one) => one - zero) }];
    });
  }

  const key = (configuration, block) => block + " " + configuration;
  const place = (name) => about.configurations.findIndex((one) => one.name === name);

  views.all.timelines = {
    here: () => analysed.timelines.length > 0,
    frame(view) {
      const figures = analysed.timelines.map((one) => ({ ...one, drawn: linesOf(one) }));
      const all = figures.flatMap((one) => one.drawn.flatMap((line) => [line.at[0], line.at[line.at.length - 1], line.end_s - line.zero]));
      const own = pens.frame(view, all.length ? axes.padded(Math.min(...all), Math.max(...all)) : [0, 1], { 0: 0, 1: figures.length, marks: [], texts: ["1000000"] });
      own.rows = figures.map((one, n) => {
        const values = one.drawn.flatMap((line) => line.values), top = own.y(figures.length - n) + 20, bottom = own.y(figures.length - n - 1) - 6;
        const [low, high] = values.length ? axes.padded(Math.min(0, ...values), Math.max(...values)) : [0, 1];
        return { figure: one, low, high, top, bottom, y: (value) => bottom - ((bottom - top) * (value - low)) / (high - low) };
      });
      return own;
    },
    axes(pen, own) {
      const since = { start: "the workload's start", end: "the workload's end" }[said.align] || trials.metric(said.align).title;
      pens.drawAxes(pen, own, "seconds from " + since, "");
      const muted = axes.colour("muted");
      own.rows.forEach(({ figure, low, high, top, bottom, y }) => {
        const marks = axes.ticks(low, high, 3);
        axes.labels(marks).forEach((text, n) => {
          pen.line([[own.room.left, y(marks[n])], [own.room.right, y(marks[n])]], axes.colour("grid"), 1);
          pen.text(text, own.room.left - 7, y(marks[n]) + 4, muted, "end");
        });
        pen.line([[own.x(0), top], [own.x(0), bottom]], muted, 1, 1, [3, 3]);
        pen.text(`${figure.source} ${figure.key}${figure.shown === "value" ? "" : ", " + figure.shown}${figure.unit && figure.unit !== "count" ? ", " + figure.unit : ""}`, own.room.left + 2, top - 7, axes.colour("ink"), "start");
        pen.line([[own.room.left, bottom], [own.room.right, bottom]], axes.colour("line"), 1);
      });
    },
    marks(pen, own, alpha, only) {
      const taken = only && this.taken(only);
      pen.clip(own.room);
      own.rows.forEach(({ figure, y }) => figure.drawn.forEach((line) => {
        if (taken && !taken.has(key(line.configuration, line.block))) return;
        const colour = trials.hue(Math.max(0, place(line.configuration)));
        pen.line(line.at.map((one, n) => [own.x(one), y(line.values[n])]), colour, line.representative ? 2.5 : 1, line.representative ? alpha : 0.7 * alpha);
      }));
      pen.unclip();
    },
    taken(only) {
      return new Set(Array.from(trials.picked(only), (trial) => key(named(trials.configuration[trial]), trials.block[trial])));
    },
    // The trials whose lines pass through the rectangle.
    prepared(one, own) {
      const top = own.y(one.y1), bottom = own.y(one.y0), keys = new Set();
      own.rows.forEach(({ figure, y }) => figure.drawn.forEach((line) => {
        if (line.at.some((at, n) => at >= one.x0 && at <= one.x1 && y(line.values[n]) >= top && y(line.values[n]) <= bottom)) keys.add(key(line.configuration, line.block));
      }));
      return keys;
    },
    within: (trial, one) => one.which.has(key(named(trials.configuration[trial]), trials.block[trial])),
    head: () => ["figure", "configuration", "block", "seconds", "value", "unit"],
    rows(only) {
      const taken = only && this.taken(only);
      return analysed.timelines.flatMap((figure) => linesOf(figure).flatMap((line) => (taken && !taken.has(key(line.configuration, line.block)) ? [] : line.at.map((one, n) => [`${figure.source} ${figure.key}`, line.configuration, line.block, one, line.values[n], figure.unit]))));
    },
  };

  views.numeric = () => numeric().map((one) => one.name);
  views.events = () => [...new Set(analysed.timelines.flatMap((one) => one.marks.map((mark) => mark.metric)))];
  views.figures = () => analysed.timelines.length;
  views.analysed = async () => {
    const answer = await fetch(`/runs/${encodeURIComponent(about.run)}/analysed.json`);
    if (!answer.ok) throw new Error(answer.statusText || "not found");
    analysed = await answer.json();
    about.configurations.forEach((one) => { one.levels = analysed.levels[one.name] || one.levels; one.short = analysed.short[one.name]; });
    Object.assign(about, { shown: analysed.shown, of: analysed.of });
    levels.found = null;
  };
})();
