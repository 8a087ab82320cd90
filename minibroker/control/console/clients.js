// Connections: the clients of this broker, and what they ask.
import { brokerColumn, get, mayChange } from "./api.js";
import { LiveTable, button, data, el, hash } from "./dom.js";
import { bytes, count, duration } from "./values.js";

export async function clients(page) {
  page.head("Connections", { tools: [page.pauseButton()] });
  const table = new LiveTable("Connections", [
    {
      label: "Client id", head: true, kind: "wide", text: (row) => `${row.client_id ?? "none yet"} ${software(row)}`,
      node: (row) => el("span", {}, data(row.client_id ?? "none yet"), el("span", { class: "under" }, data(software(row)))),
    },
    {
      label: "Address", kind: "wide", text: (row) => `${row.client_address} ${row.listener} ${row.principal} ${row.state}`,
      node: (row) => el("span", {}, el("a", { class: "mono", href: hash("requests", { client_address: row.client_address, broker_id: row.broker_id }), title: "Its conversation" }, data(row.client_address)),
        el("span", { class: "under" }, data([row.listener, row.principal, row.state].filter(Boolean).join(", ")))),
    },
    {
      label: "Open for", kind: "num", text: (row) => `${duration(row.age_ms)} ${duration(row.idle_ms)}`,
      node: (row) => el("span", {}, duration(row.age_ms), el("span", { class: "under" }, `silent for ${duration(row.idle_ms)}`)),
    },
    {
      label: "Requests", kind: "num", text: (row) => `${row.requests} ${row.request_bytes} ${row.answer_bytes}`,
      node: (row) => el("span", {}, count(row.requests), el("span", { class: "under" }, `${bytes(row.request_bytes)} / ${bytes(row.answer_bytes)}`)),
    },
    { label: "Asks", kind: "wide", text: (row) => apis(row.apis) },
    ...brokerColumn(),
    ...(mayChange() ? [{
      label: "", kind: "act", text: () => "end",
      node: (row) => button("End", () => page.change(
        { method: "DELETE", path: "/connections", query: { client_address: row.client_address } },
        `The connection of ${row.client_address} is ended.`, look), "small"),
    }] : []),
  ], { key: (row) => `${row.broker_id}-${row.client_address}`, empty: "No client is connected." });
  const note = el("p", { class: "quiet", role: "status" });
  page.add(table.node, note);
  page.equal({ path: "/connections" });
  const look = async () => {
    const answer = await get("/connections", { limit: 500 }, { signal: page.signal });
    table.update(answer.connections);
    note.textContent = answer.cut ? "There are more connections." : "";
  };
  page.poll(look);
}

const APIS_MAX = 3;

const software = (row) => [row.software_name, row.software_version].filter(Boolean).join(" ") || "software not said";
function apis(used) {
  const names = Object.entries(used).sort(([, one], [, other]) => other.count - one.count)
    .map(([name, { version, count: times }]) => `${name} v${version} × ${count(times)}`);
  const rest = names.length - APIS_MAX;
  return names.slice(0, APIS_MAX).join(", ") + (rest > 0 ? `, ${rest} more` : "") || "–";
}
