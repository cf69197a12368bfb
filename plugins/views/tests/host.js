// The reference host of MCP Apps around a view in a frame, for the tests.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

document.title = "Host";
document.documentElement.lang = "en";
window.seen = [];
const see = (kind) => async (params) => {
  window.seen.push([kind, params]);
  return {};
};

window.openView = async ({ html, input, result, context, capabilities }) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.title = "view";
  frame.style.cssText = "width:100%;height:480px;border:0";
  document.body.replaceChildren(frame);
  const bridge = new AppBridge(null, { name: "host", version: "1" }, capabilities, { hostContext: context });
  bridge.oncalltool = async (params) => JSON.parse(await window.callTool(JSON.stringify(params)));
  bridge.onmessage = see("message");
  bridge.onupdatemodelcontext = see("context");
  bridge.ondownloadfile = see("download");
  bridge.onopenlink = see("link");
  bridge.onsizechange = see("size");
  const ready = new Promise((resolve) => { bridge.oninitialized = resolve; });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html;
  await ready;
  await bridge.sendToolInput({ arguments: input });
  await bridge.sendToolResult(result);
  window.bridge = bridge;
};
