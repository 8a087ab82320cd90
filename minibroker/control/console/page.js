// One view on the screen: its head, what it polls and follows, its actions. It ends when another view comes.
import { ApiError, send, stream } from "./api.js";
import { alertBox, button, confirmed, el, notice, values } from "./dom.js";
import { equalLines } from "./equal.js";
import { visible } from "./values.js";

const RETRY_MS = 2000;
const SHARE = 10; // an answer that takes long is asked for less often
const WAIT_MS_MAX = 10_000;
const wait = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
});
const shownAgain = (signal) => new Promise((resolve) => {
  if (!document.hidden) resolve();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) resolve(); }, { signal });
  signal.addEventListener("abort", resolve, { once: true });
});

export class Page {
  constructor(main, name, parts, query) {
    this.main = main;
    this.name = name;
    this.parts = parts;
    this.query = query;
    this.isPaused = false;
    this.end = new AbortController();
    this.signal = this.end.signal;
    this.alert = alertBox();
    this.followed = new Set();
    this.looks = new Set();
  }

  leave() {
    this.end.abort();
    for (const dialog of document.querySelectorAll("dialog.of-view")) dialog.close("no");
  }

  // Shows a view: a function of this page.
  async run(view) {
    this.main.replaceChildren();
    this.main.classList.remove("gone");
    try {
      await view(this);
    } catch (error) {
      this.fail(error);
    }
  }

  // Begins the view: its title, a line above it, and buttons.
  head(title, { crumb, tools = [] } = {}) {
    document.title = `${visible(title)} · minibroker`;
    this.add(el("div", { class: "head" }, crumb && el("div", { class: "crumb" }, crumb),
      el("h1", { tabindex: "-1" }, el("bdi", {}, visible(title))), el("div", { class: "tools" }, tools)), this.alert.node);
  }

  add(...nodes) {
    if (!this.signal.aborted) this.main.append(...nodes.filter(Boolean));
  }

  fail(error) {
    if (error.name === "AbortError" || this.signal.aborted) return;
    if (!(error instanceof ApiError)) console.error(error);
    this.alert.show(error);
  }

  // Calls `look` now and again and again, while the page is looked at.
  async poll(look, everyMs = 2000) {
    while (!this.signal.aborted) {
      await shownAgain(this.signal);
      if (this.signal.aborted) return;
      const begin = performance.now();
      if (!this.isPaused) {
        const one = this.#lookAgain(look);
        this.looks.add(one);
        await one;
        this.looks.delete(one);
      }
      const pause = Math.min(SHARE * (performance.now() - begin), WAIT_MS_MAX);
      await wait(Math.max(everyMs, pause), this.signal);
    }
  }

  async #lookAgain(look) {
    try {
      await look();
      this.alert.hide();
      // It has come: all of the view is asked for again.
      if (!this.signal.aborted && this.main.classList.contains("gone")) dispatchEvent(new HashChangeEvent("hashchange"));
    } catch (error) {
      this.fail(error);
      // Nothing can be read of, or done to, a topic or a group that is not there. It may come yet.
      if (error.status === 404 && !this.signal.aborted) this.main.classList.add("gone");
    }
  }

  // Asks, and takes away what the view shows; then shows `next`. Nothing looks at it meanwhile.
  async remove(question, action, sentence, next) {
    if (!await this.ask(question, "Delete", action)) return;
    const wasPaused = this.isPaused;
    this.isPaused = true;
    await Promise.all(this.looks);
    if (await this.act(action, sentence)) location.hash = next;
    else this.isPaused = wasPaused;
  }

  // Follows a stream: on(event, value). It ends with the view, while it is paused, and while nobody
  // looks, if it is not `inBackground`. Returns a function that ends it.
  follow(path, query, on, { inBackground = false } = {}) {
    const whole = new AbortController();
    const over = AbortSignal.any([this.signal, whole.signal]);
    const one = { end: undefined, inBackground };
    this.followed.add(one);
    const look = () => { if (this.isPaused || (document.hidden && !inBackground)) one.end?.abort(); };
    document.addEventListener("visibilitychange", look, { signal: over });
    const run = async () => {
      while (!over.aborted) {
        if (!inBackground) await shownAgain(over);
        if (over.aborted) return;
        if (!this.isPaused) {
          one.end = new AbortController();
          try {
            await stream(path, query, AbortSignal.any([over, one.end.signal]), (name, value) => {
              this.alert.hide();
              if (name === "end") this.fail(new ApiError(0, `The stream ended: ${value.reason}`));
              else on(name, value);
            });
          } catch (error) {
            if (!over.aborted && !one.end.signal.aborted) this.fail(error);
            if (error.status === 404 || error.status === 400) return;
          }
        }
        await wait(RETRY_MS, over);
      }
    };
    run();
    return () => { this.followed.delete(one); whole.abort(); };
  }

  // Returns a button that stops what changes by itself.
  pauseButton() {
    const toggle = button("Pause", () => {
      this.isPaused = !this.isPaused;
      toggle.textContent = this.isPaused ? "Go on" : "Pause";
      toggle.setAttribute("aria-pressed", String(this.isPaused));
      if (this.isPaused) for (const one of this.followed) one.end?.abort();
    });
    toggle.setAttribute("aria-pressed", "false");
    return toggle;
  }

  // Does an action at once, shows its lines, and says so. Returns the answer, undefined on an error.
  async act(action, sentence) {
    try {
      const answer = await send(action.method, action.path + (action.query ? `?${new URLSearchParams(action.query)}` : ""), action.body);
      this.alert.hide();
      this.#last(action, sentence);
      notice(sentence);
      return answer ?? {};
    } catch (error) {
      this.fail(error);
      return undefined;
    }
  }

  // Does an action, and looks again at what it changed.
  async change(action, sentence, look) {
    if (!await this.act(action, sentence)) return;
    try {
      await look();
    } catch (error) {
      this.fail(error);
    }
  }

  // Asks first; the question shows the lines. Resolves to whether it is wanted.
  ask(question, verb, action) {
    return confirmed(question, verb, equalLines(action).node);
  }

  #last(action, sentence) {
    if (!this.last) {
      this.last = el("section", { class: "card", "aria-label": "Last action" });
      this.alert.node.after(this.last);
    }
    const lines = equalLines(action);
    lines.node.open = true;
    this.last.replaceChildren(el("strong", {}, visible(sentence)), lines.node);
  }

  // Returns a form for an action, with its lines below.
  // `make`: values of the fields → {method, path, query, body, test}; it may throw an Error.
  form(fields, { verb, make, done, kind = "main" }) {
    const alert = alertBox();
    const equal = equalLines();
    const submit = el("button", { class: kind, name: "submit" }, verb);
    const form = el("form", { autocomplete: "off" }, fields, el("div", { class: "row acts" }, submit), alert.node, equal.node);
    const show = () => {
      try {
        equal.show(make(values(form)));
        alert.hide();
      } catch (error) {
        alert.show(error);
      }
    };
    form.addEventListener("input", show);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const action = make(values(form));
        equal.show(action);
        const answer = await send(action.method, action.path + (action.query ? `?${new URLSearchParams(action.query)}` : ""), action.body);
        alert.hide();
        equal.node.open = true;
        await done(answer, form);
      } catch (error) {
        if (error.name !== "AbortError") alert.show(error);
      }
    });
    form.refresh = show;
    queueMicrotask(() => {
      try {
        equal.show(make(values(form)));
      } catch {
        equal.show({ path: "/" }); // a field is needed first
      }
    });
    return form;
  }

  // Ends the view with the lines of what it reads.
  equal(...actions) {
    const lines = equalLines(undefined, "These data from a shell or Python");
    lines.show(...actions);
    this.add(lines.node);
  }
}
