// The results of a search: cards to read, filter, choose and take along.
function resultsPage(client, data) {
  const shared = Object.fromEntries(Object.entries(data).filter(([name]) => !["results", "success", "message"].includes(name)));
  const results = (data.results ?? []).map((result) => ({ ...shared, ...result }));
  if (!results.length) return show(notice(data.message || "No standards match."));
  const state = { results, chosen: new Set(), filter: "", grade: "", subject: "", message: data.message ?? "" };
  const list = element("ul", { className: "list", "aria-label": "Standards" });
  const cards = new Map(results.map((result) => [result._id, card(client, state, result, drawActions, page)]));
  const actions = element("div", { className: "row actions" });

  function draw() {
    const visible = results.filter((result) => fits(state, result));
    list.replaceChildren(...visible.map((result) => cards.get(result._id)));
    if (!visible.length) list.append(element("li", { className: "muted" }, "No result fits the filter."));
  }

  function drawActions() {
    actions.replaceChildren(...actionButtons(client, state, page));
  }

  function page() {
    show(
      element("p", { className: "text", dir: "auto" }, state.message),
      filters(state, draw),
      list,
      actions,
      statusLine(),
    );
  }

  draw();
  drawActions();
  page();
}

function fits({ filter, grade, subject }, result) {
  const text = `${result.statement_notation} ${textOfStandard(result)} ${result.standard_set_title}`.toLowerCase();
  return (!filter || filter.toLowerCase().split(/\s+/).every((word) => text.includes(word)))
    && (!grade || gradeNames(result.education_levels) === grade)
    && (!subject || result.subject === subject);
}

function filters(state, draw) {
  const search = element("input", {
    type: "search", placeholder: "Filter these results", "aria-label": "Filter these results", value: state.filter,
    oninput: (event) => { state.filter = event.target.value; draw(); },
  });
  const grades = toggles(state, "grade", (result) => gradeNames(result.education_levels), draw);
  const subjects = toggles(state, "subject", (result) => result.subject, draw);
  return element("div", { className: "row" }, search, ...grades, ...subjects);
}

// Buttons for the values of a field, if the results differ in it.
function toggles(state, field, valueOf, draw) {
  const values = [...new Set(state.results.map(valueOf))].filter(Boolean).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  if (values.length < 2) return [];
  const buttons = values.map((value) => button(value, () => {
    state[field] = state[field] === value ? "" : value;
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.textContent === state[field]));
    draw();
  }, { "aria-pressed": String(state[field] === value) }));
  return buttons;
}

function card(client, state, result, drawActions, page) {
  const code = shortCode(result);
  const choose = ({ target }) => {
    if (target.checked) state.chosen.add(result._id);
    else state.chosen.delete(result._id);
    target.closest(".card").classList.toggle("chosen", target.checked);
    drawActions();
    tellModel(client, state);
  };
  const percent = Math.round((result.score ?? 0) * 100);
  return element("li", { className: "card" },
    element("div", { className: "row" },
      element("label", { className: "choice" },
        element("input", { type: "checkbox", onchange: choose }), element("span", { className: "code" }, code)),
      element("span", { className: "row end muted" },
        element("meter", { min: 0, max: 1, value: result.score ?? 0, "aria-label": `Match of ${code}` }), `${percent} %`)),
    element("p", { className: "text", dir: "auto" }, textOfStandard(result)),
    element("div", { className: "row" },
      ...[gradeNames(result.education_levels), result.subject, result.jurisdiction_title, result.weak ? "weak match" : ""]
        .filter(Boolean).map((text) => element("span", { className: "chip", dir: "auto" }, text))),
    result.why && element("p", { className: "muted", dir: "auto" }, `Matched: ${result.why}`),
    element("div", { className: "row" },
      client.capabilities.serverTools && button("Details", () => openStandard(client, result._id, page), { "aria-label": `Details of ${code}` }),
      officialLink(client, result.source_url)));
}

function chosenResults(state) {
  return state.results.filter((result) => state.chosen.has(result._id));
}

function actionButtons(client, state, page) {
  const chosen = chosenResults(state);
  const taken = chosen.length ? chosen : state.results;
  const what = chosen.length ? `${chosen.length} chosen` : "all";
  return [
    client.capabilities.message && button(client.sayLabel, () => say(client, chosen), { disabled: !chosen.length }),
    client.capabilities.downloadFile && button(`CSV (${what})`, () => download(client, "standards.csv", "text/csv", csvOf(taken))),
    client.capabilities.downloadFile && button(`Markdown (${what})`, () => download(client, "standards.md", "text/markdown", markdownOf(taken))),
    ...client.actionsFor(chosen, page),
  ].filter(Boolean);
}

// Lets the model know the choice, without a turn of its own.
async function tellModel(client, state) {
  if (!client.capabilities.updateModelContext) return;
  const standards = chosenResults(state).map(({ _id, statement_notation }) => ({ _id, statement_notation }));
  const codes = standards.map((standard) => shortCode(standard)).join(", ") || "none";
  try {
    await client.request("ui/update-model-context", {
      content: [{ type: "text", text: `The user chose these standards in the view: ${codes}` }],
      structuredContent: { chosen_standards: standards },
    });
  } catch (error) {
    announce(error.message, true);
  }
}

async function download(client, name, mimeType, text) {
  const resource = { uri: `file:///${name}`, mimeType, text };
  try {
    const result = await client.request("ui/download-file", { contents: [{ type: "resource", resource }] });
    announce(result?.isError ? "The client did not save the file." : `${name} is saved.`, Boolean(result?.isError));
  } catch (error) {
    announce(error.message, true);
  }
}

const COLUMNS = [
  ["code", (standard) => standard.statement_notation],
  ["text", textOfStandard],
  ["subject", (standard) => standard.subject],
  ["grade", (standard) => gradeNames(standard.education_levels)],
  ["set", (standard) => standard.standard_set_title],
  ["score", (standard) => standard.score],
  ["official text", (standard) => standard.source_url],
];

function csvOf(standards) {
  // A leading sign would make a spreadsheet compute the cell.
  const cell = (value) => `"${String(value ?? "").replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;
  const rows = standards.map((standard) => COLUMNS.map(([, valueOf]) => cell(valueOf(standard))).join(","));
  return [COLUMNS.map(([name]) => cell(name)).join(","), ...rows].join("\r\n") + "\r\n";
}

function markdownOf(standards) {
  const plain = (text) => String(text ?? "").replace(/\s+/g, " ").replace(/[\\`*_{}[\]<>#|]/g, "\\$&");
  return standards.map((standard) => `- **${plain(shortCode(standard))}** ${plain(textOfStandard(standard))}`).join("\n") + "\n";
}
