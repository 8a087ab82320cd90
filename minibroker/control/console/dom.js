// Elements of the page. Text goes in as text: nothing here reads HTML.
import { visible } from "./values.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

// Returns an element; a child is a node or a text of ours.
export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Returns text that came from outside: apart from the direction of what is around it, with
// invisible characters spelt out.
export const data = (text, kind = "") => el("bdi", { class: `data ${kind}` }, visible(String(text ?? "")));

export const link = (text, ...parts) => el("a", { href: hash(...parts) }, data(text));

// Returns the location of a view: hash("topics", name), hash("records", name, {offset: 3}).
export function hash(...parts) {
  const query = typeof parts.at(-1) === "object" ? parts.pop() : {};
  const fields = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  return `#/${path}${fields.length ? `?${new URLSearchParams(fields)}` : ""}`;
}

export const button = (text, act, kind = "") => el("button", { type: "button", class: kind, on: { click: act } }, text);

export const badge = (text, kind = "") => el("span", { class: `badge ${kind}` }, text);

let numbers = 0;
export const newId = (name) => `${name}-${(numbers += 1)}`;

// Returns a labelled field. `input`: an element with a value.
export function field(label, input, help = "") {
  input.id ||= newId("field");
  const hint = help && el("span", { class: "hint", id: `${input.id}-hint` }, help);
  if (hint) input.setAttribute("aria-describedby", hint.id);
  return el("div", { class: "field" }, el("label", { for: input.id }, label), input, hint || null);
}

export const text = (name, attributes = {}) =>
  el("input", { name, type: "text", autocomplete: "off", spellcheck: "false", ...attributes });

export const number = (name, attributes = {}) => text(name, { type: "number", step: "any", ...attributes });

export function select(name, options, value = "", attributes = {}) {
  const choices = options.map((option) => {
    const [key, label] = Array.isArray(option) ? option : [option, option];
    return el("option", { value: key, selected: key === value }, visible(String(label)));
  });
  return el("select", { name, ...attributes }, choices);
}

export const check = (name, label, attributes = {}) =>
  el("label", { class: "check" }, el("input", { name, type: "checkbox", ...attributes }), label);

// Returns the fields of a form that are filled in, by name.
export function values(form) {
  const filled = {};
  for (const input of form.elements) {
    if (!input.name || input.disabled || input.tagName === "BUTTON") continue;
    if (input.type === "checkbox") filled[input.name] = input.checked;
    else if (input.value !== "") filled[input.name] = input.type === "number" ? Number(input.value) : input.value;
  }
  return filled;
}

// A table that changes in place: rows keep their elements, so focus and selection stay.
// A column: {label, text: row → text of it, node: row → its element (made again when the text
// changes), kind: "num" | "mono" | "wide" | "act", head: it names the row}.
export class LiveTable {
  constructor(caption, columns, { key, empty = "Nothing here yet.", rowClass, rowsMax = Infinity } = {}) {
    this.columns = columns;
    this.key = key;
    this.rowClass = rowClass;
    this.rowsMax = rowsMax;
    this.rows = new Map();
    this.body = el("tbody", { role: "rowgroup" });
    const heads = columns.map((column) =>
      el("th", { scope: "col", role: "columnheader", class: column.kind }, column.label || el("span", { class: "spoken" }, "Actions")));
    this.table = el("table", { role: "table" },
      el("caption", { class: "spoken" }, caption),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)), this.body);
    this.empty = el("p", { class: "empty", hidden: true }, empty);
    this.node = el("div", { class: "table" }, this.table, this.empty);
  }

  // Shows these rows, in this order.
  update(rows) {
    const byKey = new Map();
    for (const row of rows) {
      const key = String(this.key(row));
      if (!byKey.has(key)) byKey.set(key, row);
    }
    for (const key of [...this.rows.keys()]) if (!byKey.has(key)) this.#drop(key);
    let place = this.body.firstElementChild; // a row that moves loses the focus: those that stay do not
    for (const [key, row] of byKey) {
      for (const line of this.#lines(key, row)) {
        if (line === place) place = place.nextElementSibling;
        else this.body.insertBefore(line, place);
      }
    }
    this.#show();
  }

  // Puts rows before the first, newest last in `rows`; the oldest beyond `rowsMax` go.
  prepend(rows) {
    for (const row of rows.slice(-this.rowsMax)) {
      this.body.prepend(...this.#lines(String(this.key(row)), row));
    }
    const keys = [...this.rows.keys()];
    for (const key of keys.slice(0, Math.max(0, keys.length - this.rowsMax))) this.#drop(key);
    this.#show();
  }

  clear() {
    for (const key of [...this.rows.keys()]) this.#drop(key);
    this.#show();
  }

  #drop(key) {
    const known = this.rows.get(key);
    known.line.remove();
    known.detail?.remove();
    this.rows.delete(key);
  }

  #show() {
    const isEmpty = this.rows.size === 0;
    if (this.empty.hidden === isEmpty) this.empty.hidden = !isEmpty;
    if (this.table.hidden !== isEmpty) this.table.hidden = isEmpty;
  }

  // Opens or closes what belongs to a row, below it; make() returns the element.
  toggle(row, make) {
    const known = this.rows.get(String(this.key(row)));
    if (known.detail) {
      known.detail.remove();
      known.detail = undefined;
    } else {
      known.detail = el("tr", { role: "row" },
        el("td", { role: "cell", class: "detail", colspan: this.columns.length }, make()));
      known.line.after(known.detail);
    }
    return Boolean(known.detail);
  }

  #lines(key, row) {
    const line = this.#line(key, row);
    const { detail } = this.rows.get(key);
    return detail ? [line, detail] : [line];
  }

  #line(key, row) {
    let known = this.rows.get(key);
    if (!known) {
      const cells = this.columns.map((column) =>
        el(column.head ? "th" : "td", {
          role: column.head ? "rowheader" : "cell", scope: column.head && "row",
          class: column.kind, "data-label": column.label || null,
        }));
      known = { line: el("tr", { role: "row" }, cells), cells, texts: [] };
      this.rows.set(key, known);
    }
    this.columns.forEach((column, index) => {
      const words = String(column.text(row) ?? "");
      if (known.texts[index] === words) return;
      known.texts[index] = words;
      const cell = known.cells[index];
      const hasFocus = cell.contains(document.activeElement);
      cell.replaceChildren((column.node ? column.node(row) : visible(words)) || "");
      if (hasFocus) cell.querySelector("a, button")?.focus({ preventScroll: true });
    });
    const kind = this.rowClass?.(row) ?? "";
    if (known.line.className !== kind) known.line.className = kind;
    return known.line;
  }
}

// Returns a list of pairs: term and its text or element.
export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(Boolean).map(([term, value]) =>
    el("div", {}, el("dt", {}, term), el("dd", {}, value instanceof Node ? value : visible(String(value))))));
}

export const section = (title, ...children) => {
  const id = newId("section");
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), ...children);
};

// Says a short sentence, to a screen reader too.
let fading;
export function notice(sentence) {
  const place = document.getElementById("notice");
  place.textContent = visible(sentence);
  place.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { place.hidden = true; }, 6000);
}

// Returns an element for an error, and functions that show one and take it away.
export function alertBox() {
  const node = el("p", { class: "alert", role: "alert", hidden: true });
  return {
    node,
    show(error) { node.textContent = visible(String(error.message ?? error)); node.hidden = false; },
    hide() { if (!node.hidden) node.hidden = true; },
  };
}

// Asks before something is destroyed; resolves to whether it is wanted.
export function confirmed(question, verb, extra) {
  return new Promise((resolve) => {
    const dialog = el("dialog", { class: "of-view", "aria-labelledby": "confirm-title" },
      el("form", { method: "dialog" },
        el("h2", { id: "confirm-title" }, visible(question)), extra ?? null,
        el("div", { class: "row end" },
          el("button", { value: "no", autofocus: true }, "Cancel"), el("button", { value: "yes", class: "danger" }, verb))));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes"); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
