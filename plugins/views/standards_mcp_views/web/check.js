// A lesson with its codes marked, and what is wrong with each.
const STATUSES = {
  ok: "fits", misquoted: "other wording", wrong_grade: "wrong grade", wrong_subject: "wrong subject",
  other_jurisdiction: "other state", retired: "retired", unknown: "unknown", not_loaded: "not loaded",
};

function checkPage(client, data) {
  const codes = data.codes ?? [];
  const chosen = new Set();
  const list = element("ul", { className: "list", "aria-label": "Codes" });
  const cards = codes.map((code, number) => codeCard(client, code, number, page));
  const lesson = lessonOf(client.input?.text, codes);

  function draw() {
    const visible = codes.map((code, number) => [code, cards[number]]).filter(([code]) => !chosen.size || chosen.has(code.status));
    list.replaceChildren(...visible.map(([, node]) => node));
  }

  function page() {
    show(
      element("p", { className: "text", dir: "auto" }, data.message ?? ""),
      codes.length && element("div", { className: "row" }, ...kindToggles(data.counts ?? {}, STATUSES, chosen, draw)),
      lesson,
      codes.length ? list : null,
      suggestionList(client, data.suggestions ?? [], page),
      statusLine());
  }

  draw();
  page();
}

function codeCard(client, code, number, page) {
  const lookUp = (id) => openStandard(client, id, page);
  const name = code._id && client.capabilities.serverTools
    ? button(code.code ? shortCode({ statement_notation: code.code }) : code.written, () => lookUp(code._id), { className: "plain code" })
    : element("span", { className: "code" }, code.written);
  const nearest = (code.nearest ?? []).map((standard) => element("li", {},
    button(shortCode({ statement_notation: standard.code }), () => lookUp(standard._id), { className: "plain code" }),
    element("span", { className: "text muted", dir: "auto" }, standard.description)));
  return element("li", { className: "card", id: `code-${number}`, tabIndex: -1 },
    element("div", { className: "row" }, name,
      element("span", { className: `chip ${code.status === "ok" ? "good" : "bad"}` }, STATUSES[code.status] ?? code.status)),
    code.note && element("p", { className: "muted text", dir: "auto" }, code.note),
    code.diff ? marked(code.diff) : code.description && element("p", { className: "text", dir: "auto" }, code.description),
    nearest.length && element("div", {}, element("p", { className: "muted" }, "Perhaps meant:"), element("ul", { className: "tree" }, ...nearest)));
}

// The text of the lesson, if the client told it, with a button at each code.
function lessonOf(text, codes) {
  if (!text) return null;
  const marks = codes.flatMap((code, number) => [[code.start, code.end], ...(code.repeated ?? [])]
    .filter(([start, end]) => Number.isInteger(start) && end > start)
    .map(([start, end]) => ({ start, end, code, number })))
    .sort((a, b) => a.start - b.start);
  const characters = [...text];  // positions count characters, not units of UTF-16
  const nodes = [];
  let at = 0;
  for (const { start, end, code, number } of marks) {
    if (start < at) continue;
    nodes.push(characters.slice(at, start).join(""));
    const written = characters.slice(start, end).join("");
    nodes.push(button(written, () => document.querySelector(`#code-${number}`)?.focus(), {
      className: `mark ${code.status === "ok" ? "good" : "bad"}`, title: STATUSES[code.status] ?? code.status,
    }));
    at = end;
  }
  nodes.push(characters.slice(at).join(""));
  return element("details", { open: marks.length > 0 }, element("summary", {}, "The lesson"),
    element("div", { className: "lesson", dir: "auto" }, ...nodes));
}

function suggestionList(client, suggestions, page) {
  if (!suggestions.length) return null;
  const items = suggestions.map(({ passage, standards }) => element("li", { className: "card" },
    element("p", { className: "text muted", dir: "auto" }, passage),
    branch(standards.map((standard) => ({ ...standard, statement_notation: standard.code })), (id) => openStandard(client, id, page))));
  return element("section", {}, element("h2", {}, "Parts without a code"), element("ul", { className: "plain-list" }, ...items));
}
