// Faults: rules that make requests, the broker or logins fail, with their hits.
import { brokerColumn, get, mayChange, path, server } from "./api.js";
import { LiveTable, button, check, data, el, field, notice, number, section, select, text } from "./dom.js";
import { keywords, python } from "./equal.js";
import { count } from "./values.js";

const GROUPS = [
  ["What it does", ["error", "delay_ms", "drop", "truncate_bytes", "twice", "hold"]],
  ["Which requests it meets", ["api", "topic", "partition", "group", "client_id", "version"]],
  ["How often", ["times", "skip", "probability", "seed"]],
];
const MORE = ["broker", "peer", "login", "user", "applied"];
const HINTS = {
  api: "Kafka's name, such as Produce.", error: "Kafka's name of the error to answer.", delay_ms: "Of the answer, by the broker's clock.",
  drop: "Before or after the work is done.", truncate_bytes: "Then the connection ends.", bytes_per_s: "Of the answer, only in a proxy.", times: "Empty: without end.",
  skip: "So many requests pass first.", probability: "0 to 1.", seed: "The same seed meets the same requests.",
  applied: "With an error: is the work done?", peer: "With cut_off and slow_follower: its id.", user: "With a fault of logins.",
  topic: "", partition: "", group: "", client_id: "", version: "", twice: "", hold: "", broker: "", login: "",
};
const LOOK_MS = 1000;
const CHOICES_MAX = 20; // more of them are suggested, fewer are a list
const TYPES = {
  twice: "boolean", hold: "boolean", applied: "boolean", delay_ms: "number", probability: "number", truncate_bytes: "integer", bytes_per_s: "integer",
  partition: "integer", version: "integer", skip: "integer", times: "integer", seed: "integer", peer: "integer",
};
const LABELS = {
  api: "API", error: "Error", delay_ms: "Delay (ms)", drop: "Drop the connection", twice: "Answer twice",
  truncate_bytes: "Bytes before a cut", bytes_per_s: "Bytes a second", hold: "Hold the connection", applied: "Handle it anyway", topic: "Topic",
  partition: "Partition", group: "Group", client_id: "Client id", version: "Version", skip: "Requests that pass first",
  times: "Most hits", probability: "Chance", seed: "Seed of the chance", broker: "Of the broker", peer: "Other broker",
  login: "Of a login", user: "User",
};
const fixture = () => (server.kind === "proxy" ? "proxy" : "kafka");
const label = (name) => LABELS[name] ?? name.replaceAll("_", " ");
const hintOf = ({ name, description = "" }) => HINTS[name] ?? (description.length > 120 ? `${description.slice(0, 120)} …` : description);

export async function faults(page) {
  const remove = (action, sentence) => page.change(action, sentence, look);
  page.head("Faults", {
    tools: mayChange() ? [button("Remove all", () => remove({ method: "DELETE", path: "/faults", test: `${fixture()}.faults.clear()` }, "All faults are removed."))] : [],
  });
  page.add(el("p", { class: "quiet" }, "A rule makes requests, the broker or logins fail, as a real fault would. It counts what it meets."));
  const table = new LiveTable("Faults", [
    { label: "Fault", kind: "num", text: (row) => row.id },
    { label: "Rule", head: true, kind: "wide", text: ruleOf, node: (row) => data(ruleOf(row)) },
    { label: "Hits", kind: "num hits", text: (row) => count(row.hits) },
    ...brokerColumn(),
    ...(mayChange() ? [{
      label: "", kind: "act", text: () => "remove",
      node: (row) => button("Remove", () => remove({ method: "DELETE", path: path`/faults/${row.id}` }, `Fault ${row.id} is removed.`), "small"),
    }] : []),
  ], { key: (row) => row.id, empty: "No fault: the broker does its best." });
  page.add(table.node);
  const place = el("div");
  page.add(place);
  page.equal({ path: "/faults" });
  const look = async () => table.update(await get("/faults", {}, { signal: page.signal }));
  page.poll(look, LOOK_MS);
  if (mayChange()) {
    const fields = await get("/faults/fields", {}, { signal: page.signal });
    place.append(section("Add a fault", el("div", { class: "card" }, addition(page, fields, look))));
  }
}

function ruleOf(row) {
  const { id, hits, broker_id, ...rule } = row;
  const order = [...GROUPS.flatMap(([, names]) => names), ...MORE];
  return Object.entries(rule)
    .filter(([, value]) => value !== null && value !== false)
    .sort(([one], [other]) => order.indexOf(one) - order.indexOf(other))
    .map(([name, value]) => (value === true ? label(name) : `${label(name)}: ${value}`)).join(", ");
}

function input(one) {
  const { name, choices } = one;
  const type = one.type ?? TYPES[name] ?? "string";
  if (type === "boolean" && name !== "applied") return check(name, label(name), { title: one.description });
  let control;
  if (name === "applied") control = select(name, [["", "as Kafka would"], ["true", "yes"], ["false", "no"]]);
  else if (choices.length > CHOICES_MAX) {
    const list = el("datalist", { id: `list-${name}` }, choices.map((value) => el("option", { value })));
    control = text(name, { list: list.id, placeholder: name === "api" ? "every one" : "none" });
    return el("div", {}, field(label(name), control, hintOf(one)), list);
  } else if (choices.length) control = select(name, [["", "no"], ...choices.map((value) => [value, value.replaceAll("_", " ")])]);
  else if (type === "integer" || type === "number") control = number(name, type === "integer" ? { step: 1, min: 0 } : { min: 0 });
  else control = text(name, { placeholder: "any" });
  return field(label(name), control, hintOf(one));
}

function addition(page, fields, look) {
  const placed = new Set([...GROUPS.flatMap(([, names]) => names), ...MORE]);
  const byName = new Map(fields.map((one) => [one.name, one]));
  const others = fields.filter((one) => !placed.has(one.name)).map((one) => one.name);
  const grid = (names) => el("div", { class: "grid" }, names.filter((name) => byName.has(name)).map((name) => input(byName.get(name))));
  const sets = GROUPS.map(([title, names]) => el("fieldset", {}, el("legend", {}, title), grid(names)));
  const more = [...MORE, ...others].filter((name) => byName.has(name));
  if (more.length) sets.push(el("details", {}, el("summary", {}, "Faults of the broker and of logins, and more"), grid(more)));
  if (server.brokers?.length > 1) {
    sets.push(el("div", { class: "row" }, field("On broker", select("on", server.brokers.map((one) => [String(one.id), `broker ${one.id}`]), String(server.broker)))));
  }
  return page.form(sets, {
    verb: "Add fault",
    make: ({ on, applied, ...filled }) => {
      const body = Object.fromEntries(Object.entries(filled).filter(([, value]) => value !== false));
      if (applied) body.applied = applied === "true";
      const { api, ...rest } = body;
      const words = [...(api ? [python(api)] : []), ...(Object.keys(rest).length ? [keywords(rest)] : [])].join(", ");
      const isOther = on !== undefined && Number(on) !== server.broker;
      return { method: "POST", path: isOther ? path`/brokers/${on}/faults` : "/faults", body, test: `${fixture()}.faults.add(${words})` };
    },
    done: async (fault) => {
      notice(`Fault ${fault.id} is in force.`);
      await look();
    },
  });
}
