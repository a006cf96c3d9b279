(() => {
  "use strict";
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  one("#theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.style.colorScheme
      ? root.style.colorScheme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.style.colorScheme = dark ? "light" : "dark";
  });

  const stage = one("#stage");
  if (!stage) return;
  const scripts = new Map(all("script[data-graph]").map((t) => [t.dataset.graph, t]));
  const drawings = new Map();
  const texts = new Map();
  const positions = new Map();
  let current = "", zoom = 1, hits = [], hit = -1;

  // a drawing is read when it is first needed
  const drawing = (id) => {
    if (!drawings.has(id)) {
      const read = document.createElement("template");
      read.innerHTML = scripts.get(id).textContent;
      drawings.set(id, document.adoptNode(one("svg", read.content)));
    }
    return drawings.get(id);
  };
  const info = (id) => scripts.get(id).dataset;
  const graphs = (side) => [...scripts.keys()].filter((id) => info(id).side === side);
  const graphOf = (vertex) => vertex.slice(0, vertex.lastIndexOf("-"));
  const size = (svg) => svg.viewBox.baseVal;
  const vertexOf = (id) => one(`#${CSS.escape(id)}`, drawing(graphOf(id)));

  const setZoom = (value, x = stage.clientWidth / 2, y = stage.clientHeight / 2) => {
    const svg = drawing(current), box = size(svg), rect = svg.getBoundingClientRect();
    const frame = stage.getBoundingClientRect();
    const px = (frame.left + x - rect.left) / zoom, py = (frame.top + y - rect.top) / zoom;
    zoom = Math.min(3, Math.max(0.005, value));
    svg.style.width = `${box.width * zoom}px`;
    svg.style.height = `${box.height * zoom}px`;
    svg.classList.toggle("far", zoom < 0.35);
    const moved = svg.getBoundingClientRect();
    stage.scrollLeft += moved.left + px * zoom - (frame.left + x);
    stage.scrollTop += moved.top + py * zoom - (frame.top + y);
  };

  const fit = () => {
    const box = size(drawing(current));
    setZoom(Math.min(stage.clientWidth / box.width, stage.clientHeight / box.height, 1));
  };

  const show = (id) => {
    if (id === current) return;
    if (current) positions.set(current, [stage.scrollLeft, stage.scrollTop, zoom]);
    current = id;
    const svg = drawing(id), side = info(id).side;
    stage.replaceChildren(svg);
    const [left, top, scale] = positions.get(id) || [-1, 0, 0];
    setZoom(scale || Math.min(1, Math.max(0.5, stage.clientWidth / size(svg).width)));
    const first = one("g.v", svg);
    stage.scrollTop = top;
    stage.scrollLeft = left >= 0 || !first ? left : middle(first)[0];
    all("[data-side]:not(script)").forEach((b) => b.setAttribute("aria-pressed", b.dataset.side === side));
    const options = graphs(side).map((key) => new Option(info(key).title, key, false, key === id));
    one("#graphs").replaceChildren(...options);
    one("#graphs").hidden = options.length < 2;
    const path = [];
    for (let key = id; key; key = info(key).parent) path.unshift(key);
    one("#path").replaceChildren(...path.flatMap((key, i) => {
      const step = document.createElement(key === id ? "span" : "button");
      step.textContent = info(key).title;
      step.dataset.open = key;
      return i ? [" › ", step] : [step];
    }));
  };

  // where to scroll so that a vertex is in the middle
  const middle = (vertex) => {
    const frame = stage.getBoundingClientRect(), rect = vertex.getBoundingClientRect();
    return [
      stage.scrollLeft + rect.left + rect.width / 2 - frame.left - stage.clientWidth / 2,
      stage.scrollTop + rect.top + rect.height / 2 - frame.top - stage.clientHeight / 2,
    ];
  };

  const go = (id) => {
    show(graphOf(id));
    const vertex = vertexOf(id);
    if (!vertex) return;
    if (zoom < 0.35) setZoom(0.8);
    stage.scrollTo(...middle(vertex));
    choose(vertex);
  };

  const choose = (vertex) => {
    for (const svg of drawings.values()) all(".chosen", svg).forEach((v) => v.classList.remove("chosen"));
    vertex.classList.add("chosen");
    const title = document.createElement("b"), text = document.createElement("pre");
    title.textContent = one("text.t", vertex).textContent;
    text.textContent = (one("title", vertex) || {}).textContent || "";
    const parts = [title, text];
    const sources = (vertex.dataset.from || "").split(" ").filter(Boolean);
    if (sources.length) {
      const from = document.createElement("div");
      from.className = "note";
      from.textContent = info(graphOf(sources[0])).side === "before" ? "It stands for:" : "Replaced by:";
      parts.push(from);
    }
    for (const source of sources) {
      const other = vertexOf(source);
      if (!other) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.go = source;
      button.textContent = `${one("text.t", other).textContent}: ${one("title", other).textContent.split("\n")[0]}`;
      parts.push(button);
    }
    one("#details").replaceChildren(...parts);
  };

  // the node, its operator and all its text
  const textsOf = (id) => {
    if (!texts.has(id)) texts.set(id, all("g.v", drawing(id)).map((v) => [v, one("text.t", v).textContent.toLowerCase(), v.textContent.toLowerCase()]));
    return texts.get(id);
  };

  // a word that is an operator selects its nodes, another one those that contain it
  const search = () => {
    if (!current) return;
    hits.forEach((v) => v.classList.remove("hit"));
    const words = one("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = words.length ? graphs(info(current).side).flatMap(textsOf) : [];
    const operators = new Set(rows.map(([, operator]) => operator));
    const found = (word, operator, text) => operators.has(word) ? operator === word : text.includes(word);
    hits = rows.filter(([, operator, text]) => words.every((w) => found(w, operator, text))).map(([v]) => v);
    hits.forEach((v) => v.classList.add("hit"));
    hit = -1;
    one("#found").textContent = words.length ? (hits.length === 1 ? "1 node" : `${hits.length} nodes`) : "";
  };

  const step = (by) => {
    if (!hits.length) return;
    hit = (hit + by + hits.length) % hits.length;
    go(hits[hit].id);
    one("#found").textContent = `${hit + 1} of ${hits.length}`;
  };

  one("#search").addEventListener("input", search);
  one("#search").addEventListener("keydown", (e) => { if (e.key === "Enter") step(e.shiftKey ? -1 : 1); });
  one("#next").addEventListener("click", () => step(1));
  one("#previous").addEventListener("click", () => step(-1));
  one("#in").addEventListener("click", () => setZoom(zoom * 1.3));
  one("#out").addEventListener("click", () => setZoom(zoom / 1.3));
  one("#whole").addEventListener("click", fit);
  one("#graphs").addEventListener("change", (e) => show(e.target.value));
  stage.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    const frame = stage.getBoundingClientRect();
    setZoom(zoom * Math.exp(-e.deltaY / 300), e.clientX - frame.left, e.clientY - frame.top);
  }, { passive: false });

  let drag = null, dragged = false;
  stage.addEventListener("pointerdown", (e) => {
    dragged = false;
    if (e.pointerType === "mouse" && e.button === 0) drag = [e.clientX, e.clientY, stage.scrollLeft, stage.scrollTop];
  });
  addEventListener("pointermove", (e) => {
    if (!drag) return;
    const [x, y, left, top] = drag;
    if (Math.hypot(e.clientX - x, e.clientY - y) > 4) dragged = true;
    if (!dragged) return;
    stage.classList.add("dragged");
    stage.scrollTo(left + x - e.clientX, top + y - e.clientY);
  });
  addEventListener("pointerup", () => { drag = null; stage.classList.remove("dragged"); });

  document.addEventListener("click", (e) => {
    const target = e.target.closest("[data-open], [data-go], [data-to], [data-side]:not(script), g.v");
    if (!target || (dragged && stage.contains(target))) return;
    const { open, go: place, to, side } = target.dataset;
    if (open && !scripts.has(open)) return;
    if (open) show(open);
    else if (place || to) go(place || to);
    else if (side) { show(graphs(side)[0]); search(); }
    else if (stage.contains(target)) choose(target);
  });

  // the page is shown first
  requestAnimationFrame(() => setTimeout(() => show(graphs("after")[0] || graphs("before")[0])));
})();
