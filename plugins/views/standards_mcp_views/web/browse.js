// Browse: the sets of a state or body, narrowed by subject and grade, and the tree below each.
class Browser {
  constructor(client, grade) {
    this.client = client;
    this.grade = grade;
    this.state = "";
    this.subject = "";
    this.levels = new Map();
  }

  open(fail) {
    const sets = this.state ? this.level(this.state) : null;
    return load(Promise.all([this.level(""), sets]), (levels) => this.show(...levels, fail), fail);
  }

  // Returns all nodes below a parent, page by page, and keeps them.
  async level(parent) {
    if (!this.levels.has(parent)) {
      const nodes = [];
      for (let page = 1; page;) {
        const answer = await this.client.callTool("browse_standards", { parent, page });
        nodes.push(...(answer.results ?? []));
        page = answer.next_page;
      }
      this.levels.set(parent, nodes);
    }
    return this.levels.get(parent);
  }

  show(states, sets, fail) {
    const subjects = [...new Set(sets?.map((set) => set.subject))].filter(Boolean).sort();
    if (!subjects.includes(this.subject)) this.subject = "";
    const visible = sets?.filter((set) => this.fits(set)) ?? states;
    const choice = (field, name, all, options) => select(name, all, options, {
      "data-field": field, value: this[field], onchange: ({ target }) => { this[field] = target.value; this.open(fail); },
    });
    const page = () => show(...parts);
    const parts = [
      element("h1", {}, "Standards"),
      element("div", { className: "row" },
        choice("state", "State or body", "All states and bodies", states.map(({ _id, description }) => [_id, description])),
        sets && choice("subject", "Subject", "All subjects", subjects.map((name) => [name, name]))),
      element("p", { className: "muted" }, this.summary(visible, sets)),
      element("ul", { className: "tree" }, ...visible.map((node) => treeNode(this.client, node, page))),
      statusLine(),
    ];
    page();
  }

  // A set whose title names no grade may be for any.
  fits({ subject, description }) {
    const [wanted, named] = [`Grades ${this.grade()}`, description].map(gradesOfTitle);
    const isGrade = !wanted.size || !named.size || [...wanted].some((grade) => named.has(grade));
    return isGrade && (!this.subject || subject === this.subject);
  }

  summary(visible, sets) {
    if (!sets) return visible.length ? "Choose a state or body to narrow its sets by subject and grade." : "No standards are loaded.";
    return visible.length ? `${visible.length} of ${sets.length} sets` : "No set fits; choose another subject or grade.";
  }
}

const GRADES = ["K", ...Array.from({ length: 12 }, (_, index) => String(index + 1))];
const SCHOOLS = [["kindergarten", 0, 0], ["elementary", 0, 5], ["middle school", 6, 8], ["high school", 9, 12]];
const GRADE_LIST = /\bgrades?\s+((?:k|\d{1,2})\b(?:\s*(?:[-–,/&]|to|and)\s*(?:k|\d{1,2})\b)*)/gi;

// Returns the grades that the title of a set names, such as "Grades 6-8" or "High School, Algebra".
function gradesOfTitle(title) {
  const ranges = SCHOOLS.filter(([name]) => new RegExp(`(?<!pre-?)\\b${name}`, "i").test(title)).map(([, first, last]) => [first, last]);
  const number = (name) => (name.toLowerCase() === "k" ? 0 : Number(name));
  for (const [, list] of title.matchAll(GRADE_LIST)) {
    for (const part of list.split(/,|\/|&|and/i)) {
      const ends = part.split(/-|–|to/i).map((name) => number(name.trim()));
      ranges.push([ends[0], ends.at(-1)]);
    }
  }
  return new Set(ranges.flatMap(([first, last]) => GRADES.slice(first, last + 1)));
}

function select(name, all, options, { value = "", ...properties }) {
  const items = [["", all], ...options].map(([each, label]) => element("option", { value: each, selected: each === value }, label));
  return element("select", { "aria-label": name, ...properties }, ...items);
}
