// The report: everything that the page needs stands in the file itself.

import { mount } from "./page.js";

function embedded(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

mount(document.getElementById("page"), embedded("profile"), {
  texts: embedded("texts"),
  palette: embedded("palette"),
  language: document.documentElement.lang,
});
