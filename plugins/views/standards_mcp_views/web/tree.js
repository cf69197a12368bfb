// A level of the tree of standards, whose nodes open in place.
function treePage(client, data) {
  if (!data.results?.length) return show(notice(data.message || "There is nothing here."));
  const { parent = "", page: first = 1 } = client.input ?? {};
  const title = first > 1 ? `Standards, from page ${first}` : "Standards";
  const page = () => show(element("h1", {}, title), top, statusLine());
  const top = level(client, client.input && parent, data, page);
  return page();
}

// The nodes of an answer, and a button for those of its next page. Without *parent*, nothing more can be asked.
function level(client, parent, data, page) {
  const list = element("ul", { className: "tree" });
  add(data);
  return list;

  function add({ results = [], next_page: next }) {
    const nodes = results.map((node) => treeNode(client, node, page));
    list.append(...nodes);
    if (next) list.append(rest(next));
    return nodes;
  }

  function rest(next) {
    if (parent === undefined || !client.capabilities.serverTools) {
      return element("li", { className: "muted" }, `There are more. Ask for page ${next} in the chat.`);
    }
    const more = button("Show more", async () => {
      const answer = await callInPlace(client, more, { parent, page: next });
      if (!answer) return;
      const hadFocus = document.activeElement === more;
      item.remove();
      const [node] = add(answer);
      if (hadFocus) node?.querySelector("button")?.focus();
    });
    const item = element("li", {}, more);
    return item;
  }
}

// Returns a level of the tree for a button of it, or null if the call fails.
async function callInPlace(client, pressed, args) {
  const own = turn;
  pressed.disabled = true;
  try {
    const answer = await client.callTool("browse_standards", args);
    if (own === turn) announce("");
    return answer;
  } catch (error) {
    if (own === turn) announce(error.message, true);
    return null;
  } finally {
    pressed.disabled = false;
    if (own === turn) pressed.focus();
  }
}

function treeNode(client, node, page) {
  const code = node.statement_notation ? shortCode(node) : "";
  const label = code || textOfStandard(node);
  const isStandard = node.kind === "standard" || Boolean(code);
  const name = isStandard && client.capabilities.serverTools
    ? button(label, () => openStandard(client, node._id, page), { className: "plain code" })
    : element("span", { className: code ? "code" : "text", dir: "auto" }, label);
  const count = node.standards ? `${node.standards} standards` : "";
  const canOpen = (node.children || node.kind === "set") && client.capabilities.serverTools;
  const opener = canOpen ? openerOf(client, node, label, page) : null;
  return element("li", { className: "node" },
    element("div", { className: "row" }, opener, name, element("span", { className: "muted" }, count)),
    code && element("p", { className: "text muted", dir: "auto" }, textOfStandard(node)));
}

function openerOf(client, node, label, page) {
  let children = null;
  const opener = button("▸", toggle, { "aria-expanded": "false", "aria-label": `Open ${label}` });
  return opener;

  async function toggle() {
    const isOpen = opener.getAttribute("aria-expanded") === "true";
    if (isOpen) children?.remove();
    else if (!(await open())) return;
    opener.setAttribute("aria-expanded", String(!isOpen));
    opener.textContent = isOpen ? "▸" : "▾";
  }

  async function open() {
    if (!children) {
      const answer = await callInPlace(client, opener, { parent: node._id });
      if (!answer) return false;
      children = level(client, node._id, answer, page);
    }
    opener.closest("li").append(children);
    return true;
  }
}
