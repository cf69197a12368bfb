// Elements of the page. All text goes in as text, never as markup.
function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !name.startsWith("aria")) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function button(label, act, properties = {}) {
  return element("button", { type: "button", onclick: act, ...properties }, label);
}

// Grows with each page and each call that replaces the page, so that a late answer changes nothing.
let turn = 0;

// Shows a page. If the focus is inside the old one, a person asked for the new one: it gets the focus,
// in the field of the same name if both have it.
function show(...children) {
  turn += 1;
  const main = document.querySelector("main");
  const hadFocus = main.contains(document.activeElement);
  const field = document.activeElement?.dataset.field;
  main.replaceChildren(...children.filter(Boolean));
  main.scrollTop = 0;
  if (!hadFocus) return;
  const same = field && main.querySelector(`[data-field="${field}"]:not(:disabled)`);
  const target = same || (main.querySelector("h1") ?? main);
  if (!same) target.tabIndex = -1;
  target.focus();
}

// Waits for an answer or several, and renders it unless a newer page or call came meanwhile.
async function load(answer, render, fail = (text) => announce(text, true)) {
  const own = ++turn;
  try {
    const data = await answer;
    if (own === turn) render(data);
  } catch (error) {
    if (own === turn) fail(error.message);
  }
}

const ask = (client, name, args, render, fail) => load(client.callTool(name, args), render, fail);

function notice(text, { isError = false } = {}) {
  const role = isError ? "alert" : "status";
  return element("p", { className: isError ? "notice error" : "notice", role, dir: "auto" }, text);
}

// Replaces a status line, which screen readers announce.
function announce(text, isError = false) {
  const line = document.querySelector("#status");
  if (!line) return;
  line.textContent = text;
  line.className = isError ? "notice error" : "muted";
}

// Returns a message without the sentences for models, which name tools.
const forPeople = (message = "") => message.split(/(?<=\.) /).filter((sentence) => !/[a-z]_[a-z]/.test(sentence)).join(" ");

const statusLine = () => element("p", { id: "status", className: "muted", role: "status" });

function shortCode(standard) {
  const code = standard.statement_notation ?? "";
  return code.replace(/^CCSS\.(Math\.Content|ELA-Literacy)\./, "") || "no code";
}

function gradeNames(levels = []) {
  const names = levels.map((level) => (level === "KG" ? "K" : level.replace(/^0/, "")));
  if (!names.length) return "";
  return names.length > 2 ? `Grades ${names[0]}–${names.at(-1)}` : `Grade ${names.join(", ")}`;
}

function officialLink(client, url) {
  if (!/^https?:\/\//.test(url ?? "")) return null;
  return button("Official text", () => open(client, url), { className: "plain", "data-url": url });
}

async function open(client, url) {
  try {
    await client.request("ui/open-link", { url });
  } catch (error) {
    announce(`The client does not open ${url}: ${error.message}`, true);
  }
}

function textOfStandard(standard) {
  return standard.description ?? standard.content ?? "";
}

// Starts the view: connects, and renders each result of the tool.
async function start(name, render) {
  const client = new Client(`standards-mcp-${name}`, "1");
  const receive = (result) => {
    const data = result.structuredContent;
    if (result.isError || !data) show(notice(textOf(result) || "The tool gave no answer.", { isError: true }));
    else render(client, data);
  };
  client.on("ui/notifications/tool-result", receive);
  client.on("ui/notifications/tool-cancelled", ({ reason }) => {
    show(notice(`The call was cancelled. ${reason ?? ""}`));
  });
  client.on("ui/notifications/tool-input", (params) => { client.input = params.arguments ?? {}; });
  show(notice("Waiting for the answer …"));
  try {
    await client.connect();
  } catch (error) {
    show(notice(`The client does not open this view: ${error.message}`, { isError: true }));
  }
}
