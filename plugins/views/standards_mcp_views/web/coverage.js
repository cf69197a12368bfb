// What a unit covers: a grid of the grade's standards, domain by domain.
function coveragePage(client, data) {
  const activities = new Map((data.activities ?? []).map((activity) => [activity.number, activity.text]));
  const detail = element("div", { id: "detail", role: "status" });

  function page() {
    show(
      element("p", { className: "text", dir: "auto" }, data.message ?? ""),
      element("p", { className: "muted" }, `${data.jurisdiction ?? ""}, ${(data.subjects ?? []).join(", ")}, ${gradeNames(data.grades).toLowerCase()}`),
      legend(),
      detail,
      ...(data.summary ?? []).map((domain) => domainGrid(domain, standardsOf(domain), choose)),
      planOf(data.plan, activities),
      data.met?.meaning && element("p", { className: "muted text" }, data.met.meaning),
      statusLine());
  }

  function standardsOf(domain) {
    return (data.standards ?? []).filter((standard) => standard.domain === domain.code);
  }

  function choose(standard) {
    detail.className = "card";
    detail.replaceChildren(
      element("div", { className: "row" }, element("span", { className: "code" }, codeOf(standard)),
        client.capabilities.serverTools && button("Details", () => openStandard(client, standard._id, page))),
      element("p", { className: "text", dir: "auto" }, standard.text ?? ""),
      element("p", {}, stateOf(standard)),
      element("ul", { className: "tree" }, ...[...(standard.by ?? []), ...(standard.maybe_by ?? [])].map((number) =>
        element("li", {}, element("span", { className: "code" }, `${number}`), element("span", { className: "text", dir: "auto" }, activities.get(number) ?? "")))));
  }

  page();
}

const codeOf = (standard) => shortCode({ statement_notation: standard.code });

function stateOf(standard) {
  if (standard.covered) return `Covered by activity ${standard.by.join(", ")}.`;
  return standard.maybe_by?.length ? `Activity ${standard.maybe_by.join(", ")} comes near.` : "Missing.";
}

const cellClass = (standard) => (standard.covered ? "covered" : standard.maybe_by?.length ? "near" : "missing");

function legend() {
  const kinds = [["covered", "✓ covered"], ["near", "~ near"], ["missing", "missing"]];
  return element("div", { className: "row" }, ...kinds.map(([kind, text]) => element("span", { className: `cell ${kind}` }, text)));
}

function domainGrid(domain, standards, choose) {
  const title = `${codeOf(domain)}: ${domain.covered} of ${domain.standards}`;
  return element("section", {},
    element("h2", {}, title),
    element("p", { className: "text muted", dir: "auto" }, domain.text ?? ""),
    element("div", { className: "row" }, ...standards.map((standard) => {
      const sign = { covered: "✓ ", near: "~ ", missing: "" }[cellClass(standard)];
      return button(`${sign}${codeOf(standard)}`, () => choose(standard), {
        className: `cell ${cellClass(standard)}`, "aria-label": `${codeOf(standard)}: ${stateOf(standard)}`,
      });
    })));
}

function planOf(plan, activities) {
  if (!plan?.steps?.length) return null;
  const steps = plan.steps.map((step) => element("li", {},
    element("span", { className: "code" }, `${step.activity}`),
    element("span", { className: "text", dir: "auto" }, activities.get(step.activity) ?? ""),
    element("span", { className: "muted" }, `adds ${step.adds.map((code) => codeOf({ code })).join(", ")}`)));
  const title = plan.exact ? "The fewest activities that cover as much" : "Few activities that cover as much";
  return element("section", {}, element("h2", {}, title), element("ol", { className: "tree" }, ...steps));
}
