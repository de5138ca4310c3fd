// The trials of a run as columns of plain numbers, and which of them are shown and chosen.
const trials = (function () {
  "use strict";
  const about = JSON.parse(document.getElementById("explored").textContent);
  const columns = new Map();
  const found = {
    about, x: new Float64Array(0), y: new Float64Array(0),
    configuration: new Int32Array(0), status: new Int32Array(0), block: new Int32Array(0), position: new Int32Array(0),
    shown: new Uint32Array(0),
    framed: null, // those that the axes span where they do not span all that are shown
    chosen: null, // a byte for each trial, or null: nothing is chosen
  };
  let sorted = null;

  async function column(key, name, kind) {
    const address = `/runs/${encodeURIComponent(about.run)}/column?${key}=${encodeURIComponent(name)}`;
    if (!columns.has(address)) {
      const answer = await fetch(address);
      if (!answer.ok) throw new Error(answer.statusText || "not found");
      columns.set(address, new kind(await answer.arrayBuffer()));
    }
    return columns.get(address);
  }

  found.load = async (metric, against) => {
    const whole = ["configuration", "status", "block", "position"];
    const [y, x, ...rest] = await Promise.all([
      column("metric", metric, Float64Array),
      column("metric", against, Float64Array),
      ...whole.map((name) => column("name", name, Int32Array)),
    ]);
    Object.assign(found, { x, y }, Object.fromEntries(whole.map((name, n) => [name, rest[n]])));
  };

  // Show those of configurations that are not ``off``, with a figure; without ``every`` only clean ones.
  found.filter = (off, every) => {
    const kept = [];
    for (let trial = 0; trial < about.count; trial++) {
      if ((every || found.status[trial] === 0) && !off.has(found.configuration[trial]) && Number.isFinite(found.y[trial])) kept.push(trial);
    }
    found.shown = Uint32Array.from(kept);
    found.framed = sorted = null;
  };

  found.choose = (takes) => {
    const { shown, chosen } = found, bytes = chosen || new Uint8Array(about.count);
    bytes.fill(0);
    for (let n = 0; n < shown.length; n++) if (takes(shown[n])) bytes[shown[n]] = 1;
    found.chosen = bytes;
  };

  found.count = () => {
    let count = 0;
    if (found.chosen) for (let n = 0; n < found.shown.length; n++) count += found.chosen[found.shown[n]];
    return count;
  };

  found.picked = (only) => (only ? found.shown.filter((trial) => only[trial]) : found.shown);

  found.extent = (values) => {
    const among = found.framed || found.shown;
    let low = Infinity, high = -Infinity;
    for (let n = 0; n < among.length; n++) {
      const value = values[among[n]];
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low <= high ? axes.padded(low, high) : [0, 1];
  };

  // Those shown of each configuration, by their figure: sorted once, however often others are chosen.
  found.sorted = () => {
    if (!sorted) {
      const { shown, configuration, y } = found, lists = about.configurations.map(() => []);
      for (let n = 0; n < shown.length; n++) lists[configuration[shown[n]]].push(shown[n]);
      sorted = lists.map((list) => Uint32Array.from(list).sort((a, b) => y[a] - y[b]));
    }
    return sorted;
  };

  found.means = (only) => {
    const { shown, configuration, y } = found;
    const sums = new Float64Array(about.configurations.length), counts = new Uint32Array(about.configurations.length);
    for (let n = 0; n < shown.length; n++) {
      const trial = shown[n];
      if (only && !only[trial]) continue;
      sums[configuration[trial]] += y[trial];
      counts[configuration[trial]]++;
    }
    return Array.from(sums, (sum, at) => (counts[at] ? sum / counts[at] : NaN));
  };

  // Configurations as the study has them, the baseline first.
  found.designed = about.configurations.map((_, at) => at).sort((a, b) => about.configurations[a].hue - about.configurations[b].hue);
  found.hue = (at) => axes.series(about.configurations[at].hue);
  found.metric = (name) => about.metrics.find((one) => one.name === name) || { title: name, unit: "" };
  found.titled = (name) => {
    const one = found.metric(name);
    return one.unit && one.unit !== "1" && one.unit !== "count" ? `${one.title}, ${one.unit}` : one.title;
  };
  found.word = (trial) => about.statuses[found.status[trial]] || "warm-up";
  return found;
})();
