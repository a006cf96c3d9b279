// Opens the site of another version. The list of the published site has the versions that came later.
document.addEventListener("DOMContentLoaded", async () => {
  const select = document.querySelector("select[data-versions]");
  if (!select) return;
  select.addEventListener("change", () => { window.location.href = select.value; });
  if (!window.location.href.startsWith(new URL(".", select.dataset.versions).href)) return;
  const answer = await fetch(select.dataset.versions);
  if (!answer.ok) return;
  const options = (await answer.json()).map(({ version, url }) =>
    new Option(version, url, false, version === select.dataset.version));
  select.replaceChildren(...options);
});
