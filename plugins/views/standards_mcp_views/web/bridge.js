// The connection to the client that shows the view: JSON-RPC over postMessage (MCP Apps).
class Client {
  constructor(name, version) {
    this.info = { name, version };
    this.capabilities = {};
    this.handlers = new Map();
    this.waiting = new Map();
    this.lastId = 0;
    this.sayLabel = "Put into the chat";
    window.addEventListener("message", (event) => {
      if (event.source === window.parent && event.data?.jsonrpc === "2.0") this.receive(event.data);
    });
  }

  on(method, handler) {
    this.handlers.set(method, handler);
  }

  async connect() {
    const answer = await this.request("ui/initialize", {
      appInfo: this.info,
      appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
      protocolVersion: "2026-01-26",
    });
    this.capabilities = answer.hostCapabilities ?? {};
    adoptContext(answer.hostContext ?? {});
    this.on("ui/notifications/host-context-changed", adoptContext);
    this.notify("ui/notifications/initialized", {});
    this.reportSizes();
  }

  // Returns the result, or throws an error with a text for people.
  request(method, params) {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.post({ jsonrpc: "2.0", id, method, params });
    });
  }

  notify(method, params) {
    this.post({ jsonrpc: "2.0", method, params });
  }

  post(message) {
    window.parent.postMessage(message, "*");
  }

  receive(message) {
    if (message.method === undefined) {
      const waiter = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) waiter?.reject(new Error(message.error.message));
      else waiter?.resolve(message.result);
      return;
    }
    if (message.id === undefined) {
      this.handlers.get(message.method)?.(message.params ?? {});
    } else if (message.method === "ping" || message.method === "ui/resource-teardown") {
      this.post({ jsonrpc: "2.0", id: message.id, result: {} });
    } else {
      const error = { code: -32601, message: `The view has no method ${message.method}` };
      this.post({ jsonrpc: "2.0", id: message.id, error });
    }
  }

  async callTool(name, args) {
    const result = await this.request("tools/call", { name, arguments: args }).catch((error) => {
      throw new Error(`The client did not call ${name}: ${error.message}`);
    });
    if (result.isError) throw new Error(result.structuredContent?.message ?? (textOf(result) || "The tool failed."));
    return result.structuredContent ?? JSON.parse(textOf(result));
  }

  // Puts standards into the chat, and returns the result in words.
  async say(standards) {
    const lines = standards.map((standard) => `${shortCode(standard)}: ${textOfStandard(standard)}`);
    const text = `I chose ${standards.length === 1 ? "this standard" : "these standards"}:\n${lines.join("\n")}`;
    const result = await this.request("ui/message", { role: "user", content: [{ type: "text", text }] });
    if (result?.isError) throw new Error("The client did not take the message.");
    return "It is in the chat.";
  }

  // Returns more buttons for chosen standards; the page in a browser has some.
  actionsFor() {
    return [];
  }

  reportSizes() {
    let timer = 0;
    const report = () => {
      const { width, height } = document.documentElement.getBoundingClientRect();
      const size = { width: Math.ceil(width), height: Math.ceil(height) };
      this.notify("ui/notifications/size-changed", size);
    };
    new ResizeObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(report, 100);
    }).observe(document.documentElement);
    report();
  }
}

// Takes over the colours, the fonts and the room that the client gives.
function adoptContext({ theme, styles, containerDimensions, safeAreaInsets }) {
  const root = document.documentElement;
  if (theme) root.style.colorScheme = theme;
  for (const [name, value] of Object.entries(styles?.variables ?? {})) {
    if (name.startsWith("--")) root.style.setProperty(name, value);
  }
  if (styles?.css?.fonts) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(styles.css.fonts);
    document.adoptedStyleSheets = [sheet];
  }
  if (containerDimensions) {
    const most = containerDimensions.height ?? containerDimensions.maxHeight ?? 500;
    root.style.setProperty("--most-height", `${Math.max(most - 24, 200)}px`);
  }
  for (const [side, pixels] of Object.entries(safeAreaInsets ?? {})) {
    document.body.style.setProperty(`padding-${side}`, `${Math.max(pixels, 12)}px`);
  }
}

function textOf(result) {
  return (result.content ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n");
}
