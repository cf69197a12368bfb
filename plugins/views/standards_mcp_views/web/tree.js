// A level of the tree of standards, whose nodes open in place.
function treePage(client, data) {
  const nodes = data.results ?? [];
  if (!nodes.length) return show(notice(data.message || "There is nothing here."));
  const page = () => show(element("h1", {}, "Standards"), top, statusLine());
  const top = level(client, nodes, page);
  return page();
}

function level(client, nodes, page) {
  return element("ul", { className: "tree" }, ...nodes.map((node) => treeNode(client, node, page)));
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
    else if (!(await load())) return;
    opener.setAttribute("aria-expanded", String(!isOpen));
    opener.textContent = isOpen ? "▸" : "▾";
  }

  async function load() {
    opener.disabled = true;
    try {
      children ??= level(client, await allPages(client, node._id), page);
      opener.closest("li").append(children);
      announce("");
      return true;
    } catch (error) {
      announce(error.message, true);
      return false;
    } finally {
      opener.disabled = false;
      opener.focus();
    }
  }
}

const MOST_PAGES = 20;

async function allPages(client, parent) {
  const nodes = [];
  for (let page = 1; page <= MOST_PAGES; page += 1) {
    const data = await client.callTool("browse_standards", { parent, page });
    nodes.push(...data.results);
    if (!/Call again with page = /.test(data.message ?? "")) break;
  }
  return nodes;
}
