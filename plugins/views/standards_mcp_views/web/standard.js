// One standard with its place in the tree.
function standardPage(client, standard, { back = null } = {}) {
  const lookUp = (id) => openStandard(client, id, () => show(...standardPage(client, standard, { back })));
  const ancestors = standard.ancestors ?? [];
  const facts = [
    ["Set", standard.standard_set_title],
    ["Subject", standard.subject],
    ["Grade", gradeNames(standard.education_levels).replace(/^Grades? /, "")],
    ["Also known as", (standard.alt_statement_notations ?? []).join(", ")],
    ["Core idea", standard.core_idea],
    ["Practice", standard.practice],
    ["Crosscutting concept", standard.crosscutting_concept],
    ["Status", standard.retired ?? standard.publication_status],
  ].filter(([, value]) => value);
  return [
    back && element("div", { className: "row" }, button("← Back", back)),
    ancestors.length && element("nav", { "aria-label": "Headings above" }, trail(ancestors, lookUp)),
    element("h1", {}, element("span", { className: "code" }, shortCode(standard))),
    element("p", { className: "text", dir: "auto" }, textOfStandard(standard)),
    standard.text_status === "paraphrase" && element("p", { className: "muted" }, "This wording is not official."),
    element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", { dir: "auto" }, String(value))])),
    element("div", { className: "row" },
      officialLink(client, standard.source_url),
      client.capabilities.serverTools && button("Grades before and after", () => showRelated(client, standard, lookUp)),
      client.capabilities.message && button(client.sayLabel, () => say(client, [standard])),
      ...client.actionsFor([standard], () => show(...standardPage(client, standard, { back })))),
    element("div", { id: "related" }),
    section("Parts", standard.children, lookUp),
    section("Beside it", standard.siblings, lookUp),
    statusLine(),
  ].filter(Boolean);
}

function trail(ancestors, lookUp) {
  return element("ol", { className: "row trail" }, ...ancestors.map((heading) => element("li", {},
    button(shortCode(heading), () => lookUp(heading._id), { className: "plain code", title: textOfStandard(heading) }))));
}

function section(title, standards, lookUp) {
  if (!standards?.length) return null;
  return element("section", {}, element("h2", {}, title), branch(standards, lookUp));
}

function branch(standards, lookUp) {
  return element("ul", { className: "tree" }, ...standards.map((standard) => element("li", {},
    button(shortCode(standard), () => lookUp(standard._id), { className: "plain code" }),
    element("span", { className: "text muted", dir: "auto" }, textOfStandard(standard)))));
}

async function openStandard(client, id, back) {
  if (!client.capabilities.serverTools) {
    announce("This client lets no view look up standards; ask for the code in the chat.", true);
    return;
  }
  announce("Looking it up …");
  await ask(client, "get_standard_details", { standard_id: id }, (data) => {
    show(...standardPage(client, data.results[0], { back }));
  });
}

const NEIGHBOURS = [["previous_grade", "In the grade before"], ["next_grade", "In the grade after"]];

async function showRelated(client, standard, lookUp) {
  announce("Looking for the grades before and after …");
  const calls = NEIGHBOURS.map(([relation]) => client.callTool("get_related_standards", { standard_id: standard._id, relation }));
  await load(Promise.all(calls), (answers) => {
    const sections = NEIGHBOURS.map(([, title], side) =>
      section(title, answers[side].results, lookUp) ?? notice(forPeople(answers[side].message) || "None is known."));
    document.querySelector("#related").replaceChildren(...sections);
    announce("");
  });
}

async function say(client, standards) {
  try {
    announce(await client.say(standards));
  } catch (error) {
    announce(error.message, true);
  }
}

// The page of an answer: one standard, or the list of several.
function standardPages(client, data) {
  const standards = data.results ?? [];
  if (standards.length === 1) return standardPage(client, standards[0]);
  if (!standards.length) return [notice(data.message || "No standard was found.")];
  const lookUp = (id) => openStandard(client, id, () => show(...standardPages(client, data)));
  return [element("h1", {}, `${standards.length} standards`), branch(standards, lookUp), statusLine()];
}
