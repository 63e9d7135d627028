// A map of one's own from codes to groups: chosen out of those that were given, or a new one.

import { count, h, t } from "/page/dom.js";
import { doing, send, tell } from "./frame.js";

export function ownMap(row, chosen, change) {
  const maps = { ...row.maps };
  const select = h("select", { id: "code-map", change });
  const file = h("input", { type: "file", id: "map-file", class: "unseen", accept: ".csv,.tsv,.txt", change: () => file.files[0] && give(file.files[0], file.files[0].name).catch((error) => tell(error.message, true)) });
  const text = h("textarea", { id: "map-text", rows: 4, "aria-label": t("maps.paste"), placeholder: "I10,hypertension,Hypertension\nE11,diabetes,Diabetes" });
  const paste = h("button", { type: "button", click: doing(() => give(text.value, "map.csv")) }, t("maps.use"));

  function draw(key) {
    const option = ([value, name]) => h("option", { value, selected: value === key }, name);
    const given = Object.values(maps).map((one) => [one.key, t("maps.named", { name: one.name, n: count(one.groups) })]);
    select.replaceChildren(...[["", t("maps.none")], ...given].map(option));
  }

  async function give(body, name) {
    file.value = "";
    const told = await send("PUT", `/api/v1/data/${row.id}/maps?name=${encodeURIComponent(name)}`, body);
    maps[told.key] = told;
    draw(told.key);
    tell([t("maps.read", { name: told.name, n: count(told.groups) }), ...told.notes].join(" "));
    await change();
  }

  draw(chosen);
  const element = h(
    "div",
    { class: "field" },
    h("label", { for: "code-map" }, t("maps.title")),
    h("p", { class: "quiet" }, t("maps.how")),
    h("div", { class: "row close" }, select, h("span", {}, file, h("label", { for: "map-file", class: "button" }, t("maps.file")))),
    h("details", {}, h("summary", {}, t("maps.paste")), text, h("p", {}, paste)),
  );
  return { element, key: () => select.value };
}
