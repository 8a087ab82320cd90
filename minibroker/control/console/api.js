// Calls of the control API, and its streams. The token is only ever a header.
import { el, field } from "./dom.js";
import { parse } from "./values.js";

const TOKEN = "minibroker.token";

// The server, as it describes itself: access, views, brokers.
export const server = { access: "read", views: [], version: "", hasToken: false };
export const mayChange = () => server.access === "full";

// Returns a column with the broker of a row, where there are several.
export const brokerColumn = (name = "broker_id") =>
  (server.brokers?.length > 1 ? [{ label: "Broker", kind: "num", text: (row) => row[name] ?? "" }] : []);

export class ApiError extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export const target = (path, query = {}) => {
  const fields = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return fields.length ? `${path}?${new URLSearchParams(fields)}` : path;
};

// Returns a path with a name in it: path`/topics/${name}/records`.
export const path = (parts, ...names) =>
  parts.reduce((whole, part, index) => whole + encodeURIComponent(names[index - 1]) + part);

async function ask(method, url, body, { signal, accept = "application/json" } = {}) {
  const headers = { Accept: accept };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method, headers, signal, cache: "no-store", credentials: "omit", redirect: "error" };
  if (body !== undefined) options.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The broker does not answer. Is it running?");
  }
  if (response.ok) return response;
  const sentence = await response.json().then((answer) => answer.error ?? answer.message, () => undefined);
  if (response.status === 401) {
    await askToken(token, signal);
    return ask(method, url, body, { signal, accept });
  }
  throw new ApiError(response.status, sentence ?? `HTTP ${response.status}`);
}

export async function get(url, query, options) {
  return parse(await (await ask("GET", target(url, query), undefined, options)).text());
}

export async function blob(url, query, options) {
  return (await ask("GET", target(url, query), undefined, { ...options, accept: "*/*" })).blob();
}

export async function send(method, url, body, options) {
  const answer = await ask(method, url, body, options);
  const words = await answer.text();
  return words ? parse(words) : undefined;
}

// Reads a stream of events until it ends or `signal` ends it: on(name, value) for each.
export async function stream(url, query, signal, on) {
  const answer = await ask("GET", target(url, query), undefined, { signal, accept: "text/event-stream" });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let name = "message";
  let words = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const all = (rest + value).split("\n");
    rest = all.pop();
    for (const line of all) {
      if (line === "" || line === "\r") {
        if (words.length) on(name, parse(words.join("\n")));
        name = "message";
        words = [];
      } else if (line.startsWith("event:")) name = line.slice(6).trim();
      else if (line.startsWith("data:")) words.push(line.slice(5).trim());
    }
  }
}

let asking;

// Asks for a token, once for all calls that wait for one; resolves when there is a new one.
function askToken(refused, signal) {
  if ((sessionStorage.getItem(TOKEN) ?? "") !== (refused ?? "")) return Promise.resolve();
  asking ??= new Promise((resolve) => {
    const input = el("input", { type: "password", name: "token", autocomplete: "off", required: true, autofocus: true });
    const dialog = el("dialog", { "aria-labelledby": "token-title" },
      el("form", { method: "dialog" },
        el("h2", { id: "token-title" }, "Token"),
        el("p", {}, refused ? "This token is not the right one." : "This broker asks for a token."),
        field("Token of --control-token, or of --control-read-token to read", input,
          "It stays in this tab, and is sent as a header only."),
        el("div", { class: "row end" }, el("button", { class: "main" }, "Continue"))));
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(TOKEN, input.value.trim());
      dialog.remove();
      asking = undefined;
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  signal?.throwIfAborted();
  return asking;
}

export const hasToken = () => Boolean(sessionStorage.getItem(TOKEN));
export function forgetToken() {
  sessionStorage.removeItem(TOKEN);
  location.reload();
}
