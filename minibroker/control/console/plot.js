// A small plot of numbers over time.
import { el, svg } from "./dom.js";
import { brief, clockTime, visible } from "./values.js";

const WIDTHS = [220, 860];
const LEFT = 52;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 18;
const POINTS_MAX = 600;

// Holds the last points of a series: add(at_ms, value).
export class Series {
  constructor(pointsMax = POINTS_MAX) {
    this.pointsMax = pointsMax;
    this.points = [];
  }

  add(atMs, value) {
    const last = this.points.at(-1);
    if (value === null || value === undefined || (last && atMs <= last[0])) return;
    this.points.push([atMs, value]);
    if (this.points.length > this.pointsMax) this.points.shift();
  }
}

function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((round) => round >= value * 0.999);
}

// A figure with a title, the newest value and a line; draw(points) changes it.
export class Plot {
  constructor(title, { show = brief, isLarge = false } = {}) {
    this.title = title;
    this.show = show;
    this.height = isLarge ? 170 : 96;
    this.floor = this.height - BOTTOM;
    this.width = 0;
    this.value = el("span", { class: "now" }, "–");
    this.line = svg("polyline", { class: "stroke" });
    this.area = svg("polygon", { class: "area" });
    this.roof = svg("line", { x1: LEFT, y1: TOP, y2: TOP, class: "grid" });
    this.base = svg("line", { x1: LEFT, y1: this.floor, y2: this.floor, class: "grid base" });
    this.most = svg("text", { x: LEFT - 6, y: TOP + 4, class: "axis end" });
    this.from = svg("text", { x: LEFT, y: this.height - 4, class: "axis" });
    this.to = svg("text", { y: this.height - 4, class: "axis end" });
    this.picture = svg("svg", { hidden: true, height: this.height, role: "img", "aria-label": visible(title) },
      this.roof, this.base, this.area, this.line, this.most,
      svg("text", { x: LEFT - 6, y: this.floor + 3, class: "axis end" }, "0"), this.from, this.to);
    this.node = el("figure", { class: isLarge ? "plot large" : "plot" },
      el("figcaption", {}, el("bdi", {}, visible(title)), this.value), this.picture);
  }

  // Takes the width that there is, so that letters keep their size.
  #fit() {
    const width = Math.min(Math.max(this.picture.clientWidth, WIDTHS[0]), WIDTHS[1]);
    if (width === this.width) return;
    this.width = width;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    for (const line of [this.roof, this.base]) line.setAttribute("x2", width - RIGHT);
    this.to.setAttribute("x", width - RIGHT);
  }

  draw(points) {
    if (points.length === 0) return;
    this.picture.removeAttribute("hidden");
    this.#fit();
    const most = ceiling(Math.max(...points.map(([, value]) => value)));
    const first = points[0][0];
    const last = points.at(-1);
    const span = Math.max(last[0] - first, 1);
    const places = points.map(([at, value]) => {
      const x = LEFT + ((at - first) / span) * (this.width - LEFT - RIGHT);
      const y = this.floor - (Math.max(value, 0) / most) * (this.floor - TOP);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    const end = places.at(-1).split(",")[0];
    this.line.setAttribute("points", places.join(" "));
    this.area.setAttribute("points", `${LEFT},${this.floor} ${places.join(" ")} ${end},${this.floor}`);
    this.most.textContent = this.show(most);
    this.from.textContent = clockTime(first).slice(0, 8);
    this.to.textContent = points.length > 1 ? clockTime(last[0]).slice(0, 8) : "";
    this.value.textContent = this.show(last[1]);
    this.picture.setAttribute("aria-label",
      `${visible(this.title)}: ${this.show(last[1])} at ${clockTime(last[0]).slice(0, 8)}, ${points.length} points`);
  }
}
