// Filters the sections of a catalogue or the rows of a table: one shows when every field that is set accepts it.
// Sorts sections by name, by latency (the smallest first), by number of models (the largest first).
document.addEventListener("DOMContentLoaded", () => {
  const filters = document.querySelector(".filters");
  if (!filters) return;
  const fields = [...filters.querySelectorAll("[data-field]")];
  const order = filters.querySelector("[data-order]");
  const items = [...document.querySelectorAll("[data-text]")].map((holder) => ({
    data: holder.dataset,
    shown: holder.closest("section.rewrite, tr"),
  }));
  const keys = {
    name: (item) => items.indexOf(item),
    latency: (item) => parseFloat(item.data.latency || "Infinity"),
    models: (item) => -parseInt(item.data.models),
  };
  const accepts = (data, field) => {
    const value = field.value.trim(), name = field.dataset.field;
    if (!value) return true;
    if (name === "text") return data.text.includes(value.toLowerCase());
    return data[name].split(" ").includes(value);
  };
  const update = () => {
    let shown = 0;
    for (const item of items) {
      item.shown.hidden = !fields.every((field) => accepts(item.data, field));
      shown += !item.shown.hidden;
    }
    const count = filters.querySelector("output");
    count.textContent = `${shown} ${count.dataset.unit}`;
  };
  if (order && items.length) {
    const after = document.createComment("the patterns end here");
    items[items.length - 1].shown.after(after);
    order.addEventListener("input", () => {
      const key = keys[order.value];
      const sorted = [...items].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
      for (const item of sorted) after.before(item.shown);
    });
  }
  filters.addEventListener("input", update);
  update();
});
