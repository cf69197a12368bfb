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

const GRADES = ["K", ...Array.from({ length: 12 }, (_, index) => String(index + 1))];
const PAUSE = 150;

function explorePage() {
  const server = new LocalServer();
  let timer = 0;
  const query = element("input", {
    type: "search", "aria-label": "Describe an activity", placeholder: "Describe an activity, or type a code",
    value: decodeURIComponent(location.hash.slice(1)), autofocus: true, oninput: later,
  });
  const grade = element("select", { "aria-label": "Grade", onchange: search },
    element("option", { value: "" }, "All grades"),
    ...GRADES.map((name) => element("option", { value: name }, `Grade ${name}`)));
  const collectedTab = button("", () => choose(showCollected));
  server.onCollect = () => { collectedTab.textContent = `Collected (${server.collected.size})`; };
  server.onCollect();
  document.querySelector("header").append(
    element("div", { className: "row" },
      ...(MAY_SEARCH ? [query, grade] : []),
      mayCall("browse_standards") ? button("Browse", () => choose(browse)) : null,
      collectedTab));
  if (query.value) search();
  else browse();

  function later() {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
  }

  function choose(page) {
    clearTimeout(timer);
    page();
  }

  async function search() {
    const text = query.value.trim();
    if (!text) return choose(browse);
    const args = { activity: text, max_results: 20, ...(grade.value && { grade: grade.value }) };
    await ask(server, "find_relevant_standards", args, (data) => resultsPage(server, data), fail);
  }

  function browse() {
    if (!mayCall("browse_standards")) return show(notice(MAY_SEARCH ? "Describe an activity, or type a code." : NO_ACCESS));
    return ask(server, "browse_standards", {}, (data) => treePage(server, data), fail);
  }

  function fail(text) {
    show(notice(text, { isError: true }));
  }

  function showCollected() {
    const standards = [...server.collected.values()];
    if (!standards.length) return show(notice("Nothing is collected. Choose standards and press Collect."));
    const rows = standards.map((standard) => element("li", {},
      button(shortCode(standard), () => openStandard(server, standard._id, showCollected), { className: "plain code" }),
      element("span", { className: "text", dir: "auto" }, textOfStandard(standard)),
      button("Remove", () => { server.remove(standard._id); showCollected(); }, { "aria-label": `Remove ${shortCode(standard)}` })));
    return show(
      element("h1", {}, "Collected standards"),
      element("ul", { className: "tree" }, ...rows),
      element("div", { className: "row" },
        button("CSV", () => download(server, "standards.csv", "text/csv", csvOf(standards))),
        button("Markdown", () => download(server, "standards.md", "text/markdown", markdownOf(standards))),
        button("JSON", () => download(server, "standards.json", "application/json", JSON.stringify(standards, null, 2))),
        button("Print", () => window.print())),
      statusLine());
  }
}
