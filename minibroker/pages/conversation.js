"use strict";
// The sequence diagram: filters the exchanges, lays their arrows out in rows by time, and draws
// the rows in view alone. All text is set as text, never as markup.
(() => {
  const [NUMBER, CONNECTION, ADDRESS, BROKER, API, VERSION, CORRELATION, CLIENT, AT, DURATION,
    REQUEST_BYTES, ANSWER_BYTES, SUBJECT, ERROR, FAULT, END, TEXT] = Array(17).keys();
  const ROW = 44, ARROW_Y = 34, SPARE_ROWS = 8, LANES_MAX = 14;
  const POLLS = new Set(["Fetch", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat",
    "ShareFetch", "StreamsGroupHeartbeat", "BrokerHeartbeat"]);
  const REQUEST = 0, ANSWER = 1, BOTH = 2;
  const NO_ANSWER = "no answer";
  const ARROW_SEPARATOR = " → ";
  const $ = (id) => document.getElementById(id);
  const data = $("talk-data");
  if (!data) return;
  const exchanges = JSON.parse(data.textContent);
  const begin = exchanges.reduce((least, talk) => Math.min(least, talk[AT]), Infinity);
  const clientOf = (talk) => talk[CLIENT] || talk[ADDRESS];
  const rowsBox = $("talk-rows"), sheet = $("talk-sheet"), head = $("talk-head");
  const details = $("talk-details");
  let rows = [], bars = [], lanes = [], laneOf = new Map(), selected = -1;

  // Filters.

  function fill(select, values) {
    for (const value of [...new Set(values)].sort()) {
      const option = document.createElement("option");
      option.value = option.textContent = value;
      select.append(option);
    }
  }

  function chosen() {
    const text = $("talk-text").value.trim().toLowerCase();
    const api = $("talk-api").value, client = $("talk-client").value;
    const broker = $("talk-broker").value, slow = Number($("talk-slow").value) || 0;
    const errors = $("talk-errors").checked, polls = $("talk-polls").checked;
    return exchanges.filter((talk) =>
      (!api || talk[API] === api) && (!client || clientOf(talk) === client) &&
      (!broker || talk[BROKER] === broker) &&
      (!slow || talk[END] === NO_ANSWER || talk[DURATION] >= slow) &&
      (!errors || talk[ERROR] !== null || talk[FAULT] !== null) &&
      (!polls || !POLLS.has(talk[API]) || talk[ERROR] !== null || talk[FAULT] !== null) &&
      (!text || [talk[API], talk[SUBJECT], talk[ERROR], talk[FAULT], talk[CLIENT], talk[TEXT]]
        .some((part) => part && part.toLowerCase().includes(text))));
  }

  // Layout: a row for each arrow, or for both where nothing comes between them.

  function layOut(talks) {
    const events = [];
    for (const talk of talks) {
      events.push({ at: talk[AT], kind: REQUEST, talk });
      if (talk[DURATION] !== null) {
        events.push({ at: talk[AT] + talk[DURATION], kind: ANSWER, talk });
      }
    }
    events.sort((a, b) => a.at - b.at || a.talk[NUMBER] - b.talk[NUMBER] || a.kind - b.kind);
    rows = [];
    bars = [];
    const open = new Map();
    for (const event of events) {
      const last = rows[rows.length - 1];
      if (event.kind === ANSWER && last && last.talk === event.talk) {
        last.kind = BOTH;
        open.delete(event.talk);
        continue;
      }
      if (event.kind === ANSWER) {
        bars.push({ talk: event.talk, from: open.get(event.talk), to: rows.length });
        open.delete(event.talk);
      } else {
        open.set(event.talk, rows.length);
      }
      rows.push({ at: event.at, kind: event.kind, talk: event.talk });
    }
    for (const [talk, from] of open) {
      if (talk[END] === NO_ANSWER) bars.push({ talk, from, to: rows.length });
    }
    shelve();
    layLanes(talks);
  }

  function shelve() {
    // Bars of one broker that overlap stand side by side.
    bars.sort((a, b) => a.from - b.from);
    const ends = new Map();
    for (const bar of bars) {
      const shelves = ends.get(bar.talk[BROKER]) || [];
      ends.set(bar.talk[BROKER], shelves);
      let shelf = shelves.findIndex((end) => end < bar.from);
      if (shelf < 0) shelf = shelves.length;
      shelves[shelf] = bar.to;
      bar.shelf = Math.min(shelf, 5);
    }
  }

  function layLanes(talks) {
    const clients = [...new Set(talks.map(clientOf))];
    const brokers = [...new Set(talks.map((talk) => talk[BROKER]))].sort();
    const room = Math.max(LANES_MAX - brokers.length, 1);
    const shown = clients.length > room ? clients.slice(0, room - 1) : clients;
    lanes = shown.map((name) => ({ name, isBroker: false }));
    laneOf = new Map(shown.map((name, lane) => [`c${name}`, lane]));
    if (shown.length < clients.length) {
      for (const name of clients.slice(shown.length)) laneOf.set(`c${name}`, lanes.length);
      lanes.push({ name: `${clients.length - shown.length} more clients`, isBroker: false });
    }
    for (const name of brokers) {
      laneOf.set(`b${name}`, lanes.length);
      lanes.push({ name, isBroker: true });
    }
  }

  const placeOf = (lane) => (lane + 0.5) * sheet.clientWidth / lanes.length;

  // Drawing.

  function svg(name, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  function span(kind, text) {
    const element = document.createElement("span");
    element.className = kind;
    element.textContent = text;
    return element;
  }

  const span_ms = (ms) =>
    ms >= 10_000 ? `${(ms / 1000).toFixed(1)} s` : ms >= 100 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(1)} ms`;

  function labelOf(row) {
    const talk = row.talk, label = document.createElement("div");
    label.className = "talk-label";
    label.append(span("time", `+${span_ms(row.at - begin)} `));
    const name = document.createElement("b");
    name.textContent = row.kind === ANSWER ? `answer to ${talk[API]} ` : `${talk[API]} `;
    label.append(name, span("time", `v${talk[VERSION]} `));
    const cut = talk[SUBJECT].indexOf(ARROW_SEPARATOR);
    let subject = talk[SUBJECT];
    if (row.kind === REQUEST && cut >= 0) subject = subject.slice(0, cut);
    if (row.kind === ANSWER) subject = cut >= 0 ? subject.slice(cut + ARROW_SEPARATOR.length) : "";
    if (row.kind === REQUEST && subject.startsWith("→")) subject = "";
    if (talk[FAULT]) label.append(span("fault", `⚡ ${talk[FAULT]} `));
    if (row.kind !== REQUEST && talk[ERROR] && !(talk[FAULT] || "").includes(talk[ERROR])) {
      label.append(span("error", `${talk[ERROR]} `));
    }
    label.append(span("subject", `${subject} `));
    if (row.kind !== REQUEST) label.append(span("time", span_ms(talk[DURATION])));
    if (talk[END]) label.append(span(talk[END] === NO_ANSWER ? "fault" : "time", talk[END]));
    return label;
  }

  function arrow(picture, from, to, y, kind) {
    const step = to > from ? -7 : 7;
    picture.append(svg("line", { class: `arrow ${kind}`, x1: from, x2: to + step / 2, y1: y, y2: y }));
    const points = `${to},${y} ${to + step},${y - 4} ${to + step},${y + 4}`;
    picture.append(svg("polygon", { class: `tip ${kind}`, points }));
  }

  function draw(index, near) {
    const row = rows[index], talk = row.talk, element = document.createElement("div");
    element.className = "talk-row";
    element.id = `talk-row-${index}`;
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", String(index === selected));
    element.style.top = `${index * ROW}px`;
    const picture = svg("svg", { "aria-hidden": "true", focusable: "false" });
    lanes.forEach((_, lane) => {
      const x = placeOf(lane);
      picture.append(svg("line", { class: "life", x1: x, x2: x, y1: 0, y2: ROW }));
    });
    for (const bar of near) {
      if (bar.from > index || bar.to < index) continue;
      const y = bar.from === index ? ARROW_Y : 0, end = bar.to === index ? ARROW_Y : ROW;
      const x = placeOf(laneOf.get(`b${bar.talk[BROKER]}`)) + 1 + bar.shelf * 6;
      picture.append(svg("rect", { class: "bar", x, y, width: 5, height: end - y }));
    }
    const client = placeOf(laneOf.get(`c${clientOf(talk)}`));
    const broker = placeOf(laneOf.get(`b${talk[BROKER]}`));
    const kind = talk[FAULT] ? "met" : "";
    const end = talk[ERROR] ? "wrong" : kind;
    if (row.kind === BOTH) {
      arrow(picture, client, broker, ARROW_Y - 3, kind);
      arrow(picture, broker, client, ARROW_Y + 4, `answer ${end}`);
    } else if (row.kind === REQUEST) {
      arrow(picture, client, broker, ARROW_Y, kind);
    } else {
      arrow(picture, broker, client, ARROW_Y, `answer ${end}`);
    }
    element.append(picture, labelOf(row));
    element.addEventListener("click", () => { select(index); show(); });
    return element;
  }

  function drawView() {
    const first = Math.max(Math.floor(rowsBox.scrollTop / ROW) - SPARE_ROWS, 0);
    const count = Math.ceil(rowsBox.clientHeight / ROW) + 2 * SPARE_ROWS;
    const last = Math.min(first + count, rows.length);
    const near = bars.filter((bar) => bar.from < last && bar.to >= first);
    const drawn = [];
    for (let index = first; index < last; index++) drawn.push(draw(index, near));
    sheet.replaceChildren(...drawn);
    const active = selected >= first && selected < last;
    rowsBox.toggleAttribute("aria-activedescendant", active);
    if (active) rowsBox.setAttribute("aria-activedescendant", `talk-row-${selected}`);
  }

  function drawHead() {
    head.replaceChildren(...lanes.map((lane, number) => {
      const name = span(lane.isBroker ? "broker" : "client", lane.name);
      const width = sheet.clientWidth / lanes.length;
      name.style.left = `${number * width}px`;
      name.style.width = `${width}px`;
      name.title = lane.name;
      return name;
    }));
  }

  function refresh() {
    const talks = chosen();
    selected = -1;
    details.hidden = true;
    layOut(talks);
    sheet.style.height = `${rows.length * ROW}px`;
    $("talk-count").textContent = `${talks.length} of ${exchanges.length} requests`;
    drawHead();
    drawView();
  }

  // Selection.

  function select(index) {
    selected = Math.max(0, Math.min(index, rows.length - 1));
    const top = selected * ROW;
    if (top < rowsBox.scrollTop) rowsBox.scrollTop = top;
    const least = top + ROW - rowsBox.clientHeight;
    if (rowsBox.scrollTop < least) rowsBox.scrollTop = least;
    drawView();
  }

  function show() {
    if (selected < 0 || selected >= rows.length) return;
    const talk = rows[selected].talk;
    const facts = [
      ["request", `${talk[API]} v${talk[VERSION]}, number ${talk[NUMBER]}, correlation id ${talk[CORRELATION]}`],
      ["client", `${talk[CLIENT] || "no client id"} at ${talk[ADDRESS]}, connection ${talk[CONNECTION]}`],
      ["broker", talk[BROKER]],
      ["at", new Date(talk[AT]).toISOString()],
      ["took", talk[END] || `${talk[DURATION]} ms`],
      ["size", `${talk[REQUEST_BYTES]} bytes, answer ${talk[ANSWER_BYTES] === null ? "none" : `${talk[ANSWER_BYTES]} bytes`}`],
      ["about", talk[SUBJECT]],
    ];
    if (talk[ERROR]) facts.push(["error", talk[ERROR]]);
    if (talk[FAULT]) facts.push(["fault", talk[FAULT]]);
    const list = document.createElement("dl");
    for (const [name, text] of facts) {
      const term = document.createElement("dt"), value = document.createElement("dd");
      term.textContent = name;
      value.textContent = text;
      list.append(term, value);
    }
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "close";
    close.addEventListener("click", hide);
    details.replaceChildren(close, list);
    if (talk[TEXT]) {
      const text = document.createElement("pre");
      text.textContent = talk[TEXT];
      details.append(text);
    }
    details.hidden = false;
    details.scrollIntoView({ block: "nearest" });
  }

  function hide() {
    details.hidden = true;
    rowsBox.focus();
  }

  const page = () => Math.max(Math.floor(rowsBox.clientHeight / ROW) - 1, 1);
  const MOVES = {
    ArrowDown: () => select(selected + 1), ArrowUp: () => select(selected - 1),
    PageDown: () => select(selected + page()), PageUp: () => select(selected - page()),
    Home: () => select(0), End: () => select(rows.length - 1),
    Enter: show, " ": show, Escape: hide,
  };

  rowsBox.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (rows.length) move();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    $("talk-text").focus();
  });
  rowsBox.addEventListener("scroll", () => requestAnimationFrame(drawView), { passive: true });
  window.addEventListener("resize", () => requestAnimationFrame(() => { drawHead(); drawView(); }));
  for (const id of ["talk-text", "talk-slow"]) $(id).addEventListener("input", refresh);
  for (const id of ["talk-api", "talk-client", "talk-broker", "talk-errors", "talk-polls"]) {
    $(id).addEventListener("change", refresh);
  }
  fill($("talk-api"), exchanges.map((talk) => talk[API]));
  fill($("talk-client"), exchanges.map(clientOf));
  fill($("talk-broker"), exchanges.map((talk) => talk[BROKER]));
  $("talk").hidden = false;
  refresh();
})();
