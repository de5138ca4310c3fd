// What the lab's plots are drawn with: two pens that draw the same, on a canvas or as SVG, and the axes of a plot.
const pens = (function () {
  "use strict";
  const FONT = "12px system-ui, sans-serif";
  const MOST_SQUARES = 4000; // drawn one by one on a canvas: more are painted as pixels
  const MOST_VECTORS = 20000;
  let sheet = null; // what pixels are painted on

  function colours(hex) {
    const value = parseInt(hex.slice(1), 16);
    return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
  }

  // The colour at a place between 0 and 1 of a row of colours.
  function between(row, share) {
    const at = Math.max(0, Math.min(1, share)) * (row.length - 1), n = Math.min(row.length - 2, Math.floor(at));
    const [from, to] = [colours(row[n]), colours(row[n + 1])];
    return "#" + from.map((one, k) => Math.round(one + (to[k] - one) * (at - n)).toString(16).padStart(2, "0")).join("");
  }

  function blend(data, at, [r, g, b], own, alpha) {
    const below = data[at + 3] * (1 - alpha), all = own + below;
    data[at] = (r * own + data[at] * below) / all;
    data[at + 1] = (g * own + data[at + 1] * below) / all;
    data[at + 2] = (b * own + data[at + 2] * below) / all;
    data[at + 3] = all;
  }

  // Squares as pixels: a hundred thousand within a frame. Faint ones darken each other, the others hide what is below.
  function paint(context, xs, ys, hues, count, palette, size, alpha) {
    const scale = context.getTransform().a, { width, height } = context.canvas;
    if (!sheet || sheet.canvas.width !== width || sheet.canvas.height !== height) {
      const canvas = document.createElement("canvas");
      canvas.width = width;
      canvas.height = height;
      const image = new ImageData(width, height);
      sheet = { canvas, pen: canvas.getContext("2d"), image, pixels: new Uint32Array(image.data.buffer) };
    }
    const { image: { data }, pixels } = sheet, known = palette.map(colours), side = Math.max(1, Math.round(size * scale));
    const own = Math.round(255 * alpha), faint = alpha < 0.8;
    pixels.fill(0);
    known.forEach(([r, g, b], hue) => { data.set([r, g, b, own], 4 * hue); });
    const whole = pixels.slice(0, known.length);
    pixels.fill(0, 0, known.length);
    for (let n = 0; n < count; n++) {
      const left = (xs[n] * scale - side / 2 + 0.5) | 0, top = (ys[n] * scale - side / 2 + 0.5) | 0, hue = hues[n];
      if (left <= 0 || top <= 0 || left + side > width || top + side > height) continue;
      for (let dy = 0; dy < side; dy++) {
        for (let dx = 0, at = (top + dy) * width + left; dx < side; dx++, at++) {
          if (!faint || !pixels[at]) pixels[at] = whole[hue];
          else blend(data, 4 * at, known[hue], own, alpha);
        }
      }
    }
    sheet.pen.putImageData(sheet.image, 0, 0);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(sheet.canvas, 0, 0);
    context.restore();
  }

  function onCanvas(context) {
    function follow(points) {
      context.beginPath();
      points.forEach(([a, b], n) => (n ? context.lineTo(a, b) : context.moveTo(a, b)));
    }
    return {
      clip({ left, right, top, bottom }) {
        context.save();
        context.beginPath();
        context.rect(left - 4, top - 4, right - left + 8, bottom - top + 8);
        context.clip();
      },
      unclip() { context.restore(); },
      line(points, colour, width, alpha, dash) {
        context.globalAlpha = alpha === undefined ? 1 : alpha;
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.setLineDash(dash || []);
        follow(points);
        context.stroke();
        context.globalAlpha = 1;
      },
      area(points, colour, alpha) {
        context.globalAlpha = alpha;
        context.fillStyle = colour;
        follow(points);
        context.fill();
        context.globalAlpha = 1;
      },
      text(words, a, b, colour, align) {
        context.font = FONT;
        context.fillStyle = colour;
        context.textAlign = align || "start";
        context.fillText(words, a, b);
      },
      dots(xs, ys, hues, count, palette, size, alpha) {
        if (count > MOST_SQUARES) return paint(context, xs, ys, hues, count, palette, size, alpha);
        context.globalAlpha = alpha;
        palette.forEach((colour, hue) => {
          context.fillStyle = colour;
          for (let n = 0; n < count; n++) if (hues[n] === hue) context.fillRect(xs[n] - size / 2, ys[n] - size / 2, size, size);
        });
        context.globalAlpha = 1;
      },
    };
  }

  function asSvg(width, height, ground) {
    const escaped = (text) => text.replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one]);
    const round = (value) => Math.round(value * 100) / 100;
    const way = (points) => points.map(([a, b]) => `${round(a)},${round(b)}`).join(" ");
    const parts = [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"><rect width="100%" height="100%" fill="${ground}"/>`];
    return {
      clip({ left, right, top, bottom }) {
        const id = "clip" + parts.length;
        parts.push(`<clipPath id="${id}"><rect x="${left - 4}" y="${top - 4}" width="${right - left + 8}" height="${bottom - top + 8}"/></clipPath><g clip-path="url(#${id})">`);
      },
      unclip() { parts.push("</g>"); },
      line(points, colour, width, alpha, dash) {
        parts.push(`<polyline points="${way(points)}" fill="none" stroke="${colour}" stroke-width="${width}"${alpha === undefined ? "" : ` opacity="${alpha}"`}${dash ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`);
      },
      area(points, colour, alpha) { parts.push(`<polygon points="${way(points)}" fill="${colour}" opacity="${alpha}"/>`); },
      text(words, a, b, colour, align) {
        const anchor = { end: "end", center: "middle" }[align] || "start";
        parts.push(`<text x="${round(a)}" y="${round(b)}" fill="${colour}" text-anchor="${anchor}" font-size="12" font-family="system-ui, sans-serif">${escaped(words)}</text>`);
      },
      dots(xs, ys, hues, count, palette, size, alpha) {
        if (count > MOST_VECTORS) {
          // So many squares no program opens quickly: they become one picture.
          const canvas = document.createElement("canvas");
          canvas.width = 2 * width;
          canvas.height = 2 * height;
          const context = canvas.getContext("2d");
          context.scale(2, 2);
          onCanvas(context).dots(xs, ys, hues, count, palette, size, alpha);
          parts.push(`<image width="${width}" height="${height}" href="${canvas.toDataURL()}"/>`);
          return;
        }
        palette.forEach((colour, hue) => {
          const squares = [];
          for (let n = 0; n < count; n++) if (hues[n] === hue) squares.push(`M${round(xs[n] - size / 2)} ${round(ys[n] - size / 2)}h${size}v${size}h-${size}z`);
          if (squares.length) parts.push(`<path d="${squares.join("")}" fill="${colour}" opacity="${alpha}"/>`);
        });
      },
      ended: () => parts.join("") + "</svg>",
    };
  }

  // The room of a plot between its axes, and the ways from figures to pixels and back.
  function frame(view, across, up) {
    const marksUp = up.marks || axes.ticks(up[0], up[1], 5), textsUp = up.texts || axes.labels(marksUp);
    const left = Math.min(view.width / 3, 12 + 7 * Math.max(2, ...textsUp.map((one) => one.length)));
    const room = { left: left, right: view.width - 14, top: 24, bottom: view.height - 40 };
    return {
      room, across, up, marksUp, textsUp,
      x: (value) => room.left + ((room.right - room.left) * (value - across[0])) / (across[1] - across[0]),
      y: (value) => room.bottom - ((room.bottom - room.top) * (value - up[0])) / (up[1] - up[0]),
      fromX: (pixel) => across[0] + ((across[1] - across[0]) * (pixel - room.left)) / (room.right - room.left),
      fromY: (pixel) => up[0] + ((up[1] - up[0]) * (room.bottom - pixel)) / (room.bottom - room.top),
    };
  }

  function drawAxes(pen, own, titleAcross, titleUp, bare) {
    const { room, across } = own, muted = axes.colour("muted"), grid = axes.colour("grid"), line = axes.colour("line");
    own.marksUp.forEach((mark, n) => {
      if (!bare) pen.line([[room.left, own.y(mark)], [room.right, own.y(mark)]], grid, 1);
      pen.text(own.textsUp[n], room.left - 7, own.y(mark) + 4, muted, "end");
    });
    const marks = across.marks || axes.ticks(across[0], across[1], Math.max(2, Math.floor((room.right - room.left) / 90)));
    (across.texts || axes.labels(marks)).forEach((text, n) => {
      pen.line([[own.x(marks[n]), room.bottom], [own.x(marks[n]), room.bottom + 4]], line, 1);
      pen.text(text, own.x(marks[n]), room.bottom + 17, muted, "center");
    });
    pen.line([[room.left, room.top], [room.left, room.bottom], [room.right, room.bottom]], line, 1);
    pen.text(titleUp, 4, 14, muted, "start");
    pen.text(titleAcross, room.right, room.bottom + 34, muted, "end");
  }

  return { onCanvas, asSvg, frame, drawAxes, between };
})();
