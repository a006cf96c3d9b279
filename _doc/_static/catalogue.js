// Filters the patterns of the catalogue: a section shows when every field that is set accepts it.
document.addEventListener("DOMContentLoaded", () => {
  const filters = document.querySelector(".filters");
  if (!filters) return;
  const fields = [...filters.querySelectorAll("[data-field]")];
  const sections = [...document.querySelectorAll("section.rewrite")];
  const accepts = (data, field) => {
    const value = field.value.trim(), name = field.dataset.field;
    if (!value) return true;
    if (name === "text") return data.text.includes(value.toLowerCase());
    return data[name].split(" ").includes(value);
  };
  const update = () => {
    let shown = 0;
    for (const section of sections) {
      const data = section.querySelector("span[data-text]").dataset;
      section.hidden = !fields.every((field) => accepts(data, field));
      shown += !section.hidden;
    }
    filters.querySelector("output").textContent = `${shown} patterns`;
  };
  filters.addEventListener("input", update);
  update();
});
