// Two editions side by side: what is kept, reworded, moved, split, merged, new and gone.
const KINDS = {
  kept: "kept", reworded: "reworded", moved: "moved", split: "split", merged: "merged", new: "new", gone: "gone",
};

function comparisonPage(client, data) {
  const chosen = new Set();
  const changes = data.changes ?? [];
  const body = element("ul", { className: "list", "aria-label": "Changes" });
  const rows = changes.map((change) => changeRow(client, change, page));

  function draw() {
    const visible = rows.filter((_, number) => !chosen.size || chosen.has(changes[number].kind));
    body.replaceChildren(...visible);
    if (!visible.length) body.append(element("li", { className: "muted" }, "The answer lists none of these; ask for them."));
  }

  function page() {
    show(
      element("p", { className: "text", dir: "auto" }, data.message ?? ""),
      element("div", { className: "row" }, ...kindToggles(data.counts ?? {}, KINDS, chosen, draw)),
      tasksOf(data.for_teacher ?? []),
      element("div", { className: "pair muted" }, element("span", { dir: "auto" }, data.left ?? ""), element("span", { dir: "auto" }, data.right ?? "")),
      body,
      statusLine());
  }

  draw();
  page();
}

function changeRow(client, change, page) {
  const side = (standards) => element("div", {}, ...standards.flatMap((standard) => [
    element("div", { className: "row" },
      button(standard.code ? codeText(standard) : "no code", () => openStandard(client, standard._id, page), { className: "plain code" }),
      element("span", { className: "muted" }, standard.grades ? `Grade ${standard.grades}` : "")),
    change.diff ? null : element("p", { className: "text", dir: "auto" }, standard.text)]).filter(Boolean),
    standards.length ? null : element("p", { className: "muted" }, "—"));
  const score = change.score === undefined ? "" : `, ${Math.round(change.score * 100)} %`;
  return element("li", { className: "card" },
    element("div", { className: "row" }, element("span", { className: "chip" }, KINDS[change.kind] ?? change.kind),
      element("span", { className: "muted" }, `${change.basis}${score}`)),
    element("div", { className: "pair" }, side(change.left), side(change.right)),
    change.diff ? marked(change.diff) : null);
}

const codeText = (standard) => shortCode({ statement_notation: standard.code });

function tasksOf(tasks) {
  if (!tasks.length) return null;
  const items = tasks.map((task) => element("li", {},
    element("span", { className: "chip" }, task.action), element("span", { className: "code" }, task.code),
    element("span", { className: "text muted", dir: "auto" }, task.why)));
  return element("details", {}, element("summary", {}, `What a teacher changes (${tasks.length})`),
    element("ul", { className: "tree" }, ...items));
}
