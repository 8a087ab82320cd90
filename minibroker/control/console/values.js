// How numbers, times and bytes are shown.

// Characters that nobody sees, or that turn the direction of what follows; tab and line feed stay.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

// Returns the text with invisible characters as escapes: \u202e.
export const visible = (text) =>
  text.replace(INVISIBLE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

// Returns the value of a JSON text. An integer that JavaScript would round keeps its digits.
export const parse = (text) => JSON.parse(text, (_, value, context) =>
  (Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source && JSON.rawJSON ? JSON.rawJSON(context.source) : value));

export function count(number) {
  if (number === null || number === undefined || number < 0) return "–";
  return typeof number === "number" ? number.toLocaleString("en-US") : JSON.stringify(number);
}

// Returns "1 record", "2 records".
export const several = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

export function bytes(size) {
  if (size === null || size === undefined || size < 0) return "–";
  if (size < 1024) return `${size} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = size / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.5) return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  if (seconds < 3599.5) return twoUnits(Math.round(seconds), 60, "min", "s");
  if (seconds < 172_800) return twoUnits(Math.round(seconds / 60), 60, "h", "min");
  return twoUnits(Math.round(seconds / 3600), 24, "d", "h");
}

// Returns 75 as "1 min 15 s", 60 as "1 min".
const twoUnits = (amount, size, large, small) =>
  `${Math.floor(amount / size)} ${large}${amount % size ? ` ${amount % size} ${small}` : ""}`;

const two = (value, width = 2) => String(value).padStart(width, "0");

export function clockTime(ms) {
  const time = new Date(ms);
  if (Number.isNaN(time.getTime())) return "–";
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${two(time.getMilliseconds(), 3)}`;
}

export function moment(ms) {
  if (ms === null || ms === undefined || ms < 0) return "–";
  const time = new Date(ms);
  if (Number.isNaN(time.getTime())) return `${ms} ms`;
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${clockTime(ms)}`;
}

// Returns a time without its date, if that is today.
export function recent(ms) {
  const whole = moment(ms);
  return whole.slice(0, 10) === moment(Date.now()).slice(0, 10) ? whole.slice(11) : whole;
}

// Returns numbers such as 12.3k for the axis of a plot.
export function brief(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)}G`;
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e3) return `${trim(value / 1e3)}k`;
  return trim(value);
}
const trim = (value) => String(Number(value.toPrecision(3)));

export function fromBase64(encoded) {
  const raw = atob(encoded);
  return Uint8Array.from(raw, (one) => one.charCodeAt(0));
}

// Returns a part of a record ("key", "value") as {text} or {bytes}; {} for null.
export function partOf(record, part) {
  const encoded = record[`${part}_base64`];
  if (encoded !== undefined) return { bytes: fromBase64(encoded) };
  const plain = record[part];
  if (plain === null || plain === undefined) return {};
  return { text: typeof plain === "string" ? plain : JSON.stringify(plain) };
}

export function asText(part) {
  if (part.text !== undefined) return part.text;
  return part.bytes ? new TextDecoder().decode(part.bytes) : null;
}

export const asBytes = (part) => part.bytes ?? new TextEncoder().encode(part.text ?? "");

const HEX_BYTES_MAX = 4096;

// Returns lines of offset, sixteen bytes and their letters.
export function hexDump(all) {
  const lines = [];
  for (let at = 0; at < Math.min(all.length, HEX_BYTES_MAX); at += 16) {
    const row = all.subarray(at, at + 16);
    const pairs = Array.from(row, (byte) => two(byte.toString(16)));
    const letters = Array.from(row, (byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "."));
    lines.push(`${two(at.toString(16), 8)}  ${pairs.join(" ").padEnd(47)}  ${letters.join("")}`);
  }
  if (all.length > HEX_BYTES_MAX) lines.push(`… ${count(all.length - HEX_BYTES_MAX)} bytes more: download them`);
  return lines.join("\n");
}

// Returns JSON with indentation, its numbers as they were written (JSON.parse would round large
// ones); null if the text is no JSON.
export function prettyJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g) ?? [];
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, 40))}`;
  tokens.forEach((token, index) => {
    if (token === "{" || token === "[") {
      depth += 1;
      out += token;
      if (!"}]".includes(tokens[index + 1])) out += line();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      out += "{[".includes(tokens[index - 1]) ? token : line() + token;
    } else if (token === ",") out += token + line();
    else out += token === ":" ? ": " : token;
  });
  return out;
}

export const shortened = (text, most = 160) => (text.length > most ? `${text.slice(0, most)} …` : text);
