// Filters the sections of a catalogue or the rows of a table: one shows when every field that is set accepts it.
document.addEventListener("DOMContentLoaded", () => {
  const filters = document.querySelector(".filters");
  if (!filters) return;
  const fields = [...filters.querySelectorAll("[data-field]")];
  const items = [...document.querySelectorAll("[data-text]")].map((holder) => ({
    data: holder.dataset,
    shown: holder.closest("section.rewrite, tr"),
  }));
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
  filters.addEventListener("input", update);
  update();
});
