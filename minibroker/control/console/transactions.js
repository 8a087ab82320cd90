// Transactions: those of the coordinators, and those that hang in a partition.
import { brokerColumn, get, mayChange } from "./api.js";
import { LiveTable, badge, button, el, link, section } from "./dom.js";
import { count, duration, moment } from "./values.js";

const PRODUCER = {
  label: "Producer id", kind: "num", text: (row) => `${row.producer_id} ${row.producer_epoch}`,
  node: (row) => el("span", {}, row.producer_id, el("span", { class: "under" }, `epoch ${row.producer_epoch}`)),
};
const GOOD = ["CompleteCommit", "Empty"];

export async function transactions(page) {
  page.head("Transactions", { tools: [page.pauseButton()] });
  const abort = async (body, name) => {
    const action = { method: "POST", path: "/transactions/abort", body };
    if (await page.ask(`Abort ${name}?`, "Abort", action)) await page.change(action, `${name} is aborted.`, look);
  };
  const known = new LiveTable("Transactions", [
    { label: "Transactional id", head: true, kind: "wide", text: (row) => row.transactional_id },
    { label: "State", text: (row) => row.state, node: (row) => badge(row.state, row.is_open ? "warn" : GOOD.includes(row.state) ? "good" : "") },
    {
      label: "Open for", kind: "num", text: (row) => `${duration(row.age_ms)} ${row.timeout_ms}`,
      node: (row) => el("span", {}, duration(row.age_ms), el("span", { class: "under" }, `time-out ${duration(row.timeout_ms)}`)),
    },
    PRODUCER,
    { label: "Partitions", kind: "wide", text: (row) => row.partitions.map((one) => `${one.topic} ${one.partition}`).join(", ") || "none" },
    ...brokerColumn(),
    ...(mayChange() ? [{
      label: "", kind: "act", text: (row) => row.state,
      node: (row) => row.state === "Ongoing" && button("Abort …", () => abort({ transactional_id: row.transactional_id }, `The transaction of ${row.transactional_id}`), "small danger"),
    }] : []),
  ], { key: (row) => row.transactional_id, empty: "No transactional producer yet.", rowClass: (row) => (row.age_ms > row.timeout_ms ? "late" : "") });
  const hanging = new LiveTable("Hanging transactions", [
    { label: "Topic", head: true, kind: "wide", text: (row) => row.topic, node: (row) => link(row.topic, "topics", row.topic) },
    { label: "Partition", kind: "num", text: (row) => row.partition },
    { label: "From offset", kind: "num", text: (row) => count(row.start_offset) },
    { label: "Open for", kind: "num", text: (row) => duration(row.age_ms) },
    { label: "Last record", kind: "num", text: (row) => moment(row.last_timestamp) },
    PRODUCER,
    ...(mayChange() ? [{
      label: "", kind: "act", text: () => "abort",
      node: (row) => button("Abort …", () => abort({ topic: row.topic, partition: row.partition, producer_id: row.producer_id }, `The transaction in ${row.topic} ${row.partition}`), "small danger"),
    }] : []),
  ], { key: (row) => `${row.topic}-${row.partition}-${row.producer_id}`, empty: "None hangs." });
  const note = el("p", { class: "quiet", role: "status" });
  page.add(known.node, note, section("Hanging", el("p", { class: "quiet" }, "Open in a partition, and no coordinator knows of it: readers of committed records wait at it."), hanging.node));
  page.equal({ path: "/transactions" });
  const look = async () => {
    const answer = await get("/transactions", {}, { signal: page.signal });
    known.update(answer.transactions);
    hanging.update(answer.hanging);
    note.textContent = [
      answer.cut ? "There are more." : "",
      answer.knows_all ? "" : "Brokers of other processes coordinate some transactions, so it is not known which hang.",
    ].join(" ");
  };
  page.poll(look);
}
