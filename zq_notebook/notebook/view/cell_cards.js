const GUARD_MS = 300; // a card that appears under a typing or clicking user ignores them for this long
const LATE_MS = 10000;
const OPEN_AFTER_MS = 400; // quick tools do not flicker open and shut

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
