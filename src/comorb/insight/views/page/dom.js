// Elements, texts and numbers: everything that other modules put on the page goes through here.

const SVG = "http://www.w3.org/2000/svg";

let catalogue = {};
let language = "en";
let phrases = [];
const ENGLISH_NUMBER = /^(\d{1,3}(,\d{3})+|\d+(\.\d+)?%)$/; // such as 1,234 or 5.5%, and no code

export function setTexts(texts, lang) {
  language = lang in texts ? lang : "en";
  catalogue = texts[language];
  phrases = Object.entries(texts.en)
    .filter(([key]) => key.startsWith("said."))
    .sort(([, a], [, b]) => fixedLength(b) - fixedLength(a));
}

// How much of a text stands fast, so that the most particular phrase is found first.
function fixedLength(text) {
  return text.replace(/\{\w+\}/g, "").length;
}

// The text of a key, with {name} replaced by values.name, and {name|one|more} by a word for that number.
export function t(key, values = {}) {
  const text = catalogue[key] ?? key;
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (whole, name, one, more) => {
    if (more !== undefined) return String(values[name]) === "1" ? one : more;
    return values[name] ?? whole;
  });
}

// What the profile says in English, such as "having 428", in the language of the page.
export function said(text) {
  if (language === "en") return text;
  if (ENGLISH_NUMBER.test(text)) return englishNumber(text);
  const whole = phrases.find(([, english]) => english === text);
  if (whole) return t(whole[0]);
  const sentences = text.split(/(?<=\.) (?=[A-Z0-9])/);
  if (sentences.length > 1) return sentences.map(said).join(" ");
  for (const [key, english] of phrases) {
    const match = text.match(`^${english.replace(/[.()]/g, "\\$&").replace(/\{(\w+)\}/g, "(?<$1>.+)")}$`);
    if (match) return t(key, Object.fromEntries(Object.entries(match.groups ?? {}).map(([name, part]) => [name, said(part)])));
  }
  return text;
}

// A number that is written in English as the page writes it.
function englishNumber(text) {
  const plain = text.replace("%", "");
  const value = Number(plain.replaceAll(",", ""));
  const digits = plain.split(".")[1]?.length ?? 0;
  return text.endsWith("%") ? percent(value / 100, digits) : number(value, digits);
}

export function hasText(key) {
  return key in catalogue;
}

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Functions become listeners, `vars` CSS variables, true and false attributes that are there or not.
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "vars") {
      for (const [key, setting] of Object.entries(value)) element.style.setProperty(key, setting);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// A technical word with a small button that explains it in a plain sentence.
export function term(name, text) {
  const about = h("span", { class: "meaning", popover: "auto", role: "note" }, t(`glossary.${name}`));
  const open = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    about.togglePopover();
    about.style.setProperty("--x", `${Math.max(8, Math.min(box.left, window.innerWidth - about.offsetWidth - 8))}px`);
    about.style.setProperty("--y", `${box.bottom + 6}px`);
  };
  const ask = h("button", { type: "button", class: "ask", "aria-label": t("glossary.what", { term: text }), "aria-haspopup": "true", click: open }, "?");
  return h("span", { class: "term" }, `${text} `, ask, about);
}

export function section(id, ...children) {
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, t(`${id}.title`)),
    h("p", { class: "how" }, t(`${id}.how`)),
    ...children,
  );
}

// Scroll to a section and go on from its heading, for the keyboard as well.
export function jumpTo(id) {
  const part = document.getElementById(id);
  if (!part) return;
  part.scrollIntoView({ block: "start" });
  const head = part.querySelector("h2");
  head.setAttribute("tabindex", "-1");
  head.focus({ preventScroll: true });
  part.dispatchEvent(new CustomEvent("arrive", { bubbles: true }));
}

// A pattern for what is hidden on a canvas.
export function hatching(context, palette) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
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

// One tab stop for many: the arrows, Home and End go from item to item; Tab goes on to the buttons of
// the one that has the focus, and then out.
export function rove(root, selector) {
  const items = () => [...root.querySelectorAll(selector)];
  let current = null;

  function settle() {
    const all = items();
    if (!all.includes(current)) [current] = all;
    for (const item of all) {
      for (const stop of [item, ...item.querySelectorAll("button")]) stop.setAttribute("tabindex", item === current ? 0 : -1);
    }
  }

  root.addEventListener("focusin", (event) => {
    const item = event.target.closest(selector);
    if (!item || item === current) return;
    current = item;
    settle();
  });
  root.addEventListener("keydown", (event) => {
    const all = items();
    const at = all.indexOf(event.target.closest(selector));
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined || !all[to] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    all[to].focus();
  });
  new MutationObserver(settle).observe(root, { childList: true, subtree: true });
  settle();
  return root;
}

export function count(value) {
  return value === null ? t("hidden") : new Intl.NumberFormat(language, { useGrouping: "always" }).format(value);
}

export function number(value, digits = 1) {
  if (value === null || Number.isNaN(value)) return t("hidden");
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "negative", useGrouping: "always" };
  return new Intl.NumberFormat(language, options).format(value);
}

// Names as a sentence lists them: a, b and c.
export function listed(names) {
  return new Intl.ListFormat(language).format(names);
}

export function percent(share, digits = 0) {
  if (share === null || Number.isNaN(share)) return t("hidden");
  if (share > 0 && share < 0.0005) return `<${percent(0.001)}`;
  const fine = share > 0 && share < 0.0095 ? 1 : digits;
  const options = { style: "percent", minimumFractionDigits: fine, maximumFractionDigits: fine };
  return new Intl.NumberFormat(language, options).format(share);
}

// At most `width` characters, cut between words; a long first word stays whole.
export function shorten(text, width) {
  if (text.length <= width) return text;
  const words = text.split(" ");
  let kept = words[0];
  for (const word of words.slice(1)) {
    if (kept.length + word.length + 2 > width) break;
    kept += ` ${word}`;
  }
  return `${kept.replace(/( (of|and|or|in|the|with))*[,;]?$/, "")}…`;
}
