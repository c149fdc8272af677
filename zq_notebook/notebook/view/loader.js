// Fetches the code that draws the cell, once per page and version, and hands over to it.
async function load(model) {
  const { code, style } = await new Promise((resolve) => {
    const take = (message) => {
      if (!message.code) return;
      model.off("msg:custom", take);
      resolve(message);
    };
    model.on("msg:custom", take);
    model.send({ t: "code" });
  });
  if (globalThis["KEY"]) return;
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const module = await import(url);
  URL.revokeObjectURL(url);
  const sheet = document.createElement("style");
  sheet.textContent = style;
  document.head.append(sheet);
  globalThis["KEY"] = module.default;
}

export default {
  async render(context) {
    if (!globalThis["KEY"]) await load(context.model);
    return globalThis["KEY"].render(context);
  },
};
