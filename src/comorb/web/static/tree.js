// The tree: how one group splits into more, which splits come out again, and a cut to choose a number.

import { button, h, percent, scrollBox, section, shorten, svg, t } from "/page/dom.js";
import { get, handle, may } from "./frame.js";
import { rerun } from "./edits.js";
import { withView } from "./view.js";

const LEVEL = 150;
const LINE = 34;
const EDGE = 12;
const MORE = 4; // levels beyond the one that is recommended, or shown
const THUMB = 16;

/** @param {Run} run @param {Profile} profile */
export async function splitTree(run, profile) {
  const tree = await get(withView(`/api/v1/runs/${run.id}/tree`));
  if (!tree || tree.levels.length < 2) return null;
  const most = Math.min(tree.levels.length, Math.max(tree.best, run.clusters) + MORE);
  Object.assign(tree, {
    levels: tree.levels.slice(0, most),
    splits: tree.splits.slice(0, most - 1),
  });
  const { root, leaves } = growTree(tree);
  const width = most * LEVEL + EDGE;
  const cutLine = svg("line", { class: "cut", y1: 0, y2: leaves * LINE });
  const drawing = svg(
    "svg",
    {
      class: "splits",
      width,
      height: leaves * LINE + 4,
      role: "img",
      "aria-label": t("tree.title"),
    },
    ...lines(root, tree),
    cutLine,
  );
  const cut = h("input", {
    type: "range",
    id: "cut",
    min: 1,
    max: most,
    step: 1,
    value: Math.min(run.clusters, most),
    input: () => {
      show();
      reveal();
    },
    vars: {
      width: `${(most - 1) * LEVEL + THUMB}px`,
      "margin-left": `${LEVEL / 2 + EDGE - THUMB / 2}px`,
    },
  });
  const shownNumber = h("output", { for: "cut" });
  const groups = h("ol", { class: "groups" });
  const refitted = h("p", { class: "quiet" }, t("tree.own"));
  const go = h("button", {
    type: "button",
    class: "primary",
    click: handle(() => rerun(run, { k: Number(cut.value) })),
  });
  const finer = Math.min(tree.finer > 1 ? tree.finer : 2, most);
  const anyway =
    run.clusters === 1 && may("analyst")
      ? button(
          t("tree.anyway"),
          handle(() => rerun(run, { k: finer })),
        )
      : null;

  function show() {
    const k = Number(cut.value);
    const x = (k - 0.5) * LEVEL + EDGE;
    cutLine.setAttribute("x1", String(x));
    cutLine.setAttribute("x2", String(x));
    cut.setAttribute("aria-valuetext", t("tree.groups", { n: k }));
    shownNumber.textContent = t("tree.groups", { n: k });
    go.textContent = t("tree.find", { n: k });
    go.disabled = k === run.clusters;
    for (const line of drawing.querySelectorAll("[data-born]"))
      line.classList.toggle("beyond", Number(line.getAttribute("data-born")) > k);
    const own = k === run.clusters && k > 1;
    groups.replaceChildren(
      ...(own
        ? profile.clusters.map((group) => nameRow(group))
        : tree.levels[k - 1].map((group, place) => row(tree, k, group, place))),
    );
    refitted.hidden = !own;
  }

  // The cut follows a drag anywhere on the tree.
  const drag = (event) => {
    if (!event.buttons) return;
    const box = drawing.getBoundingClientRect();
    cut.value = String(Math.round((event.clientX - box.left - EDGE) / LEVEL + 0.5));
    show();
  };
  drawing.addEventListener("pointerdown", drag);
  drawing.addEventListener("pointermove", drag);
  const scroll = scrollBox(
    t("tree.title"),
    h("div", { vars: { width: `${width}px` } }, cut, drawing),
  );

  // Where the tree is wider than the page, the cut is brought into view.
  function reveal() {
    const x = (Number(cut.value) - 0.5) * LEVEL + EDGE - scroll.scrollLeft;
    if (x < THUMB || x > scroll.clientWidth - THUMB)
      scroll.scrollLeft += x - scroll.clientWidth / 2;
  }

  show();
  requestAnimationFrame(reveal);
  return section(
    "tree",
    h(
      "div",
      { class: "controls" },
      h("label", { for: "cut" }, t("tree.cut")),
      shownNumber,
      may("analyst") ? go : null,
      anyway,
    ),
    scroll,
    h("h3", {}, t("tree.at")),
    refitted,
    groups,
  );
}

function nameRow(group, ...more) {
  return h(
    "li",
    {},
    h("strong", {}, nameOf(group)),
    group.share === null ? null : ` · ${percent(group.share)}`,
    ...more,
  );
}

function row(tree, k, group, place) {
  const split = tree.splits[k - 1];
  const next = tree.levels[k];
  const splits = split && next && split.first === place;
  const into = splits ? [next[split.first], next[split.second]].map(nameOf).join(" + ") : "";
  return nameRow(
    group,
    splits
      ? h(
          "span",
          { class: split.reliably ? "reliably" : "quiet" },
          ` · ${t(split.reliably ? "tree.reliably" : "tree.unsure", { into })}`,
        )
      : null,
  );
}

function nameOf(group) {
  return group.name ?? t("hidden.cluster");
}

// The groups as a tree: each from the level where it is there to the one where it splits.
function growTree(tree) {
  const root = { born: 1, group: tree.levels[0][0], children: null };
  let present = [root];
  tree.splits.forEach(({ first, second, reliably }, i) => {
    const born = i + 2;
    const children = [first, second].map((place) => ({
      born,
      group: tree.levels[i + 1][place],
      children: null,
    }));
    Object.assign(present[first], { children, reliably, ends: born });
    present = [...present];
    present[first] = children[0];
    present.splice(second, 0, children[1]);
  });
  let leaves = 0;
  const place = (node) => {
    if (!node.children) node.y = (leaves++ + 0.6) * LINE;
    else node.y = (place(node.children[0]) + place(node.children[1])) / 2;
    return node.y;
  };
  place(root);
  return { root, leaves };
}

function lines(node, tree) {
  const end = node.ends ?? tree.levels.length + 1;
  const [from, to] = [(node.born - 1) * LEVEL + EDGE, (end - 1) * LEVEL + EDGE];
  const name = nameOf(node.group);
  const own = [
    svg("line", {
      class: "branch",
      "data-born": node.born,
      x1: from,
      x2: to,
      y1: node.y,
      y2: node.y,
    }),
    svg(
      "text",
      { "data-born": node.born, x: from + 8, y: node.y - 5 },
      shorten(name, Math.round((to - from) / 7)),
      svg("title", {}, name),
    ),
  ];
  if (!node.children) return own;
  const [one, two] = node.children;
  own.push(
    svg("line", { class: "branch", "data-born": one.born, x1: to, x2: to, y1: one.y, y2: two.y }),
    svg(
      "circle",
      { class: node.reliably ? "sure" : "unsure", "data-born": one.born, cx: to, cy: node.y, r: 5 },
      svg("title", {}, t(node.reliably ? "tree.sure.how" : "tree.unsure.how")),
    ),
  );
  return [...own, ...lines(one, tree), ...lines(two, tree)];
}
