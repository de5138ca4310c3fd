// Draws the plots in the colours of the theme, and makes the buttons work.
(function () {
  "use strict";
  const root = document.documentElement;
  let figures = null; // until they are unpacked
  const canHover = window.matchMedia("(hover: hover)").matches;
  const options = { displayModeBar: false, responsive: true, doubleClick: "reset" };

  // Colours are named as var(--role) in the figures; plotly needs them as values.
  function coloured(value, style) {
    if (typeof value === "string") {
      const name = /^var\((--[a-z0-9-]+)\)$/.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() || value : value;
    }
    if (Array.isArray(value)) return value.map((item) => coloured(item, style));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
    }
    return value;
  }

  // Data are within the page, packed.
  function unpacked(name) {
    const packed = Uint8Array.from(atob(document.getElementById(name).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  // So is the plotting library, if the page stands alone; the page's policy knows it by its hash.
  async function unpack() {
    figures = JSON.parse(await unpacked("figures"));
    if (!document.getElementById("plotly")) return;
    const script = document.createElement("script");
    script.textContent = await unpacked("plotly");
    document.head.append(script);
  }

  function saySoInstead() {
    document.querySelectorAll("[data-figure]").forEach((place) => {
      place.textContent = "Plots require a browser from 2023 or later.";
      place.style.minHeight = "";
    });
    document.querySelectorAll("[data-download], [data-stem]").forEach((button) => {
      button.disabled = true;
      button.title = "Requires a browser from 2023 or later";
    });
  }

  function draw(place) {
    const figure = coloured(figures[place.dataset.figure], getComputedStyle(root));
    const layout = Object.assign({}, figure.layout, {
      autosize: true,
      height: Number(place.dataset.height),
      dragmode: canHover ? "zoom" : false,
    });
    return Plotly.react(place, figure.data, layout, options);
  }

  // A plot in a closed <details> has no width: it is drawn when it is opened.
  function drawAll() {
    if (!window.Plotly || !figures) return Promise.resolve();
    const places = Array.from(document.querySelectorAll("[data-figure]"));
    return Promise.all(places.filter((place) => place.clientWidth > 0).map(draw));
  }

  // Of many that are opened at once, all are drawn together.
  let waiting = 0;
  function drawSoon() {
    if (!waiting) waiting = setTimeout(() => { waiting = 0; drawAll(); });
  }

  function offer(name, url) {
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
  }

  function download(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type: type }));
    offer(name, url);
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }

  const MARKS = {
    circle: "●", "circle-open": "○", square: "■", diamond: "◆", "diamond-cross-open": "◇", "triangle-up": "▲",
    "triangle-down": "▼", pentagon: "⬟", hexagon: "⬢", star: "★", "x-thin-open": "×", line: "━", dash: "╍",
  };

  const COLOUR_BAR = 42; // pixels above a map
  const AXIS = 70; // pixels left of a plot
  const NARROWEST = 600; // pixels of a saved picture

  // Plotly reads some HTML in every text.
  function escaped(text) {
    return text.replace(/[&<>]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[letter]);
  }

  // Title and legend, which on the page are HTML, as lines of text for a picture that is so wide.
  function headOf(plot, title, width, style) {
    const most = Math.max(20, Math.floor(width / 7.2));
    const lines = [];
    function add(text, words, between) {
      const last = lines[lines.length - 1];
      if (last && last.letters && between && last.letters + text.length + 4 <= most) {
        last.letters += text.length + 4;
        last.words += between + words;
      } else {
        lines.push({ letters: text.length + 2, words: words });
      }
    }
    title.trim().split(/\s+/).forEach((word, place) => {
      add(word, "<b>" + escaped(word) + "</b>", place ? " " : "");
    });
    plot.querySelectorAll(".legend li").forEach((entry, place) => {
      const text = entry.textContent.trim();
      const colour = entry.dataset.role ? style.getPropertyValue("--" + entry.dataset.role).trim() : "";
      const sign = colour ? "<span style=\"color:" + colour + "\">" + (MARKS[entry.dataset.symbol] || "■") + "</span> " : "";
      add(text, sign + escaped(text), place ? "   " : "");
    });
    return lines.map((line) => line.words.replaceAll("</b> <b>", " "));
  }

  function save(button) {
    const plot = button.closest(".plot");
    const place = plot.querySelector("[data-figure]");
    const style = getComputedStyle(root);
    const figure = coloured(figures[place.dataset.figure], style);
    const width = Math.max(place.clientWidth, NARROWEST);
    const lines = headOf(plot, button.dataset.title, width - AXIS, style);
    const own = Object.assign({ l: 12, r: 14, t: 10, b: 12 }, figure.layout.margin);
    const gap = figure.data.some((trace) => trace.colorbar) ? Math.max(own.t, COLOUR_BAR) : own.t;
    const room = 17 * lines.length + 12;
    const height = Number(place.dataset.height) + room + gap;
    const head = {
      text: lines.join("<br>"), font: { size: 13 }, align: "left", showarrow: false,
      x: 0, xref: "paper", xanchor: "left", y: 1, yref: "paper", yanchor: "bottom", yshift: gap,
    };
    const layout = Object.assign({}, figure.layout, {
      paper_bgcolor: style.getPropertyValue("--card").trim(),
      width: width,
      height: height,
      margin: Object.assign(own, { t: room + gap }),
      annotations: (figure.layout.annotations || []).concat([head]),
    });
    const name = button.dataset.stem + "." + button.dataset.form;
    const scale = button.dataset.form === "png" ? 2 : 1;
    return Plotly.toImage({ data: figure.data, layout: layout }, { format: button.dataset.form, width: width, height: height, scale: scale })
      .then((url) => offer(name, url));
  }

  async function copy(button) {
    const text = document.getElementById(button.dataset.copy).textContent;
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch (error) {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    button.textContent = done ? "Copied" : "Select and copy";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  // On a telephone a section of more than about a screen is folded; its title and the contents open it.
  const narrow = window.matchMedia("(max-width: 900px)");
  function foldLong() {
    document.querySelectorAll("[data-long]").forEach((part) => {
      part.open = !narrow.matches || part.offsetHeight <= 900;
    });
    unfold(location.hash);
  }

  function unfold(hash) {
    const target = hash.length > 1 ? document.getElementById(hash.slice(1)) : null;
    if (!target) return;
    const inside = target.querySelector(":scope > details");
    if (inside) inside.open = true;
    for (let around = target; around; around = around.parentElement) {
      if (around.tagName === "DETAILS") around.open = true;
    }
  }

  narrow.addEventListener("change", foldLong);
  window.addEventListener("hashchange", () => unfold(location.hash));
  document.addEventListener("recolour", drawAll);
  document.querySelectorAll(".contents a").forEach((link) => link.addEventListener("click", () => unfold(link.hash)));
  document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button)));
  document.querySelectorAll("[data-download]").forEach((button) =>
    button.addEventListener("click", async () => {
      const type = button.dataset.source === "trials-csv" ? "text/csv" : "application/json";
      download(button.dataset.download, type, await unpacked(button.dataset.source));
    })
  );
  document.querySelectorAll("[data-stem]").forEach((button) => button.addEventListener("click", () => save(button)));
  document.querySelectorAll("details").forEach((details) =>
    details.addEventListener("toggle", () => {
      if (details.open) drawSoon();
    })
  );
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
    root.dataset.shown = root.dataset.theme || "";
    root.dataset.theme = "light";
    drawAll();
  });
  window.addEventListener("afterprint", () => {
    if (root.dataset.shown) root.dataset.theme = root.dataset.shown;
    else delete root.dataset.theme;
    drawAll();
  });

  foldLong();
  unpack().then(drawAll, saySoInstead).then(() => { root.dataset.drawn = "yes"; });
})();
