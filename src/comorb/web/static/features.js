// Which other columns are features: a box for each, and its kind once it is ticked.

import { h, t } from "/page/dom.js";
import { columnName } from "/page/outcomes.js";

const KINDS = ["binary", "category", "count", "number", "number:log", "number:rank"];

// The boxes of the columns in `names`; those in `wanted`, such as hba1c=number, are ticked.
export function featureBoxes(names, wanted) {
  const watchers = [];
  const changed = () => watchers.forEach((call) => call());
  const boxes = new Map(names.map((name) => [name, featureBox(name, wanted, changed)]));
  return {
    names,
    of: (name) => boxes.get(name)?.element ?? null,
    chosen: () => [...boxes.values()].map((one) => one.word()).filter(Boolean),
    watch: (call) => watchers.push(call),
  };
}

function featureBox(name, wanted, changed) {
  const word = wanted.find((one) => one === name || one.startsWith(`${name}=`));
  const given = word?.slice(name.length + 1) ?? "";
  const label = t("feature.of", { name: columnName(name) });
  const tick = h("input", {
    type: "checkbox",
    checked: word !== undefined,
    "aria-label": label,
    change,
  });
  const options = ["", ...KINDS].map((kind) =>
    h(
      "option",
      { value: kind, selected: kind === given },
      t(`kind.${kind.split(":").at(-1) || "auto"}`),
    ),
  );
  const kind = h(
    "select",
    {
      hidden: word === undefined,
      "aria-label": t("feature.kind", { name: columnName(name) }),
      change: changed,
    },
    ...options,
  );

  function change() {
    kind.hidden = !tick.checked;
    changed();
  }

  return {
    element: h("span", { class: "feature" }, tick, kind),
    word: () => (tick.checked ? (kind.value ? `${name}=${kind.value}` : name) : null),
  };
}
