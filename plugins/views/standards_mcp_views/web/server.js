// Calls of tools by the server of the page in a browser: POST to tools/NAME below the page.
const mayCall = (name) => document.body.dataset.tools.split(" ").includes(name);
const MAY_SEARCH = mayCall("find_relevant_standards");
const NO_ACCESS = "You may not use this here; ask the administrator for access.";

async function callServer(name, args) {
  if (!mayCall(name)) throw new Error(NO_ACCESS);
  const url = `${location.pathname.replace(/\/$/, "")}/tools/${name}`;
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(args) }).catch(() => {
    throw new Error("The server does not answer.");
  });
  // A proxy, or the service at its end, may answer with plain text.
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.message ?? answer.error_description ?? `The server refused this (${response.status}).`);
  return answer;
}
