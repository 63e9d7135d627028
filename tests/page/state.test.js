import assert from "node:assert/strict";
import { test } from "node:test";
import { createState } from "../../src/comorb/views/page/state.js";
import { fakeWindow } from "./fake-dom.js";

test("the address holds the section and the settings", () => {
  fakeWindow();
  const state = createState("#cards&lambda=0.25&sort=name&starred=a%2520b%2Cc");
  assert.equal(state.get("part"), "cards");
  assert.equal(state.get("lambda"), 0.25);
  assert.equal(state.get("sort"), "name");
  assert.equal(state.get("starred"), "a%20b,c");
  assert.equal(state.get("rows"), 20);
});

test("what is not a setting, or not a value of one, is passed over", () => {
  const state = createState("#lambda=7&rows=-1&toString=1&none=2&rows=many");
  assert.deepEqual([state.get("lambda"), state.get("rows")], [null, 20]);
});

test("a setting is written to the address, which reads back the same", () => {
  const seen = fakeWindow("#");
  const state = createState();
  state.set("part", "relevance");
  state.set("lambda", 0.3);
  state.set("slice", "site:A & B=1");
  assert.equal(seen.hash, `#relevance&lambda=0.3&slice=${encodeURIComponent("site:A & B=1")}`);
  const again = createState(seen.hash);
  assert.deepEqual([again.get("lambda"), again.get("slice")], [0.3, "site:A & B=1"]);
  state.set("lambda", null);
  assert.ok(!seen.hash.includes("lambda"));
});

test("who watches a setting is told of that one alone", () => {
  fakeWindow();
  const state = createState("");
  const told = [];
  state.watch("rows", (rows) => told.push(rows));
  state.set("rows", 40);
  state.set("sort", "name");
  assert.deepEqual(told, [40]);
});
