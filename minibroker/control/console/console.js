// The console of minibroker: the first module, the list of views, and the way from a location to one.
import { forgetToken, get, hasToken, mayChange, server } from "./api.js";
import { button, data, el } from "./dom.js";
import { Page } from "./page.js";
import { clients } from "./clients.js";
import { clock } from "./clock.js";
import { cluster } from "./cluster.js";
import { faults } from "./faults.js";
import { groups } from "./groups.js";
import { metrics } from "./metrics.js";
import { quotas } from "./quotas.js";
import { records } from "./records.js";
import { requests } from "./requests.js";
import { schemas } from "./schemas.js";
import { topics } from "./topics.js";
import { transactions } from "./transactions.js";

const VIEWS = [
  ["Data", { topics: ["Topics", topics], records: ["Records", records], schemas: ["Schemas", schemas] }],
  ["Clients", {
    groups: ["Groups", groups], transactions: ["Transactions", transactions], clients: ["Connections", clients],
    quotas: ["Quotas", quotas],
  }],
  ["Broker", { requests: ["Requests", requests], metrics: ["Metrics", metrics], cluster: ["Brokers", cluster] }],
  ["Tests", { faults: ["Faults", faults], clock: ["Clock", clock] }],
];
const BY_NAME = Object.assign({}, ...VIEWS.map(([, views]) => views));
const THEME = "minibroker.theme";
const RETRY_MS = 2000;

const main = document.getElementById("main");
let page;

// Returns {parts, query} of a location such as #/records/orders?partition=0.
function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

// A view that there is not, or that this server does not offer.
function missing(one) {
  one.head(`There is no view ${one.name}`);
  one.add(el("p", {}, "The list beside it has all views."));
}

function show({ isFirst = false } = {}) {
  const { parts, query } = place();
  const offered = server.views.filter((name) => name in BY_NAME);
  const name = parts[0] ?? offered[0];
  const isSame = page && page.name === name && page.parts[0] === parts[1];
  const focused = isSame ? document.activeElement?.name : undefined;
  page?.leave();
  page = new Page(main, name, parts.slice(1), query);
  for (const anchor of document.querySelectorAll("#nav a")) {
    if (anchor.dataset.view === name) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  document.getElementById("side").classList.remove("wide");
  document.getElementById("menu").setAttribute("aria-expanded", "false");
  page.run(offered.includes(name) ? BY_NAME[name][1] : missing);
  const old = focused && main.querySelector(`[name="${CSS.escape(focused)}"]`);
  if (old) old.focus();
  else if (!isFirst) {
    scrollTo(0, 0);
    main.querySelector("h1")?.focus();
  }
}

function rail() {
  const lists = VIEWS.map(([title, views]) => {
    const offered = Object.entries(views).filter(([name]) => server.views.includes(name));
    return offered.length ? [el("h2", {}, title), el("ul", {}, offered.map(([name, [label]]) =>
      el("li", {}, el("a", { href: `#/${name}`, "data-view": name }, label))))] : [];
  });
  document.getElementById("nav").replaceChildren(...lists.flat());
  const brokers = server.brokers.map((broker) => broker.address).join(", ");
  document.getElementById("where").replaceChildren(data(brokers || location.host));
  const theme = el("select", { "aria-label": "Colours" },
    [["", "as the system"], ["light", "light"], ["dark", "dark"]].map(([value, label]) =>
      el("option", { value, selected: (localStorage.getItem(THEME) ?? "") === value }, label)));
  theme.addEventListener("change", () => colour(theme.value));
  document.getElementById("foot").replaceChildren(
    ...(mayChange() ? [] : [el("p", { class: "access" }, "Read only", server.whyNot ? ": " : "", data(server.whyNot))]),
    el("label", {}, "Colours", theme),
    ...(hasToken() ? [button("Forget the token", forgetToken, "small")] : []),
    el("span", {}, `${server.kind === "proxy" ? "minibroker proxy" : "minibroker"} `, data(server.version), " · ",
      el("a", { href: "/openapi.json" }, "API")));
}

function colour(theme) {
  if (theme) {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
  } else {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(THEME);
  }
}

function controls() {
  const menu = document.getElementById("menu");
  menu.addEventListener("click", () => {
    const isWide = document.getElementById("side").classList.toggle("wide");
    menu.setAttribute("aria-expanded", String(isWide));
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
}

async function begin() {
  colour(localStorage.getItem(THEME) ?? "");
  controls();
  for (;;) {
    try {
      const views = await get("/views");
      Object.assign(server, views, { access: views.may_write ? "full" : "read", whyNot: views.why_not, mayRead: views.may_read_records });
      break;
    } catch (error) {
      main.replaceChildren(el("p", { class: "alert", role: "alert" }, error.message));
      await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
    }
  }
  rail();
  show({ isFirst: true });
  addEventListener("hashchange", () => show());
  // A browser may keep a page that was left, with its streams: they would hold connections.
  addEventListener("pagehide", () => page?.leave());
  addEventListener("pageshow", (event) => { if (event.persisted) show({ isFirst: true }); });
}

begin();
