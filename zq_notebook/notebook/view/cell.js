// The running %%agent cell. Python sends numbered messages of small operations (see cell_stream.py and text_stream.py);
// this draws them, and says "ready", "resync", "stop" and "answer". Only what Python rendered reaches innerHTML.

const PAGE = Math.random().toString(36).slice(2);
const WIDGET_VIEW = "application/vnd.jupyter.widget-view+json";
const FOLLOW_AFTER_MS = 1500;

// While code of the agent keeps the kernel's main thread busy, a widget message waits behind it; the control channel does
// not. The managers of JupyterLab and Notebook 7 know their kernel; elsewhere only the widget message is sent.
function stopByControl(model) {
  const kernel = model.widget_manager?.kernel;
  if (!kernel?.sendControlMessage) return;
  const header = {
    msg_id: crypto.randomUUID?.() ?? `${PAGE}-${Math.random().toString(36).slice(2)}`,
    msg_type: "zq_stop",
    session: kernel.clientId,
    username: kernel.username ?? "",
    date: new Date().toISOString(),
    version: "5.3",
  };
  const message = { header, parent_header: {}, metadata: {}, content: {}, buffers: [], channel: "control" };
  kernel.sendControlMessage(message, false, true);
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
      stopByControl(this.model);
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
