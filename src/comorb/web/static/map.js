// The map of patients: how many lie in each cell, coloured by cluster or by something else. A region
// that is drawn on it, by pointer or by keys, becomes a cohort.

import { colourOf, countText } from "/page/data.js";
import { button, count, h, percent, section, t } from "/page/dom.js";
import { pencil } from "/page/heatmap.js";
import { columnName } from "/page/outcomes.js";
import { assets, get, handle, may, notify, waiting } from "./frame.js";
import { runInside } from "./edits.js";
import { withView } from "./view.js";

const SHADES = [
  [222, 235, 247],
  [8, 48, 107],
];

/** @param {Run} run @param {Profile} profile */
export function patientMap(run, profile) {
  if (profile.clusters.length < 2) return null;
  const canvas = h("canvas", {
    tabindex: 0,
    role: "application",
    "aria-label": t("map.label"),
    "aria-describedby": "map-here",
  });
  const here = h("output", { id: "map-here", class: "quiet" });
  const chosen = h("output", {}, "");
  const state = h("div", { class: "quiet" });
  const by = h("select", { id: "map-by", change: () => load() }, ...choices(profile));
  const drawing = button(t("map.draw"), () => press(!pressed()), { "aria-pressed": "false" });
  const clear = button(t("map.clear"), () => mark([]), { disabled: true });
  const go = button(t("map.cluster"), handle(cluster), { class: "primary", disabled: true });
  let drawn = null;
  let region = [];
  let cursor = null;
  let held = false;

  const pressed = () => drawing.getAttribute("aria-pressed") === "true";
  const side = () => canvas.width / drawn.width;

  function press(on) {
    drawing.setAttribute("aria-pressed", String(on));
    canvas.classList.toggle("drawing", on);
  }

  async function load() {
    state.replaceChildren(waiting(t("map.loading")));
    try {
      drawn = await get(withView(`/api/v1/runs/${run.id}/map?by=${encodeURIComponent(by.value)}`));
      drawn.of = by.value;
      state.textContent = legend(drawn, profile, by.selectedOptions[0].textContent);
      draw();
    } catch (error) {
      state.textContent = error.message;
    }
  }

  function draw() {
    if (!drawn) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.setProperty("aspect-ratio", `${drawn.width} / ${drawn.height}`);
    canvas.style.setProperty("max-width", `${(70 * drawn.width) / drawn.height}vh`);
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round((canvas.width * drawn.height) / drawn.width);
    const context = pencil(canvas);
    const most = Math.max(1, ...drawn.squares.map((cell) => cell[2]));
    for (const [x, y, n, top, share] of drawn.squares) {
      const much = 0.2 + 0.8 * Math.sqrt(n / most);
      const part = drawn.of === "cluster" ? 1 : Math.sqrt(much);
      context.globalAlpha = part < 1 ? 1 : much;
      context.fillStyle = colour(top, share);
      const gap = ((1 - part) / 2) * side();
      context.fillRect(
        x * side() + gap,
        y * side() + gap,
        part * side() + 0.5,
        part * side() + 0.5,
      );
    }
    context.globalAlpha = 1;
    drawn.centres.forEach(([x, y], j) => label(context, x, y, profile.clusters[j]));
    outline(context);
  }

  function colour(top, share) {
    if (drawn.of === "cluster")
      return top === null ? assets.palette.muted : colourOf(assets.palette, profile.clusters[top]);
    if (share === null) return assets.palette.muted;
    return `rgb(${SHADES[0].map((from, i) => Math.round(from + share * (SHADES[1][i] - from))).join(" ")})`;
  }

  function label(context, x, y, cluster) {
    const size = Math.round(14 * (window.devicePixelRatio || 1));
    context.font = `700 ${size}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = "#fff";
    context.strokeStyle = colourOf(assets.palette, cluster);
    context.lineWidth = size / 5;
    context.beginPath();
    context.arc(x * side(), y * side(), size * 0.85, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    context.fillStyle = assets.palette.ink;
    context.fillText(String(cluster.number), x * side(), y * side());
  }

  function outline(context) {
    context.lineWidth = 2 * (window.devicePixelRatio || 1);
    context.strokeStyle = "#0b5fff";
    if (region.length) {
      context.beginPath();
      region.forEach(([x, y]) => context.lineTo(x * side(), y * side()));
      context.closePath();
      context.fillStyle = "#0b5fff26";
      context.fill();
      context.stroke();
      for (const [x, y] of held ? [] : region.slice(0, 40))
        context.strokeRect(x * side() - 2, y * side() - 2, 4, 4);
    }
    if (cursor) context.strokeRect(cursor[0] * side(), cursor[1] * side(), side(), side());
  }

  // A region, by its corners in cells; its records are counted from the cells that are shown.
  function mark(corners) {
    region = corners;
    const inside =
      region.length > 2 ? drawn.squares.filter(([x, y]) => isInside(region, x + 0.5, y + 0.5)) : [];
    const records = inside.reduce((sum, cell) => sum + cell[2], 0);
    const hidden = profile.min_cell > 0;
    chosen.textContent =
      region.length < 3 ? "" : t(hidden ? "map.chosen.more" : "map.chosen", { n: count(records) });
    go.disabled = !inside.length;
    clear.disabled = !region.length;
    draw();
  }

  function point(at) {
    cursor = at;
    const cell = drawn?.squares.find(([x, y]) => x === at[0] && y === at[1]);
    here.textContent = cell ? described(cell, drawn, profile) : t("map.empty");
  }

  function placeOf(event) {
    const box = canvas.getBoundingClientRect();
    const tenth = (value, most) => Math.round(10 * Math.min(Math.max(value, 0), most)) / 10;
    return [
      tenth(((event.clientX - box.left) / box.width) * drawn.width, drawn.width),
      tenth(((event.clientY - box.top) / box.height) * drawn.height, drawn.height),
    ];
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (!drawn || !pressed()) return;
    held = true;
    canvas.setPointerCapture(event.pointerId);
    mark([placeOf(event)]);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drawn) return;
    const [x, y] = placeOf(event);
    if (!held)
      point([Math.min(Math.floor(x), drawn.width - 1), Math.min(Math.floor(y), drawn.height - 1)]);
    const last = region[region.length - 1];
    if (held && region.length < 400 && Math.hypot(x - last[0], y - last[1]) > 0.3)
      mark([...region, [x, y]]);
    else if (!held) draw();
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(kind, () => {
      if (!held) return;
      held = false;
      press(false);
      mark(region.length > 2 ? region : []);
    });
  }
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      event.key
    ];
    if (!drawn || (!step && !["Enter", "Backspace", "Escape"].includes(event.key))) return;
    event.preventDefault();
    event.stopPropagation();
    const [x, y] = cursor ?? [Math.floor(drawn.width / 2), Math.floor(drawn.height / 2)];
    const keep = (value, most) => Math.min(Math.max(value, 0), most - 1);
    point(step ? [keep(x + step[0], drawn.width), keep(y + step[1], drawn.height)] : [x, y]);
    if (event.key === "Enter") mark([...region, [x + 0.5, y + 0.5]]);
    else if (event.key === "Backspace") mark(region.slice(0, -1));
    else if (event.key === "Escape") mark([]);
    else draw();
  });

  function cluster() {
    return runInside(run, { region }, t("map.cluster"), t("map.run", { title: run.title }));
  }

  const part = section(
    "map",
    h(
      "div",
      { class: "controls" },
      h("label", { for: "map-by" }, t("map.by")),
      by,
      may("analyst") ? [drawing, clear, chosen, go] : null,
    ),
    h("div", { class: "patients" }, canvas),
    state,
    here,
  );
  new ResizeObserver(draw).observe(canvas);
  const seen = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      load().catch((error) => notify(error.message, true));
    },
    { rootMargin: "300px" },
  );
  seen.observe(part);
  return part;
}

// What cells can be coloured by: clusters, common diagnoses, other columns.
/** @param {Profile} profile */
function choices(profile) {
  const option = (/** @type {string[]} */ [value, text]) => h("option", { value }, text);
  const codes = profile.page.common.map((i) => [profile.codes[i], profile.labels[i]]);
  const columns = profile.outcomes.flatMap((one) => {
    const name = columnName(one.name);
    if (one.kind === "number")
      return one.estimate[1][profile.clusters.length] === null
        ? []
        : [[one.name, t("map.above", { name })]];
    return one.values.map((value) => [
      `${one.name}=${value}`,
      `${name}: ${value.replaceAll("_", " ")}`,
    ]);
  });
  return [
    option(["cluster", t("map.clusters")]),
    columns.length ? h("optgroup", { label: t("outcomes.short") }, ...columns.map(option)) : null,
    codes.length ? h("optgroup", { label: t("frequency.diagnosis") }, ...codes.map(option)) : null,
  ].filter(Boolean);
}

/** @param {Profile} profile */
function legend(drawn, profile, name) {
  const few = profile.min_cell ? ` ${t("map.few", { n: profile.min_cell })}` : "";
  if (drawn.of === "cluster") return t("map.legend") + few;
  const edge = drawn.edge === null ? "" : ` (> ${count(drawn.edge)})`;
  return t("map.legend.share", { name: name + edge }) + few;
}

/** @param {any} part0 @param {any} drawn @param {Profile} profile */
function described([, , n, top, share], drawn, profile) {
  const records = `${countText(profile, n)} ${t("records", { n: count(n) })}`;
  if (drawn.of !== "cluster")
    return `${records} · ${share === null ? t("hidden") : percent(share)}`;
  if (top === null) return records;
  return `${records} · ${percent(share)} ${profile.clusters[top].number} ${profile.clusters[top].name}`;
}

// Whether a point is inside a polygon, by the even-odd rule, as the server looks at the middle of a cell.
function isInside(corners, x, y) {
  let odd = false;
  corners.forEach(([x0, y0], i) => {
    const [x1, y1] = corners[(i + 1) % corners.length];
    if (y0 > y !== y1 > y && x < x0 + ((y - y0) * (x1 - x0)) / (y1 - y0)) odd = !odd;
  });
  return odd;
}
