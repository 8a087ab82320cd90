// Records of a topic: browse them, follow them, write one.
import { blob, get, mayChange, path, server } from "./api.js";
import { LiveTable, button, check, data, el, facts, field, hash, notice, number, select, text, values } from "./dom.js";
import { equalLines, keywords, python } from "./equal.js";
import { asBytes, asText, bytes, count, hexDump, moment, partOf, recent, several, prettyJson, shortened, visible } from "./values.js";

const CUT_BYTES = 16384;
const TAIL_ROWS_MAX = 200;
const RECORDS_MAX = 1000; // of one answer
const READ_MAX = 50; // partitions of a topic
const SEARCHED = 100_000; // the last offsets of a partition that a search for a key looks at
const STARTS = [["newest", "newest"], ["oldest", "oldest"], ["offset", "offset …"], ["time", "time …"]];

export async function records(page) {
  const [topic] = page.parts;
  page.head(topic ? `Records of ${topic}` : "Records", { crumb: topic && el("a", { href: hash("topics", topic) }, data(topic)) });
  const all = await get("/topics", {}, { signal: page.signal });
  page.add(choice(page, topic, all));
  if (!topic) {
    page.add(el("p", { class: "quiet" }, "Choose a topic: type its name, or take it from the list of topics."));
    return;
  }
  if (!server.mayRead) throw new Error("The records of a secured broker need a token (--control-token).");
  if (mayChange()) page.add(writing(page, topic));
  if (page.query.live === "true") follow(page, topic);
  else await browse(page, topic, all.find((one) => one.name === topic)?.partitions.length ?? 1);
}

function choice(page, topic, all) {
  const known = all.find((one) => one.name === topic);
  const partitions = (known?.partitions ?? []).map((one) => [String(one.partition), String(one.partition)]);
  const { query } = page;
  const topics = el("datalist", { id: "topics" }, all.slice(0, 1000).map((one) => el("option", { value: one.name })));
  const from = select("from", STARTS, query.from ?? "newest");
  const place = text("at", { value: query.at ?? "" });
  const at = field("At", place);
  const fit = () => {
    at.hidden = !["offset", "time"].includes(from.value);
    place.placeholder = from.value === "time" ? "-10m or 2026-11-24T17:30Z" : "0";
  };
  from.addEventListener("change", fit);
  fit();
  const form = el("form", { class: "card" },
    el("div", { class: "row" },
      field("Topic", text("topic", { value: topic ?? "", list: "topics", required: true })), topics,
      field("Partition", select("partition", [["", "all"], ...partitions], query.partition ?? "")),
      field("From", from), at,
      field("Key", text("key", { value: query.key ?? "", placeholder: "any" })),
      field("At most", number("limit", { min: 1, max: 1000, step: 1, value: query.limit ?? 50 }))),
    el("div", { class: "row" },
      check("uncommitted", "Open and aborted transactions, too", { checked: query.uncommitted === "true" }),
      server.views.includes("schemas") ? check("registry", "Decode by the schema registry", { checked: query.registry === "true" }) : null,
      el("button", { class: "main", name: "show", value: "false" }, "Show"),
      el("button", { name: "live", value: "true" }, "Follow live")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { topic: chosen, ...fields } = values(form);
    for (const name of ["uncommitted", "registry"]) if (!fields[name]) delete fields[name];
    if (!["offset", "time"].includes(fields.from)) delete fields.at;
    if (event.submitter?.value === "true") fields.live = "true";
    const next = hash("records", chosen, fields);
    if (next === location.hash) dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = next;
  });
  return form;
}

// Returns the query of the API for the fields of the form.
function asked(query) {
  const { partition, from = "newest", at, key, uncommitted, registry } = query;
  const wished = { partition, key, format: registry ? "registry" : "text", value_bytes_max: CUT_BYTES, max_bytes: query.live ? undefined : 4 << 20 };
  if (uncommitted) wished.isolation = "read_uncommitted";
  const limit = Number(query.limit ?? 50);
  if (query.live) return { ...wished, tail: 10, rate: 50 };
  wished.limit = limit;
  if (from === "newest") wished.tail = key ? SEARCHED : limit;
  if (from === "offset") wished.offset = at || 0;
  if (from === "time") wished.since = at || "-1h";
  return wished;
}

// Returns records of all partitions, and their ends: the API reads one partition after the other.
async function readAll(address, wished, limit, partitions, signal) {
  if (wished.tail !== undefined || partitions < 2 || wished.partition !== undefined) {
    return get(address, wished, { signal });
  }
  const each = { ...wished, limit: Math.ceil(limit / Math.max(1, partitions / 10)) };
  const whole = { records: [], positions: [] };
  for (let partition = 0; partition < Math.min(partitions, READ_MAX); partition += 1) {
    const answer = await get(address, { ...each, partition }, { signal });
    whole.records.push(...answer.records);
    whole.positions.push(...answer.positions);
  }
  whole.records.sort((one, other) => one.timestamp - other.timestamp);
  return whole;
}

async function browse(page, topic, partitions) {
  const address = path`/topics/${topic}/records`;
  const wished = asked(page.query);
  const limit = wished.limit;
  if (wished.tail !== undefined && wished.partition === undefined) {
    const most = Math.max(1, Math.floor(RECORDS_MAX / partitions));
    if (!wished.key) wished.tail = Math.min(limit, most);
    wished.limit = Math.min(limit * partitions, RECORDS_MAX);
  }
  const table = recordTable(page, topic, "No record here.");
  const state = el("p", { class: "quiet", role: "status" }, "Reading …");
  const pages = el("div", { class: "row" });
  page.add(state, table.node, pages);
  page.equal({ path: address, query: wished, test: `kafka.records(${[python(topic), ...(wished.partition ? [wished.partition] : [])].join(", ")})` });
  page.reload = async () => {
    try {
      const answer = await readAll(address, wished, limit, partitions, page.signal);
      const isNewest = (page.query.from ?? "newest") === "newest";
      const rows = answer.records;
      if (isNewest) rows.sort((one, other) => other.timestamp - one.timestamp || other.offset - one.offset);
      table.update(rows.slice(0, limit));
      const isWhole = !wished.key || answer.positions.every((place) => place.next_offset >= place.end_offset);
      state.textContent = `${several(Math.min(rows.length, limit), "record")}, ${isNewest ? "newest first" : "oldest first"}.`
        + (isWhole ? "" : " The search has not read everything: choose a partition, then go on.");
      pages.replaceChildren(...(answer.positions.length === 1 ? turns(page, topic, answer.positions[0], rows, isNewest) : []));
    } catch (error) {
      state.textContent = "";
      page.fail(error);
    }
  };
  await page.reload();
}

// Returns links to the records before and behind these, of one partition.
function turns(page, topic, position, rows, isNewest) {
  const { at: _, live: __, ...query } = page.query;
  const limit = Number(query.limit ?? 50);
  const turn = (label, offset) => el("a", {
    class: "button", href: hash("records", topic, { ...query, partition: position.partition, from: "offset", at: Math.max(0, offset) }),
  }, label);
  const first = Math.min(...rows.map((row) => row.offset), position.next_offset);
  const links = [];
  if (first > 0) links.push(turn("Older", first - limit));
  if (!isNewest && position.next_offset < position.end_offset) links.push(turn("Newer", position.next_offset));
  return links;
}

function follow(page, topic) {
  const rate = select("rate", [["10", "10 a second"], ["50", "50 a second"], ["200", "200 a second"]], "50", { "aria-label": "At most" });
  const state = el("p", { class: "quiet state" }, "Waiting for records …");
  const table = recordTable(page, topic, "Waiting for records …", TAIL_ROWS_MAX);
  page.add(el("div", { class: "row" }, field("At most", rate), page.pauseButton(), button("Clear", () => table.clear()), state), table.node);
  const equal = equalLines();
  page.add(equal.node);
  let leftOut = 0;
  let total = 0;
  let stop;
  const begin = () => {
    stop?.();
    const wished = { topic, ...asked(page.query), rate: rate.value };
    equal.show({ path: "/live/records", query: wished });
    stop = page.follow("/live/records", wished, (name, value) => {
      if (name !== "records") return;
      total += value.records.length;
      leftOut += value.skipped;
      table.prepend(value.records);
      state.textContent = `${several(total, "record")}, ${count(leftOut)} left out. The newest ${TAIL_ROWS_MAX} are shown.`;
    }, { inBackground: true });
  };
  rate.addEventListener("change", begin);
  begin();
}

function preview(part) {
  if (part.bytes) return { words: hexDump(part.bytes.subarray(0, 16)).slice(10, 57).trim() + (part.bytes.length > 16 ? " …" : ""), kind: "mono" };
  return { words: part.text === undefined ? "null" : shortened(part.text, 220), kind: part.text === undefined ? "null" : "mono" };
}

const shown = (record, part) => {
  const { words, kind } = preview(partOf(record, part));
  return el("span", { class: "preview" }, data(words, kind));
};

function recordTable(page, topic, empty, rowsMax = 1000) {
  const table = new LiveTable("Records", [
    { label: "Partition", kind: "num", text: (row) => row.partition },
    {
      label: "Offset", kind: "num", text: (row) => row.offset,
      node: (row) => {
        const open = button(count(row.offset), () => {
          open.setAttribute("aria-expanded", String(table.toggle(row, () => detail(page, topic, row))));
        }, "small");
        open.setAttribute("aria-expanded", "false");
        open.setAttribute("aria-label", `Record at offset ${count(row.offset)}`);
        return open;
      },
    },
    { label: "Time", kind: "short", text: (row) => recent(row.timestamp) },
    { label: "Key", kind: "name", text: (row) => preview(partOf(row, "key")).words, node: (row) => shown(row, "key") },
    { label: "Value", kind: "wide value", text: (row) => preview(partOf(row, "value")).words, node: (row) => shown(row, "value") },
    { label: "Size", kind: "num", text: (row) => bytes(row.value_size ?? asBytes(partOf(row, "value")).length) },
    { label: "Headers", kind: "num", text: (row) => row.headers?.length ?? 0 },
  ], { key: (row) => `${row.partition}-${row.offset}`, empty, rowsMax });
  return table;
}

function detail(page, topic, record) {
  return el("div", { class: "record" },
    facts([
      ["Time", moment(record.timestamp)], record.timestamp_type && ["Kind of time", record.timestamp_type],
      ["Key", size(record, "key")], ["Value", size(record, "value")],
      record.schema_id !== undefined && ["Schema id", record.schema_id],
    ]),
    ...["key", "value"].map((part) => content(page, topic, record, part)),
    headers(record.headers ?? []));
}

const size = (record, part) => {
  const whole = record[`${part}_size`];
  const here = partOf(record, part);
  return here.text === undefined && !here.bytes ? "null" : bytes(whole ?? asBytes(here).length);
};

function content(page, topic, record, part) {
  const here = partOf(record, part);
  const isNull = here.text === undefined && !here.bytes;
  const title = part === "key" ? "Key" : "Value";
  if (isNull) return el("div", {}, el("h2", {}, title), el("span", { class: "null" }, part === "key" ? "null" : "null: a tombstone"));
  const box = el("pre", { tabindex: "0", "aria-label": title });
  const isCut = (record[`${part}_size`] ?? 0) > asBytes(here).length;
  const isJson = here.text !== undefined && /^\s*[[{]/.test(here.text);
  const kinds = select(`${part}_kind`, [["text", "text"], ["json", "JSON"], ["hex", "hex"]], here.bytes ? "hex" : isJson && !isCut ? "json" : "text", { "aria-label": `${title} as` });
  const show = () => {
    box.classList.toggle("hex", kinds.value === "hex");
    if (kinds.value === "hex") box.textContent = hexDump(asBytes(here));
    else if (kinds.value === "json") box.textContent = visible(prettyJson(asText(here)) ?? "This is no JSON.");
    else box.textContent = visible(asText(here));
  };
  kinds.addEventListener("change", show);
  show();
  const note = isCut ? el("span", { class: "badge warn" }, `cut: ${bytes(asBytes(here).length)} of ${bytes(record[`${part}_size`])}`) : null;
  return el("div", {}, el("h2", {}, title, kinds, note, button("Download", () => download(page, topic, record, part), "small")), box);
}

async function download(page, topic, record, part) {
  try {
    const whole = await blob(path`/topics/${topic}/part`, { partition: record.partition, offset: record.offset, part }, { signal: page.signal });
    const url = URL.createObjectURL(whole);
    const anchor = el("a", { href: url, download: `${topic.replace(/[^\w.-]/g, "_")}-${record.partition}-${record.offset}.${part}` });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  } catch (error) {
    page.fail(error);
  }
}

function headers(pairs) {
  if (!pairs.length) return el("p", { class: "quiet" }, "No headers.");
  const table = new LiveTable("Headers", [
    { label: "Header", head: true, kind: "mono", text: (row) => row[0] },
    { label: "Value", kind: "mono wide", text: (row) => headerText(row[1]), node: (row) => data(headerText(row[1]), row[1] === null ? "null" : "mono") },
  ], { key: (row) => row.at });
  table.update(pairs.map(([name, value], at) => Object.assign([name, value], { at })));
  return el("div", {}, el("h2", {}, "Headers"), table.node);
}

function headerText(value) {
  if (value === null) return "null";
  if (typeof value === "string") return value;
  return hexDump(asBytes(partOf({ value_base64: value.base64 ?? "" }, "value"))) || "0 bytes";
}

const hexBytes = (words) => {
  const digits = words.replace(/\s+/g, "");
  if (!/^([0-9a-f]{2})*$/i.test(digits)) throw new Error("Hex is pairs of digits 0-9 and a-f.");
  return btoa((digits.match(/../g) ?? []).map((pair) => String.fromCharCode(parseInt(pair, 16))).join(""));
};

function written(kind, words = "") {
  if (kind === "null") return { value: null };
  if (kind === "hex") return { value_base64: hexBytes(words) };
  if (kind === "json") {
    try {
      JSON.parse(words);
    } catch (error) {
      throw new Error(`This is no JSON: ${error.message}`);
    }
  }
  return { value: words };
}

function headerPairs(words) {
  return (words ?? "").split("\n").filter((line) => line.trim()).map((line) => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`A header is name=value, not “${line}”.`);
    return [line.slice(0, at).trim(), line.slice(at + 1)];
  });
}

function writing(page, topic) {
  const form = page.form([
    el("div", { class: "row" },
      field("Key", text("key", { placeholder: "null" })),
      field("Value is", select("kind", [["text", "text"], ["json", "JSON"], ["hex", "hex"], ["null", "null (a tombstone)"]], "text")),
      field("Partition", number("partition", { min: 0, step: 1, placeholder: "by the key" }))),
    field("Value", el("textarea", { name: "value", rows: 3 })),
    field("Headers", el("textarea", { name: "headers", rows: 2 }), "One name=value on each line."),
  ], {
    verb: "Write",
    make: ({ key, kind, partition, value, headers: pairs }) => {
      const named = headerPairs(pairs);
      const record = { key: key ?? null, ...written(kind, value), partition, headers: named.length ? named : undefined };
      const rest = keywords({ key, headers: named.length ? Object.fromEntries(named) : undefined, partition });
      const plain = kind === "hex" ? `base64.b64decode(${python(record.value_base64)})` : python(record.value);
      return {
        method: "POST", path: path`/topics/${topic}/records`, body: { records: [record] },
        test: `kafka.produce(${[python(topic), plain, ...(rest ? [rest] : [])].join(", ")})`,
      };
    },
    done: (answer) => {
      const [place] = answer.records;
      notice(`Written to partition ${place.partition} at offset ${place.offset}.`);
      page.reload?.();
    },
  });
  return el("details", { class: "adding" }, el("summary", {}, "Write a record"), el("div", { class: "card" }, form));
}
