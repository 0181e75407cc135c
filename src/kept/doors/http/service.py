"""The service: what all requests share, made once and let go of at the end."""

import asyncio
import threading
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

from kept.asking import Asked
from kept.errors import SettingsError
from kept.http.cache import Cached
from kept.http.ingesting import Runner
from kept.http.limits import Places, Rates, Workers
from kept.http.metrics import Metrics
from kept.http.sessions import Signer
from kept.http.settings import ServiceSettings
from kept.knowledge_base import KnowledgeBase
from kept.retrieve import Found
from kept.settings import Settings
from kept.stores.access import Access, Key, Role
from kept.stores.audit import AuditLog
from kept.stores.idempotency import Replies
from kept.stores.jobs import Jobs
from kept.stores.pages import Pages

OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Clocks:
    """The time of day, and a clock that never goes back."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


class Service:
    """One store with the people, jobs and limits around it."""

    def __init__(
        self, settings: Settings, limits: ServiceSettings, clocks: Clocks
    ) -> None:
        self.settings = settings
        self.limits = limits
        self.clocks = clocks
        self.base = KnowledgeBase(settings)
        database = self.base.store.database
        self.access = Access(database)
        self.audit = AuditLog(database)
        self.holds = self.base.store.holds()
        self.replies = Replies(database, self.holds)
        self.jobs = Jobs(database, self.holds)
        self.signer = Signer(self.access.signing_secret())
        self.metrics = Metrics()
        self.workers = Workers(limits.threads, limits.queue)
        self.answering = Workers(limits.threads, limits.queue)
        self.rates = Rates(limits.rate_per_minute, clocks.steady)
        self.found: Cached[tuple[Found, str]] = Cached(
            limits.cache_seconds, limits.cache_entries, clocks.steady
        )
        self.asked: Cached[tuple[Asked, str]] = Cached(
            limits.cache_seconds, limits.cache_entries, clocks.steady
        )
        self.spool = self.base.store.spool()
        self.runner = Runner(
            jobs=self.jobs,
            base_of=self.base_of,
            spool=self.spool,
            done=lambda status: self.metrics.documents.labels(status).inc(),
        )
        self.following = Places(limits.streams)
        self.stopping = threading.Event()
        self.warm = False
        self._warming = threading.Lock()
        self.metrics.watch(self._gauges)

    def first_key(self) -> str | None:
        """Make sure that somebody can administer; return a key that was just made.

        The key that the settings name is taken before one is made.
        """
        given = self.limits.admin_key
        if given is not None:
            token = given.get_secret_value()
            self.access.create(OPERATOR, Role.ADMIN, None, token=token)
            if self.access.check(token) is None:
                msg = (
                    "KEPT_SERVE_ADMIN_KEY is revoked, or its id belongs to another "
                    "key; configure another one"
                )
                raise SettingsError(msg)
            return None
        if self.access.guarded:
            return None
        _, token = self.access.create(OPERATOR, Role.ADMIN, None)
        return token

    def warm_up(self) -> None:
        """Load what every question needs, so that all tenants share it.

        The store is claimed for the embedder, so that no tenant can tell from its
        fingerprints whether another has handed anything in.
        """
        with self._warming:
            if not self.warm:
                self.base.demand_parts()
                embedder, _ = self.base.embedder, self.base.parts
                _ = self.base.calibration
                self.base.store.claim(embedder.id, embedder.dimension)
                self.warm = True

    def base_of(self, tenant: str, preset: str | None = None) -> KnowledgeBase:
        """Return a tenant's view of the store; it is not to be closed.

        What the tenant allows to be kept of its questions decides what is recorded.
        """
        self.warm_up()
        mine = copy(self.base)
        changes: dict[str, Any] = {"tenant": tenant}
        if preset is not None:
            changes["preset"] = preset
        if self.settings.record_queries != "off":
            policy = self.access.policy(tenant)
            plain = policy.keep_questions and not policy.redact_personal
            changes["record_queries"] = "text" if plain else "fingerprints"
        mine.tenant = tenant
        mine.settings = self.settings.changed(**changes)
        return mine

    def pages(self, tenant: str) -> Pages:
        """Return a tenant's long lists."""
        return Pages(self.base.store.database, tenant)

    def key_of_session(self, cookie: str) -> tuple[Key, str] | None:
        """Return whose session a cookie is, and its CSRF token."""
        token = self.signer.opened(cookie)
        if token is None:
            return None
        key = self.access.session(token, int(self.clocks.wall()))
        return None if key is None else (key, self.signer.csrf(token))

    def start(self) -> None:
        """Begin to work on jobs."""
        self.runner.start(asyncio.get_running_loop())

    def stop(self) -> None:
        """Take no more requests; streams end, and jobs pause where they are."""
        self.stopping.set()
        self.runner.stop()

    def close(self) -> None:
        """Finish what was acknowledged and let go of every file."""
        self.stop()
        self.runner.join()
        self.workers.close()
        self.answering.close()
        self.audit.close()
        self.holds.close()
        self.base.close()

    def checks(self) -> dict[str, bool]:
        """Tell what has to hold before questions can be answered."""
        stored = self.base.store.embedder()
        return {
            "started": self.warm,
            "store": self.base.store.reachable(),
            "embedder": not self.warm
            or stored is None
            or stored[0] == self.base.embedder.id,
            "accepting": not self.stopping.is_set(),
        }

    def _gauges(self) -> dict[str, float]:
        jobs = self.jobs.counts()
        return {
            "kept_work_in_progress": self.workers.inside,
            "kept_answers_in_progress": self.answering.inside,
            "kept_jobs_queued": jobs.get("queued", 0),
            "kept_jobs_running": jobs.get("running", 0),
            "kept_job_followers": self.following.taken,
        }
