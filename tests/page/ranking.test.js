import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { relevantCodes } from "../../src/comorb/views/page/data.js";

// The document of a profile, and what Python ranks by it: [λ, cluster, codes].
const given = process.env.COMORB_RANKED;

test("codes are ranked as the library ranks them", { skip: !given && "needs a profile" }, () => {
  const { profile, ranked } = JSON.parse(readFileSync(String(given), "utf-8"));
  for (const [lambda, cluster, codes] of ranked)
    assert.deepEqual(relevantCodes(profile, cluster, lambda, 10), codes);
});

test("equal relevance keeps the order of the codes", () => {
  const page = { relevant: [[2, 0, 1]], tiny: 1e-12 };
  const profile = { page, means: [[0.5, 0.2, 0.5]], expected: [0.25, 0.1, 0.25] };
  assert.deepEqual(relevantCodes(/** @type {any} */ (profile), 0, 1, 2), [0, 2]);
});
