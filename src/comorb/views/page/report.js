// The report: everything that the page needs stands in the file itself.

import { find } from "./dom.js";
import { mount } from "./page.js";

function readJson(id) {
  return JSON.parse(find(`#${id}`).textContent);
}

mount(find("#page"), readJson("profile"), {
  texts: readJson("texts"),
  palette: readJson("palette"),
  language: document.documentElement.lang,
});
