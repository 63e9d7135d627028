// Elements, texts and numbers: everything that other modules put on the page goes through here.

const SVG = "http://www.w3.org/2000/svg";

/** @type {Record<string, string>} */
let catalogue = {};
let language = "en";

/** @param {Texts} texts @param {Language} lang */
export function setTexts(texts, lang) {
  language = lang in texts ? lang : "en";
  catalogue = texts[language];
}

/**
 * The text of a key, with {name} replaced by values.name, {name|one|more} by a word for that number.
 * @param {string} key
 * @param {Record<string, any>} values
 */
export function t(key, values = {}) {
  const text = catalogue[key] ?? key;
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (whole, name, one, more) => {
    if (more !== undefined) return String(values[name]) === "1" ? one : more;
    return values[name] ?? whole;
  });
}

export function hasText(key) {
  return key in catalogue;
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} attributes
 * @param {Child[]} children
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** @param {string} tag @param {Record<string, any>} attributes @param {Child[]} children */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * The element that a selector finds; a page without it can't be shown.
 * @param {string} selector
 * @param {ParentNode} root
 * @returns {HTMLElement}
 */
export function find(selector, root = document) {
  const found = root.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`the page has no ${selector}`);
  return found;
}

/**
 * Functions become listeners, `vars` CSS variables, true and false attributes that are there or not.
 * @template {HTMLElement | SVGElement} E
 * @param {E} element
 * @param {Record<string, any>} attributes
 * @param {Child[]} children
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "vars") {
      for (const [key, setting] of Object.entries(value)) element.style.setProperty(key, setting);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...present(children.flat()));
  return element;
}

/**
 * What is there of a list.
 * @template T
 * @param {(T | null | undefined)[]} items
 * @returns {NonNullable<T>[]}
 */
export function present(items) {
  return /** @type {NonNullable<T>[]} */ (
    items.filter((item) => item !== null && item !== undefined)
  );
}

/** @param {Child} text @param {(event: any) => unknown} click @param {Record<string, any>} more */
export function button(text, click, more = {}) {
  return h("button", { type: "button", click, ...more }, text);
}

/** @param {string} kind @param {Child[]} heads @param {Child[]} rows */
export function plainTable(kind, heads, rows) {
  return h(
    "table",
    { class: kind },
    h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...rows),
  );
}

// What may be wider than the page, such as a table: it scrolls by itself, by keys too.
export function scrollBox(label, ...children) {
  const attributes = { class: "scroll", tabindex: 0, role: "group", "aria-label": label };
  return h("div", attributes, ...children);
}

// What marks an element as one of a cluster, by its place: its colour, and what lights it up.
export function ofCluster(place) {
  return { "data-cluster": place, vars: { "--c": `var(--cluster-${place})` } };
}

/** @param {{ number: number }} cluster */
export function clusterChip(cluster) {
  return h("span", { class: "chip" }, String(cluster.number));
}

// A technical word with a small button that explains it in a plain sentence.
export function term(name, text) {
  const about = h(
    "span",
    { class: "meaning", popover: "auto", role: "note" },
    t(`glossary.${name}`),
  );
  const open = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    about.togglePopover();
    about.style.setProperty(
      "--x",
      `${Math.max(8, Math.min(box.left, window.innerWidth - about.offsetWidth - 8))}px`,
    );
    about.style.setProperty("--y", `${box.bottom + 6}px`);
  };
  const ask = h(
    "button",
    {
      type: "button",
      class: "ask",
      "aria-label": t("glossary.what", { term: text }),
      "aria-haspopup": "true",
      click: open,
    },
    "?",
  );
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
  const head = find("h2", part);
  head.setAttribute("tabindex", "-1");
  head.focus({ preventScroll: true });
  part.dispatchEvent(new CustomEvent("arrive", { bubbles: true }));
}

// One tab stop for many: the arrows, Home and End go from item to item; Tab goes on to the buttons of
// the one that has the focus, and then out.
export function roveFocus(root, selector) {
  const items = () => [...root.querySelectorAll(selector)];
  let current = null;

  function settle() {
    const all = items();
    if (!all.includes(current)) [current] = all;
    for (const item of all) {
      for (const stop of [item, ...item.querySelectorAll("button")])
        stop.setAttribute("tabindex", item === current ? 0 : -1);
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
    const to = {
      ArrowDown: at + 1,
      ArrowRight: at + 1,
      ArrowUp: at - 1,
      ArrowLeft: at - 1,
      Home: 0,
      End: all.length - 1,
    }[event.key];
    if (at < 0 || to === undefined || !all[to] || event.ctrlKey || event.metaKey || event.altKey)
      return;
    event.preventDefault();
    all[to].focus();
  });
  new MutationObserver(settle).observe(root, { childList: true, subtree: true });
  settle();
  return root;
}

export function count(value) {
  return value === null
    ? t("hidden")
    : new Intl.NumberFormat(language, { useGrouping: "always" }).format(value);
}

export function number(value, digits = 1) {
  if (value === null || Number.isNaN(value)) return t("hidden");
  /** @type {Intl.NumberFormatOptions} */
  const options = {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    signDisplay: "negative",
    useGrouping: "always",
  };
  return new Intl.NumberFormat(language, options).format(value);
}

// Names as a sentence lists them: a, b and c.
export function listNames(names) {
  return new Intl.ListFormat(language).format(names);
}

export function percent(share, digits = 0) {
  if (share === null || Number.isNaN(share)) return t("hidden");
  if (share > 0 && share < 0.0005) return `<${percent(0.001)}`;
  const fine = share > 0 && share < 0.0095 ? 1 : digits;
  /** @type {Intl.NumberFormatOptions} */
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
