from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.records import read_and_told

from standards_mcp_catalog.importing.files import Document, open_sources
from standards_mcp_catalog.importing.readers import read_documents
from standards_mcp_catalog.importing.report import Problem, SourceError
from standards_mcp_catalog.importing.selection import Selection
from standards_mcp_catalog.importing.services import case_documents, csp_documents, csp_web
from standards_mcp_catalog.importing.web import Cache, Web


class Service:
    """A loopback server whose answers a test sets: (status, headers, body) or a list of them."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                status, headers, body = outer.answer(self.path)
                self.send_response(status)
                sent = {"Content-Length": str(len(body))} | headers
                for name, value in sent.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError):  # the reader has gone
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(path)
        found = self.answers.get(path, self.answers.get(parts.path, 404))
        if callable(found):
            found = found({name: int(values[0]) for name, values in parse_qs(parts.query).items()})
        if isinstance(found, list) and found and isinstance(found[0], tuple):
            found = found.pop(0) if len(found) > 1 else found[0]
        if isinstance(found, int):
            return found, {}, b"no"
        return found if isinstance(found, tuple) else (200, {}, json.dumps(found).encode())

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


def ids(found: Any) -> tuple[list[str], list[Problem]]:
    records, problems = read_and_told(chain.from_iterable(read_documents(found)))
    return [record.id for record in records], problems


def web(pauses: list[float] | None = None, **options: Any) -> Web:
    return Web(sleep=(pauses if pauses is not None else []).append, **options)


def test_an_address_that_is_not_there_is_told_and_the_next_one_read(service, csp_set):
    service.answers["/set.json"] = csp_set()
    found, problems = ids(open_sources([f"{service.url}/none", f"{service.url}/set.json"]))
    assert found == ["A", "B", "C"]
    assert "404" in str(problems[0])


def test_a_busy_server_is_asked_again_after_the_pause_it_asks_for(service):
    service.answers["/x"] = [(429, {"Retry-After": "7"}, b""), (503, {}, b""), (200, {}, b"ok")]
    pauses: list[float] = []
    assert web(pauses).get(f"{service.url}/x") == b"ok"
    assert pauses == [7, 2]


@pytest.mark.parametrize(
    ("answer", "message", "calls"),
    [
        (401, "401", 1),
        (500, "500", 4),
        (429, "429", 4),
        ((429, {"Retry-After": "3600"}, b""), "429 Too Many Requests; try again later", 1),
        ((200, {}, b"x" * 1_001), "larger than 1,000 bytes", 1),
        ((200, {"X": "x" * 200_000}, b""), "cannot be read", 4),
        ((302, {"Location": "/x"}, b""), "redirects too often, perhaps in a circle", 10),
        ((302, {"Location": "file:///etc/passwd"}, b""), "not an http address", 1),
    ],
)
def test_errors_are_told_in_one_line_once_there_is_no_hope(service, answer, message, calls):
    service.answers["/x"] = answer
    with pytest.raises(SourceError, match=message) as caught:
        web(largest=1_000).get(f"{service.url}/x")
    assert "\n" not in str(caught.value)
    assert len(service.requests) == calls


def test_a_download_that_breaks_off_is_tried_again_and_never_taken_for_whole(service):
    service.answers["/x"] = [(200, {"Content-Length": "9"}, b"torn"), (200, {}, b"whole")]
    assert web().get(f"{service.url}/x") == b"whole"
    service.answers["/y"] = (200, {"Content-Length": "9"}, b"torn")
    with pytest.raises(SourceError, match="peer closed connection"):
        web().get(f"{service.url}/y")


def test_a_server_that_is_not_there_is_told_at_once_in_one_line(service):
    pauses: list[float] = []
    service.server.server_close()
    for address, message in (
        (service.url, r"^127.0.0.1 cannot be read .*refused\); check the address"),
        ("http://nobody.invalid/x", r"^nobody.invalid cannot be read \("),
    ):
        with pytest.raises(SourceError, match=message) as caught:
            web(pauses if "nobody" in address else None).get(address)
        assert "\n" not in str(caught.value)
    assert pauses == []


def test_a_server_that_does_not_answer_is_not_asked_again(service):
    stop = threading.Event()
    service.answers["/x"] = lambda _: (200, {}, b"late") if stop.wait(10) else 500
    with pytest.raises(SourceError, match=r"no answer within 0.2 seconds"):
        web(timeout=0.2).get(f"{service.url}/x")
    stop.set()
    assert service.paths == ["/x"]


@pytest.mark.parametrize(("size", "pause"), [(10**6, 50), (10**8, 4_000)], ids=["drips", "fair"])
def test_a_download_that_takes_too_long_is_given_up(service, size, pause):
    now = iter(range(0, 10**9, pause))
    service.answers["/x"] = (200, {}, b"x" * size)
    with pytest.raises(SourceError, match="came too slowly"):
        web(clock=lambda: next(now)).get(f"{service.url}/x")


def test_an_answer_of_an_api_is_read_into_memory_only_if_it_is_no_larger(service, monkeypatch):
    module = "standards_mcp_catalog.importing.web"
    monkeypatch.setattr(f"{module}.LARGEST_ANSWER", 100)
    service.answers["/x"] = (200, {}, b"x" * 1_000)
    with pytest.raises(SourceError, match="larger than 100 bytes"):
        web().get(f"{service.url}/x")
    with web().download(f"{service.url}/x") as file:
        assert len(file.read()) == 1_000


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "ALL_PROXY"])
def test_certificates_and_proxies_that_cannot_be_used_are_told(monkeypatch, variable):
    monkeypatch.setenv(variable, "socks9://h:1")
    with pytest.raises(SourceError, match="the environment has a proxy or certificates that can"):
        web().get("https://127.0.0.1:1/x")


@pytest.mark.parametrize("body", [b"<!DOCTYPE html><p>Log in</p>", b"%PDF-1.7", b""])
def test_what_is_no_data_is_told_as_what_it_is(service, body):
    service.answers["/x"] = (200, {}, body)
    found, problems = ids(open_sources([f"{service.url}/x"]))
    assert found == []
    assert [each.reason for each in problems] == ["no standards" if body else "empty file"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("file:///etc/passwd", "not an http address"),
        ("x", "not an http address"),
        ("http://a:b@c:d/", "not an http address|unencrypted"),
        ("http://[bad", "check|unencrypted"),
        ("http://a b/c", "check|unencrypted"),
    ],
)
def test_what_is_no_address_of_a_server_is_told(address, message):
    for options in ({}, {"secret_headers": {"Api-Key": "abc"}}):
        with pytest.raises(SourceError, match=message):
            web(**options).get(address)


def test_no_more_calls_are_made_in_a_minute_than_allowed(service):
    now = [0.0]
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    service.answers["/x"] = 200
    reader = Web(calls_a_minute=3, clock=lambda: now[0], sleep=sleep)
    for _ in range(7):
        reader.get(f"{service.url}/x")
        now[0] += 1
    assert waits == [57, 57]


def test_answers_are_kept_until_they_are_old_where_they_can_be(tmp_path):
    asked: list[str] = []

    def fetch(address: str) -> bytes:
        asked.append(address)
        return address.encode()

    cache = Cache(tmp_path / "cache")
    assert cache.get("a", fetch) == cache.get("a", fetch) == b"a"
    assert asked == ["a"]
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for other in (Cache(tmp_path / "cache", days=0), Cache(tmp_path / "file" / "below")):
        asked.clear()
        assert other.get("a", fetch) == b"a"
        assert asked == ["a"]


@pytest.fixture
def csp_service(service, csp_set) -> Service:
    base = service.answers
    base["/jurisdictions"] = {
        "data": [
            {"id": "AA", "title": "Willow State ", "type": "state"},
            {"id": "BB", "title": "Elm", "type": "organization"},
        ]
    }
    summaries = [
        {"id": "AA_D1_grade-03", "title": "3", "subject": "Math", "educationLevels": ["03"]},
        {"id": "AA_D1_grade-k", "title": "K", "subject": "Math", "educationLevels": ["K"]},
        {"id": "AA_gone", "title": "x", "subject": "Science", "educationLevels": []},
    ]
    base["/jurisdictions/AA"] = {"data": {"id": "AA", "title": "W", "standardSets": summaries}}
    base["/jurisdictions/BB"] = {"data": {"id": "BB", "title": "E", "standardSets": []}}
    base["/standard_sets/AA_D1_grade-03"] = {"data": csp_set("03")}
    base["/standard_sets/AA_D1_grade-k"] = {"data": csp_set("K", {"X": {"description": "x"}})}
    base["/standard_sets/AA_gone"] = {"data": {}}
    return service


def test_the_csp_api_is_read_set_by_set(csp_service):
    seen: list[tuple[int, int]] = []
    documents = csp_documents(
        Selection(), base_url=csp_service.url, web=web(), progress=lambda *each: seen.append(each)
    )
    found, problems = ids(documents)
    assert found == ["A", "B", "C", "X"]
    assert [problem.reason for problem in problems] == ["empty answer"]
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("wanted", "sets"),
    [
        (Selection(jurisdictions=("willow",)), 3),
        (Selection(jurisdictions=("BB",)), 0),
        (Selection(subjects=("math",)), 2),
        (Selection(grades=("3",), subjects=("math",)), 1),
        (Selection(subjects=("music",)), 0),
    ],
)
def test_only_wanted_sets_are_asked_for(csp_service, wanted, sets):
    found = csp_documents(wanted, base_url=csp_service.url, web=web())
    assert len([each for each in found if isinstance(each, Document)]) == sets
    asked = [path for path in csp_service.paths if path.startswith("/standard_sets")]
    assert len(asked) == sets


@pytest.mark.parametrize(("key", "sent"), [("", None), ("  ", None), ("abc ", "abc")])
def test_a_key_is_sent_only_when_there_is_one(csp_service, key, sent):
    list(csp_documents(Selection(), base_url=csp_service.url, web=csp_web(key)))
    assert all(headers.get("api-key") == sent for _, headers in csp_service.requests)


def test_a_key_goes_to_the_address_that_was_asked_and_to_no_other(service):
    port = service.server.server_port
    service.answers |= {
        "/a": (302, {"Location": f"http://localhost:{port}/b"}, b""),
        "/b": (302, {"Location": "/c"}, b""),
        "/c": {"data": []},
    }
    csp_web("abc").get(f"{service.url}/a")
    assert [headers.get("api-key") for _, headers in service.requests] == ["abc", None, None]


@pytest.mark.parametrize("key", ["a\nb", "schlüssel", "a\tb"])
def test_a_key_that_no_header_can_have_is_refused_and_not_shown(service, key):
    with pytest.raises(SourceError, match="has characters that no key has") as caught:
        csp_web(key).get(f"{service.url}/x")
    assert key not in str(caught.value)
    assert service.requests == []


def test_a_key_is_not_sent_unencrypted():
    with pytest.raises(SourceError, match="would be sent unencrypted; use https"):
        csp_web("abc").get("http://csp.example.invalid/jurisdictions")


def test_an_interrupted_csp_import_goes_on_where_it_stopped(csp_service, tmp_path):
    cache = Cache(tmp_path)
    documents = csp_documents(Selection(), base_url=csp_service.url, web=web(cache=cache))
    next(documents)
    asked = len(csp_service.requests)
    again = csp_documents(Selection(), base_url=csp_service.url, web=web(cache=cache))
    assert ids(again)[0] == ["A", "B", "C", "X"]
    assert csp_service.paths[asked:] == ["/standard_sets/AA_D1_grade-k", "/standard_sets/AA_gone"]


def test_a_csp_server_in_trouble_is_told_and_the_rest_read(csp_service):
    csp_service.answers["/standard_sets/AA_D1_grade-k"] = 500
    csp_service.answers["/jurisdictions/BB"] = (200, {}, b"<html>")
    found, problems = ids(csp_documents(Selection(), base_url=csp_service.url, web=web()))
    assert found == ["A", "B", "C"]
    assert [problem.reason for problem in problems] == [
        "cannot be read", "cannot be read", "empty answer",
    ]  # fmt: skip


@pytest.mark.parametrize("answer", [500, (200, {}, b"{"), {"data": {}}, {"data": 7}])
def test_a_csp_listing_that_cannot_be_read_or_is_empty_is_told(service, answer):
    service.answers["/jurisdictions"] = answer
    found, problems = ids(csp_documents(Selection(), base_url=service.url, web=web()))
    assert (found, len(problems)) == ([], 1)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"jurisdictions": ["Oak"]}, "no such jurisdiction (nothing here fits 'Oak')"),
        ({"jurisdictions": ["Elm"]}, "no such standard set (nothing here fits 'Elm')"),
        ({"subjects": ["art"], "grades": ["5"]}, "set (nothing here fits 'art' and '5')"),
    ],
)
def test_a_service_that_has_nothing_of_what_is_wanted_is_told(csp_service, wanted, told):
    selection = Selection(**{key: tuple(names) for key, names in wanted.items()})
    found, problems = ids(csp_documents(selection, base_url=csp_service.url, web=web()))
    assert found == []
    assert str(problems[0]).endswith(told)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("Virginia", ""),
        ("VA", ""),
        ("aa", ""),
        ("West", "'West' may be 'West Elm' or 'West Virginia'. Name one of them in full."),
        ("Virgina", "did you mean 'Virginia' or 'West Virginia'?"),
    ],
)
def test_one_jurisdiction_is_asked_for_and_never_several_by_chance(csp_service, wanted, told):
    titles = {"AA": "Virginia", "BB": "West Virginia", "CC": "West Elm"}
    listing = [{"id": id_, "title": title} for id_, title in titles.items()]
    csp_service.answers["/jurisdictions"] = {"data": listing}
    selection = Selection(jurisdictions=(wanted,), grades=("3",))
    found, problems = ids(csp_documents(selection, base_url=csp_service.url, web=web()))
    asked = {path for path in csp_service.paths if path.startswith("/jurisdictions/")}
    assert (bool(found), asked) == ((False, set()) if told else (True, {"/jurisdictions/AA"}))
    assert told in "".join(map(str, problems))


def case_document(number: int, subject: str = "Science") -> dict[str, Any]:
    return {
        "identifier": f"doc-{number}",
        "uri": f"http://x/doc-{number}",
        "creator": "Willow",
        "title": f"Framework {number}",
        "subject": [subject],
    }


def case_package(number: int, subject: str = "Science") -> dict[str, Any]:
    item = {"identifier": f"item-{number}", "fullStatement": "x", "educationLevel": ["03"]}
    return {"CFDocument": case_document(number, subject), "CFItems": [item], "CFAssociations": []}


@pytest.mark.parametrize("version", ["v1p1", "v1p0"])
@pytest.mark.parametrize("given", ["", "/ims/case/{}"])
def test_a_case_service_is_read_by_pages_in_either_version(service, version, given):
    root = f"/ims/case/{version}"
    documents = [case_document(number) for number in range(150)]

    def page(query: dict[str, int]) -> dict[str, Any]:
        # Some servers give a little less than they are asked for, with more to come.
        return {"CFDocuments": documents[query["offset"] :][: query["limit"] - 3]}

    service.answers[f"{root}/CFDocuments"] = page
    for number in range(150):
        service.answers[f"{root}/CFPackages/doc-{number}"] = case_package(number)
    base = service.url + given.format(version)
    found, problems = ids(case_documents(base, Selection(), web=web()))
    withheld = {97, 98, 99}
    assert found == [f"item-{number}" for number in range(150) if number not in withheld]
    assert problems == []


def test_only_wanted_frameworks_are_asked_for(service):
    root = "/ims/case/v1p0"
    listed = [case_document(1), case_document(2, "Mathematics")]
    service.answers[f"{root}/CFDocuments"] = {"CFDocuments": listed}
    service.answers[f"{root}/CFPackages/doc-2"] = case_package(2)
    base = f"{service.url}{root}/"
    assert ids(case_documents(base, Selection(subjects=("math",)), web=web()))[0] == ["item-2"]
    assert ids(case_documents(base, Selection(jurisdictions=("elm",)), web=web()))[0] == []


def test_a_case_server_in_trouble_is_told(service):
    found, problems = ids(case_documents(service.url, Selection(), web=web()))
    assert (found, [problem.reason for problem in problems]) == ([], ["cannot be read"])
    service.answers["/ims/case/v1p1/CFDocuments"] = {"CFDocuments": [case_document(1), 5]}
    found, problems = ids(case_documents(service.url, Selection(), web=web()))
    assert [problem.reason for problem in problems] == ["wrong type", "cannot be read"]
