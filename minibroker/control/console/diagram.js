// A conversation of a client and its brokers as a sequence diagram.
import { el, svg } from "./dom.js";
import { clockTime, duration, several, shortened, visible } from "./values.js";

const WIDTH = 720;
const CLIENT_X = 150;
const BROKERS_X = [400, 640];
const ALONE_X = 600;
const STEP = 44;
const TOP = 8;
const HEAD = 26;
export const EXCHANGES_MAX = 200;

// Behind a proxy a broker has no id here, but an address.
const laneOf = (row) => row.broker_id ?? row.broker ?? "Kafka";
const nameOf = (lane) => (typeof lane === "number" ? `broker ${lane}` : shortened(lane, 24));

const label = (x, y, words, kind) => svg("text", { x, y, class: kind }, visible(words));

function arrow(from, to, y, kind) {
  const way = to > from ? -1 : 1;
  return [
    svg("line", { x1: from, x2: to + way * 7, y1: y, y2: y, class: `arrow ${kind}` }),
    svg("polygon", { points: `${to},${y} ${to + way * 9},${y - 4} ${to + way * 9},${y + 4}`, class: `point ${kind}` }),
  ];
}

// Returns broker → its place.
function placesOf(rows) {
  const ids = [...new Set(rows.map(laneOf))].sort();
  const [first, last] = BROKERS_X;
  return new Map(ids.map((id, index) => [id, ids.length === 1 ? ALONE_X : first + ((last - first) * index) / (ids.length - 1)]));
}

function exchange(row, y, brokerX, slowMs) {
  const middle = (CLIENT_X + brokerX) / 2;
  const isSlow = row.duration_ms > slowMs;
  const kind = row.error ? "wrong" : isSlow ? "slow" : "";
  const name = `${row.api} v${row.version}${row.subject ? ` ${row.subject}` : ""}`;
  const answer = row.error ?? (row.duration_ms === null ? "no answer" : "");
  const outcome = [answer, duration(row.duration_ms), row.fault ? `fault: ${row.fault}` : ""].filter(Boolean).join(" · ");
  return svg("g", {},
    svg("title", {}, visible(`${name}, ${outcome}`)),
    label(8, y + 4, clockTime(row.at_ms), "axis"),
    label(middle, y - 5, shortened(name, 60), "name"),
    ...arrow(CLIENT_X, brokerX, y, ""),
    label(middle, y + 15, shortened(outcome, 60), `axis middle ${kind}`),
    ...(row.duration_ms === null ? [] : arrow(brokerX, CLIENT_X, y + 20, `answer ${kind}`)));
}

// Returns a figure of these exchanges, oldest first; the newest EXCHANGES_MAX are shown.
export function diagram(rows, client, slowMs) {
  const shown = rows.slice(-EXCHANGES_MAX);
  const height = TOP + STEP * shown.length + 16;
  const places = placesOf(shown);
  const life = (x) => svg("line", { x1: x, x2: x, y1: 0, y2: height, class: "life" });
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`, role: "img",
    "aria-label": `${shown.length} requests of a conversation, as a sequence diagram`,
  },
  life(CLIENT_X), [...places.values()].map(life),
  shown.map((row, index) => exchange(row, TOP + 12 + STEP * index, places.get(laneOf(row)), slowMs)));
  const head = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEAD}`, class: "ends", role: "img", "aria-label": visible(`${client} and ${several(places.size, "broker")}`) },
    label(CLIENT_X, 17, shortened(client, 32), "who"), [...places].map(([id, x]) => label(x, 17, nameOf(id), "who")));
  return el("div", { class: "diagram", tabindex: "0", role: "group", "aria-label": "Sequence diagram" }, head, picture);
}
