// Axes, colours and figures for plots that the lab draws itself.
const axes = (function () {
  "use strict";

  const SERIES = 8;
  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"]];

  const colours = new Map();

  // Asked for often within a frame; in the next one the page may have another theme.
  function colour(role) {
    if (!colours.size) requestAnimationFrame(() => colours.clear());
    if (!colours.has(role)) colours.set(role, getComputedStyle(document.documentElement).getPropertyValue("--" + role).trim());
    return colours.get(role);
  }

  function series(place) {
    return colour("series-" + (place % SERIES));
  }

  // Ticks at 1, 2 or 5 times a power of ten.
  function ticks(low, high, most) {
    if (!(high > low)) return [low];
    const rough = (high - low) / Math.max(1, most);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) {
      found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
    }
    return found;
  }

  function figure(value) {
    if (value === 0) return "0";
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    const large = PREFIXES.find(([least]) => size >= least && size < 1e15);
    if (large) return figure(value / large[0]) + large[1];
    if (size >= 1e15 || size < 1e-4) return value.toExponential(2).replace("e+", "e").replace("-", "−");
    return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 6 : 3 }).replace("-", "−");
  }

  // As many digits as tell neighbouring ticks apart.
  function labels(values) {
    const step = values.length > 1 ? Math.abs(values[1] - values[0]) : Math.abs(values[0]) || 1;
    const size = Math.max(...values.map(Math.abs));
    if (size >= 1e6 || (size < 1e-3 && size > 0)) return values.map((one) => (one === 0 ? "0" : figure(one)));
    const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
    return values.map((one) => one.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−"));
  }

  function padded(low, high) {
    if (!(high > low)) return [low - (Math.abs(low) * 0.05 || 1), high + (Math.abs(high) * 0.05 || 1)];
    const pad = (high - low) * 0.05;
    return [low - pad, high + pad];
  }

  function save(name, content, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: type }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  return { SERIES, colour, series, ticks, figure, labels, padded, save };
})();
