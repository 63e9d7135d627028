// A map of one's own from codes to groups: chosen out of those that were given, or a new one.

import { button, count, h, t } from "/page/dom.js";
import { handle, notify, send } from "./frame.js";

export function codeMapField(row, chosen, change) {
  const maps = { ...row.maps };
  const select = h("select", { id: "code-map", change });
  /** @type {HTMLInputElement} */
  const file = h("input", {
    type: "file",
    id: "map-file",
    class: "unseen",
    accept: ".csv,.tsv,.txt",
    change: () =>
      file.files?.[0] &&
      upload(file.files[0], file.files[0].name).catch((error) => notify(error.message, true)),
  });
  const text = h("textarea", {
    id: "map-text",
    rows: 4,
    "aria-label": t("maps.paste"),
    placeholder: "I10,hypertension,Hypertension\nE11,diabetes,Diabetes",
  });
  const paste = button(
    t("maps.use"),
    handle(() => upload(text.value, "map.csv")),
  );

  function draw(key) {
    const option = (/** @type {string[]} */ [value, name]) =>
      h("option", { value, selected: value === key }, name);
    const given = Object.values(maps).map((one) => [
      one.key,
      t("maps.named", { name: one.name, n: count(one.groups) }),
    ]);
    select.replaceChildren(...[["", t("maps.none")], ...given].map(option));
  }

  async function upload(body, name) {
    file.value = "";
    const made = await send(
      "PUT",
      `/api/v1/data/${row.id}/maps?name=${encodeURIComponent(name)}`,
      body,
    );
    maps[made.key] = made;
    draw(made.key);
    notify([t("maps.read", { name: made.name, n: count(made.groups) }), ...made.notes].join(" "));
    await change();
  }

  draw(chosen);
  const element = h(
    "div",
    { class: "field" },
    h("label", { for: "code-map" }, t("maps.title")),
    h("p", { class: "quiet" }, t("maps.how")),
    h(
      "div",
      { class: "row close" },
      select,
      h("span", {}, file, h("label", { for: "map-file", class: "button" }, t("maps.file"))),
    ),
    h("details", {}, h("summary", {}, t("maps.paste")), text, h("p", {}, paste)),
  );
  return { element, key: () => select.value };
}
