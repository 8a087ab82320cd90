// The broker's clock: its time, moves, and what is due next.
import { brokerColumn, get, mayChange } from "./api.js";
import { LiveTable, button, el, facts, field, notice, number, section } from "./dom.js";
import { keywords } from "./equal.js";
import { duration, moment } from "./values.js";

const STEPS = [
  ["+ 1 second", { seconds: 1 }], ["+ 10 seconds", { seconds: 10 }], ["+ 1 minute", { minutes: 1 }],
  ["+ 10 minutes", { minutes: 10 }], ["+ 1 hour", { hours: 1 }], ["+ 1 day", { days: 1 }],
];
const TICK_MS = 1000;
const UNITS = ["days", "hours", "minutes", "seconds", "milliseconds"];
const moveBy = (body) => ({ method: "POST", path: "/clock", body, test: `kafka.clock.advance(${keywords(body)})` });

export async function clock(page) {
  page.head("Clock", { tools: [page.pauseButton()] });
  const times = el("div");
  page.add(el("p", { class: "quiet" }, "The broker's time can be moved on: sessions, retention, transactions and delays end as if the time had passed."), times);
  const due = new LiveTable("Due next", [
    { label: "In", kind: "num", text: (row) => duration(Math.max(0, row.in_ms)) },
    { label: "At", kind: "short", text: (row) => moment(row.at_ms) },
    { label: "What", head: true, kind: "wide", text: (row) => row.text },
    { label: "Count", kind: "num", text: (row) => row.count },
    ...brokerColumn(),
    ...(mayChange() ? [{
      label: "", kind: "act", text: () => "move",
      node: (row) => button("Move there", () => move({ milliseconds: Math.max(0, Math.ceil(row.in_ms)) }), "small"),
    }] : []),
  ], { key: (row) => `${row.broker_id} ${row.text} ${row.at_ms}`, empty: "Nothing is due." });
  const look = async () => due.update(await get("/clock/timers", { limit: 50 }, { signal: page.signal }));
  const move = (body) => {
    const parts = UNITS.filter((unit) => body[unit]).map((unit) => `${body[unit]} ${unit}`);
    return page.change(moveBy(body), `The clock is moved by ${parts.join(", ") || "nothing"}.`, look);
  };
  if (mayChange()) page.add(el("div", { class: "card" }, el("div", { class: "row" }, STEPS.map(([label, body]) => button(label, () => move(body)))), form(page, look)));
  page.add(section("Due next", due.node));
  if (mayChange()) {
    page.add(section("Back to the start", el("div", { class: "card" },
      el("p", {}, "Removes all faults, topics and groups, and puts the clock back to the machine's time."),
      button("Reset the broker …", () => reset(page, look), "danger"))));
  }
  page.equal({ path: "/clock", test: "kafka.clock.now_ms()" }, { path: "/clock/timers" });
  page.poll(async () => {
    const value = await get("/clock", {}, { signal: page.signal });
    times.replaceChildren(facts([
      ["Broker's time", moment(value.now_ms)], ["Machine's time", moment(value.now_ms - value.ahead_ms)],
      ["Ahead by", value.ahead_ms ? duration(value.ahead_ms) : "nothing"],
    ]));
  }, TICK_MS);
  page.poll(look);
}

async function reset(page, look) {
  const action = { method: "POST", path: "/reset", test: "kafka.reset()" };
  if (await page.ask("Delete all topics, groups and faults?", "Reset", action)) await page.change(action, "The broker is as after its start.", look);
}

function form(page, look) {
  return page.form([el("div", { class: "row" }, UNITS.map((unit) => field(unit[0].toUpperCase() + unit.slice(1), number(unit, { min: 0, placeholder: "0" }))))], {
    verb: "Move the clock", make: moveBy,
    done: async () => {
      notice("The clock is moved.");
      await look();
    },
  });
}
