// Metrics as small plots.
import { el, text } from "./dom.js";
import { Plot, Series } from "./plot.js";
import { brief, bytes, duration } from "./values.js";

const SHOWS = {
  B: bytes, "B/s": (value) => `${bytes(Math.round(value))}/s`, ms: duration, "%": (value) => `${brief(value)} %`,
  "1/s": (value) => `${brief(value)}/s`,
};

const TITLES = {
  request_ms: "Time of a request", produce_ms: "Time of a Produce", records: "Records written", log_bytes: "Logs on disk",
  lag: "Lag of all groups", cpu: "CPU", loop_delay_ms: "Delay of the event loop",
};

// Returns "Produce requests" for produce_requests, "Memory" for memory_bytes: the value has the unit.
function title(name, unit) {
  if (name in TITLES) return TITLES[name];
  const words = name.replace(/_(ms|bytes)$/, "").replaceAll("_", " ");
  const whole = words[0].toUpperCase() + words.slice(1);
  return unit && !(unit in SHOWS) ? `${whole}, ${unit}` : whole;
}

export async function metrics(page) {
  const search = text("search", { type: "search", placeholder: "Part of a name", "aria-label": "Search metrics" });
  page.head("Metrics", { tools: [search, page.pauseButton()] });
  const place = el("div", { class: "plots" });
  const note = el("p", { class: "quiet" }, "Sampled each second while a page is open. ", "Prometheus reads ", el("code", {}, "/metrics"), ".");
  page.add(note, place);
  page.equal({ path: "/live/samples" }, { path: "/metrics" });
  let drawn = [];
  const filter = () => { for (const { name, plot } of drawn) plot.node.hidden = !`${name} ${plot.title}`.toLowerCase().includes(search.value.toLowerCase()); };
  search.addEventListener("input", filter);
  page.follow("/live/samples", {}, (event, value) => {
    if (event === "history") {
      drawn = value.names.map((name) => {
        const unit = value.units[name] ?? "";
        return { name, series: new Series(), plot: new Plot(title(name, unit), { show: SHOWS[unit] ?? brief }) };
      });
      place.replaceChildren(...drawn.map(({ plot }) => plot.node));
      filter();
      for (const row of value.rows) add(row);
    } else if (event === "sample") add(value);
    else return;
    for (const { plot, series } of drawn) if (!plot.node.hidden) plot.draw(series.points);
  });
  const add = ({ at_ms: at, values: numbers }) => numbers.forEach((number, index) => drawn[index]?.series.add(at, number));
}
