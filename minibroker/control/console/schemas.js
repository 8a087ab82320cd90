// Schemas of the registry: subjects, their versions, compatibility, a new version.
import { get, mayChange, path } from "./api.js";
import { LiveTable, badge, button, data, el, facts, field, link, notice, section, select } from "./dom.js";
import { prettyJson, visible } from "./values.js";

const LEVELS = ["BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE"];

export async function schemas(page) {
  if (page.parts.length) return subject(page, page.parts[0]);
  page.head("Schemas");
  const level = el("div");
  if (mayChange()) page.add(el("details", { class: "adding" }, el("summary", {}, "Register a schema"), el("div", { class: "card" }, registration(page))));
  const table = new LiveTable("Subjects", [
    { label: "Subject", head: true, kind: "wide", text: (row) => row, node: (row) => link(row, "schemas", row) },
  ], { key: (row) => row, empty: "No schema yet." });
  page.add(level, table.node);
  page.equal({ path: "/registry/subjects" });
  page.poll(async () => {
    const [subjects, config] = await Promise.all([get("/registry/subjects", {}, { signal: page.signal }), get("/registry/config", {}, { signal: page.signal })]);
    table.update(subjects);
    level.replaceChildren(facts([["Compatibility", badge(config.compatibilityLevel)], ["Subjects", subjects.length]]));
  }, 4000);
}

async function subject(page, name) {
  const remove = () => page.remove(`Delete every version of ${name}?`, { method: "DELETE", path: path`/registry/subjects/${name}` }, `Subject ${name} is deleted.`, "#/schemas");
  page.head(name, { crumb: el("a", { href: "#/schemas" }, "Schemas"), tools: mayChange() ? [button("Delete …", remove, "danger")] : [] });
  const summary = el("div");
  const versions = select("version", []);
  const schema = el("pre", { tabindex: "0", "aria-label": "Schema" });
  page.add(summary, el("div", { class: "row" }, field("Version", versions)), schema);
  const show = async () => {
    try {
      const one = await get(path`/registry/subjects/${name}/versions/${versions.value}`, {}, { signal: page.signal });
      const config = await get(path`/registry/config/${name}`, { defaultToGlobal: true }, { signal: page.signal });
      summary.replaceChildren(facts([
        ["Id", one.id], ["Kind", one.schemaType ?? "AVRO"], ["Compatibility", badge(config.compatibilityLevel)],
        one.references?.length && ["References", data(one.references.map((reference) => reference.name).join(", "))],
      ]));
      schema.textContent = visible(prettyJson(one.schema) ?? one.schema);
    } catch (error) {
      page.fail(error);
    }
  };
  versions.addEventListener("change", show);
  const look = async () => {
    const numbers = await get(path`/registry/subjects/${name}/versions`, {}, { signal: page.signal });
    versions.replaceChildren(...numbers.map((number) => el("option", { value: number }, number)));
    versions.value = numbers.at(-1);
    await show();
  };
  if (mayChange()) {
    page.add(section("Compatibility", el("div", { class: "card" }, page.form([el("div", { class: "row" }, field("Level", select("level", LEVELS)))], {
      verb: "Set level",
      make: ({ level }) => ({ method: "PUT", path: path`/registry/config/${name}`, body: { compatibility: level } }),
      done: async () => { notice("The level is set."); await show(); },
    }))), section("New version", el("div", { class: "card" }, registration(page, name, look))));
  }
  page.equal({ path: path`/registry/subjects/${name}/versions/latest` });
  await look();
}

function registration(page, subjectName, done) {
  return page.form([
    el("div", { class: "row" },
      subjectName === undefined ? field("Subject", el("input", { name: "subject", type: "text", required: true, placeholder: "orders-value" })) : null,
      field("Kind", select("kind", ["AVRO", "JSON", "PROTOBUF"]))),
    field("Schema", el("textarea", { name: "schema", rows: 6, required: true, spellcheck: "false" })),
  ], {
    verb: "Register",
    make: ({ subject: chosen = "", kind, schema = "" }) => ({
      method: "POST", path: path`/registry/subjects/${subjectName ?? chosen}/versions`,
      body: kind === "AVRO" ? { schema } : { schema, schemaType: kind },
    }),
    done: async (answer) => {
      notice(`The schema has id ${answer.id}.`);
      await done?.();
    },
  });
}
