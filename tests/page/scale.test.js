import assert from "node:assert/strict";
import { test } from "node:test";
import { correctedOf, figureOf, scaleOf } from "../../src/comorb/views/page/scale.js";

const figure = (estimate, low, high) => ({ estimate, low, high });

test("shares begin at 0, and end a little above the highest end of an interval", () => {
  const { at, ends } = scaleOf([figure([0.1, null], [0.05, null], [0.2, null])], "share");
  assert.equal(ends[0], 0);
  assert.ok(Math.abs(ends[1] - 0.21) < 1e-12);
  assert.equal(at(0), 0);
  assert.equal(Math.round(at(ends[1])), 100);
});

test("an axis of tiny shares, or of none, still has a length", () => {
  assert.ok(scaleOf([figure([0], [0], [0.001])], "share").ends[1] > 0.02);
  assert.equal(scaleOf([figure([0], [0], [0])], "number").at(0), 0);
});

test("numbers far from 0 begin near the least of them", () => {
  const { ends } = scaleOf([figure([70, 82], [69, 81], [71, 83])], "number");
  assert.ok(ends[0] > 50 && ends[0] < 69);
  assert.equal(scaleOf([figure([5, 82], [4, 81], [6, 83])], "number").ends[0], 0);
  assert.ok(scaleOf([figure([-5, 8], [-6, 7], [-4, 9])], "number").ends[0] <= -6);
});

/** @returns {any} */
const profileOf = (outcomes, /** @type {any} */ burden = null) => ({ outcomes, burden });

test("a rate that is counted comes before the outcome of that name", () => {
  const outcome = {
    name: "died",
    kind: "share",
    values: ["yes"],
    known: [10, 10],
    counts: [[1, 2]],
    estimate: [[0.1, 0.2]],
    low: [[0, 0.1]],
    high: [[0.3, 0.4]],
    corrected: null,
  };
  const counted = { rates: ["died"], rate: [[0.5]], low: [[0.4]], high: [[0.6]] };
  const burden = { ...counted, rate_counts: [[5]], rate_known: [[10]] };
  assert.deepEqual(figureOf(profileOf([outcome], burden), "died")?.estimate, [0.5]);
  assert.deepEqual(figureOf(profileOf([outcome]), "died")?.estimate, [0.1, 0.2]);
  const uncounted = { ...burden, rates: [] };
  assert.equal(figureOf(profileOf([outcome], uncounted), "died"), null);
  assert.equal(figureOf(profileOf([]), "age"), null);
});

test("a corrected figure isn't below 0 where none that was counted is", () => {
  const corrected = { estimate: [[-0.1, null, 0.2]] };
  /** @type {any} */
  const outcome = { values: ["yes"], estimate: [[0.1, null, 0.2]], corrected };
  assert.deepEqual(correctedOf(outcome, 0), [0, null, 0.2]);
  assert.equal(correctedOf({ ...outcome, values: ["median"] }, 0), null);
  assert.equal(correctedOf({ ...outcome, corrected: null }, 0), null);
});
