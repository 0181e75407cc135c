"""A browser for tests of the pages: it keeps cookies, sends forms, reads HTML."""

import html
import re
from dataclasses import dataclass
from typing import Any

from house import House, Response
from starlette.testclient import TestClient

HTML = {"accept": "text/html,application/xhtml+xml", "sec-fetch-site": "same-origin"}


@dataclass
class Browser:
    """A visitor with a cookie jar of their own, who follows no redirect unasked."""

    client: TestClient

    def get(self, path: str, **given: Any) -> Response:  # noqa: ANN401 -- of the client
        """Open a page."""
        return self.client.get(path, headers=HTML, follow_redirects=False, **given)

    def post(self, path: str, **given: Any) -> Response:  # noqa: ANN401 -- of the client
        """Send a form as it stands."""
        return self.client.post(path, headers=HTML, follow_redirects=False, **given)

    def send(
        self,
        shown: Response,
        path: str,
        fields: dict[str, Any],
        **given: Any,  # noqa: ANN401 -- of the client
    ) -> Response:
        """Send the form of a page that was *shown*, with its token and tenant."""
        hidden = {name: value(shown.text, name) for name in ("csrf_token", "tenant")}
        return self.post(path, data={**hidden, **fields}, **given)


def value(page: str, name: str) -> str:
    """Return the value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, f"the page has no field {name}"
    return html.unescape(found[1])


def visitor(
    house: House, role: str = "admin", tenant: str | None = "default"
) -> Browser:
    """Return a browser that is signed in with a key of this role and tenant."""
    browser = stranger(house)
    response = browser.post("/sign-in", data={"key": house.key(role, tenant)})
    assert response.status_code == 303, response.text
    return browser


def stranger(house: House) -> Browser:
    """Return a browser that is not signed in."""
    return Browser(TestClient(house.client.app, base_url="http://127.0.0.1"))
