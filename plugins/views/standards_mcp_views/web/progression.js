// A progression: the standards before and after one, grade by grade, drawn as a graph.
const BASES = {
  stated: "stated by a source", code: "same number in the code", strand: "same strand, by meaning",
  heading: "same heading, by meaning", meaning: "by meaning only",
};
const LEGEND = "Solid lines are stated by a source or a code; dashed lines are likeness in meaning.";
const STEPS = { previous_grade: "Earlier grades", next_grade: "Later grades" };
// Sizes in the units of the drawing.
const BOX = { width: 190, height: 84 };
const GAP = { x: 56, y: 14 };
const HEAD = 28;
const MARGIN = 10;
const MOST_LETTERS = 200;
// How many standards of a grade are followed, and how many of the next are found for each.
const [FOLLOWED, FOUND] = [3, 3];

class Progression {
  constructor(client, standard, back) {
    this.client = client;
    this.back = back;
    this.start = standard;
    this.nodes = new Map([[standard._id, standard]]);
    this.edges = new Map();
    this.ends = { previous_grade: [standard], next_grade: [standard] };
    this.reasons = {};
    this.growing = null;
  }

  // Looks two grades back and two forth, and shows the page.
  open() {
    announce("Looking for the grades before and after …");
    const both = () => Promise.all(Object.keys(STEPS).map((relation) => this.grow(relation)));
    return load(both().then(both), () => this.show());
  }

  // Adds what comes before or after the standards at one end.
  async grow(relation) {
    const from = this.ends[relation].slice(0, FOLLOWED);
    const answers = await Promise.all(from.map(({ _id }) =>
      this.client.callTool("get_related_standards", { standard_id: _id, relation, max_results: FOUND })));
    const added = [];
    for (const [index, { results = [], message }] of answers.entries()) {
      if (!results.length) this.reasons[relation] = forPeople(message);
      for (const standard of results.filter(({ loaded }) => loaded !== false)) {
        if (!this.nodes.has(standard._id)) {
          this.nodes.set(standard._id, standard);
          added.push(standard);
        }
        const ends = [from[index]._id, standard._id];
        const [earlier, later] = relation === "next_grade" ? ends : ends.reverse();
        const edge = { earlier, later, basis: standard.found_by, score: standard.score };
        if (!this.edges.has(`${earlier} ${later}`)) this.edges.set(`${earlier} ${later}`, edge);
      }
    }
    this.ends[relation] = added;
  }

  show() {
    const again = () => this.show();
    const drawing = graphOf(this, (standard) => this.choose(standard, again));
    const more = Object.entries(STEPS).map(([relation, label]) => button(label, () => {
      announce("Looking …");
      this.growing ??= this.grow(relation).finally(() => { this.growing = null; });
      load(this.growing, again);
    }, { disabled: !this.ends[relation].length, "data-field": relation }));
    const ended = Object.keys(STEPS).filter((relation) => !this.ends[relation].length);
    const reasons = new Set(ended.map((relation) => this.reasons[relation]));
    show(
      element("div", { className: "row" }, button("← Back", this.back), ...more),
      element("h1", {}, `Progression of ${shortCode(this.start)}`),
      element("p", { className: "muted" }, `Up to ${FOUND} of the next grade for each standard. ${LEGEND}`),
      drawing,
      element("div", { id: "detail", role: "status" }),
      ...[...reasons].filter(Boolean).map((text) => element("p", { className: "muted text", dir: "auto" }, text)),
      this.list(),
      statusLine());
    const first = drawing.querySelector(".start");
    drawing.scrollLeft = first.getBoundingClientRect().left - drawing.getBoundingClientRect().left - (drawing.clientWidth - BOX.width) / 2;
  }

  choose(standard, again) {
    const detail = document.querySelector("#detail");
    const others = standard._id === this.start._id ? [] : [
      button("Compare with the first", () => openComparison(this.client, [this.start, standard], again)),
      button("Progression from here", () => new Progression(this.client, standard, again).open()),
    ];
    detail.className = "card";
    detail.replaceChildren(
      element("div", { className: "row" },
        element("span", { className: "code" }, shortCode(standard)),
        element("span", { className: "chip" }, gradeNames(standard.education_levels))),
      element("p", { className: "text", dir: "auto" }, textOfStandard(standard)),
      element("p", { className: "muted" }, this.connectionsOf(standard).join("; ")),
      element("div", { className: "row" },
        button("Details", () => openStandard(this.client, standard._id, again)),
        button("Collect", () => say(this.client, [standard])),
        ...others));
  }

  connectionsOf({ _id }) {
    const name = (id) => shortCode(this.nodes.get(id));
    const edges = [...this.edges.values()];
    return [
      ...edges.filter(({ later }) => later === _id).map((edge) => `follows ${name(edge.earlier)} (${basisOf(edge)})`),
      ...edges.filter(({ earlier }) => earlier === _id).map((edge) => `leads to ${name(edge.later)} (${basisOf(edge)})`),
    ];
  }

  // The same as a list, for people who do not see the drawing.
  list() {
    const items = columnsOf(this.nodes.values()).flatMap(({ label, standards }) => standards.map((standard) => element("li", {},
      element("span", { className: "code" }, shortCode(standard)),
      element("span", { className: "text muted", dir: "auto" }, [label, ...this.connectionsOf(standard)].join("; ")))));
    return element("details", {}, element("summary", {}, "As a list"), element("ul", { className: "tree" }, ...items));
  }
}

const basisOf = ({ basis, score }) => (score === undefined ? BASES[basis] : `${BASES[basis]}, ${Math.round(score * 100)} %`);

// Levels before kindergarten come first, and those beyond school last.
function gradeNumber(level = "") {
  if (/^\d+$/.test(level)) return Number(level);
  if (/^pre/i.test(level)) return -1;
  return /^kg?$/i.test(level) ? 0 : 13;
}

// Returns the columns in the order of grades, each with its standards.
function columnsOf(standards) {
  const columns = new Map();
  for (const standard of standards) {
    const label = gradeNames(standard.education_levels) || "No grade";
    const column = columns.get(label) ?? { label, grade: gradeNumber(standard.education_levels?.[0]), standards: [] };
    column.standards.push(standard);
    columns.set(label, column);
  }
  return [...columns.values()].sort((a, b) => a.grade - b.grade);
}

function drawn(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function graphOf(progression, choose) {
  const columns = columnsOf(progression.nodes.values());
  const rows = Math.max(...columns.map(({ standards }) => standards.length));
  const [width, height] = [columns.length * (BOX.width + GAP.x) - GAP.x + 4, HEAD + rows * (BOX.height + GAP.y)];
  const places = new Map();
  const heads = columns.map(({ label, standards }, number) => {
    const x = 2 + number * (BOX.width + GAP.x);
    const top = HEAD + ((rows - standards.length) * (BOX.height + GAP.y)) / 2;
    standards.forEach(({ _id }, row) => places.set(_id, { x, y: top + row * (BOX.height + GAP.y) }));
    return drawn("text", { x: x + BOX.width / 2, y: 16, class: "grade" }, label);
  });
  const lines = [...progression.edges.values()].flatMap((edge) => arrow(places.get(edge.earlier), places.get(edge.later), edge.basis));
  const boxes = columns.flatMap(({ standards }) => standards).map((standard) => box(progression, standard, places.get(standard._id), choose));
  const frame = { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Standards by grade" };
  return element("div", { className: "graph" }, drawn("svg", frame, ...heads, ...lines, ...boxes));
}

function arrow(from, to, basis) {
  const start = { x: from.x + BOX.width, y: from.y + BOX.height / 2 };
  const end = { x: to.x - 7, y: to.y + BOX.height / 2 };
  const middle = (start.x + end.x) / 2;
  const kind = ["stated", "code"].includes(basis) ? "edge" : "edge likeness";
  return [
    drawn("path", { class: kind, d: `M${start.x} ${start.y} C${middle} ${start.y} ${middle} ${end.y} ${end.x} ${end.y}` }),
    drawn("path", { class: "tip", d: `M${end.x + 7} ${end.y} l-8 -4.5 v9 z` }),
  ];
}

function box(progression, standard, { x, y }, choose) {
  const isStart = standard._id === progression.start._id;
  const facts = [shortCode(standard), gradeNames(standard.education_levels), textOfStandard(standard)];
  const label = [...facts, ...progression.connectionsOf(standard)].join("; ");
  const font = getComputedStyle(document.body).fontFamily;
  const [code] = linesOf(shortCode(standard), 1, `600 13px ${font}`);
  const lines = linesOf(textOfStandard(standard), 3, `13px ${font}`);
  const group = drawn("g", { class: isStart ? "node start" : "node", role: "button", tabindex: "0", "aria-label": label },
    drawn("rect", { x, y, width: BOX.width, height: BOX.height, rx: 8 }),
    drawn("text", { x: x + MARGIN, y: y + 20, class: "title" }, code),
    ...lines.map((line, number) => drawn("text", { x: x + MARGIN, y: y + 39 + number * 17 }, line)));
  group.addEventListener("click", () => choose(standard));
  group.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(standard);
  });
  return group;
}

// Returns the beginning of a text in lines that fit into a box; SVG does not wrap.
function linesOf(text, most, font) {
  const pencil = document.createElement("canvas").getContext("2d");
  pencil.font = font;
  const fits = (line) => pencil.measureText(line).width <= BOX.width - 2 * MARGIN;
  const shorten = (line) => {
    let end = line.length;
    while (end && !fits(`${line.slice(0, end)}…`)) end -= 1;
    return `${line.slice(0, end).trimEnd()}…`;
  };
  const lines = [];
  for (const word of text.slice(0, MOST_LETTERS).split(/\s+/).filter(Boolean)) {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trim();
    if (lines.length && fits(longer)) lines.splice(-1, 1, longer);
    else lines.push(word);
  }
  const shown = lines.slice(0, most).map((line) => (fits(line) ? line : shorten(line)));
  if (lines.length > most && !shown.at(-1).endsWith("…")) shown.push(shorten(shown.pop()));
  return shown;
}
