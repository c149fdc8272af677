// A piece of the answer: finished blocks, and then the tail, whose end is still raw text (see text_stream.py).
class Text {
  constructor(kind) {
    this.tail = "";
    this.fence = -1; // where the code of an open fence starts in the tail
    this.shown = 0; // how much of the tail `meanwhile` shows
    this.meanwhile = null;
    this.holder = null; // the element around `raw`, the text node with the rest
    this.raw = null;
    if (kind === "reasoning") {
      this.el = make("details", "zq-think");
      this.title = ours(make("summary", "", "Thinking…"));
      this.box = make("div", "zq-prose");
      this.el.append(this.title, this.box);
    } else {
      this.el = this.box = make("div", "zq-prose jp-RenderedHTMLCommon");
    }
  }
  append(text) {
    this.tail += text;
    if (this.raw) this.raw.appendData(text);
    else this.draw();
  }
  draw() {
    this.holder?.remove();
    this.holder = this.raw = null;
    const inFence = this.fence >= 0;
    const rest = this.tail.slice(inFence ? this.fence : this.shown);
    if (!inFence && !rest.trim()) return;
    this.raw = document.createTextNode(rest);
    const paragraph = this.meanwhile?.lastElementChild;
    if (inFence) {
      const code = make("code");
      code.append(this.raw);
      this.holder = make("pre", "zq-code");
      this.holder.append(code);
      this.box.append(this.holder);
    } else {
      const inside = paragraph?.tagName === "P"; // the paragraph goes on
      this.holder = make(inside ? "span" : "div", "zq-raw");
      this.holder.append(inside ? " " : "", this.raw);
      (inside ? paragraph : this.box).append(this.holder);
    }
  }
  take(units) {
    const source = this.tail.slice(0, units);
    this.tail = this.tail.slice(units);
    this.fence = -1;
    this.shown = 0;
    this.meanwhile?.remove();
    this.holder?.remove();
    this.meanwhile = this.holder = this.raw = null;
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
    const source = this.take(units).slice(from, to);
    const pre = make("pre", "zq-code");
    const code = make("code");
    let at = 0;
    for (let i = 0; i < runs.length; i += 2) {
      const piece = source.slice(at, at + runs[i]);
      code.append(runs[i + 1] ? make("span", runs[i + 1], piece) : piece);
      at += runs[i];
    }
    pre.append(code);
    this.add(pre);
  }
  openFence(from) {
    this.meanwhile?.remove();
    this.meanwhile = null;
    this.fence = from;
    this.draw();
  }
  between(units, html) {
    this.meanwhile?.remove();
    this.meanwhile = make("div");
    this.meanwhile.append(rendered(html));
    this.box.append(this.meanwhile);
    this.shown = units;
    this.draw();
  }
  all(html) {
    this.tail = "";
    this.take(0);
    this.box.replaceChildren();
    this.add(rendered(html));
  }
  end(words) {
    if (this.title && words) this.title.textContent = words;
  }
}
