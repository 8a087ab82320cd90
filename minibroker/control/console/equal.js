// The same action as a line of a shell, of Python, and of a test.
import { button, el, newId, notice } from "./dom.js";
import { hasToken, target } from "./api.js";
import { visible } from "./values.js";

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// Returns a JSON value as Python writes it.
export function python(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${python(item)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

// Returns arguments of a call: api="Fetch", times=2.
export const keywords = (fields) =>
  Object.entries(fields).filter(([, value]) => value !== undefined).map(([name, value]) => `${name}=${python(value)}`).join(", ");

function curlOf({ method, url, body }) {
  const parts = ["curl"];
  if (method !== "GET" && !(method === "POST" && body !== undefined)) parts.push("-X", method);
  if (hasToken()) parts.push('-H "Authorization: Bearer $MINIBROKER_CONTROL_TOKEN"');
  parts.push(shell(location.origin + url));
  if (body !== undefined) parts.push("-d", shell(JSON.stringify(body)));
  return parts.join(" ");
}

function pythonOf({ method, url, body }) {
  const parts = [JSON.stringify(location.origin + url)];
  if (body !== undefined) parts.push(`json=${python(body)}`);
  if (hasToken()) parts.push('headers={"Authorization": f"Bearer {os.environ[\'MINIBROKER_CONTROL_TOKEN\']}"}');
  return `requests.${method.toLowerCase()}(${parts.join(", ")})`;
}

// Returns a block with the lines of an action, and a function that shows other actions.
// An action: {method, path, query, body, test: the line in a test with the fixture `kafka`}.
export function equalLines(action, title = "The same from a shell or Python") {
  const id = newId("equal");
  const list = el("div", { class: "lines" });
  const node = el("details", { class: "equal" }, el("summary", { id }, title), list);
  const show = (...actions) => {
    const kinds = actions.flatMap(({ method = "GET", path, query, body, test }) => {
      const whole = { method, url: target(path, query), body };
      return [["curl", curlOf(whole)], ["Python", pythonOf(whole)], ...(test ? [["In a test", test]] : [])];
    });
    list.replaceChildren(...kinds.map(([name, line]) =>
      el("div", { class: "line" }, el("span", { class: "kind" }, name),
        el("code", { tabindex: "0" }, visible(line)),
        button("Copy", async () => {
          await navigator.clipboard.writeText(line);
          notice(`The ${name} line is in the clipboard.`);
        }, "small"))));
  };
  if (action) show(action);
  return { node, show };
}
