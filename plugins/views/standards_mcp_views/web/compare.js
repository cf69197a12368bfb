// Two standards side by side, with the words and facts in which they differ.
const FACTS = [
  ["Set", (standard) => standard.standard_set_title],
  ["From", (standard) => standard.jurisdiction_title],
  ["Subject", (standard) => standard.subject],
  ["Grade", (standard) => gradeNames(standard.education_levels).replace(/^Grades? /, "")],
  ["Headings", (standard) => textsOf(standard.ancestors)],
  ["Parts", (standard) => textsOf(standard.children)],
  ["Core idea", (standard) => standard.core_idea],
  ["Practice", (standard) => standard.practice],
  ["Crosscutting concept", (standard) => standard.crosscutting_concept],
];
// A longer text is shown without marks: the search for common words takes the product of the lengths.
const MOST_WORDS = 400;
// With a smaller share of common words, nearly everything would be marked.
const LEAST_SHARE = 0.25;

function openComparison(client, standards, back) {
  announce("Looking them up …");
  const calls = standards.map(({ _id }) => client.callTool("get_standard_details", { standard_id: _id }));
  load(Promise.all(calls), (answers) => show(...comparePage(client, answers.map((answer) => answer.results[0]), back)));
}

function comparePage(client, pair, back) {
  const again = () => show(...comparePage(client, pair, back));
  const code = (standard) => button(shortCode(standard), () => openStandard(client, standard._id, again), { className: "plain code" });
  const links = pair.map((standard) => officialLink(client, standard.source_url));
  const facts = FACTS.map(([name, valueOf]) => [name, ...pair.map((standard) => String(valueOf(standard) ?? ""))])
    .filter(([, ...values]) => values.some(Boolean));
  const { texts, note } = differences(...pair.map(textOfStandard));
  const differing = facts.filter(([, left, right]) => left !== right).map(([name]) => name.toLowerCase());
  return [
    element("div", { className: "row" }, button("← Back", back)),
    element("h1", {}, `${shortCode(pair[0])} and ${shortCode(pair[1])}`),
    element("p", { className: "muted" }, differing.length
      ? `${note} They also differ in: ${differing.join(", ")}.`
      : `${note} Everything else is the same.`),
    // Roles, because the narrow layout is no table for CSS.
    element("table", { className: "compare", role: "table" },
      compareRow("Code", "columnheader", ...pair.map(code)),
      compareRow("Text", "cell", ...texts),
      ...facts.map(([name, left, right]) => compareRow(name, "cell", left || "—", right || "—", left === right ? "muted" : "")),
      links.some(Boolean) ? compareRow("Official", "cell", links[0] ?? "—", links[1] ?? "—") : null),
    statusLine(),
  ];
}

function compareRow(name, role, left, right, className = "") {
  const cell = (content) => element(role === "cell" ? "td" : "th", { role, className: "text", dir: "auto" }, ...[content].flat());
  return element("tr", { role: "row", className }, element("th", { role: "rowheader", scope: "row" }, name), cell(left), cell(right));
}

const textsOf = (standards = []) => standards.map((standard) => `${shortCode(standard)} ${textOfStandard(standard)}`).join("\n");

// Returns the nodes of both texts with a note for people; the words that only one text has at a place are marked.
function differences(left, right) {
  if (left === right) return { texts: [left, right], note: "Both texts are the same." };
  const [a, b] = [left, right].map((text) => text.split(/\s+/).filter(Boolean));
  const longest = Math.max(a.length, b.length);
  if (longest > MOST_WORDS) return { texts: [left, right], note: "The texts are too long to mark differences." };
  const plain = (word) => word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
  const [keysA, keysB] = [a.map(plain), b.map(plain)];
  // common[i][j]: how many words are common from word i of the left and word j of the right text on.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i][j] = keysA[i] === keysB[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  if (common[0][0] < LEAST_SHARE * longest) return { texts: [left, right], note: "The texts have few words in common." };
  const [ownA, ownB] = [new Set(a.keys()), new Set(b.keys())];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (keysA[i] === keysB[j]) {
      ownA.delete(i++);
      ownB.delete(j++);
    } else if (common[i + 1][j] >= common[i][j + 1]) i += 1;
    else j += 1;
  }
  return { texts: [markedWords(a, ownA), markedWords(b, ownB)], note: "Marked words are in one text only." };
}

function markedWords(words, own) {
  const runs = [];
  for (const [index, word] of words.entries()) {
    const last = runs.at(-1);
    if (last?.isOwn === own.has(index)) last.words.push(word);
    else runs.push({ isOwn: own.has(index), words: [word] });
  }
  return runs.flatMap(({ isOwn, words: run }) => [isOwn ? element("mark", {}, run.join(" ")) : run.join(" "), " "]);
}
