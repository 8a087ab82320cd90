// Quotas of users, client ids and addresses.
import { get, mayChange } from "./api.js";
import { LiveTable, button, data, el, field, notice, number, select, text } from "./dom.js";
import { count } from "./values.js";

const KEYS = [
  ["producer_byte_rate", "written bytes a second"], ["consumer_byte_rate", "read bytes a second"],
  ["request_percentage", "percent of a thread"], ["controller_mutation_rate", "changes of topics a second"],
  ["connection_creation_rate", "new connections a second"],
];
const PARTS = ["user", "client_id", "ip"];
const names = (row) => PARTS.filter((part) => row[part] !== null && row[part] !== undefined)
  .map((part) => `${part.replace("_", " ")} ${row[part] === "<default>" ? "(default)" : row[part]}`).join(", ");
const entity = (row) => Object.fromEntries(PARTS.filter((part) => row[part] !== null && row[part] !== undefined).map((part) => [part, row[part]]));

export async function quotas(page) {
  page.head("Quotas");
  const table = new LiveTable("Quotas", [
    { label: "Of", head: true, kind: "wide", text: names, node: (row) => data(names(row)) },
    { label: "Limit", text: (row) => KEYS.find(([key]) => key === row.key)?.[1] ?? row.key },
    { label: "Setting", kind: "mono", text: (row) => row.key },
    { label: "Value", kind: "num", text: (row) => count(row.value) },
    ...(mayChange() ? [{
      label: "", kind: "act", text: () => "remove",
      node: (row) => button("Remove", () => page.change(
        { method: "POST", path: "/quotas", body: { ...entity(row), remove: [row.key] } }, `The limit of ${names(row)} is gone.`, look), "small"),
    }] : []),
  ], { key: (row) => `${names(row)} ${row.key}`, empty: "No quota: every client may do as much as it can." });
  const look = async () => {
    const rows = await get("/quotas", {}, { signal: page.signal });
    table.update(rows.flatMap((row) => Object.entries(row.values).map(([key, value]) => ({ ...row, key, value }))));
  };
  if (mayChange()) page.add(el("details", { class: "adding" }, el("summary", {}, "Set a quota"), el("div", { class: "card" }, setting(page, look))));
  page.add(table.node);
  page.equal({ path: "/quotas" });
  page.poll(look, 4000);
}

function setting(page, look) {
  return page.form([
    el("div", { class: "row" },
      field("User", text("user", { placeholder: "any" })),
      field("Client id", text("client_id", { placeholder: "any" })),
      field("or an address", text("ip", { placeholder: "none" }))),
    el("p", { class: "hint" }, "<default> is every one without a quota of its own."),
    el("div", { class: "row" },
      field("Limit", select("key", KEYS)), field("Value", number("value", { min: 0, required: true }))),
  ], {
    verb: "Set quota",
    make: ({ key, value, ...who }) => {
      if (Object.keys(who).length === 0) throw new Error("A quota is of a user, a client id or an address.");
      return { method: "POST", path: "/quotas", body: { ...who, set: { [key]: value ?? 0 } } };
    },
    done: async () => {
      notice("The quota is set.");
      await look();
    },
  });
}
