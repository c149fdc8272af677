// Small things that the other parts of the cell use. The four cell_*.js files are one module, put together by widget.py.

// When the user last did something that a moving page would disturb; answering us or running a cell would not be.
let lastInput = 0;
function noteInput(event) {
  const runs = event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey);
  if (!runs && !event.target.closest?.(".zq-btn, .zq-row")) lastInput = performance.now();
}
for (const kind of ["keydown", "wheel", "pointerdown", "touchmove"]) {
  document.addEventListener(kind, noteInput, { capture: true, passive: true });
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
