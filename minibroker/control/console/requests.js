// Requests as they come, filtered; one conversation as a diagram.
import { brokerColumn, server } from "./api.js";
import { LiveTable, badge, button, check, data, el, field, hash, link, number, select, text, values } from "./dom.js";
import { diagram } from "./diagram.js";
import { equalLines } from "./equal.js";
import { bytes, clockTime, count, duration, several, visible } from "./values.js";

const ROWS_MAX = 300;
const SLOW_MS = 1000;
const DRAW_MS = 500;
const AGES_MS = 1000;

export async function requests(page) {
  const { query } = page;
  const slowMs = Number(query.slow_ms ?? SLOW_MS);
  const table = requestTable(slowMs);
  page.head("Requests", { tools: [page.pauseButton(), button("Clear", () => { rows.length = 0; table.clear(); picture.replaceChildren(); })] });
  page.add(choice(query, slowMs));
  const picture = el("div");
  const state = el("p", { class: "quiet" }, "Waiting for requests …");
  const waiting = waitingTable();
  let open = { rows: [], at: 0 };
  const showAges = () => {
    const passed = performance.now() - open.at;
    waiting.update(open.rows.map((row) => ({ ...row, duration_ms: row.duration_ms + passed })));
  };
  const ages = setInterval(showAges, AGES_MS);
  page.signal.addEventListener("abort", () => clearInterval(ages));
  page.add(picture, waiting.node, state, table.node);
  const wished = {
    api: query.api, client_id: query.client_id, client_address: query.client_address, broker_id: query.broker_id,
    failed: query.failed, slow_ms: query.only_slow && slowMs, rate: 100, last: 100,
  };
  const equal = equalLines({ path: "/live/requests", query: wished });
  page.add(equal.node);
  const rows = [];
  let skipped = 0;
  let total = 0;
  let drawing;
  const draw = () => {
    drawing = undefined;
    if (!(query.client_address || query.client_id) || page.signal.aborted) return;
    const client = rows.find((row) => row.client_id)?.client_id ?? query.client_id ?? query.client_address;
    const old = picture.firstElementChild;
    const isAtEnd = !old || old.scrollTop + old.clientHeight >= old.scrollHeight - 4;
    const top = old?.scrollTop ?? 0;
    const drawn = diagram(rows, client, slowMs);
    if (old) old.replaceChildren(...drawn.childNodes); // the focus stays on it
    else picture.append(drawn);
    const place = picture.firstElementChild;
    place.scrollTop = isAtEnd ? place.scrollHeight : top;
  };
  page.follow("/live/requests", wished, (name, value) => {
    if (name === "hello") { rows.length = 0; table.clear(); open.rows = []; showAges(); }
    if (name !== "requests") return;
    total += value.requests.length;
    skipped += value.skipped;
    rows.push(...value.requests);
    rows.splice(0, Math.max(0, rows.length - ROWS_MAX));
    table.prepend(value.requests);
    open = { rows: value.open, at: performance.now() };
    showAges();
    state.textContent = `${several(total, "request")}, ${count(skipped)} left out. The newest ${ROWS_MAX} are shown, the newest first.`;
    drawing ??= setTimeout(draw, DRAW_MS);
  }, { inBackground: true });
}

function choice(query, slowMs) {
  const brokers = server.brokers?.length > 1
    ? field("Broker", select("broker_id", [["", "all"], ...server.brokers.map((one) => [String(one.id), `broker ${one.id}`])], query.broker_id ?? "")) : null;
  const form = el("form", { class: "card" }, el("div", { class: "row" },
    field("API", text("api", { value: query.api ?? "", placeholder: "any" })),
    field("Client id", text("client_id", { value: query.client_id ?? "", placeholder: "any" })),
    field("Connection", text("client_address", { value: query.client_address ?? "", placeholder: "any, HOST:PORT" })),
    brokers,
    field("Slow from (ms)", number("slow_ms", { min: 0, value: slowMs })),
    check("only_slow", "Only slow ones", { checked: query.only_slow === "true" }),
    check("failed", "Only errors", { checked: query.failed === "true" }),
    el("button", { class: "main", name: "filter" }, "Filter"),
    Object.keys(query).length ? el("a", { class: "button", href: "#/requests" }, "All") : null));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = values(form);
    for (const name of ["only_slow", "failed"]) if (!fields[name]) delete fields[name];
    if (fields.slow_ms === SLOW_MS) delete fields.slow_ms;
    location.hash = hash("requests", fields);
  });
  return form;
}

// Requests without an answer, with their ages.
function waitingTable() {
  return new LiveTable("Waiting for an answer", [
    { label: "Since", kind: "short mono", text: (row) => clockTime(row.at_ms) },
    {
      label: "Waits for an answer", head: true, kind: "wide", text: (row) => `${row.api} v${row.version} ${row.subject}`,
      node: (row) => el("span", {}, data(`${row.api} v${row.version}`), row.subject ? el("span", { class: "under preview", title: visible(row.subject) }, data(row.subject)) : ""),
    },
    { label: "Client", kind: "wide", text: (row) => `${row.client_id ?? "no client id"} ${row.client_address}`, node: (row) => data(`${row.client_id ?? "no client id"} ${row.client_address}`) },
    { label: "Age", kind: "num", text: (row) => duration(row.duration_ms) },
    { label: "Fault", kind: "name", text: (row) => row.fault ?? "", node: (row) => (row.fault ? badge(`fault: ${row.fault}`, "warn") : "") },
    ...brokerColumn(),
  ], { key: (row) => `${row.broker_id}-${row.client_address}-${row.correlation_id}`, empty: "No request waits for its answer." });
}

function requestTable(slowMs) {
  return new LiveTable("Requests", [
    { label: "Time", kind: "short mono", text: (row) => clockTime(row.at_ms) },
    {
      label: "Request", head: true, kind: "wide", text: (row) => `${row.api} v${row.version} ${row.subject}`,
      node: (row) => el("span", {}, data(`${row.api} v${row.version}`), row.subject ? el("span", { class: "under preview", title: visible(row.subject) }, data(row.subject)) : ""),
    },
    {
      label: "Client", kind: "wide", text: (row) => `${row.client_id} ${row.client_address}`,
      node: (row) => el("span", {}, row.client_id ? link(row.client_id, "requests", { client_id: row.client_id }) : el("span", { class: "null" }, "no client id"),
        el("span", { class: "under" }, el("a", { href: hash("requests", { client_address: row.client_address, broker_id: row.broker_id }), title: "This conversation as a diagram" }, data(row.client_address)))),
    },
    {
      label: "Took", kind: "num", text: (row) => `${row.duration_ms} ${row.request_bytes} ${row.answer_bytes}`,
      node: (row) => el("span", {}, row.duration_ms > slowMs ? badge("slow", "warn") : "", row.duration_ms === null ? " no answer" : ` ${duration(row.duration_ms)}`,
        el("span", { class: "under" }, `${bytes(row.request_bytes)} / ${bytes(row.answer_bytes)}`)),
    },
    {
      label: "Outcome", kind: "name", text: (row) => [row.error, row.fault && `fault ${row.fault}`].filter(Boolean).join(" ") || "ok",
      node: (row) => el("span", {}, row.error ? badge(row.error, "bad") : row.fault ? "" : "ok", row.fault ? badge(`fault: ${row.fault}`, "warn") : ""),
    },
    ...brokerColumn(),
  ], {
    key: (row) => `${row.broker_id}-${row.number}`, rowsMax: ROWS_MAX, empty: "No request yet.",
    rowClass: (row) => (row.duration_ms > slowMs ? "slow" : ""),
  });
}
