// Words that were removed and added, from the marks [-removed-] and {+added+}.
function marked(diff) {
  const parts = diff.split(/(\[-[\s\S]*?-\]|\{\+[\s\S]*?\+\})/);
  const nodes = parts.filter(Boolean).map((part) => {
    if (part.startsWith("[-")) return element("del", {}, part.slice(2, -2));
    if (part.startsWith("{+")) return element("ins", {}, part.slice(2, -2));
    return part;
  });
  return element("p", { className: "text", dir: "auto" }, ...nodes);
}

// Toggles for the kinds of entries, each with its number; several may be on, none means all.
function kindToggles(counts, names, chosen, draw) {
  return Object.entries(counts).filter(([, count]) => count).map(([kind, count]) => {
    const toggle = button(`${names[kind] ?? kind} ${count}`, () => {
      if (!chosen.delete(kind)) chosen.add(kind);
      toggle.setAttribute("aria-pressed", String(chosen.has(kind)));
      draw();
    }, { "aria-pressed": String(chosen.has(kind)) });
    return toggle;
  });
}
