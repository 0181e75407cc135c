"""Audit, settings and keys: what those who look after a tenant see and change."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from browsing import Browser, visitor
from house import House, Response

import kept
from kept.doors.mcp.tools import TOOLS

SOURCE = Path(kept.__file__).parent
QUESTION = "how many days of leave do employees have?"


@pytest.fixture
def stocked(house: House) -> House:
    """Return an app with a document and a question that was asked."""
    house.add("Employees have 28 days of leave a year.", title="Handbook")
    house.search(QUESTION)
    return house


def sent(browser: Browser, page: str, path: str, **fields: str) -> Response:
    """Send a form of a page."""
    return browser.send(browser.get(page), path, fields)


class TestAudit:
    """Who did what."""

    def test_rows_say_who_what_and_on_what_it_rested(self, stocked: House) -> None:
        """With the numbers of the answer, and the way to its trace."""
        text = visitor(stocked).get("/audit").text

        trace = stocked.audit(action="search")[0]["trace"]
        assert "<strong>search</strong>" in text
        assert "relevanceTop" in text
        assert f'href="/traces/{trace}"' in text

    def test_filters_leave_what_fits(self, stocked: House) -> None:
        """By action, outcome, principal and day; nothing left is said so."""
        browser = visitor(stocked)
        day = stocked.audit()[0]["at"][:10]

        def actions(query: str) -> set[str]:
            text = browser.get(f"/audit?{query}").text
            return set(re.findall(r"<strong>([a-z._]+)</strong> <span", text))

        assert actions("action=search") == {"search"}
        assert actions("outcome=accepted") == {"document.create"}
        assert "search" in actions(f"principal=admins&since={day}&until={day}")
        assert actions("until=2001-01-01") == set()
        assert "No row matches" in browser.get("/audit?until=2001-01-01").text
        assert browser.get("/audit?since=yesterday").status_code == 422
        assert browser.get("/audit?since=2026-02-30").status_code == 422

    def test_every_action_that_is_noted_can_be_chosen(self, stocked: House) -> None:
        """The list of the filter has what any door writes."""
        text = visitor(stocked).get("/audit").text
        source = "".join(
            path.read_text("utf-8")
            for path in (SOURCE / "doors" / "http").rglob("*.py")
        )
        noted = set(
            re.findall(r'(?:note|row|audited)\(\s*(?:caller,\s*)?"([a-z_.]+)",', source)
        )
        noted |= {f"mcp.{kind.name}" for kind in TOOLS}

        assert {"select", "key.create", "session.begin"} <= noted
        for action in noted:
            assert f"<option>{action}</option>" in text

    def test_long_audits_are_paginated(self, stocked: House) -> None:
        """The next page goes on where this one ends."""
        for number in range(55):
            stocked.search(f"question {number} about days of leave")
        browser = visitor(stocked)

        [onwards] = re.findall(
            r'href="(/audit\?before=\d+)"', browser.get("/audit").text
        )

        assert "document.create" in browser.get(onwards).text

    def test_the_rows_can_be_had_as_files(self, stocked: House) -> None:
        """As CSV and as JSON lines, with the filters that are set."""
        browser = visitor(stocked)

        table = browser.get("/audit.csv?action=search")
        lines = browser.get("/audit.jsonl?action=search")

        [row] = list(csv.DictReader(io.StringIO(table.text)))
        assert (row["action"], row["outcome"]) == ("search", "answered")
        assert json.loads(row["facts"])["counts"]["recalled"] == 1
        [reported] = [json.loads(line) for line in lines.text.splitlines()]
        assert reported["relevanceTop"] > 0
        assert 'filename="kept-audit.csv"' in table.headers["content-disposition"]
        assert browser.get("/audit.exe").status_code == 404

    def test_cells_are_no_formulas(self, stocked: House) -> None:
        """User input in the CSV cannot run as a spreadsheet formula."""
        stocked.ask("PATCH", "/v1/settings", json={"policy": {"keep_questions": True}})
        stocked.search('=HYPERLINK("http://127.0.0.1","days of leave")')

        table = visitor(stocked).get("/audit.csv").text

        [first, *_] = list(csv.DictReader(io.StringIO(table)))[1:]
        assert first["question"].startswith("'=HYPERLINK")

    def test_the_audit_is_the_admins_and_the_tenants_own(self, stocked: House) -> None:
        """Readers and writers are turned away; other tenants' rows are not there."""
        stocked.search("valves of theirs", tenant="globex")

        for path in ("/audit", "/audit.csv"):
            assert visitor(stocked, "writer").get(path).status_code == 403
        assert "globex" not in visitor(stocked).get("/audit.csv").text
        rows = visitor(stocked, tenant="globex").get("/audit.jsonl").text.splitlines()
        assert {json.loads(row)["action"] for row in rows} == {
            "search",
            "session.begin",
        }


class TestSettings:
    """Every setting, and where it came from."""

    def test_every_setting_is_shown_with_its_origin(
        self, stocked: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The page distinguishes defaults, the environment and the tenant's own."""
        shown = stocked.ask("GET", "/v1/settings").json()["preset_settings"]
        monkeypatch.setenv("KEPT_TOP_K", "5")
        stocked.ask("PATCH", "/v1/settings", json={"set": {"depth": 40}})

        text = visitor(stocked, "reader").get("/settings").text

        for row in shown:
            assert f'id="{row["name"]}"' in text
        assert re.search(r'id="top_k".*?environment', text, re.DOTALL)
        assert re.search(r'id="depth".*?>40<.*?this tenant', text, re.DOTALL)

    def test_a_setting_is_given_and_taken_back(self, stocked: House) -> None:
        """It counts at once, and the default decides again afterwards."""
        browser = visitor(stocked)

        given = sent(browser, "/settings", "/settings", name="top_k", value="3")
        after = stocked.ask("GET", "/v1/settings").json()["preset_settings"]
        back = sent(browser, "/settings", "/settings", name="top_k", back="1")
        again = stocked.ask("GET", "/v1/settings").json()["preset_settings"]

        assert (given.status_code, back.status_code) == (303, 303)
        assert [r["value"] for r in after if r["name"] == "top_k"] == [3]
        assert [r["origin"] for r in again if r["name"] == "top_k"] == ["default"]

    def test_what_is_not_accepted_is_refused_with_the_bounds(
        self, stocked: House
    ) -> None:
        """The page stays open where it was, with what was typed."""
        response = sent(
            visitor(stocked), "/settings", "/settings", name="top_k", value='"><b>'
        )

        assert response.status_code == 422
        assert "expected a whole number from 1" in response.text
        assert 'value="&#34;&gt;&lt;b&gt;"' in response.text

    @pytest.mark.parametrize(
        ("fields", "status", "why"),
        [
            ({"name": "x" * 5000, "back": "1"}, 422, "a name of 5000 characters"),
            ({"name": "TOP_K", "preset": "x" * 5000}, 404, "there is no preset"),
        ],
    )
    def test_what_is_far_too_long_is_refused_in_words(
        self, stocked: House, fields: dict[str, str], status: int, why: str
    ) -> None:
        """A malformed form gets an error page, not a 500."""
        response = sent(visitor(stocked), "/settings", "/settings", **fields)

        assert response.status_code == status
        assert why in response.text

    def test_no_password_is_shown_in_an_address(self, stocked: House) -> None:
        """Also to those who may see all settings."""
        service = stocked.service
        secret = "postgresql://me:hush@db.example/kept"  # noqa: S105 -- of a test
        service.settings = service.settings.changed(store=secret)

        text = visitor(stocked, tenant=None).get("/settings").text

        assert "postgresql://db.example/kept" in text
        assert "hush" not in text

    def test_other_presets_have_settings_of_their_own(self, stocked: House) -> None:
        """A change goes to the preset that is shown."""
        browser = visitor(stocked)
        fields = {"name": "k", "value": "2", "preset": "tenant_kb"}

        response = sent(browser, "/settings?preset=tenant_kb", "/settings", **fields)

        assert response.headers["location"].startswith("/settings?preset=tenant_kb")
        rows = stocked.ask("GET", "/v1/settings?preset=tenant_kb").json()
        assert {"k": 2}.items() <= {
            row["name"]: row["value"] for row in rows["preset_settings"]
        }.items()
        assert browser.get("/settings?preset=none").status_code == 404

    def test_the_policy_is_decided_here(self, stocked: House) -> None:
        """What is checked holds, what is not does not."""
        browser = visitor(stocked)

        sent(browser, "/settings", "/settings/policy", keep_questions="1")
        kept = stocked.ask("GET", "/v1/settings").json()["policy"]
        sent(browser, "/settings", "/settings/policy", redact_personal="1")
        redacted = stocked.ask("GET", "/v1/settings").json()["policy"]

        assert kept == {"keep_questions": True, "redact_personal": False}
        assert redacted == {"keep_questions": False, "redact_personal": True}

    def test_changes_are_for_admins(self, stocked: House) -> None:
        """A reader sees everything and changes nothing."""
        browser = visitor(stocked, "reader")

        for path in ("/settings", "/settings/policy"):
            assert sent(browser, "/settings", path, name="top_k").status_code == 403
        assert 'name="value"' not in browser.get("/settings").text

    def test_the_services_own_settings_are_for_those_who_have_all_tenants(
        self, stocked: House
    ) -> None:
        """With their origin; secrets are never shown."""
        mine = visitor(stocked).get("/settings").text
        whole = visitor(stocked, "admin", None).get("/settings").text

        assert "KEPT_SERVE_PORT" not in mine
        assert "KEPT_SERVE_PORT" in whole
        assert "KEPT_LLM_BASE_URL" in whole
        assert re.search(r">embedder<.*?>hash<.*?command line", whole, re.DOTALL)


class TestKeys:
    """Keys are shown once."""

    def test_a_key_is_shown_once_and_works(self, stocked: House) -> None:
        """The page that made it shows it; the list never does."""
        browser = visitor(stocked)

        made = sent(browser, "/keys", "/keys", principal="reporting", role="reader")

        [token] = re.findall(r'value="(kept_[^"]+)"', made.text)
        key = stocked.service.access.check(token)
        assert key is not None
        assert (key.principal, key.role, key.tenant) == (
            "reporting",
            "reader",
            "default",
        )
        assert made.headers["cache-control"] == "no-store"
        assert token not in browser.get("/keys").text

    def test_every_cell_stands_under_its_heading(self, stocked: House) -> None:
        """Role and state of a key are in separate columns."""
        text = visitor(stocked).get("/keys").text
        table = text[text.index("<thead") :]
        headings = re.findall(r"<th scope=\"col\"[^>]*>([^<]+)<", table)
        row = table[table.index("<tbody") :].split("<tr")[1]
        cells = [re.sub(r"<[^>]+>", "", one) for one in row.split("<td")[1:]]
        reported = dict(
            zip(headings[1:], (c.split(">", 1)[1] for c in cells), strict=True)
        )

        assert "in use" in reported["State"]
        assert "admin" in reported["Role"]
        assert "default" in reported["Tenant"]

    def test_a_key_for_all_tenants_can_create_another(self, stocked: House) -> None:
        """Others make keys of their own tenant only, whatever they send."""
        mine = visitor(stocked)
        free = visitor(stocked, "admin", None)
        fields = {"principal": "p", "role": "writer", "of": "every"}

        sent(mine, "/keys", "/keys", **fields)
        sent(free, "/keys", "/keys", **{**fields, "principal": "q"})

        keys = {key.principal: key.tenant for key in stocked.service.access.keys(None)}
        assert keys["p"] == "default"
        assert keys["q"] is None

    def test_what_is_wrong_with_a_key_is_said(self, stocked: House) -> None:
        """And nothing is made."""
        browser = visitor(stocked)
        before = len(stocked.service.access.keys(None))

        for fields in (
            {"principal": "", "role": "reader"},
            {"principal": "x", "role": "king"},
            {"principal": "x", "role": "reader", "rate_per_minute": "0"},
        ):
            response = sent(browser, "/keys", "/keys", **fields)
            assert response.status_code == 422
            assert "No key was made" in response.text
        assert len(stocked.service.access.keys(None)) == before

    def test_a_revoked_key_opens_nothing(self, stocked: House) -> None:
        """It stays in the list; one's own key is not revoked by accident."""
        browser = visitor(stocked)
        stocked.key("reader")
        [reader] = [
            k for k in stocked.service.access.keys(None) if k.principal == "readers"
        ]
        [own] = [k for k in stocked.service.access.keys(None) if k.role == "admin"]

        response = sent(browser, "/keys", f"/keys/{reader.id}/revoke")
        itself = sent(browser, "/keys", f"/keys/{own.id}/revoke")

        assert response.status_code == 303
        assert "revoked" in browser.get("/keys").text
        assert stocked.search(QUESTION).status_code == 200
        assert stocked.ask("GET", "/v1/session", role="reader").status_code == 401
        assert itself.status_code == 422

    def test_a_key_may_have_groups(self, stocked: House) -> None:
        """The page takes them with commas, and shows what each key reads."""
        browser = visitor(stocked)

        sent(
            browser,
            *("/keys", "/keys"),
            principal="ann",
            role="reader",
            groups="hr, sales",
        )

        [ann] = [k for k in stocked.service.access.keys(None) if k.principal == "ann"]
        assert ann.groups == ("hr", "sales")
        page = browser.get("/keys").text
        assert ">hr, sales</td>" in page
        assert ">everything</td>" in page

    def test_keys_of_others_are_neither_shown_nor_revoked(self, stocked: House) -> None:
        """A tenant's admin sees the tenant's keys; others have no page at all."""
        stocked.key("admin", "globex")
        [theirs] = stocked.service.access.keys("globex")
        browser = visitor(stocked)

        assert theirs.id not in browser.get("/keys").text
        assert sent(browser, "/keys", f"/keys/{theirs.id}/revoke").status_code == 404
        assert visitor(stocked, "writer").get("/keys").status_code == 403

    def test_a_name_is_never_markup(self, stocked: House) -> None:
        """The name of a key cannot run a script in the list of keys."""
        browser = visitor(stocked)
        name = '<img src=x onerror=alert(1)>"'

        made = sent(browser, "/keys", "/keys", principal=name, role="reader")

        assert "<img" not in made.text
        assert "<img" not in browser.get("/keys").text
        assert "<img" not in browser.get("/audit").text
