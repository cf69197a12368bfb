// A client on an SDK for TypeScript: lists tools, calls one, and prints both as JSON.
// The first argument is the folder of packages, the second one the version of the SDK.

import { createRequire } from "node:module";

const [modules, version, tool, given, target, ...rest] = process.argv.slice(2);
const require = createRequire(`${modules}/`);

function sdk() {
  if (version === "2") {
    return { ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio") };
  }
  const name = "@modelcontextprotocol/sdk/client";
  return { ...require(`${name}/index.js`), ...require(`${name}/stdio.js`), ...require(`${name}/streamableHttp.js`) };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport } = sdk();
const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(
  target.startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args: rest, env: process.env }),
);
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(given) });
console.log(JSON.stringify({ tools: tools.map((each) => each.name), structured: result.structuredContent }));
await client.close();
