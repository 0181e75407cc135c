// Search over the headings of all pages; the index is loaded on first use.
(() => {
  const MOST = 12;
  const WEIGHTS = { title: 6, heading: 8, body: 1 };
  const EXACT = 50;
  const root = document.body.dataset.root;
  const form = document.querySelector("form.search");
  const field = form.querySelector("input");
  const list = form.querySelector("ol");
  const status = form.querySelector("[role=status]");
  let index = null;

  const load = () => new Promise((done) => {
    const script = document.createElement("script");
    script.src = `${root}search-index.js`;
    script.onload = () => {
      index = globalThis.keptSearchIndex.map(([address, name, title, heading, body]) => ({
        address, name, title, heading, body,
        low: { title: title.toLowerCase(), heading: heading.toLowerCase(), body: body.toLowerCase() },
      }));
      done();
    };
    document.head.append(script);
  });

  const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}_.-]+/gu) ?? [];

  // Every word must occur somewhere in a row; a word in its heading counts most.
  const weigh = (row, asked) => {
    let sum = row.low.heading === asked.join(" ") ? EXACT : 0;
    for (const word of asked) {
      let best = 0;
      for (const [part, weight] of Object.entries(WEIGHTS)) {
        const at = row.low[part].indexOf(word);
        if (at < 0) continue;
        const begins = at === 0 || !/[\p{L}\p{N}]/u.test(row.low[part][at - 1]);
        best += begins ? weight * 2 : weight;
      }
      if (!best) return 0;
      sum += best;
    }
    return sum;
  };

  const snippet = (row, asked) => {
    const at = Math.max(0, Math.min(...asked.map((w) => row.low.body.indexOf(w)).filter((i) => i >= 0), row.body.length) - 40);
    const start = at >= row.body.length ? 0 : at;
    return (start ? "…" : "") + row.body.slice(start, start + 150) + (row.body.length > start + 150 ? "…" : "");
  };

  const marked = (text, asked) => {
    const parts = document.createDocumentFragment();
    const spelled = asked.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
    text.split(new RegExp(`(${spelled})`, "giu")).forEach((piece, place) => {
      if (place % 2 === 0) return parts.append(piece);
      const mark = document.createElement("mark");
      mark.textContent = piece;
      parts.append(mark);
    });
    return parts;
  };

  const item = (row, asked) => {
    const link = document.createElement("a");
    link.href = `${root}${row.address}#${row.name}`;
    const where = document.createElement("strong");
    where.append(marked(row.heading === row.title ? row.title : `${row.title}: ${row.heading}`, asked));
    const text = document.createElement("span");
    text.append(marked(snippet(row, asked), asked));
    link.append(where, text);
    const entry = document.createElement("li");
    entry.append(link);
    return entry;
  };

  const close = () => {
    list.hidden = true;
    list.replaceChildren();
    status.textContent = "";
  };

  const show = async () => {
    const asked = [...new Set(words(field.value))];
    if (!asked.length) return close();
    if (!index) await load();
    const found = index
      .map((row, place) => ({ row, place, weight: weigh(row, asked) }))
      .filter(({ weight }) => weight > 0)
      .sort((a, b) => b.weight - a.weight || a.place - b.place);
    const nothing = document.createElement("li");
    nothing.className = "nothing";
    nothing.textContent = "Nothing found.";
    list.replaceChildren(...(found.length ? found.slice(0, MOST).map(({ row }) => item(row, asked)) : [nothing]));
    list.hidden = false;
    status.textContent = found.length ? `${found.length} found` : "Nothing found";
  };

  field.addEventListener("input", show);
  field.addEventListener("focus", () => { if (field.value) show(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });

  form.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")];
    const here = links.indexOf(document.activeElement);
    if (event.key === "Escape") {
      close();
      field.focus();
    } else if (event.key === "ArrowDown" && links.length) {
      event.preventDefault();
      links[Math.min(here + 1, links.length - 1)].focus();
    } else if (event.key === "ArrowUp" && here >= 0) {
      event.preventDefault();
      (here ? links[here - 1] : field).focus();
    }
  });

  document.addEventListener("keydown", (event) => {
    const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
    }
  });
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) close(); });

  form.hidden = false;
})();
