// Topics: the list, and one topic with its partitions and settings.
import { get, mayChange, path, server } from "./api.js";
import { LiveTable, badge, button, check, data, el, facts, field, hash, link, notice, number, section, select, text } from "./dom.js";
import { keywords, python } from "./equal.js";
import { bytes, count } from "./values.js";

const ROWS_MAX = 500;
const sum = (rows, of) => rows.reduce((total, row) => total + Math.max(of(row), 0), 0);
const recordsOf = (one) => (one.high_watermark < 0 ? -1 : one.high_watermark - one.log_start_offset);
const behind = (one) => one.replicas.length - one.in_sync.length;

export async function topics(page) {
  if (page.parts.length) return topic(page, page.parts[0]);
  const search = text("search", { type: "search", placeholder: "Part of a name", "aria-label": "Search topics", value: page.query.search });
  const own = check("internal", "Kafka's own topics", { checked: page.query.internal === "true" });
  page.head("Topics", { tools: [search, own] });
  if (mayChange()) page.add(creation(page));
  const table = new LiveTable("Topics", [
    { label: "Topic", head: true, kind: "wide", text: (row) => row.name, node: (row) => link(row.name, "topics", row.name) },
    { label: "Partitions", kind: "num", text: (row) => count(row.partitions.length) },
    { label: "Records", kind: "num", text: (row) => count(sum(row.partitions, recordsOf)) },
    { label: "Size", kind: "num", text: (row) => bytes(sum(row.partitions, (one) => one.size_bytes)) },
    { label: "Replicas", kind: "num", text: (row) => Math.max(...row.partitions.map((one) => one.replicas.length)) },
    {
      label: "State", text: state,
      node: (row) => badge(state(row), state(row) === "in sync" ? "good" : "bad"),
    },
    { label: "Read", text: () => "", kind: "act", node: (row) => el("a", { href: hash("records", row.name), "aria-label": `Records of ${row.name}` }, "Records") },
  ], { key: (row) => row.name, empty: "No topic yet. Create one, or let a client write to one." });
  const more = el("p", { class: "quiet", role: "status" });
  page.add(table.node, more);
  let all = [];
  const show = () => {
    const isOwn = own.querySelector("input").checked;
    const rows = all.filter((row) => (isOwn || !row.internal) && row.name.includes(search.value));
    table.update(rows.slice(0, ROWS_MAX));
    more.textContent = rows.length > ROWS_MAX ? `${ROWS_MAX} of ${count(rows.length)} topics. Search for the others.` : "";
  };
  search.addEventListener("input", show);
  own.addEventListener("change", show);
  page.equal({ path: "/topics", test: "kafka.topics" });
  page.poll(async () => {
    all = await get("/topics", {}, { signal: page.signal });
    show();
  });
}

function state(row) {
  if (row.partitions.some((one) => one.leader < 0)) return "no leader";
  const late = row.partitions.filter((one) => behind(one) > 0).length;
  return late ? `${late} behind` : "in sync";
}

function settingsOf(words) {
  const rows = (words ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(rows.map((row) => {
    const at = row.indexOf("=");
    if (at < 1) throw new Error(`A setting is name=value, not “${row}”.`);
    return [row.slice(0, at).trim(), row.slice(at + 1).trim()];
  }));
}

function creation(page) {
  const form = page.form([
    el("div", { class: "row" },
      field("Name", text("name", { required: true })),
      field("Partitions", number("partitions", { min: 1, step: 1, value: 1 })),
      field("Replicas", number("replicas", { min: 1, step: 1, placeholder: "default" }))),
    field("Settings", el("textarea", { name: "configs", rows: 2, placeholder: "cleanup.policy=compact" }), "One name=value on each line."),
  ], {
    verb: "Create topic",
    make: ({ name = "", partitions, replicas, configs }) => {
      const settings = settingsOf(configs);
      const has = Object.keys(settings).length > 0;
      return {
        method: "POST", path: "/topics", body: { name, partitions, replicas, configs: has ? settings : undefined },
        test: `kafka.create_topic(${[python(name), partitions ?? 1, ...(has ? [python(settings)] : [])].join(", ")})`,
      };
    },
    done: (_, form_) => {
      notice(`Topic ${form_.elements.name.value} is there.`);
      form_.elements.name.value = "";
    },
  });
  return el("details", { class: "adding" }, el("summary", {}, "Create a topic"), el("div", { class: "card" }, form));
}

async function topic(page, name) {
  const tools = [el("a", { class: "button", href: hash("records", name) }, "Records")];
  if (mayChange()) tools.push(button("Delete …", () => remove(page, name), "danger"));
  page.head(name, { crumb: el("a", { href: "#/topics" }, "Topics"), tools });
  const summary = el("div");
  const places = (ids) => ids.join(", ");
  const partitions = new LiveTable("Partitions", [
    { label: "Partition", head: true, kind: "num", text: (row) => row.partition },
    { label: "Leader", kind: "short", text: (row) => (row.leader < 0 ? "none" : `broker ${row.leader}`), node: (row) => (row.leader < 0 ? badge("none", "bad") : `broker ${row.leader}`) },
    { label: "Replicas", text: (row) => places(row.replicas) },
    { label: "In sync", text: (row) => places(row.in_sync), node: (row) => (behind(row) > 0 ? badge(places(row.in_sync) || "none", "warn") : places(row.in_sync)) },
    { label: "First offset", kind: "num", text: (row) => count(row.log_start_offset) },
    { label: "End offset", kind: "num", text: (row) => count(row.high_watermark) },
    { label: "Records", kind: "num", text: (row) => count(recordsOf(row)) },
    { label: "Size", kind: "num", text: (row) => bytes(row.size_bytes) },
    { label: "Segments", kind: "num", text: (row) => count(row.segments) },
  ], { key: (row) => row.partition });
  page.add(summary, section("Partitions", partitions.node));
  const settings = configTable(page, path`/topics/${name}/configs`);
  page.add(section("Settings", settings.node));
  if (mayChange()) page.add(section("More", changes(page, name)));
  page.equal({ path: path`/topics/${name}` }, { path: path`/topics/${name}/configs` });
  settings.look();
  page.poll(async () => {
    const one = await get(path`/topics/${name}`, {}, { signal: page.signal });
    summary.replaceChildren(facts([
      ["Records", count(sum(one.partitions, recordsOf))], ["Size on disk", bytes(sum(one.partitions, (place) => place.size_bytes))], ["Partitions", count(one.partitions.length)],
      ["Topic id", data(one.topic_id, "mono")], one.internal && ["Kind", "Kafka's own"],
    ]));
    partitions.update(one.partitions);
  });
}

const remove = (page, name) => page.remove(`Delete topic ${name} with its records?`,
  { method: "DELETE", path: path`/topics/${name}`, test: `kafka.delete_topic(${python(name)})` }, `Topic ${name} is deleted.`, "#/topics");

// Returns the settings of a topic or a broker, with changes; look() reads them again.
export function configTable(page, address, query = {}) {
  const isAll = check("all", "Those with their default, too");
  const columns = [
    { label: "Setting", head: true, kind: "mono wide", text: (row) => row.name, node: (row) => el("span", { title: row.documentation || null }, data(row.name)) },
    { label: "Value", kind: "mono", text: (row) => (row.sensitive ? "hidden" : row.value ?? "null"), node: (row) => (row.sensitive || row.value === null ? el("span", { class: "null" }, row.sensitive ? "hidden" : "null") : data(row.value)) },
    { label: "From", text: (row) => row.source.toLowerCase().replaceAll("_", " ").replace(" config", "") },
  ];
  if (mayChange()) {
    columns.push({
      label: "", kind: "act", text: (row) => `${row.value} ${row.source}`,
      node: (row) => !row.read_only && el("span", {},
        button("Change …", () => change(row), "small"), " ",
        row.source.startsWith("DYNAMIC_") ? button("Reset", () => set({ reset: [row.name] }, `${row.name} has its default.`), "small") : ""),
    });
  }
  const table = new LiveTable("Settings", columns, { key: (row) => row.name, empty: "Every setting has its default." });
  let all = [];
  const show = () => table.update(all.filter((row) => isAll.querySelector("input").checked || !row.is_default));
  const look = async () => {
    try {
      all = await get(address, query, { signal: page.signal });
      show();
    } catch (error) {
      page.fail(error);
    }
  };
  const set = async (body, sentence) => {
    if (await page.act({ method: "POST", path: address, query: Object.keys(query).length ? query : undefined, body }, sentence)) await look();
  };
  const change = (row) => {
    const input = text("value", { value: row.value ?? "", autofocus: true });
    const dialog = el("dialog", { class: "of-view", "aria-labelledby": "change-title" }, el("form", { method: "dialog" },
      el("h2", { id: "change-title" }, data(row.name)), field("Value", input, (row.documentation ?? "").slice(0, 300)),
      el("div", { class: "row end" }, el("button", { value: "no", formnovalidate: true }, "Cancel"), el("button", { value: "yes", class: "main" }, "Set"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (dialog.returnValue === "yes") set({ set: { [row.name]: input.value } }, `${row.name} is ${input.value}.`);
    });
    document.body.append(dialog);
    dialog.showModal();
  };
  isAll.addEventListener("change", show);
  return { node: el("div", {}, isAll, table.node), look };
}

function changes(page, name) {
  const partitions = page.form([el("div", { class: "row" }, field("Number of partitions", number("count", { min: 1, step: 1, required: true }), "All of them, with the new ones."))], {
    verb: "Add partitions",
    make: ({ count: wished }) => ({ method: "POST", path: path`/topics/${name}/partitions`, body: { count: wished } }),
    done: () => notice("The partitions are there."),
  });
  const cards = [el("div", { class: "card" }, partitions)];
  if (server.brokers.length > 1) {
    const leader = page.form([el("div", { class: "row" },
      field("Partition", number("partition", { min: 0, step: 1, value: 0 })),
      field("Leader", select("broker", server.brokers.map((one) => [String(one.id), `broker ${one.id}`]))))], {
      verb: "Make leader",
      make: ({ partition = 0, broker }) => ({
        method: "POST", path: "/cluster/leader", body: { topic: name, partition, broker: Number(broker) },
        test: `kafka_cluster.make_leader(${broker}, ${python(name)}, ${keywords({ partition })})`,
      }),
      done: () => notice("The leader is another one."),
    });
    cards.push(el("div", { class: "card" }, leader));
  }
  return el("div", {}, cards);
}
