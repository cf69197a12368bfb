// The page in a browser: search as you type, browse, and a list of collected standards.
class LocalServer {
  constructor() {
    this.input = {};
    this.capabilities = { openLinks: {}, downloadFile: {}, message: {} };
    if (mayCall("get_standard_details") || mayCall("browse_standards")) this.capabilities.serverTools = {};
    this.sayLabel = "Collect";
    this.collected = new Map(JSON.parse(sessionStorage.getItem("collected") ?? "[]"));
    this.onCollect = () => {};
  }

  callTool(name, args) {
    return callServer(name, args);
  }

  // Returns the buttons for one standard or for two; `back` shows the page with them again.
  actionsFor(standards, back) {
    const mayDraw = standards.length === 1 && mayCall("get_related_standards");
    if (mayDraw) return [button("Progression", () => new Progression(this, standards[0], back).open())];
    const mayCompare = standards.length === 2 && mayCall("get_standard_details");
    if (mayCompare) return [button("Compare", () => openComparison(this, standards, back))];
    return [];
  }

  async request(method, params) {
    if (method === "ui/open-link") window.open(params.url, "_blank", "noopener,noreferrer");
    if (method === "ui/download-file") save(params.contents[0].resource);
    return {};
  }

  async say(standards) {
    for (const standard of standards) this.collected.set(standard._id, standard);
    this.keep();
    return "Collected.";
  }

  remove(id) {
    this.collected.delete(id);
    this.keep();
  }

  keep() {
    sessionStorage.setItem("collected", JSON.stringify([...this.collected]));
    this.onCollect();
  }
}

function save({ uri, mimeType, text }) {
  const url = URL.createObjectURL(new Blob([text], { type: mimeType }));
  element("a", { href: url, download: uri.split("/").at(-1) }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const PAUSE = 150;

function explorePage() {
  const server = new LocalServer();
  const [text, wantedGrade = ""] = location.hash.slice(1).split("&grade=").map(decodeURIComponent);
  let timer = 0;
  const query = element("input", {
    type: "search", "aria-label": "Describe an activity", placeholder: "Describe an activity, or type a code",
    value: text, autofocus: true, oninput: later,
  });
  const grades = [...new Set([...GRADES, wantedGrade])].filter(Boolean).map((name) => [name, `Grade ${name}`]);
  const grade = select("Grade", "All grades", grades, { value: wantedGrade, onchange: () => choose(narrowed) });
  const browser = new Browser(server, () => grade.value);
  // The page that the grade narrows: a search, or the sets of a state.
  let narrowed = MAY_SEARCH && query.value ? search : browse;
  const collectedTab = button("", () => choose(() => showCollected(server)));
  server.onCollect = () => { collectedTab.textContent = `Collected (${server.collected.size})`; };
  server.onCollect();
  const mayBrowse = mayCall("browse_standards");
  document.querySelector("header").append(element("div", { className: "row" },
    MAY_SEARCH ? query : null, MAY_SEARCH || mayBrowse ? grade : null,
    mayBrowse ? button("Browse", () => choose(browse)) : null, collectedTab, button("Print", () => window.print())));
  narrowed();

  function later() {
    clearTimeout(timer);
    narrowed = search;
    timer = setTimeout(search, PAUSE);
  }

  function choose(page) {
    clearTimeout(timer);
    page();
  }

  function search() {
    const activity = query.value.trim();
    if (!activity) return choose(browse);
    narrowed = search;
    const args = { activity, max_results: 20, ...(grade.value && { grade: grade.value }) };
    return ask(server, "find_relevant_standards", args, (data) => resultsPage(server, data), fail);
  }

  function browse() {
    narrowed = browse;
    if (!mayBrowse) return show(notice(MAY_SEARCH ? "Describe an activity, or type a code." : NO_ACCESS));
    return browser.open(fail);
  }

  function fail(reason) {
    show(notice(reason, { isError: true }));
  }
}

// The list that the page keeps: choose two to compare, save them, or print the page.
function showCollected(server) {
  const standards = [...server.collected.values()];
  if (!standards.length) return show(notice("Nothing is collected. Choose standards and press Collect."));
  const again = () => showCollected(server);
  const chosen = new Set();
  const actions = element("div", { className: "row" });
  const draw = () => actions.replaceChildren(...server.actionsFor(standards.filter(({ _id }) => chosen.has(_id)), again));
  const choose = ({ _id }) => ({ target }) => {
    if (target.checked) chosen.add(_id);
    else chosen.delete(_id);
    draw();
  };
  const rows = standards.map((standard) => element("li", {},
    element("div", { className: "row" },
      element("input", { type: "checkbox", "aria-label": `Choose ${shortCode(standard)}`, onchange: choose(standard) }),
      button(shortCode(standard), () => openStandard(server, standard._id, again), { className: "plain code" })),
    element("span", { className: "text", dir: "auto" }, textOfStandard(standard)),
    element("span", { className: "muted" }, gradeNames(standard.education_levels)),
    button("Remove", () => { server.remove(standard._id); again(); }, { "aria-label": `Remove ${shortCode(standard)}` })));
  return show(
    element("h1", {}, "Collected standards"),
    element("p", { className: "muted hint" }, "Choose one for its progression, or two to compare."),
    element("ul", { className: "tree" }, ...rows),
    actions,
    element("div", { className: "row" },
      button("CSV", () => download(server, "standards.csv", "text/csv", csvOf(standards))),
      button("Markdown", () => download(server, "standards.md", "text/markdown", markdownOf(standards))),
      button("JSON", () => download(server, "standards.json", "application/json", JSON.stringify(standards, null, 2)))),
    statusLine());
}
