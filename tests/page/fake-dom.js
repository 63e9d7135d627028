// As much of a document as the modules need to make elements, without a browser.

class FakeElement {
  attributes = {};
  listeners = {};
  variables = {};
  /** @type {any[]} */
  children = [];
  style = { setProperty: (name, value) => (this.variables[name] = value) };

  constructor(tag) {
    this.tag = tag;
  }

  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }

  addEventListener(name, call) {
    this.listeners[name] = call;
  }

  append(...children) {
    this.children.push(...children);
  }

  /** @returns {string} */
  get textContent() {
    return this.children.map((child) => child.textContent ?? child).join("");
  }
}

export function fakeDocument() {
  const make = (tag) => new FakeElement(tag);
  Object.assign(globalThis, {
    document: { createElement: make, createElementNS: (_, tag) => make(tag) },
  });
}

// What is there of a window for the state of a page: an address, which is replaced.
export function fakeWindow(hash = "") {
  const seen = { hash };
  const replaceState = (_, __, address) => (seen.hash = address);
  Object.assign(globalThis, { window: { location: seen, history: { replaceState } } });
  return seen;
}
