// A picker of codes: type a code, words, a pattern such as V* or V01-V91, or paste a list; what was
// chosen stands as chips.

import { button, count, h, t } from "/page/dom.js";
import { call, get } from "./frame.js";
import { codingOf, queryOf } from "./cohort_rules.js";
import { codeSets, keepCodes } from "./saved.js";
import { recordCount } from "./view.js";

const PATTERN = /[*%,;\n]|\d\s*(-|–|to|a|\.\.)\s*\w*\d|\bcod(es|is)\b|\bc[oó]digos\b/i;
let pickers = 0;

export function picker({ data, label, how, rules, change }) {
  pickers += 1;
  const id = `codes-${pickers}`;
  const chosen = new Map();
  const list = h("ul", { role: "listbox", id: `${id}-list`, "aria-label": label, hidden: true });
  const chips = h("ul", { class: "chips" });
  const wrong = h("p", { class: "wrong-line", role: "alert", hidden: true });
  const keep = button(t("saved.keep_codes"), () => keepCodes([...chosen.keys()]), {
    class: "link",
    hidden: true,
  });
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
  let turn = 0;

  input.addEventListener("input", () => {
    window.clearTimeout(timer);
    turn += 1;
    complain("");
    found = []; // what is shown answers what was typed before
    if (input.value.trim()) show([quiet("codes.searching")]);
    timer = window.setTimeout(look, 120);
  });
  input.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text") ?? "";
    if (!text.includes("\n")) return;
    event.preventDefault();
    input.value = `${input.value} ${text.trim().replace(/\s*[\r\n]+\s*/g, ", ")}`.trim();
    look();
  });
  input.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && found.length)
      activate((active + steps[event.key] + found.length) % found.length);
    else if (event.key === "ArrowDown") look(true);
    else if (event.key === "Enter" && found.length) add(found[Math.max(active, 0)]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  input.addEventListener("blur", () =>
    window.setTimeout(() => {
      close();
      if (document.activeElement !== input) settle();
    }, 150),
  );

  async function look(all = false) {
    turn += 1;
    const mine = turn;
    const text = input.value.trim();
    if (!text && !all) return close();
    const [codes, sets] = await Promise.all([text ? hits(text) : [], codeSets(text)]);
    if (mine !== turn) return;
    found = [...sets, ...codes].filter((hit) => hit.set || !chosen.has(hit.code));
    if (!found.length && !text) return close();
    active = -1;
    show(found.length ? found.map(option) : [quiet("codes.none")]);
  }

  function quiet(key) {
    return h("li", { role: "option", "aria-disabled": "true", class: "quiet" }, t(key));
  }

  function show(options) {
    list.replaceChildren(...options);
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }

  // A pattern or a list is one choice, with how many codes it stands for; words are searched for.
  async function hits(text) {
    if (!PATTERN.test(text)) return search(data, text, rules());
    const parts = await match(data, [text], rules());
    const known = parts.filter((one) => one.codes);
    if (!known.length) return parts.length > 1 ? [] : search(data, text, rules());
    const total = known.reduce((sum, one) => sum + one.codes, 0);
    return [
      {
        code: text,
        label:
          parts.length > 1
            ? t("codes.list", { n: count(parts.length), codes: count(total) })
            : named(known[0]),
        parts,
      },
    ];
  }

  function option(hit, i) {
    return h(
      "li",
      {
        role: "option",
        id: `${id}-${i}`,
        "aria-selected": "false",
        title: hit.name ?? "",
        pointerdown: (event) => event.preventDefault(),
        click: () => add(hit),
      },
      h("code", {}, hit.set ? t("saved.set") : hit.code),
      h("span", {}, hit.label),
      h("span", { class: "num quiet" }, hit.records === undefined ? "" : recordCount(hit.records)),
    );
  }

  function activate(place) {
    active = place;
    [...list.children].forEach((each, i) =>
      each.setAttribute("aria-selected", String(i === active)),
    );
    input.setAttribute("aria-activedescendant", `${id}-${active}`);
    list.children[active].scrollIntoView({ block: "nearest" });
  }

  function close() {
    turn += 1;
    list.hidden = true;
    found = [];
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  async function add(hit) {
    input.value = "";
    close();
    const parts = hit.set ? await match(data, hit.set, rules()) : hit.parts;
    for (const one of parts ?? [{ ...hit, codes: 1 }])
      if (one.codes) chosen.set(one.code, named(one));
    refuse((parts ?? []).filter((one) => !one.codes).map((one) => one.code));
    draw();
    change();
  }

  function refuse(codes) {
    complain(codes.length ? t("codes.unknown", { codes: codes.join(", ") }) : "");
  }

  function complain(text) {
    wrong.hidden = !text;
    wrong.textContent = text;
  }

  // Choose what was typed where it can mean one thing only; else show that a choice is due.
  async function settle() {
    const text = input.value.trim();
    if (!text) return true;
    const all = (await Promise.all([codeSets(text), hits(text)])).flat();
    if (input.value.trim() !== text || document.activeElement === input) return !input.value.trim();
    const same = all.filter((hit) =>
      [hit.code, hit.label].some((one) => one?.toLowerCase() === text.toLowerCase()),
    );
    const [hit, ...others] = same.length ? same : all;
    if (hit && !others.length) await add(hit);
    else complain(t(hit ? "codes.pending" : "codes.unknown", { text, codes: text }));
    return !input.value.trim();
  }

  function draw() {
    keep.hidden = chosen.size < 2;
    chips.replaceChildren(
      ...[...chosen].map(([code, name]) =>
        codeChip(code, name, () => {
          chosen.delete(code);
          draw();
          change();
          input.focus();
        }),
      ),
    );
  }

  // Choose codes that come without names, such as those of the address; return those not known.
  async function set(codes) {
    const names = await namesOfCodes(data, codes, rules());
    chosen.clear();
    for (const code of codes) if (names[code]) chosen.set(code, names[code]);
    draw();
    return codes.filter((code) => !names[code]);
  }

  const element = h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h("p", { class: "quiet" }, how),
    chips,
    h("div", { class: "combobox" }, input, list),
    wrong,
    keep,
  );
  return {
    element,
    input,
    set,
    settle,
    codes: () => [...chosen.keys()],
    names: () => [...chosen].map(([code, name]) => (PATTERN.test(code) ? code : name)),
  };
}

// `rules` are those of a cohort, some of which decide which codes there are.
function search(data, words, rules) {
  const query = queryOf(codingOf(rules));
  query.set("q", words);
  return get(`/api/v1/data/${data}/codes?${query}`);
}

function match(data, texts, rules) {
  return call("POST", `/api/v1/data/${data}/codes`, { texts, ...codingOf(rules) });
}

function named(one) {
  return one.label || t("codes.several", { n: count(one.codes) });
}

// The names of codes, or how many a pattern stands for; those that nothing has are left out.
export async function namesOfCodes(data, codes, rules) {
  if (!codes.length) return {};
  const found = await match(data, codes, rules);
  return Object.fromEntries(found.filter((one) => one.codes).map((one) => [one.code, named(one)]));
}

export function codeChip(code, name, remove, label = t("codes.remove", { name: name || code })) {
  return h(
    "li",
    { class: "code-chip" },
    h("code", {}, code),
    ` ${name} `,
    remove ? button("×", remove, { "aria-label": label, title: label }) : null,
  );
}
