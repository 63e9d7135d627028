import assert from "node:assert/strict";
import { test } from "node:test";
import { count, h, hasText, listNames, number, percent } from "../../src/comorb/views/page/dom.js";
import { present, section, setTexts, shorten, t } from "../../src/comorb/views/page/dom.js";
import { fakeDocument } from "./fake-dom.js";

const TEXTS = {
  en: {
    hidden: "hidden",
    hello: "Hello {name}",
    records: "{n} {n|record|records}",
    "part.title": "Title",
    "part.how": "How",
  },
  es: { hidden: "oculto" },
};

test("a text has its values, and the word for one or for more", () => {
  setTexts(TEXTS, "en");
  assert.equal(t("hello", { name: "you" }), "Hello you");
  assert.equal(t("hello"), "Hello {name}");
  assert.equal(t("records", { n: 1 }), "1 record");
  assert.equal(t("records", { n: "1" }), "1 record");
  assert.equal(t("records", { n: 0 }), "0 records");
  assert.equal(t("records", { n: "1,200" }), "1,200 records");
  assert.equal(t("no.such.key"), "no.such.key");
  assert.deepEqual([hasText("hello"), hasText("no.such.key")], [true, false]);
});

test("an unknown language is English", () => {
  setTexts(TEXTS, "de");
  assert.equal(t("hidden"), "hidden");
});

test("numbers are written as the language does", () => {
  setTexts(TEXTS, "en");
  assert.deepEqual([count(1234567), number(-0.04), number(2.25, 2)], ["1,234,567", "0.0", "2.25"]);
  setTexts(TEXTS, "es");
  assert.deepEqual([count(1234), number(1234.5)], ["1.234", "1.234,5"]);
  assert.deepEqual([count(null), number(null), percent(null)], ["oculto", "oculto", "oculto"]);
  assert.equal(number(NaN), "oculto");
});

test("a small share keeps a decimal, and a tiny one is not written as none", () => {
  setTexts(TEXTS, "en");
  assert.deepEqual(
    [0, 0.0001, 0.0004999, 0.004, 0.0094, 0.0096, 0.256, 1].map((share) => percent(share)),
    ["0%", "<0.1%", "<0.1%", "0.4%", "0.9%", "1%", "26%", "100%"],
  );
  assert.equal(percent(0.256, 1), "25.6%");
});

test("names are listNames as a sentence does", () => {
  setTexts(TEXTS, "en");
  assert.equal(listNames(["a", "b", "c"]), "a, b, and c");
});

test("a long text is cut between words, and not after a small one", () => {
  assert.equal(shorten("Disorders of lipoid metabolism", 20), "Disorders of lipoid…");
  assert.equal(shorten("Disorders of the heart", 18), "Disorders…");
  assert.equal(shorten("Short", 20), "Short");
  assert.equal(shorten("Pneumoconiosis of old", 5), "Pneumoconiosis…");
});

test("an element has attributes, listeners, variables and children", () => {
  fakeDocument();
  const click = () => {};
  const made = /** @type {any} */ (
    h(
      "button",
      {
        type: "button",
        disabled: true,
        hidden: false,
        title: null,
        click,
        vars: { "--share": 0.5 },
      },
      "a",
      null,
      [h("b", {}, "c"), undefined, "d"],
    )
  );
  assert.deepEqual(made.attributes, { type: "button", disabled: "" });
  assert.equal(made.listeners.click, click);
  assert.deepEqual(made.variables, { "--share": 0.5 });
  assert.equal(made.textContent, "acd");
});

test("zero is an attribute and is there", () => {
  fakeDocument();
  assert.deepEqual(/** @type {any} */ (h("i", { tabindex: 0 })).attributes, { tabindex: "0" });
  assert.deepEqual(present([0, null, "", undefined]), [0, ""]);
});

test("a section is named by its heading", () => {
  fakeDocument();
  setTexts(TEXTS, "en");
  const made = /** @type {any} */ (section("part", "body"));
  assert.equal(made.attributes["aria-labelledby"], made.children[0].attributes.id);
  assert.equal(made.textContent, "TitleHowbody");
});
