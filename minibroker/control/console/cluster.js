// Brokers: those of the cluster, the controller, replicas that are behind, settings of a broker.
import { get, mayChange, server } from "./api.js";
import { LiveTable, badge, button, data, el, facts, link, section } from "./dom.js";
import { configTable } from "./topics.js";
import { count, duration } from "./values.js";

const STATES = { running: "good", paused: "warn", killed: "bad" };

export async function cluster(page) {
  page.head("Brokers");
  const summary = el("div");
  const states = () => new Map((server.brokers ?? []).map((one) => [one.id, one.state]));
  const brokers = new LiveTable("Brokers", [
    { label: "Broker", head: true, kind: "num", text: (row) => row.id },
    { label: "Address", kind: "mono", text: (row) => row.address },
    { label: "State", text: (row) => row.state ?? "elsewhere", node: (row) => badge(row.state ?? "elsewhere", STATES[row.state]) },
    {
      label: "Role", text: (row) => [row.isController && "controller", row.isThis && "serves this page"].filter(Boolean).join(", ") || "–",
    },
  ], { key: (row) => row.id });
  const late = new LiveTable("Replicas behind", [
    { label: "Topic", head: true, kind: "wide", text: (row) => row.topic, node: (row) => link(row.topic, "topics", row.topic) },
    { label: "Partition", kind: "num", text: (row) => row.partition },
    { label: "In sync", text: (row) => row.in_sync.join(", ") || "none" },
  ], { key: (row) => `${row.topic}-${row.partition}`, empty: "Every replica is in sync." });
  page.add(summary, brokers.node, section("Replicas behind", late.node));
  const settings = configTable(page, "/configs", { broker_id: server.broker });
  page.add(section(`Settings of broker ${server.broker}`, settings.node));
  if (mayChange() && server.brokers.length > 1) {
    page.add(section("More", el("div", { class: "card" }, button("Make this broker the controller", async () => {
      await page.act({ method: "POST", path: "/cluster/controller", body: {}, test: `kafka_cluster.make_controller(${server.broker})` }, "This broker is the controller.");
    }))));
  }
  page.equal({ path: "/cluster" });
  settings.look();
  page.poll(async () => {
    const [one, views] = await Promise.all([get("/cluster", {}, { signal: page.signal }), get("/views", {}, { signal: page.signal })]);
    server.brokers = views.brokers;
    const known = states();
    summary.replaceChildren(facts([
      ["Controller", one.controller < 0 ? "none" : `broker ${one.controller}`], ["Epoch of the controller", count(one.controller_epoch)],
      ["Cluster id", data(views.cluster_id ?? "–", "mono")],
      one.metadata_age_ms !== null && ["Age of the metadata", duration(one.metadata_age_ms)],
    ]));
    const all = new Map([...views.brokers, ...one.brokers].map((row) => [row.id, row])); // the cluster forgets a killed one
    brokers.update([...all.values()].sort((row, other) => row.id - other.id).map((row) => ({
      ...row, state: known.get(row.id), isController: row.id === one.controller, isThis: row.id === one.broker,
    })));
    late.update(one.not_in_sync);
  });
}
