// The heat-map on a canvas: a pixel's shade is the share of its records, so that none is lost;
// zoomed in, a line is a record.

import { button, count, find, h, roveFocus, section, shorten, t } from "./dom.js";
import { colourOf, readHeatmap, shareText } from "./data.js";

const HEIGHT = 620;
const FEWEST_LINES = 40;
const LABEL = 34;
const WHITE = [255, 255, 255];

/** @param {Shown} shown */
export function heatmap({ profile, palette, highlight }) {
  const cells = readHeatmap(profile.heatmap);
  if (!cells.total) return section("heatmap", h("p", {}, t("hidden.cluster")));
  const view = { from: 0, to: cells.total };
  const canvas = h("canvas", {
    tabindex: 0,
    role: "img",
    "aria-label": t("heatmap.label"),
    "data-own-light": "",
  });
  const bands = roveFocus(h("div", { class: "bands" }), "button");
  const where = h("output", { class: "quiet" });
  const labels = h(
    "div",
    { class: "labels" },
    ...profile.heatmap.columns.map((i) => columnLabel(profile, i)),
  );
  labels.style.setProperty("--columns", String(cells.width));
  const tints = profile.clusters.map((cluster) =>
    mix(rgb(colourOf(palette, cluster)), WHITE, 0.78),
  );
  const ink = rgb(palette.ink);
  /** @type {{ cluster: number | null, code: number | null }} */
  let lit = { cluster: null, code: null };

  function draw() {
    const buffer = document.createElement("canvas");
    buffer.width = cells.width;
    buffer.height = HEIGHT;
    const image = new ImageData(cells.width, HEIGHT);
    for (let y = 0; y < HEIGHT; y += 1) {
      const [from, to] = linesAt(view, y);
      const cluster = clusterAt(cells, from);
      const faded = isFaded(lit, cluster) ? 0.7 : 0;
      for (let x = 0; x < cells.width; x += 1) {
        const shade = cells.density(x, from, to);
        const colour = mix(mix(ink, tints[cluster], 1 - shade), WHITE, faded);
        image.data.set([...colour, 255], 4 * (y * cells.width + x));
      }
    }
    pencil(buffer).putImageData(image, 0, 0);
    canvas.width = Math.max(canvas.clientWidth, cells.width) * (window.devicePixelRatio || 1);
    canvas.height = HEIGHT;
    const context = pencil(canvas);
    context.imageSmoothingEnabled = false;
    context.drawImage(buffer, 0, 0, canvas.width, canvas.height);
    hatchHidden(context);
    drawBands();
    const shown = view.to - view.from;
    const each = profile.heatmap.per_line;
    where.textContent = t(each === 1 ? "heatmap.shown" : "heatmap.shown.lines", {
      n: count(shown),
      all: count(cells.total),
      each,
    });
  }

  // What is hidden, because few have it, is hatched: it is neither none nor all.
  function hatchHidden(context) {
    context.fillStyle = hatchPattern(context, palette);
    const [wide, high] = [canvas.width / cells.width, HEIGHT / (view.to - view.from)];
    for (let j = 0; j < profile.clusters.length; j += 1) {
      const top = Math.max(cells.edges[j] - view.from, 0) * high;
      const end = Math.min(cells.edges[j + 1] - view.from, view.to - view.from) * high;
      profile.heatmap.columns.forEach((code, x) => {
        if (end > top && profile.prevalence[j][code] === null)
          context.fillRect(x * wide, top, wide, end - top);
      });
    }
  }

  function drawBands() {
    bands.replaceChildren(
      ...profile.clusters
        .map((cluster, j) => {
          const top = Math.max(cells.edges[j], view.from) - view.from;
          const end = Math.min(cells.edges[j + 1], view.to) - view.from;
          if (end <= top) return null;
          const span = view.to - view.from;
          const vars = {
            "--c": `var(--cluster-${j})`,
            "--top": top / span,
            "--span": (end - top) / span,
          };
          const zoom = () => look(cells.edges[j], cells.edges[j + 1]);
          const small = (HEIGHT * (end - top)) / span < 16;
          const label = small ? "" : `${cluster.number} ${cluster.name}`;
          return button(h("span", {}, label), zoom, {
            class: "band",
            "data-cluster": j,
            vars,
            title: t("heatmap.zoom", { name: cluster.name }),
          });
        })
        .filter(Boolean),
    );
  }

  function look(from, to) {
    const span = Math.min(Math.max(to - from, Math.min(FEWEST_LINES, cells.total)), cells.total);
    view.from = Math.round(Math.min(Math.max(from, 0), cells.total - span));
    view.to = view.from + Math.round(span);
    draw();
  }

  function zoom(times) {
    const span = (view.to - view.from) * times;
    const middle = (view.from + view.to) / 2;
    look(middle - span / 2, middle + span / 2);
  }

  function move(part) {
    const step = (view.to - view.from) * part;
    look(view.from + step, view.to + step);
  }

  const keys = {
    "+": () => zoom(0.5),
    "-": () => zoom(2),
    ArrowUp: () => move(-0.25),
    ArrowDown: () => move(0.25),
    0: () => look(0, cells.total),
  };
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  canvas.addEventListener("dblclick", () => zoom(0.5));
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.min(
      Math.floor(((event.clientX - box.left) / box.width) * cells.width),
      cells.width - 1,
    );
    const y = Math.min(
      Math.max(Math.floor(((event.clientY - box.top) / box.height) * HEIGHT), 0),
      HEIGHT - 1,
    );
    const code = profile.heatmap.columns[Math.max(column, 0)];
    highlight.light(clusterAt(cells, linesAt(view, y)[0]), code);
    highlight.showTip(code, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", () => highlight.clear());
  highlight.watch((now) => {
    const before = lit.cluster;
    lit = { ...now };
    if (now.code === null || before !== now.cluster) draw();
  });
  new ResizeObserver(draw).observe(canvas);
  const part = section(
    "heatmap",
    h(
      "div",
      { class: "controls" },
      zoomButton("+", t("heatmap.in"), keys["+"]),
      zoomButton("−", t("heatmap.out"), keys["-"]),
      zoomButton(t("heatmap.whole"), t("heatmap.whole"), keys[0]),
      where,
    ),
    h("div", { class: "heatmap" }, bands, canvas, labels),
  );
  if (profile.heatmap.per_line > 1) {
    const how = profile.min_cell ? "heatmap.how.protected" : "heatmap.how.lines";
    find(".how", part).textContent = t(how, { each: profile.heatmap.per_line });
  }
  return part;
}

// Only a cluster that is lit on its own fades the others; a disease is marked by its label.
/** @param {number | null} cluster */
function isFaded(lit, cluster) {
  return lit.cluster !== null && lit.code === null && lit.cluster !== cluster;
}

function linesAt(view, y) {
  const span = view.to - view.from;
  const from = view.from + Math.floor((y * span) / HEIGHT);
  const to = view.from + Math.floor(((y + 1) * span) / HEIGHT);
  return [from, Math.max(to, from + 1)];
}

function clusterAt(cells, line) {
  let j = 0;
  while (cells.edges[j + 1] <= line) j += 1;
  return j;
}

/** @param {Profile} profile */
function columnLabel(profile, i) {
  return h(
    "span",
    { "data-code": i, title: shareText(profile, null, i, 1) },
    h("span", {}, shorten(profile.labels[i], LABEL)),
  );
}

function zoomButton(text, label, click) {
  return button(text, click, { "aria-label": label, title: label });
}

function rgb(colour) {
  return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
}

// A colour moved by a share towards another.
function mix(colour, other, share) {
  return colour.map((part, i) => Math.round(part + (other[i] - part) * share));
}

/** @param {HTMLCanvasElement} canvas */
export function pencil(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/** A pattern for what is hidden on a canvas. @param {Palette} palette */
function hatchPattern(context, palette) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = pencil(tile);
  pen.fillStyle = palette.hidden;
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = palette.muted;
  pen.globalAlpha = 0.45;
  for (const shift of [-8, 0, 8]) {
    pen.moveTo(shift, 8);
    pen.lineTo(shift + 8, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}
