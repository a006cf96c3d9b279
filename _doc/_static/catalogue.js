// Filters the patterns of the catalogue: a section shows when every field that is set accepts it.
// Sorts them by name, by latency (the smallest first), by number of models (the largest first).
document.addEventListener("DOMContentLoaded", () => {
  const filters = document.querySelector(".filters");
  if (!filters) return;
  const fields = [...filters.querySelectorAll("[data-field]")];
  const order = filters.querySelector("[data-order]");
  const sections = [...document.querySelectorAll("section.rewrite")];
  const data = new Map(sections.map((s) => [s, s.querySelector("span[data-text]").dataset]));
  const keys = {
    name: (section) => sections.indexOf(section),
    latency: (section) => parseFloat(data.get(section).latency || "Infinity"),
    models: (section) => -parseInt(data.get(section).models),
  };
  const after = document.createComment("the patterns end here");
  if (sections.length) sections[sections.length - 1].after(after);
  const accepts = (known, field) => {
    const value = field.value.trim(), name = field.dataset.field;
    if (!value) return true;
    if (name === "text") return known.text.includes(value.toLowerCase());
    return known[name].split(" ").includes(value);
  };
  const update = () => {
    let shown = 0;
    for (const section of sections) {
      section.hidden = !fields.every((field) => accepts(data.get(section), field));
      shown += !section.hidden;
    }
    filters.querySelector("output").textContent = `${shown} patterns`;
  };
  order.addEventListener("input", () => {
    const key = keys[order.value];
    const sorted = [...sections].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
    for (const section of sorted) after.before(section);
  });
  filters.addEventListener("input", update);
  update();
});
