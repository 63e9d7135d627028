// Data: what was understood, the cohort to cluster, and what each column is.

import { h, t } from "/page/dom.js";
import { cohortForm } from "./cohort.js";
import { columns } from "./columns.js";
import { featureBoxes } from "./features.js";
import { begin, frame, get, may, page, titleOf, trail, waiting } from "./frame.js";
import { understood } from "./understood.js";

begin(async () => {
  page.replaceChildren(h("main", { class: "alone" }, waiting(t("data.reading"))));
  const row = await get(`/api/v1/data/${frame.key}`);
  row.title = titleOf(row);
  trail([t("home.title"), "/"], [row.title]);
  page.replaceChildren(h("main", {}, h("h1", {}, row.title), ...(row.refused ? refused(row) : await opened(row))));
});

async function opened(row) {
  const wanted = new URLSearchParams(window.location.search).getAll("features");
  const boxes = may("analyst") ? featureBoxes(row.about.covariates.filter((name) => name !== "date"), wanted) : null;
  const halves = h("div", { class: "halves wide" }, boxes ? await cohortForm(row, boxes) : null, understood(row));
  return [halves, columns(row, row.about, boxes)];
}

// A table that could not be read as it is: say why, and let its columns be named.
function refused(row) {
  return [h("p", { class: "notice wrong", role: "alert" }, row.refused.error), h("p", {}, t("data.name_columns")), columns(row, row.refused)];
}
