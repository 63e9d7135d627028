// The sections of the page in their order: the one list that the page, its navigation, the
// explorer's keys and its downloads read. Each is drawn from { profile, palette, state, highlight };
// `chart` names the module of comorb/views/charts that draws it for print and download.

import { burden } from "./burden.js";
import { cards } from "./cards.js";
import { features } from "./features.js";
import { frequency } from "./frequency.js";
import { heatmap } from "./heatmap.js";
import { outcomes } from "./outcomes.js";
import { relevanceTable } from "./relevance.js";
import { rules } from "./rules.js";
import { slices } from "./slices.js";
import { again, ledger } from "./source.js";
import { trust } from "./trust.js";

export const SECTIONS = [
  { id: "burden", key: "b", chart: "burden", draw: burden },
  { id: "outcomes", key: "o", draw: outcomes },
  { id: "slices", key: "s", draw: slices },
  { id: "cards", key: "c", chart: "sizes", draw: cards },
  { id: "frequency", key: "f", chart: "frequency", draw: frequency },
  { id: "relevance", key: "r", draw: relevanceTable },
  { id: "heatmap", key: "m", chart: "heatmap", draw: heatmap },
  { id: "features", key: "v", draw: features },
  { id: "rules", key: "u", draw: rules },
  { id: "trust", key: "t", draw: trust },
  { id: "ledger", draw: ledger },
  { id: "again", draw: again },
];
