// The view of a run: full or protected counts. The address may ask for one, and links keep it.

import { count, h, t } from "/page/dom.js";
import { frame, may } from "./frame.js";

const wanted = new URLSearchParams(window.location.search).get("view");

// An address with the view of this page's own address.
export function withView(path, view = wanted) {
  if (!view) return path;
  const address = new URL(path, window.location.origin);
  address.searchParams.set("view", view);
  return `${address.pathname}${address.search}${address.hash}`;
}

// A number of records: null are few, and what was left out isn't known.
export function recordCount(value) {
  return value === null ? `< ${frame.minCell}` : count(value ?? null);
}

// The other view, for those who may see both; the one that is shown is marked.
export function viewSwitch(shown) {
  if (!may("exporter")) return null;
  const here = window.location.pathname + window.location.search + window.location.hash;
  const choice = (view) =>
    h(
      "a",
      {
        class: "button",
        href: withView(here, view),
        "aria-current": view === shown ? "true" : null,
      },
      t(`view.${view}`),
    );
  return h(
    "span",
    {
      class: "views",
      role: "group",
      "aria-label": t("view.title"),
      title: t("view.how", { n: frame.minCell }),
    },
    `${t("view.title")} `,
    choice("full"),
    choice("protected"),
  );
}
