// Groups: the list, and one group with its lag, members and offsets.
import { brokerColumn, get, mayChange, path } from "./api.js";
import { LiveTable, badge, button, data, el, facts, field, link, notice, number, section, select, text } from "./dom.js";
import { python } from "./equal.js";
import { Plot, Series } from "./plot.js";
import { count, several } from "./values.js";

const STATES = { Stable: "good", Empty: "", Dead: "bad" };
const PLACES = { offset: "0", time: "-10m or 2026-11-24T17:30Z", shift: "-5 is five back" };
const stateBadge = (state) => badge(state, STATES[state] ?? "warn");

export async function groups(page) {
  if (page.parts.length) return group(page, page.parts[0]);
  page.head("Groups", { tools: [page.pauseButton()] });
  const table = new LiveTable("Groups", [
    { label: "Group", head: true, kind: "wide", text: (row) => row.group, node: (row) => link(row.group, "groups", row.group) },
    { label: "Kind", text: (row) => row.kind },
    { label: "State", text: (row) => row.state, node: (row) => stateBadge(row.state) },
    { label: "Members", kind: "num", text: (row) => count(row.members) },
    { label: "Lag", kind: "num", text: (row) => count(row.lag) },
    { label: "Topics", kind: "wide", text: (row) => [...new Set(row.committed.map((one) => one.topic))].join(", ") },
    ...brokerColumn(),
  ], { key: (row) => row.group, empty: "No group yet. A consumer with a group.id makes one." });
  page.add(table.node);
  page.equal({ path: "/groups", test: "kafka.groups" });
  page.poll(async () => table.update(await get("/groups", {}, { signal: page.signal })));
}

async function group(page, name) {
  const tools = [page.pauseButton()];
  if (mayChange()) tools.push(button("Delete …", () => remove(page, name), "danger"));
  page.head(name, { crumb: el("a", { href: "#/groups" }, "Groups"), tools });
  const summary = el("div");
  const plot = new Plot("Lag: records that are not committed yet", { show: count, isLarge: true });
  const series = new Series();
  const offsets = new LiveTable("Offsets", [
    { label: "Topic", head: true, kind: "wide", text: (row) => row.topic, node: (row) => link(row.topic, "topics", row.topic) },
    { label: "Partition", kind: "num", text: (row) => row.partition },
    { label: "Committed", kind: "num", text: (row) => count(row.offset) },
    { label: "End", kind: "num", text: (row) => count(row.end_offset) },
    { label: "Lag", kind: "num", text: (row) => count(row.lag) },
    { label: "Member", kind: "mono wide", text: (row) => row.member_id ?? "none" },
  ], { key: (row) => `${row.topic}-${row.partition}`, empty: "The group has committed no offset." });
  const members = new LiveTable("Members", [
    { label: "Member", head: true, kind: "mono wide", text: (row) => row.member_id },
    { label: "Client id", kind: "name", text: (row) => row.client_id, node: (row) => link(row.client_id || "none", "requests", { client_id: row.client_id }) },
    { label: "Host", kind: "short", text: (row) => row.host },
    { label: "Instance", text: (row) => row.instance_id ?? "–" },
    { label: "Partitions", kind: "wide", text: (row) => assignment(row.partitions) },
  ], { key: (row) => row.member_id, empty: "No member now." });
  page.add(summary, plot.node, section("Offsets", offsets.node), section("Members", members.node));
  if (mayChange()) page.add(section("Move the offsets", el("div", { class: "card" }, reset(page, name))));
  page.equal({ path: path`/groups/${name}`, test: `kafka.lag(${python(name)})` });
  page.follow("/live/samples", {}, (event, value) => {
    for (const sample of event === "history" ? value.rows : event === "sample" ? [value] : []) series.add(sample.at_ms, sample.lag[name]);
    plot.draw(series.points);
  });
  page.poll(async () => {
    const one = await get(path`/groups/${name}`, {}, { signal: page.signal });
    summary.replaceChildren(facts([
      ["State", stateBadge(one.state)], ["Kind", one.kind], ["Members", count(one.members.length)], ["Lag", count(one.lag)],
      ["Assignor", data(one.assignor || "–")], ["Generation", count(one.generation)], ["Coordinator", `broker ${one.broker_id}`],
    ]));
    offsets.update(one.offsets);
    members.update(one.members);
  });
}

// Returns partitions as text: orders 0, 1; payments 2.
function assignment(places) {
  const byTopic = Map.groupBy(places, (place) => place.topic);
  return [...byTopic].map(([topic, of]) => `${topic} ${of.map((place) => place.partition).sort((a, b) => a - b).join(", ")}`).join("; ") || "none";
}

const remove = (page, name) => page.remove(`Delete group ${name} with its offsets?`,
  { method: "DELETE", path: path`/groups/${name}` }, `Group ${name} is deleted.`, "#/groups");

function reset(page, name) {
  const to = select("to", [["earliest", "the oldest record"], ["latest", "the end"], ["offset", "an offset"], ["time", "a time"], ["shift", "so many records on"]]);
  const where = text("place");
  const place = field("Where", where);
  const look = () => {
    place.hidden = !(to.value in PLACES);
    where.placeholder = PLACES[to.value] ?? "";
  };
  to.addEventListener("change", look);
  look();
  return page.form([
    el("p", { class: "quiet" }, "Only while the group has no member."),
    el("div", { class: "row" },
      field("Topic", text("topic", { placeholder: "all" })),
      field("Partition", number("partition", { min: 0, step: 1, placeholder: "all" })),
      field("To", to), place),
  ], {
    verb: "Move",
    make: ({ topic, partition, to: kind, place: at }) => {
      const body = { topic, partition, to: kind };
      if (kind === "time") body.time = at ?? "";
      else if (kind === "offset" || kind === "shift") body[kind] = whole(at);
      return { method: "POST", path: path`/groups/${name}/offsets`, body };
    },
    done: (moved) => notice(`Moved: ${several(moved.length, "offset")}.`),
  });
}

function whole(words) {
  const value = Number(words ?? "");
  if (words === undefined || !Number.isInteger(value)) throw new Error("Where: a whole number.");
  return value;
}

