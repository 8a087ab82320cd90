// A conversation of a client and a broker as a sequence diagram.
import { el, svg } from "./dom.js";
import { clockTime, duration, shortened, visible } from "./values.js";

const WIDTH = 720;
const CLIENT_X = 150;
const BROKER_X = 600;
const STEP = 44;
const TOP = 8;
const HEAD = 26;
export const EXCHANGES_MAX = 200;

const label = (x, y, words, kind) => svg("text", { x, y, class: kind }, visible(words));

function arrow(from, to, y, kind) {
  const way = to > from ? -1 : 1;
  return [
    svg("line", { x1: from, x2: to + way * 7, y1: y, y2: y, class: `arrow ${kind}` }),
    svg("polygon", { points: `${to},${y} ${to + way * 9},${y - 4} ${to + way * 9},${y + 4}`, class: `point ${kind}` }),
  ];
}

function exchange(row, y, slowMs) {
  const middle = (CLIENT_X + BROKER_X) / 2;
  const isSlow = row.duration_ms > slowMs;
  const kind = row.error ? "wrong" : isSlow ? "slow" : "";
  const name = `${row.api} v${row.version}${row.subject ? ` ${row.subject}` : ""}`;
  const answer = row.error ?? (row.duration_ms === null ? "no answer" : "");
  const outcome = [answer, duration(row.duration_ms), row.fault ? `fault: ${row.fault}` : ""].filter(Boolean).join(" · ");
  return svg("g", {},
    svg("title", {}, visible(`${name}, ${outcome}`)),
    label(8, y + 4, clockTime(row.at_ms), "axis"),
    label(middle, y - 5, shortened(name, 60), "name"),
    ...arrow(CLIENT_X, BROKER_X, y, ""),
    label(middle, y + 15, shortened(outcome, 60), `axis middle ${kind}`),
    ...(row.duration_ms === null ? [] : arrow(BROKER_X, CLIENT_X, y + 20, `answer ${kind}`)));
}

// Returns a figure of these exchanges, oldest first; the newest EXCHANGES_MAX are shown.
export function diagram(rows, client, broker, slowMs) {
  const shown = rows.slice(-EXCHANGES_MAX);
  const height = TOP + STEP * shown.length + 16;
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`, role: "img",
    "aria-label": `${shown.length} requests of a conversation, as a sequence diagram`,
  },
  svg("line", { x1: CLIENT_X, x2: CLIENT_X, y1: 0, y2: height, class: "life" }),
  svg("line", { x1: BROKER_X, x2: BROKER_X, y1: 0, y2: height, class: "life" }),
  shown.map((row, index) => exchange(row, TOP + 12 + STEP * index, slowMs)));
  const head = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEAD}`, class: "ends", role: "img", "aria-label": visible(`${client} and ${broker}`) },
    label(CLIENT_X, 17, shortened(client, 32), "who"), label(BROKER_X, 17, shortened(broker, 24), "who"));
  return el("div", { class: "diagram", tabindex: "0", role: "group", "aria-label": "Sequence diagram" }, head, picture);
}
