// The running %%agent cell. Python sends numbered messages of small operations (see cell_stream.py and text_stream.py);
// this draws them, and says "ready", "resync", "stop", "answer" and "pong". Only what Python rendered reaches innerHTML.

const PAGE = Math.random().toString(36).slice(2);
const WIDGET_VIEW = "application/vnd.jupyter.widget-view+json";
const GUARD_MS = 300; // a card that appears under a typing or clicking user ignores them for this long
const LATE_MS = 10000;
const OPEN_AFTER_MS = 400; // quick tools do not flicker open and shut
const FOLLOW_AFTER_MS = 1500;

let lastInput = 0;
for (const kind of ["keydown", "wheel", "pointerdown", "touchmove"]) {
  document.addEventListener(kind, () => (lastInput = performance.now()), { capture: true, passive: true });
}

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function ours(node) {
  node.setAttribute("data-lm-suppress-shortcuts", "true");
  return node;
}

function button(text, className, onClick) {
  const node = ours(make("button", `zq-btn ${className}`, text));
  node.type = "button";
  node.addEventListener("click", onClick);
  return node;
}

// "Allow `run_code` to …": backticks become <code>.
function quoted(node, text) {
  text.split("`").forEach((piece, index) => {
    if (piece) node.append(index % 2 ? make("code", "", piece) : piece);
  });
  return node;
}

// HTML from Python. Formulas are typeset in the finished transcript; until then they stand without their delimiters.
function rendered(html) {
  const holder = make("template");
  holder.innerHTML = html;
  for (const node of holder.content.querySelectorAll(".zq-math")) node.textContent = node.textContent.slice(2, -2);
  return holder.content;
}

function phrase(words) {
  const node = make("span");
  for (const [text, how] of words) node.append(how ? make(how === "b" ? "strong" : "code", "", text) : text);
  return node;
}

function clock(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const two = (n) => String(n).padStart(2, "0");
  const m = Math.floor(s / 60);
  return m < 60 ? `${m}:${two(s % 60)}` : `${Math.floor(m / 60)}:${two(m % 60)}:${two(s % 60)}`;
}

function scroller(node) {
  for (let at = node.parentElement; at; at = at.parentElement) {
    const flow = getComputedStyle(at).overflowY;
    if ((flow === "auto" || flow === "scroll") && at.scrollHeight > at.clientHeight + 1) return at;
  }
  return document.scrollingElement;
}

// A piece of the answer: finished blocks, then the tail that is still raw (all of it, or what follows `~`'s rendering).
class Text {
  constructor(kind) {
    this.tail = "";
    this.fence = -1;
    this.shown = 0;
    if (kind === "reasoning") {
      this.el = make("details", "zq-think");
      this.title = ours(make("summary", "", "Thinking…"));
      this.box = make("div", "zq-prose");
      this.el.append(this.title, this.box);
    } else {
      this.el = this.box = make("div", "zq-prose jp-RenderedHTMLCommon");
    }
    this.raw = make("div", "zq-raw");
    this.text = document.createTextNode("");
    this.raw.append(this.text);
    this.meanwhile = null;
    this.code = null;
  }
  append(text) {
    this.tail += text;
    if (this.code) this.code.lastChild.appendData(text);
    else if (this.raw.isConnected || this.raw.parentNode) this.text.appendData(text);
    else this.draw();
  }
  draw() {
    // Show the tail anew: as an open fence, or rendered up to `shown` with the rest as it is.
    this.code?.parentNode?.remove();
    this.code = null;
    if (this.fence >= 0) {
      this.raw.remove();
      const pre = make("pre", "zq-code");
      this.code = make("code", "", this.tail.slice(this.fence));
      if (!this.code.lastChild) this.code.append("");
      if (!this.code.lastChild) this.code.append(document.createTextNode(""));
      pre.append(this.code);
      this.box.append(pre);
      return;
    }
    this.text.data = this.tail.slice(this.shown);
    if (this.meanwhile && this.text.data.trim().length && this.meanwhile.lastElementChild?.tagName === "P") {
      this.raw.remove();
      const inline = make("span", "zq-raw");
      inline.append(this.text);
      this.meanwhile.lastElementChild.append(this.meanwhile.dataset.gap || "", inline);
      this.raw = inline;
    } else if (this.tail.slice(this.shown).trim()) {
      if (this.raw.tagName === "SPAN") {
        this.raw = make("div", "zq-raw");
        this.raw.append(this.text);
      }
      this.box.append(this.raw);
    } else {
      this.raw.remove();
    }
  }
  take(units) {
    const source = this.tail.slice(0, units);
    this.tail = this.tail.slice(units);
    this.fence = -1;
    this.shown = 0;
    this.meanwhile?.remove();
    this.meanwhile = null;
    this.raw.remove();
    this.raw = make("div", "zq-raw");
    this.raw.append(this.text);
    this.code?.parentNode?.remove();
    this.code = null;
    return source;
  }
  add(node) {
    this.box.append(node);
    this.draw();
  }
  paragraph(units) {
    this.add(make("p", "", this.take(units).trim()));
  }
  html(units, html) {
    this.take(units);
    this.add(rendered(html));
  }
  coloured(units, from, to, runs) {
    const code = this.take(units).slice(from, to);
    const pre = make("pre", "zq-code");
    const inner = make("code");
    let at = 0;
    for (let i = 0; i < runs.length; i += 2) {
      const piece = code.slice(at, at + runs[i]);
      inner.append(runs[i + 1] ? make("span", runs[i + 1], piece) : piece);
      at += runs[i];
    }
    pre.append(inner);
    this.add(pre);
  }
  openFence(from) {
    this.fence = from;
    this.meanwhile?.remove();
    this.meanwhile = null;
    this.draw();
  }
  between(units, html) {
    this.meanwhile?.remove();
    this.meanwhile = make("div", "zq-meanwhile");
    this.meanwhile.append(rendered(html));
    this.meanwhile.dataset.gap = /\s$/.test(this.tail.slice(0, units)) ? " " : "";
    this.shown = units;
    this.raw.remove();
    this.box.append(this.meanwhile);
    this.draw();
  }
  all(html) {
    this.box.replaceChildren();
    this.tail = "";
    this.take(0);
    this.add(rendered(html));
  }
  end(words) {
    if (this.title && words) {
      this.title.textContent = words;
      this.el.dataset.ended = "";
    }
  }
}

// One line per call; open while it runs or when it failed, and otherwise as the user left it.
class Tool {
  constructor() {
    this.el = make("div");
    this.card = make("details", "zq-tool");
    this.line = ours(make("summary", "zq-line"));
    this.mark = make("span", "zq-mark");
    this.mark.setAttribute("role", "img");
    this.name = make("code");
    this.arg = make("span", "zq-arg");
    this.sum = make("span", "zq-sum");
    this.body = make("div", "zq-body");
    this.images = make("div");
    this.line.append(this.mark, this.name, this.arg, this.sum);
    this.card.append(this.line);
    this.el.append(this.card, this.images);
    this.data = {};
    this.touched = false;
    this.line.addEventListener("click", (event) => {
      if (!this.data.body) event.preventDefault();
      else this.touched = true;
    });
  }
  update(changes, quiet) {
    Object.assign(this.data, changes);
    const data = this.data;
    if ("status" in changes) {
      this.card.className = `zq-tool zq-${data.status}`;
      this.startedAt = performance.now();
      if (!this.touched) {
        clearTimeout(this.opening);
        this.card.open = data.status === "error";
        if (data.status === "running") {
          if (quiet) this.card.open = true;
          else this.opening = setTimeout(() => (this.card.open ||= !this.touched), OPEN_AFTER_MS);
        }
      }
    }
    this.mark.textContent = data.mark;
    this.mark.setAttribute("aria-label", data.state);
    this.name.textContent = data.name;
    this.arg.textContent = data.arg;
    this.arg.title = data.arg;
    if ("body" in changes) {
      this.body.innerHTML = data.body;
      if (data.body) this.card.append(this.body);
      else this.body.remove();
    }
    this.card.classList.toggle("zq-flat", !data.body);
    if (data.body) this.line.removeAttribute("tabindex");
    else this.line.tabIndex = -1;
    if ("images" in changes) this.images.innerHTML = data.images;
    this.tick();
  }
  tick() {
    let words = this.data.words;
    if (this.data.status === "running") {
      const seconds = (performance.now() - this.startedAt) / 1000;
      if (seconds >= 1) words += ` · ${seconds < 60 ? `${Math.floor(seconds)} s` : clock(seconds)}`;
    }
    if (this.sum.textContent !== words) {
      this.sum.textContent = words;
      this.sum.title = words;
    }
  }
}

// An approval. Its buttons are real buttons in reading order; nothing it does is a default that a stray key can hit.
class Ask {
  constructor(data, send) {
    this.data = data;
    this.send = send;
    this.from = performance.now();
    this.el = ours(make("section", "zq-ask"));
    this.el.tabIndex = -1;
    const title = quoted(make("div", "zq-ask-title"), data.title);
    title.id = `zq-${Math.random().toString(36).slice(2)}`;
    this.el.setAttribute("role", "group");
    this.el.setAttribute("aria-labelledby", title.id);
    const why = make("div", "zq-ask-why");
    why.append(quoted(make("div"), data.why));
    if (data.reason) why.append(make("div", "", `Asked because: ${data.reason}`));
    this.el.append(title, why, ...data.parts.map((part) => this.box(part)));
    this.row = make("div", "zq-row");
    this.buttons = data.buttons.map(([outcome, text], index) =>
      button(text, index ? "" : "zq-main", (event) => this.answer(outcome, event.currentTarget))
    );
    this.deny = button("Deny", "zq-deny", () => this.answer("deny", this.deny));
    this.reason = make("input");
    this.reason.type = "text";
    this.reason.placeholder = "Reason (optional)";
    this.reason.setAttribute("aria-label", "Reason for denying (optional)");
    this.reason.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) this.answer("deny", this.deny);
    });
    this.buttons.push(this.deny);
    this.row.append(...this.buttons, this.reason);
    this.el.append(this.row);
    this.el.dataset.guarded = "";
    setTimeout(() => delete this.el.dataset.guarded, GUARD_MS);
    // What is pressed or clicked in the first moment was meant for something else.
    for (const kind of ["click", "keydown", "keyup", "keypress", "beforeinput"]) {
      this.el.addEventListener(kind, (event) => this.guard(event), { capture: true });
    }
  }
  guard(event) {
    // A reason that is being typed does nothing by itself, and must arrive whole.
    if (event.target === this.reason && event.key !== "Enter") return;
    if (performance.now() - this.from < GUARD_MS) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  }
  box(part) {
    const box = make("div", "zq-box");
    box.innerHTML = part.html;
    const pre = box.querySelector("pre");
    const note = make("div", "zq-box-note");
    box.append(note);
    if (pre) {
      pre.tabIndex = 0;
      const lines = part.lines === 1 ? "1 line" : `${part.lines} lines`;
      const look = () => {
        const scrolls = pre.scrollHeight > pre.clientHeight + 2;
        box.classList.toggle("zq-scrolls", scrolls);
        note.textContent = scrolls ? `${lines}; scroll in the box to see them all` : part.lines > 3 ? lines : "";
        note.hidden = !note.textContent;
        pre.setAttribute("aria-label", scrolls ? `${lines}, scrolls` : lines);
      };
      this.watch = new ResizeObserver(look);
      this.watch.observe(pre);
      note.hidden = true;
    }
    return box;
  }
  answer(outcome, pressed) {
    this.hadFocus = this.el.contains(document.activeElement);
    for (const node of this.buttons) node.disabled = true;
    this.reason.disabled = true;
    this.words = pressed.textContent;
    pressed.textContent = "…";
    pressed.setAttribute("aria-label", `${this.words}, sent`);
    const reason = outcome === "deny" ? this.reason.value : "";
    this.send({ t: "answer", call: this.data.call, outcome, reason });
    this.late = setTimeout(() => {
      pressed.textContent = this.words;
      pressed.removeAttribute("aria-label");
      for (const node of this.buttons) node.disabled = false;
      this.reason.disabled = false;
      if (!this.lateNote) this.row.append((this.lateNote = make("div", "zq-late")));
      this.lateNote.textContent = "The kernel has not taken the answer yet. You can send it again.";
    }, LATE_MS);
  }
  close() {
    clearTimeout(this.late);
    this.watch?.disconnect();
    this.el.remove();
  }
}

class Cell {
  constructor(model, host) {
    this.model = model;
    this.host = host;
    this.view = Math.random().toString(36).slice(2);
    this.expected = -1; // nothing is drawn before the first snapshot
    this.items = new Map();
    this.asks = new Map();
    this.el = make("div", "zq zq-live");
    this.el.setAttribute("role", "group");
    this.el.setAttribute("aria-label", "Agent");
    this.head = make("div", "zq-head");
    this.facts = make("div", "zq-facts");
    this.stop = button("Stop", "zq-stop", () => {
      // Not "disabled": that would take the keyboard focus away from whoever pressed it.
      if (this.stop.getAttribute("aria-disabled")) return;
      this.stop.setAttribute("aria-disabled", "true");
      this.stop.textContent = "Stopping…";
      this.send({ t: "stop" });
    });
    this.stop.hidden = true;
    this.head.append(this.facts, this.stop);
    this.status = make("div", "zq-sr");
    this.status.setAttribute("role", "status");
    this.list = make("div", "zq-list");
    this.foot = make("div", "zq-foot");
    this.foot.hidden = true;
    this.el.append(this.head, this.status, this.list, this.foot);
    host.append(this.el);
    // Keys pressed in here are for us: JupyterLab would move the focus back to its editor, or run a command.
    for (const kind of ["keydown", "keypress", "keyup"]) this.el.addEventListener(kind, (e) => this.key(e));
    this.onMessage = (message) => this.message(message);
    this.onGone = () => this.checkLive();
    model.on("msg:custom", this.onMessage);
    model.on("comm:close", this.onGone);
    model.on("comm_live_update", this.onGone);
    this.timer = setInterval(() => this.tick(), 250);
    this.send({ t: "ready", view: this.view, page: PAGE });
  }
  destroy() {
    clearInterval(this.timer);
    this.model.off("msg:custom", this.onMessage);
    this.model.off("comm:close", this.onGone);
    this.model.off("comm_live_update", this.onGone);
    for (const ask of this.asks.values()) ask.close();
  }
  send(content) {
    try {
      this.model.send(content);
    } catch {
      this.gone();
    }
  }
  key(event) {
    event.stopPropagation();
    if ((event.ctrlKey || event.metaKey) && event.key === "s") event.preventDefault();
  }
  message(message) {
    if (message.ping) return this.send({ t: "pong", token: message.ping });
    if (message.final) return this.keep(message);
    if (message.code) return undefined;
    if (message.to !== undefined) {
      if (message.to !== this.view) return undefined;
      this.modelId = message.model;
      this.expected = message.last ? message.n + 1 : -1;
    } else {
      if (this.expected < 0 || message.n < this.expected) return undefined;
      if (message.n > this.expected) return this.resync();
      this.expected += 1;
    }
    const follow = this.atEnd();
    try {
      for (const op of message.o) this.apply(op, message.to !== undefined);
    } catch (error) {
      console.error("zq_notebook", error);
      if (message.to === undefined) return this.resync();
    }
    if (follow) this.follow();
    return undefined;
  }
  resync() {
    this.expected = -1;
    this.send({ t: "resync", view: this.view, page: PAGE });
  }
  apply([what, id, ...rest], quiet) {
    const item = this.items.get(id);
    switch (what) {
      case "+": return item.append(rest[0]);
      case "p": return item.paragraph(rest[0]);
      case "h": return item.html(rest[0], rest[1]);
      case "c": return item.coloured(...rest);
      case "f": return item.openFence(rest[0]);
      case "~": return item.between(rest[0], rest[1]);
      case "r": return item.all(rest[0]);
      case "end": return item.end(rest[0]);
      case "item": return this.put(id, new Text(rest[0]));
      case "tool": return (item ?? this.put(id, new Tool())).update(rest[0], quiet);
      case "note": return this.put(id, { el: make("p", `zq-notice zq-${rest[0]}`, rest[1]) });
      case "del": item.el.remove(); return this.items.delete(id);
      case "ask": return this.ask(id, item, rest[0], quiet);
      case "answered": return this.answered(id, item);
      case "head": return this.drawHead(id);
      case "foot": return this.drawFoot(id);
      case "say": return (this.status.textContent = id);
      case "reset": return this.reset();
      default: return undefined;
    }
  }
  put(id, item) {
    this.items.set(id, item);
    this.list.append(item.el);
    return item;
  }
  reset() {
    for (const ask of this.asks.values()) ask.close();
    this.asks.clear();
    this.items.clear();
    this.list.replaceChildren();
  }
  ask(id, item, data, quiet) {
    const here = this.hasFocus();
    const ask = new Ask(data, (content) => this.send(content));
    this.asks.set(id, ask);
    item.card.hidden = true;
    item.el.append(ask.el);
    if (here && !quiet) ask.el.focus({ preventScroll: true });
  }
  answered(id, item) {
    const ask = this.asks.get(id);
    if (!ask) return;
    const at = document.activeElement;
    const here = ask.el.contains(at) || (ask.hadFocus && (!at || at === document.body));
    ask.close();
    this.asks.delete(id);
    item.card.hidden = false;
    if (here) item.line.focus({ preventScroll: true });
  }
  hasFocus() {
    const output = this.host.closest(".jp-OutputArea, .output_area, .cell-output") ?? this.host;
    return output.contains(document.activeElement);
  }
  drawHead(head) {
    this.state = head.state;
    this.startedAt = performance.now() - head.elapsed * 1000;
    this.head.dataset.state = head.state;
    const dot = make("span", "zq-dot");
    dot.setAttribute("role", "img");
    dot.setAttribute("aria-label", head.state);
    this.clock = make("span");
    const facts = [dot, ...head.words.map(phrase), this.clock, ...head.usage.map((words) => make("span", "", words))];
    if (head.state === "waiting for you") facts.push(make("span", "zq-state", "waiting for you"));
    this.facts.replaceChildren(...facts);
    this.stop.hidden = head.state === "done";
    this.tick();
  }
  drawFoot(foot) {
    this.foot.replaceChildren(...foot.left.map(phrase));
    if (foot.right.length) this.foot.append(make("span", "zq-used", foot.right.join(" · ")));
    this.foot.hidden = false;
  }
  tick() {
    if (this.state === "done" || this.state === "gone" || !this.clock) return;
    const time = clock((performance.now() - this.startedAt) / 1000);
    if (this.clock.textContent !== time) this.clock.textContent = time;
    for (const item of this.items.values()) item.tick?.();
  }
  // A page that was reloaded while the cell ran no longer receives updates of the cell's outputs; the transcript that
  // is to stay goes into its document from here.
  keep({ final, model, first }) {
    if (first === PAGE) return;
    for (const cell of this.model.widget_manager?.context?.model?.cells ?? []) {
      const outputs = cell.outputs;
      for (let at = 0; outputs && at < outputs.length; at++) {
        if (outputs.get(at).data?.[WIDGET_VIEW]?.model_id === model) {
          outputs.set(at, { output_type: "display_data", data: final, metadata: {} });
        }
      }
    }
  }
  async checkLive() {
    try {
      const model = await this.model.widget_manager.get_model(this.modelId);
      if (model.comm_live === false) this.gone();
    } catch {
      this.gone();
    }
  }
  gone() {
    if (this.state === "done" || this.state === "gone") return;
    this.state = this.head.dataset.state = "gone";
    this.stop.hidden = true;
    this.facts.append(make("span", "zq-state", "the kernel is gone"));
    for (const node of this.el.querySelectorAll(".zq-ask button, .zq-ask input")) node.disabled = true;
  }
  // Follow the end of the answer only while its end is in view and nobody is typing, scrolling or clicking.
  atEnd() {
    if (!this.el.isConnected || performance.now() - lastInput < FOLLOW_AFTER_MS) return null;
    const box = scroller(this.el);
    if (!box) return null;
    const bottom = box === document.scrollingElement ? innerHeight : box.getBoundingClientRect().bottom;
    return this.el.getBoundingClientRect().bottom <= bottom + 8 ? box : null;
  }
  follow() {
    const box = scroller(this.el);
    if (!box) return;
    const bottom = box === document.scrollingElement ? innerHeight : box.getBoundingClientRect().bottom;
    const over = this.el.getBoundingClientRect().bottom - bottom + 12;
    if (over > 0) box.scrollTop += over;
  }
}

export default {
  render({ model, el }) {
    const cell = new Cell(model, el);
    return () => cell.destroy();
  },
};
