// Data: what was understood, and the cohort to cluster.

import { h, t } from "/page/dom.js";
import { cohortForm } from "./cohort.js";
import { begin, frame, get, may, page, titleOf, trail } from "./frame.js";
import { understood } from "./understood.js";

begin(async () => {
  page.replaceChildren(h("main", {}, h("p", { role: "status" }, t("data.reading"))));
  const row = await get(`/api/v1/data/${frame.key}`);
  row.title = titleOf(row);
  trail([t("home.title"), "/"], [row.title]);
  page.replaceChildren(
    h(
      "main",
      {},
      h("h1", {}, row.title),
      h("div", { class: "halves wide" }, may("analyst") ? await cohortForm(row) : null, understood(row)),
    ),
  );
});
