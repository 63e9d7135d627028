// Point at a cluster or a disease anywhere, and it lights up everywhere; a disease also shows a
// small table of all clusters. The keyboard's focus does the same as the pointer.

import { h, percent, t } from "./dom.js";
import { shareText } from "./data.js";

/** @param {Profile} profile */
export function createHighlight(root, profile) {
  const tip = h("div", { class: "tip", role: "status", hidden: true });
  root.append(tip);
  const watchers = [];
  const lit = { cluster: null, code: null };

  function light(cluster, code) {
    if (cluster === lit.cluster && code === lit.code) return;
    lit.cluster = cluster;
    lit.code = code;
    for (const element of root.querySelectorAll(".lit")) element.classList.remove("lit");
    const wanted = [];
    if (cluster !== null) wanted.push(`[data-cluster="${cluster}"]`);
    if (code !== null) wanted.push(`[data-code="${code}"]`);
    if (wanted.length) {
      for (const element of root.querySelectorAll(wanted.join(","))) element.classList.add("lit");
    }
    root.classList.toggle("cluster-lit", cluster !== null && code === null);
    for (const call of watchers) call(lit);
  }

  function showTip(code, x, y) {
    tip.hidden = code === null;
    if (code === null) return;
    tip.replaceChildren(...tipContent(profile, code));
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 18 + width > window.innerWidth ? x - 18 - width : x + 18;
    const top = Math.min(Math.max(y - height / 2, 8), window.innerHeight - height - 8);
    tip.style.setProperty("left", `${Math.max(left, 8)}px`);
    tip.style.setProperty("top", `${top}px`);
  }

  function placeOf(element, name) {
    const holder = element.closest?.(`[data-${name}]`);
    return holder ? Number(holder.dataset[name]) : null;
  }

  function follow(event) {
    const target = event.target;
    if (target.closest?.("[data-own-light]")) return;
    const code = placeOf(target, "code");
    light(placeOf(target, "cluster"), code);
    const box = target.getBoundingClientRect?.() ?? { right: 0, top: 0 };
    const pointer = event.type === "pointermove" || event.type === "pointerover";
    showTip(code, pointer ? event.clientX : box.right, pointer ? event.clientY : box.top);
  }

  function clear() {
    light(null, null);
    showTip(null);
  }

  root.addEventListener("pointerover", follow);
  root.addEventListener("pointermove", follow);
  root.addEventListener("focusin", follow);
  root.addEventListener("focusout", clear);
  root.addEventListener("pointerleave", clear);
  root.addEventListener("keydown", (event) => event.key === "Escape" && clear());
  return { light, showTip, clear, watch: (call) => watchers.push(call) };
}

/** @param {Profile} profile */
function tipContent(profile, code) {
  const rows = profile.clusters.map((cluster, j) =>
    tipRow(
      String(cluster.number),
      profile.prevalence[j][code],
      shareText(profile, j, code, 1),
      [profile.low[j][code], profile.high[j][code]],
      j,
    ),
  );
  const all = tipRow(
    t("all"),
    profile.overall[code],
    shareText(profile, null, code, 1),
    profile.page.overall.map((end) => end[code]),
    null,
  );
  return [
    h("strong", {}, profile.labels[code]),
    h("span", { class: "tip-code" }, `${profile.codes[code]} · ${profile.names[code]}`),
    h("table", {}, h("tbody", {}, all, ...rows)),
  ];
}

/** @param {number | null} cluster */
function tipRow(name, share, text, ends, cluster) {
  const [low, high] = ends;
  const range = low === null ? "" : `${percent(low, 1)} – ${percent(high, 1)}`;
  const meter = h("span", { class: "meter", vars: { "--share": share ?? 0 } });
  return h(
    "tr",
    {
      class: cluster === null ? "overall" : null,
      vars: cluster === null ? {} : { "--c": `var(--cluster-${cluster})` },
    },
    h("th", { scope: "row" }, name),
    h("td", {}, meter),
    h("td", { class: "num" }, text),
    h("td", { class: "num quiet" }, range),
  );
}
