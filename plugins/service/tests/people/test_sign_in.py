"""Sign-ins of people by OpenID Connect: what counts, what does not, and what attackers try."""

from __future__ import annotations

import time
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from support.http import ACCEPT, INITIALIZE, auth_of, bearer, patient_client
from support.openid import PAGE, Browser, DeskPlugin, Provider, Serve

from standards_mcp import Route, hookimpl
from standards_mcp_service.people import provider as provider_module
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
ROOT = new_token()
PERSON = "__Host-standards-mcp"
NOW = int(time.time())


async def is_signed_in(browser: Browser) -> bool:
    """Return whether a page knows the person."""
    return (await browser.get("/connect")).status_code == 200


async def test_a_person_signs_in_for_the_page_that_they_opened(served: Serve, provider: Provider):
    async with served() as browser:
        asked = dict(parse_qsl(urlsplit(await browser.leave_for_provider()).query))
        assert asked["response_type"] == "code"
        assert asked["client_id"] == "standards"
        assert asked["redirect_uri"] == f"{browser.url}/signed-in"
        assert asked["scope"] == "openid profile"
        assert asked["code_challenge_method"] == "S256"
        assert min(len(asked[name]) for name in ("state", "nonce", "code_challenge")) >= 43
        done = await browser.sign_in("/admin/tools?changed=look&x=%2F")
        assert done.status_code == 303
        assert done.headers["location"] == f"{browser.url}/admin/tools?changed=look&x=%2F"
        connect = await browser.get("/connect")
    assert "Ann Example" in connect.text
    assert provider.url not in connect.text
    assert "ann" not in browser.cookies[PERSON]


@pytest.mark.parametrize(
    ("groups", "statuses"),
    [
        (["teachers"], {"/admin": 403, "look": 200, "drop": 404}),
        (["operators", "unknown"], {"/admin": 200, "look": 404, "drop": 404}),
        (["operators", "teachers"], {"/admin": 200, "look": 200, "drop": 404}),
        ("all", {"/admin": 200, "look": 200, "drop": 200}),
    ],
    ids=str,
)
async def test_groups_give_the_rights_of_a_token_with_their_scopes(
    served: Serve, provider: Provider, groups: Any, statuses: dict[str, int]
):
    provider.claims["groups"] = groups
    async with served() as browser:
        await browser.sign_in()
        for name, status in statuses.items():
            if name.startswith("/"):
                answer = await browser.get(name)
            else:
                answer = await browser.request(
                    "POST", f"/tools/{name}", json={}, headers={"origin": browser.url}
                )
            assert answer.status_code == status, name
            if name == "look" and status == 200:
                assert answer.json() == {
                    "content": [{"type": "text", "text": f"{provider.url}:ann"}]
                }


class ShelfPlugin(DeskPlugin):
    """A page for browsers with two tools."""

    async def show(self, request: Request) -> Response:
        return PlainTextResponse(",".join(request.state.tools))

    @hookimpl
    def register_routes(self) -> list[Route]:
        return [Route(path="/shelf", function=self.show, is_page=True, tools=("look", "drop"))]


async def test_a_person_uses_a_plugins_page_with_the_tools_of_their_groups(
    served: Serve, provider: Provider
):
    async with served(plugin=ShelfPlugin) as browser:
        done = await browser.sign_in("/shelf?q=x")
        assert done.headers["location"] == f"{browser.url}/shelf?q=x"
        assert (await browser.get("/shelf")).text == "look"
        own = {"origin": browser.url}
        answer = await browser.request("POST", "/shelf/tools/look", json={}, headers=own)
        assert f"{provider.url}:ann" in answer.text
        answer = await browser.request("POST", "/shelf/tools/drop", json={}, headers=own)
        assert answer.status_code == 404
        browser.cookies.clear()
        ended = await browser.request("POST", "/shelf/tools/look", json={}, headers=own)
        assert (ended.status_code, ended.json()["error"]) == (401, "missing_token")
        assert "reload the page" in ended.json()["error_description"]


async def test_a_person_without_a_group_of_the_service_is_refused(
    served: Serve, provider: Provider
):
    strange: list[Any] = ["*", {"teachers": True}, [["teachers"], None, 3], ["empty"]]
    for groups in ([], ["strangers"], None, *strange):
        provider.claims["groups"] = groups
        async with served(groups={"teachers": ["teacher"], "empty": []}) as browser:
            refused = await browser.sign_in()
            assert refused.status_code == 403, groups
            assert "none of your groups may use this service" in refused.text
            assert PERSON not in browser.cookies
    async with served(groups={"*": ["teacher"]}) as browser:
        await browser.sign_in()
        assert await is_signed_in(browser)


async def test_a_service_without_a_secret_proves_itself_by_pkce(served: Serve, provider: Provider):
    provider.is_public = True
    async with served(client_secret=None) as browser:
        assert (await browser.sign_in()).status_code == 303
        assert await is_signed_in(browser)
    async with served() as browser:  # this provider takes no secret
        assert (await browser.sign_in()).status_code == 400


async def test_groups_may_come_from_the_user_info_of_the_same_person(
    served: Serve, provider: Provider
):
    provider.claims["roles"] = None
    async with served(groups_claim="roles") as browser:
        provider.user_info = {"sub": "bob", "roles": ["operators"]}
        refused = await browser.sign_in()
        assert "its user info is of another person" in refused.text
        assert not await is_signed_in(browser)
        provider.user_info = {"sub": "ann", "roles": ["operators"], "iss": "https://evil.example"}
        await browser.sign_in()
        assert (await browser.get("/admin")).status_code == 200


ID_TOKENS: list[tuple[str, dict[str, Any], bool]] = [
    ("valid", {}, True),
    ("expired", {"exp": NOW - 60}, False),
    ("expired within the leeway for clocks", {"exp": NOW - 5, "iat": NOW - 60}, True),
    ("issued in the future", {"iat": NOW + 3600}, False),
    ("issued in the future within the leeway", {"iat": NOW + 15}, True),
    ("not valid yet", {"nbf": NOW + 3600}, False),
    ("without an end", {"exp": None}, False),
    ("for another client", {"aud": "other"}, False),
    ("for nobody", {"aud": None}, False),
    ("for several clients, asked for by another", {"aud": ["standards", "x"], "azp": "x"}, False),
    ("for several clients, asked for by nobody", {"aud": ["standards", "x"]}, False),
    ("for several clients, asked for", {"aud": ["standards", "x"], "azp": "standards"}, True),
    ("asked for by another client", {"azp": "x"}, False),
    ("of another issuer", {"iss": "https://evil.example"}, False),
    ("of another sign-in", {"nonce": "other"}, False),
    ("of no sign-in", {"nonce": None}, False),
    ("with an odd nonce", {"nonce": "\udcff"}, False),
    ("without a subject", {"sub": None}, False),
    ("without the time of the sign-in", {"iat": None}, False),
    ("with an empty subject", {"sub": ""}, False),
    ("with a long subject", {"sub": "x" * 300}, False),
    ("with a line break in the subject", {"sub": "ann\nroot"}, False),
]


@pytest.mark.parametrize(
    ("claims", "is_valid"), [row[1:] for row in ID_TOKENS], ids=[row[0] for row in ID_TOKENS]
)
async def test_only_an_id_token_for_this_sign_in_counts(
    served: Serve, provider: Provider, claims: dict[str, Any], *, is_valid: bool
):
    shift = int(time.time()) - NOW  # the table may be older than the token
    moved = {
        name: value + shift if isinstance(value, int) else value for name, value in claims.items()
    }
    provider.claims |= moved
    async with served() as browser:
        done = await browser.sign_in()
        assert done.status_code == (303 if is_valid else 400), done.text
        assert await is_signed_in(browser) == is_valid


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
async def test_an_id_token_needs_the_signature_of_a_key_pair(
    served: Serve, provider: Provider, algorithm: str
):
    provider.algorithm = algorithm
    async with served() as browser:
        assert "its ID token is not valid" in (await browser.sign_in()).text
        assert not await is_signed_in(browser)


@pytest.mark.parametrize("tokens", [{"id_token": None}, {"id_token": "x"}, {"id_token": ["x"]}])
async def test_without_an_id_token_nobody_is_signed_in(
    served: Serve, provider: Provider, tokens: dict[str, Any]
):
    provider.tokens = tokens
    async with served() as browser:
        assert (await browser.sign_in()).status_code == 400
        assert not await is_signed_in(browser)


async def test_new_keys_of_the_provider_count_and_unknown_ones_do_not(
    served: Serve, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("standards_mcp_service.jwt_tokens._RETRY_SECONDS", 0.0)
    async with served() as browser:
        await browser.sign_in()
        browser.cookies.clear()
        provider.kid = "two"
        assert (await browser.sign_in()).status_code == 400
        provider.kids = ["two"]
        assert (await browser.sign_in()).status_code == 303
        provider.kid = "one"
        browser.cookies.clear()
        assert (await browser.sign_in()).status_code == 400
        assert not await is_signed_in(browser)


async def test_while_the_keys_cannot_be_read_the_id_token_is_not_blamed(
    served: Serve, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("standards_mcp_service.jwt_tokens._RETRY_SECONDS", 0.0)
    provider.kids = []
    async with served() as browser:
        refused = await browser.sign_in()
        assert refused.status_code == 503
        assert "its keys cannot be read now; try again later" in refused.text
        assert not await is_signed_in(browser)
        provider.kids = ["two"]
        assert (await browser.sign_in()).status_code == 400
        provider.kids = ["one"]
        assert (await browser.sign_in()).status_code == 303


async def test_another_browser_cannot_finish_a_sign_in(served: Serve):
    async with served() as browser:
        stolen = await browser.come_back()
        victim = Browser(browser.url)
        # Login CSRF: the victim would act in the account of the attacker.
        refused = await victim.get(stolen)
        assert refused.status_code == 400
        assert "this browser has not begun it" in refused.text
        assert victim.cookies == {}
        # Nor with a sign-in of their own: its state is another one.
        await victim.leave_for_provider()
        assert (await victim.get(stolen)).status_code == 400
        assert PERSON not in victim.cookies
        assert (await browser.get(stolen)).status_code == 303


@pytest.mark.parametrize("checks_pkce", [True, False], ids=["PKCE", "nonce"])
async def test_the_code_of_another_sign_in_is_of_no_use(
    served: Serve, provider: Provider, *, checks_pkce: bool
):
    provider.checks_pkce = checks_pkce
    async with served() as browser:
        stolen = dict(parse_qsl(urlsplit(await browser.come_back()).query))["code"]
        attacker = Browser(browser.url)
        provider.answer = {"code": stolen}
        refused = await attacker.sign_in()
        assert refused.status_code == 400
        assert PERSON not in attacker.cookies


@pytest.mark.parametrize(
    ("metadata", "answer", "message"),
    [
        ({}, {"iss": "https://evil.example"}, "of another issuer"),
        ({}, {"iss": None}, "of another issuer"),
        ({"authorization_response_iss_parameter_supported": False}, {"iss": None}, ""),
        (
            {"authorization_response_iss_parameter_supported": False},
            {"iss": "https://evil.example"},
            "of another issuer",
        ),
        ({}, {"error": "access_denied", "error_description": "<b>no"}, "access_denied: &lt;b&gt;"),
        ({}, {"code": None}, "invalid_grant"),
        ({}, {"state": "other"}, "this browser has not begun it"),
        ({}, {"state": None}, "this browser has not begun it"),
    ],
    ids=["mix-up", "no issuer", "an older provider", "mix-up there", "denied", "code", "state", ""],
)
async def test_an_answer_that_is_not_the_providers_is_refused(
    served: Serve,
    provider: Provider,
    metadata: dict[str, Any],
    answer: dict[str, str | None],
    message: str,
):
    provider.metadata, provider.answer = metadata, answer
    async with served() as browser:
        done = await browser.sign_in()
        assert done.status_code == (400 if message else 303)
        assert message in done.text
        assert await is_signed_in(browser) == (not message)
        assert "/token" not in provider.asked or "issuer" not in message


async def test_a_sign_in_is_finished_once_and_within_its_time(
    served: Serve, monkeypatch: pytest.MonkeyPatch
):
    async with served() as browser:
        back = await browser.come_back()
        kept = dict(browser.cookies)
        assert (await browser.get(back)).status_code == 303
        assert [name for name in browser.cookies if name != PERSON] == []
        assert (await browser.get(back)).status_code == 400
        browser.cookies = kept
        assert "invalid_grant" in (await browser.get(back)).text  # the provider refuses the code
        back = await browser.come_back()
        monkeypatch.setattr("standards_mcp_service.people.cookies._SIGN_IN_SECONDS", -1)
        assert "it took too long" in (await browser.get(back)).text


async def test_sign_ins_in_two_tabs_do_not_disturb_each_other(served: Serve):
    async with served() as browser:
        first, second = await browser.come_back("/admin"), await browser.come_back("/docs")
        assert (await browser.get(first)).headers["location"].endswith("/admin")
        assert (await browser.get(second)).headers["location"].endswith("/docs")


async def test_a_cookie_from_before_a_sign_in_does_not_become_valid(served: Serve):
    async with served() as browser:
        browser.cookies[PERSON] = planted = "gAAAAAplanted"
        assert not await is_signed_in(browser)
        await browser.sign_in()
        assert browser.cookies[PERSON] != planted
        first = browser.cookies[PERSON]
        browser.cookies[PERSON] = first[:-4] + "AAAA"
        assert not await is_signed_in(browser)


async def test_the_cookie_of_a_begun_sign_in_is_no_session(served: Serve):
    async with served() as browser:
        await browser.leave_for_provider()
        (begun,) = browser.cookies.values()
        browser.cookies = {PERSON: begun}
        assert not await is_signed_in(browser)


async def test_a_session_ends_after_its_lifetime(served: Serve, monkeypatch: pytest.MonkeyPatch):
    async with served(lifetime=60) as browser:
        await browser.sign_in()
        assert await is_signed_in(browser)
        now = time.time()
        monkeypatch.setattr("standards_mcp_service.people.cookies.time.time", lambda: now + 61)
        assert not await is_signed_in(browser)
        # The clock of another service with the same key may be behind.
        for seconds, is_valid in ((20, True), (40, False)):
            clock = partial(float, now - seconds)
            monkeypatch.setattr("standards_mcp_service.people.cookies.time.time", clock)
            assert await is_signed_in(browser) == is_valid


async def test_a_session_outlives_a_restart_with_the_same_key_only(served: Serve):
    key = {"state_key": "k" * 32}
    async with served(key) as browser:
        await browser.sign_in()
        kept = browser.cookies
    for server, is_valid in ((key, True), ({"state_key": "l" * 32}, False), ({}, False)):
        async with served(server) as browser:
            browser.cookies = dict(kept)
            assert await is_signed_in(browser) == is_valid, server
    async with served(key, client_id="another") as browser:
        browser.cookies = dict(kept)
        assert not await is_signed_in(browser)


async def test_signing_out_ends_the_session_also_for_copies_of_its_cookie(
    served: Serve, provider: Provider
):
    async with served({"state_key": "k" * 32}) as browser:
        await browser.sign_in()
        copied = dict(browser.cookies)
        for headers in (
            {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
            {"origin": "null"},
            {"sec-fetch-site": "same-site"},
        ):
            assert (await browser.post("/sign-out", **headers)).status_code == 403
        assert await is_signed_in(browser)
        done = await browser.post("/sign-out")
        assert (done.status_code, done.headers["location"]) == (303, "signed-out")
        assert PERSON not in browser.cookies
        page = await browser.get("/signed-out")
        assert f"{provider.url}/end?client_id=standards&amp;post_logout_redirect_uri" in page.text
        browser.cookies = copied
        assert not await is_signed_in(browser)
    async with served({"state_key": "k" * 32}) as browser:  # also after a restart
        browser.cookies = copied
        assert not await is_signed_in(browser)


@pytest.mark.parametrize(
    "metadata", [{"end_session_endpoint": None}, {"end_session_endpoint": "javascript:alert(1)"}]
)
async def test_without_a_usable_page_of_the_provider_people_sign_out_here_only(
    served: Serve, provider: Provider, metadata: dict[str, Any]
):
    provider.metadata = metadata
    async with served() as browser:
        page = (await browser.get("/signed-out")).text
    assert "You have signed out of this service" in page
    assert "Sign out at" not in page
    assert "javascript" not in page


async def test_a_sign_out_that_cannot_be_kept_still_deletes_the_cookie(
    served: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def refuse(_: object) -> Any:
        raise OSError("the disk is full")

    async with served() as browser:
        await browser.sign_in()
        monkeypatch.setattr("standards_mcp_service.people.cookies.private_folder", refuse)
        assert (await browser.post("/sign-out")).status_code == 303
        assert PERSON not in browser.cookies
    assert "a sign-out cannot be kept; a copied cookie stays valid" in caplog.messages


async def test_a_page_elsewhere_changes_nothing_with_a_persons_cookie(
    served: Serve, provider: Provider
):
    provider.claims["groups"] = ["all"]
    async with served({"allowed_origins": ["https://friend.example"]}) as browser:
        await browser.sign_in()
        own = {"origin": browser.url}
        calls = [("/admin/tools", {"data": {"action": "disable", "tool": "look"}})]
        calls.append(("/tools/look", {"json": {}}))
        for path, body in calls:
            for headers in (
                {},
                {"sec-fetch-site": "same-origin"},
                {"origin": "null"},
                {"origin": "https://friend.example"},
                {"origin": "https://evil.example"},
                *({**own, "sec-fetch-site": f"{site}"} for site in ("cross-site", "same-site")),
            ):
                answer = await browser.request("POST", path, headers=headers, **body)
                assert answer.status_code in {401, 403}, (path, headers)
            answer = await browser.request("POST", path, headers=own, **body)
            assert answer.status_code in {200, 409}, path  # there is no file to change


async def test_behind_a_proxy_with_tls_people_sign_in_change_things_and_sign_out(
    served: Serve, provider: Provider
):
    provider.claims["groups"] = ["all"]
    public = "https://mcp.example.org"
    async with served({"allowed_hosts": ["mcp.example.org"]}, public_url=public) as direct:
        browser = Browser(public, server=direct.url)
        done = await browser.sign_in("/admin/tools")
        assert done.headers["location"] == f"{public}/admin/tools"
        assert (await browser.get("/admin/tools")).status_code == 200
        switch = {"data": {"action": "disable", "tool": "look"}, "headers": {"origin": public}}
        answer = await browser.request("POST", "/admin/tools", **switch)
        assert answer.status_code == 409  # there is no file to change
        assert (await browser.post("/sign-out")).status_code == 303
        assert PERSON not in browser.cookies


async def test_where_no_token_is_needed_a_person_may_sign_in_for_more(served: Serve):
    server = {"allowed_hosts": ["127.0.0.1"]}
    async with served(server, {"required": False}) as browser:
        refused = await browser.get("/admin")
        assert refused.status_code == 403
        assert '<a href="sign-in?next=/admin">Sign in</a>' in refused.text
        answer = await browser.get("/sign-in?next=/admin")
        answer = await browser.get(answer.headers["location"])
        await browser.get(answer.headers["location"])
        assert "Ann Example" in (await browser.get("/admin/tools")).text


async def test_the_cookie_is_for_pages_and_not_for_mcp(served: Serve):
    async with served() as browser:
        await browser.sign_in()
        headers = {**ACCEPT, "origin": browser.url}
        answer = await browser.request("POST", "/mcp", json=INITIALIZE, headers=headers)
        assert answer.status_code == 401
        assert (await browser.get("/mcp", **ACCEPT)).status_code == 401
        opened = await browser.get("/mcp")  # a sign-in would lead back here for ever
        assert opened.status_code == 401


async def test_a_page_whose_session_has_ended_says_that_its_person_must_sign_in(served: Serve):
    async with served() as browser:
        own = await browser.request("POST", "/tools/look", headers={"origin": browser.url})
        assert own.status_code == 401
        assert own.json() == {
            "error": "missing_token",
            "error_description": "you are not signed in, or no longer; reload the page",
        }
        program = await browser.request("POST", "/tools/look")
        assert "a token is needed" in program.json()["error_description"]


@pytest.mark.parametrize(
    "page",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "@evil.example",
        ".evil.example",
        "/\r\nset-cookie: x=y",
        "/\tevil",
        "javascript:alert(1)",
        "",
    ],
)
async def test_a_sign_in_leads_back_to_the_service_only(served: Serve, page: str):
    async with served() as browser:
        begun = await browser.request("GET", "/sign-in", params={"next": page})
        answer = await browser.get(begun.headers["location"])
        done = await browser.get(answer.headers["location"])
        assert done.status_code == 303
        assert urlsplit(done.headers["location"]).netloc == urlsplit(browser.url).netloc
        assert "x=y" not in str(done.headers.get_list("set-cookie"))


@pytest.mark.parametrize(
    ("page", "end"),
    [
        (f"/admin?{'q' * 1493}", f"/admin?{'q' * 1493}"),
        (f"/admin?{'q' * 6000}", "/admin"),
        (f"/admin/{'x' * 6000}?q=1", "/"),
    ],
    ids=["short", "long query", "long path"],
)
async def test_a_page_with_a_long_address_can_be_signed_in_for(served: Serve, page: str, end: str):
    async with served() as browser:
        done = await browser.get(await browser.come_back(page))
        assert done.headers["location"] == f"{browser.url}{end}"
        begun = await browser.get(f"/sign-in?next={page}")
        assert all(len(line) < 4096 for line in begun.headers.get_list("set-cookie"))


async def test_a_browser_forgets_the_oldest_of_many_begun_sign_ins(served: Serve):
    async with served() as browser:
        browser.cookies["__Host-standards-mcp-sign-in-("] = "of an attacker"
        backs = [await browser.come_back() for _ in range(7)]
        assert len(browser.cookies) == 6
        assert "this browser has not begun it" in (await browser.get(backs[1])).text
        assert (await browser.get(backs[2])).status_code == 303


async def test_only_requests_for_pages_lead_to_the_provider(served: Serve):
    async with served() as browser, patient_client(base_url=browser.url) as http:
        for path in ("/admin", "/docs", "/connect", "/", "/plugins/desk/x"):
            asked = await http.get(path, headers=PAGE)
            assert asked.status_code == 303, path
            assert asked.headers["location"].startswith(f"{browser.url}/sign-in?next=%2F")
        for method, path, headers in (
            ("GET", "/openapi.json", {}),
            ("POST", "/tools/look", PAGE),
            ("POST", "/mcp", ACCEPT),
            ("GET", "/admin", PAGE | bearer("wrong")),
        ):
            assert (await http.request(method, path, headers=headers)).status_code == 401, path


async def test_a_token_is_still_a_password_for_browsers(served: Serve):
    tokens = auth_of(root=ROOT)["tokens"]
    async with served(auth={"tokens": tokens}) as browser, patient_client() as http:
        url = f"{browser.url}/sign-in?token&next=/admin"
        asked = await http.get(url)
        assert asked.status_code == 401
        assert "Basic" in asked.headers["www-authenticate"]
        done = await http.get(url, auth=("any", ROOT))
        assert (done.status_code, done.headers["location"]) == (303, "./admin")
        for page in ("/https://evil.example", "//evil.example", "https://evil.example", "/"):
            moved = await http.get(f"{browser.url}/sign-in?token&next={page}", auth=("", ROOT))
            assert urljoin(url, moved.headers["location"]).startswith(f"{browser.url}/"), page
        assert (await http.get(f"{browser.url}/admin", auth=("any", ROOT))).status_code == 200
        # What a program says itself counts, not what the browser remembers.
        await browser.sign_in()
        assert (await browser.get("/admin", **bearer(ROOT))).status_code == 200
        assert (await browser.get("/admin", **bearer("wrong"))).status_code == 401


async def test_while_the_provider_is_down_the_page_says_so_and_asks_it_rarely(
    served: Serve, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    provider.is_down = True
    async with served() as browser:
        for _ in range(3):
            refused = await browser.get("/sign-in?next=/admin")
            assert refused.status_code == 503
            assert "answers with HTTP 503" in refused.text
            assert 'href="sign-in?token=&amp;next=%2Fadmin"' in refused.text
        assert provider.asked == ["/.well-known/openid-configuration"]
        monkeypatch.setattr(provider_module, "_RETRY_SECONDS", 0.0)
        provider.is_down = False
    async with served() as browser:
        back = await browser.come_back()
        provider.is_down = True
        assert (await browser.get(back)).status_code == 503
        provider.is_down = False
        await browser.sign_in()
        provider.is_down = True
        assert await is_signed_in(browser)  # sessions need no provider


@pytest.mark.parametrize(
    ("metadata", "oidc", "message"),
    [
        ({"issuer": "https://evil.example"}, {}, "is of another issuer"),
        ({"authorization_endpoint": "http://evil.example/"}, {}, "is not an https address"),
        ({"authorization_endpoint": ""}, {}, "is not an https address"),
        ({"token_endpoint": "http://evil.example/"}, {}, "is not an https address"),
        ({"code_challenge_methods_supported": []}, {"client_secret": None}, "not support PKCE"),
    ],
    ids=["issuer", "page", "no page", "tokens", "PKCE"],
)
async def test_a_provider_with_unusable_metadata_gets_no_browser(
    served: Serve,
    provider: Provider,
    metadata: dict[str, Any],
    oidc: dict[str, Any],
    message: str,
):
    provider.metadata = metadata
    async with served(**oidc) as browser:
        refused = await browser.get("/sign-in")
    assert refused.status_code == 400
    assert message in refused.text


async def test_too_many_groups_for_a_cookie_are_refused(served: Serve, provider: Provider):
    names = [f"group {number} with a long name" for number in range(150)]
    provider.claims["groups"] = names
    async with served(groups={name: ["teacher"] for name in names}) as browser:
        refused = await browser.sign_in()
    assert refused.status_code == 400
    assert "too many groups" in refused.text


async def test_the_log_tells_who_signed_in_and_out_and_who_could_not(
    served: Serve, provider: Provider, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO", "standards_mcp")
    async with served() as browser:
        await browser.sign_in()
        await browser.post("/sign-out")
        await browser.get("/signed-in?state=x")
    told = [
        (each.message, vars(each).get("caller") or vars(each).get("client"))
        for each in caplog.records
        if "sign" in each.message
    ]
    who = f"{provider.url}:ann"
    assert told == [
        ("a person has signed in", who),
        ("a person has signed out", who),
        ("a sign-in is refused", "127.0.0.1"),
    ]
    assert "a secret of the service" not in caplog.text
