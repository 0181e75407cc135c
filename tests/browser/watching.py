"""Visitors: a signed-in browser window that fails its test on any error."""

from dataclasses import dataclass, field

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Response,
    expect,
)
from site_under_test import Site

from kept.doors.http.sessions import COOKIE

# Milliseconds; a busy machine is no reason to fail.
PATIENCE = 60_000
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


expect.set_options(timeout=PATIENCE)


@dataclass
class Visitor:
    """A visitor of the pages, and the errors met on the way."""

    site: Site
    context: BrowserContext
    page: Page
    troubles: list[str] = field(default_factory=list)
    forgiven: list[str] = field(default_factory=list)

    @classmethod
    def of(  # noqa: PLR0913 -- as many as windows differ in
        cls,
        browser: Browser,
        site: Site,
        *,
        key: str | None = None,
        signed_in: bool = True,
        dark: bool = False,
        phone: bool = False,
        scripts: bool = True,
    ) -> "Visitor":
        """Open a window with a profile of its own."""
        context = browser.new_context(
            base_url=site.url,
            viewport=PHONE if phone else WIDE,  # type: ignore[arg-type]  # a size
            has_touch=phone,
            is_mobile=phone,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            java_script_enabled=scripts,
        )
        context.set_default_timeout(PATIENCE)
        if signed_in:
            context.add_cookies(
                [{"name": COOKIE, "value": site.cookie(key), "url": site.url}]
            )
        visitor = cls(site, context, context.new_page())
        visitor._watch()
        return visitor

    def goto(self, path: str, status: int = 200) -> Page:
        """Open a page of the site, which must be there."""
        response = self.page.goto(path)
        assert response is not None
        assert response.status == status, (path, response.status, response.text())
        return self.page

    def leave(self) -> None:
        """Close the window; nothing may have gone wrong but what was meant to."""
        self.context.close()
        reported = [t for t in self.troubles if not any(f in t for f in self.forgiven)]
        assert reported == []

    def _watch(self) -> None:
        self.page.on("dialog", self._dialog)
        self.page.on("pageerror", self._error)
        self.page.on("console", self._console)
        self.page.on("response", self._response)

    def _dialog(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _error(self, error: Error) -> None:
        self.troubles.append(f"script: {error.message}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"console: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self.troubles.append(f"{response.status}: {response.url}")
