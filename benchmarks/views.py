"""Measure the views: their sizes, the time until an answer is painted, and searches of the page.

usage: python benchmarks/views.py [--rounds 20]

It needs the package playwright, Chromium as `chromium` on the path, and the plugin views. The time
until paint is from the arrival of a tool's result in the page to the second frame after it. A round
trip is one request of the page of `views explore` and of `/explore` of the service over HTTP, with
a token, without the pause while a person types. Both are machine times; the peer in the same run is
an empty page that gets the same message, and a request that is refused at once.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import time
from threading import Thread
from typing import Any

import httpx2
from playwright.async_api import Page, async_playwright

from standards_mcp_views.pages import NAMES, explore_page, page

EMPTY = """<!doctype html><html lang="en"><main></main><script>
addEventListener("message", (event) => {
  if (event.data.method === "ui/notifications/tool-result") {
    document.querySelector("main").textContent = JSON.stringify(event.data.params);
  }
});</script></html>"""
PAINT = """
async ({ html, result }) => {
  document.body.replaceChildren();
  const frame = document.createElement("iframe");
  frame.style.cssText = "width:700px;height:480px";
  document.body.append(frame);
  const capabilities = { serverTools: {}, openLinks: {}, downloadFile: {}, message: {} };
  addEventListener("message", ({ data, source }) => {
    if (data.method !== "ui/initialize") return;
    const hostInfo = { name: "benchmark", version: "1" };
    const answer = { hostInfo, hostCapabilities: capabilities, hostContext: {} };
    source.postMessage({ jsonrpc: "2.0", id: data.id, result: answer }, "*");
  });
  await new Promise((resolve) => { frame.onload = resolve; frame.srcdoc = html; });
  await new Promise((resolve) => setTimeout(resolve, 150));
  const view = frame.contentWindow;
  const start = view.performance.now();
  view.postMessage({ jsonrpc: "2.0", method: "ui/notifications/tool-result", params: result }, "*");
  return new Promise((resolve) => setTimeout(() => view.requestAnimationFrame(
    () => view.requestAnimationFrame(() => resolve(view.performance.now() - start)))));
}
"""


def result_of(count: int) -> dict[str, Any]:
    text = "Cut a whole into equal parts, for instance with fraction strips or circles. " * 3
    results = [
        {
            "_id": str(number),
            "statement_notation": f"CCSS.Math.Content.3.NF.A.{number}",
            "content": text,
            "subject": "Mathematics",
            "education_levels": ["03"],
            "score": 0.5,
            "why": "fractions, strips",
            "source_url": "https://example.org/",
        }
        for number in range(count)
    ]
    data = {"success": True, "results": results, "message": f"Found {count} matching standards"}
    return {"content": [], "structuredContent": data}


async def painted(browser_page: Page, html: str, count: int, rounds: int) -> float:
    times = [
        await browser_page.evaluate(PAINT, {"html": html, "result": result_of(count)})
        for _ in range(rounds)
    ]
    return statistics.median(times)


def round_trips(command: list[str], rounds: int, token: str = "") -> dict[str, list[float]]:
    """Return the seconds of searches and of refused requests to the page of a process, in turn.

    Args:
        command: The arguments of `standards-mcp`; the process prints or logs the page's address.
    """
    words = ("compare", "fractions", "with", "paper", "strips", "on", "a", "number", "line")
    rotated = (words[number % len(words) :] + words for number in range(rounds))
    texts = [" ".join(text[: 1 + number // len(words)]) for number, text in enumerate(rotated)]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    times = {"find_relevant_standards": list[float](), "none": list[float]()}
    program = [sys.executable, "-m", "standards_mcp", *command]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        found = map(re.compile(r"http://[^\s\"]+").search, process.stdout)
        url = next(match[0] for match in found if match).removesuffix("/")
        page = f"{url.removesuffix('/mcp')}/explore" if url.endswith("/mcp") else url
        Thread(target=process.stdout.read, daemon=True).start()  # else a full pipe stops the log
        with httpx2.Client(timeout=60, headers=headers) as client:
            for number, text in enumerate(("warm up", *texts)):
                for name, seconds in times.items():
                    arguments = {"activity": text, "max_results": 20}
                    began = time.perf_counter()
                    answer = client.post(f"{page}/tools/{name}", json=arguments)
                    if number:
                        seconds.append(time.perf_counter() - began)
                    assert answer.is_success == (name != "none"), answer.text
        process.terminate()
    return times


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    for name, text in [(name, page(name)) for name in NAMES] + [("explore", explore_page()[0])]:
        print(f"{name:<10} {len(text.encode()):>7,} bytes")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        browser_page = await browser.new_page()
        for count in (5, 20, 200):
            ours = await painted(browser_page, page("results"), count, rounds)
            empty = await painted(browser_page, EMPTY, count, rounds)
            print(f"{count:>3} results painted after {ours:.0f} ms; an empty page {empty:.0f} ms")
        await browser.close()
    token = secrets.token_urlsafe()
    owner = f"server.auth.tokens.ann.sha256={hashlib.sha256(token.encode()).hexdigest()}"
    pages = {
        "views explore": (["views", "explore", "--no-open"], ""),
        "/explore": (["--set", owner, "serve", "--transport", "http", "--port", "0"], token),
    }
    for label, (command, own_token) in pages.items():
        for name, times in round_trips(command, rounds * 5, own_token).items():
            p50, p95 = (statistics.quantiles(times, n=20)[index] * 1000 for index in (9, 18))
            what = "refused" if name == "none" else "search"
            print(f"{label}, {what}: p50 {p50:.0f} ms, p95 {p95:.0f} ms")


asyncio.run(main())
