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
      label: "Address", kind: "short", text: (row) => `${row.address} ${row.listener} ${row.principal}`,
      node: (row) => el("span", {}, el("a", { class: "mono", href: hash("requests", { connection: row.address, broker_id: row.broker }), title: "Its conversation" }, data(row.address)),
        el("span", { class: "under" }, data([row.listener, row.principal].filter(Boolean).join(", ")))),
    },
    { label: "Open for", kind: "num", text: (row) => duration(row.connected_ms) },
    { label: "Silent for", kind: "num", text: (row) => duration(row.idle_ms) },
    { label: "Requests", kind: "num", text: (row) => count(row.requests) },
    { label: "In / out", kind: "num", text: (row) => `${bytes(row.request_bytes)} / ${bytes(row.answer_bytes)}` },
    { label: "Asks", kind: "wide", text: (row) => apis(row.apis) },
    ...brokerColumn(),
    ...(mayChange() ? [{
      label: "", kind: "act", text: () => "end",
      node: (row) => button("End", async () => {
        const action = { method: "DELETE", path: "/connections", query: { address: row.address } };
        if (await page.act(action, `The connection of ${row.address} is ended.`)) await look();
      }, "small"),
    }] : []),
  ], { key: (row) => `${row.broker}-${row.address}`, empty: "No client is connected." });
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

const software = (row) => [row.software_name, row.software_version].filter(Boolean).join(" ") || "software not said";
const apis = (used = {}) => Object.entries(used)
  .sort(([, one], [, other]) => other.count - one.count)
  .map(([name, { version, count: times }]) => `${name} v${version} × ${count(times)}`).join(", ") || "–";
