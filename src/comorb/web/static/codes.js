// A picker of codes: type a code or words, choose from the list, see what was chosen as chips.

import { h, t } from "/page/dom.js";
import { get } from "./frame.js";
import { counted } from "./view.js";

let pickers = 0;

export function picker({ data, label, how, coding, change }) {
  pickers += 1;
  const id = `codes-${pickers}`;
  const chosen = new Map();
  const list = h("ul", { role: "listbox", id: `${id}-list`, "aria-label": label, hidden: true });
  const chips = h("ul", { class: "chips" });
  const input = h("input", {
    id,
    type: "text",
    role: "combobox",
    autocomplete: "off",
    placeholder: t("codes.placeholder"),
    "aria-expanded": "false",
    "aria-controls": `${id}-list`,
    "aria-autocomplete": "list",
  });
  let found = [];
  let active = -1;
  let timer = 0;

  input.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(look, 120);
  });
  input.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && found.length) activate((active + steps[event.key] + found.length) % found.length);
    else if (event.key === "Enter" && found.length) add(found[Math.max(active, 0)]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  input.addEventListener("blur", () => window.setTimeout(close, 150));

  async function look() {
    if (!input.value.trim()) return close();
    found = (await search(data, input.value.trim(), coding())).filter((hit) => !chosen.has(hit.code));
    active = -1;
    list.replaceChildren(...(found.length ? found.map(option) : [h("li", { role: "option", "aria-disabled": "true", class: "quiet" }, t("codes.none"))]));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }

  function option(hit, i) {
    return h(
      "li",
      { role: "option", id: `${id}-${i}`, "aria-selected": "false", title: hit.name, pointerdown: (event) => event.preventDefault(), click: () => add(hit) },
      h("code", {}, hit.code),
      h("span", {}, hit.label),
      h("span", { class: "num quiet" }, hit.records === undefined ? "" : counted(hit.records)),
    );
  }

  function activate(place) {
    active = place;
    [...list.children].forEach((each, i) => each.setAttribute("aria-selected", String(i === active)));
    input.setAttribute("aria-activedescendant", `${id}-${active}`);
    list.children[active].scrollIntoView({ block: "nearest" });
  }

  function close() {
    list.hidden = true;
    found = [];
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function add(hit) {
    chosen.set(hit.code, hit.label);
    input.value = "";
    close();
    draw();
    change();
  }

  function draw() {
    chips.replaceChildren(...[...chosen].map(([code, name]) => chip(code, name, () => {
      chosen.delete(code);
      draw();
      change();
      input.focus();
    })));
  }

  // Choose codes that come without names, such as those of the address; return those not known.
  async function set(codes) {
    const names = await Promise.all(codes.map((code) => nameOf(data, code, coding())));
    chosen.clear();
    codes.forEach((code, i) => names[i] && chosen.set(code, names[i]));
    draw();
    return codes.filter((_, i) => !names[i]);
  }

  const element = h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h("p", { class: "quiet" }, how),
    chips,
    h("div", { class: "combobox" }, input, list),
  );
  return { element, set, codes: () => [...chosen.keys()], names: () => [...chosen.values()] };
}

// `coding` is what of the rules decides which codes there are: level, map and chronic.
function search(data, words, { level = ["category"], code_map, chronic }) {
  const query = new URLSearchParams([["q", words], ...level.map((one) => ["level", one])]);
  if (code_map) query.set("code_map", code_map);
  if (chronic) query.set("chronic", true);
  return get(`/api/v1/data/${data}/codes?${query}`);
}

// The name of a code, or undefined; among full codes one also stands for all that begin with it.
export async function nameOf(data, code, coding) {
  const hits = await search(data, code, coding);
  const own = hits.find((hit) => hit.code === code)?.label;
  if (own || !coding.level?.includes("full") || !hits.length) return own;
  return (await nameOf(data, code, { ...coding, level: ["category"] })) ?? code;
}

export function chip(code, name, remove, label = t("codes.remove", { name })) {
  return h("li", { class: "code-chip" }, h("code", {}, code), ` ${name} `, remove ? h("button", { type: "button", "aria-label": label, title: label, click: remove }, "×") : null);
}
