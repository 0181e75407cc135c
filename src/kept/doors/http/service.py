"""The service: what all requests share, from the start of the app to its end."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kept.doors.http.metrics import Metrics
from kept.doors.http.rate_limits import RateLimit, StreamPlaces, WorkerThreads
from kept.doors.http.response_cache import ResponseCache
from kept.doors.http.sessions import Signer
from kept.doors.http.settings import Bounds, ServiceSettings
from kept.errors import SettingsError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.job_worker import JobWorker
from kept.knowledge_base.settings import Settings
from kept.search.answer.ask import Asked
from kept.search.retrieve import Found
from kept.stores.service.audit_log import AuditLog
from kept.stores.service.idempotency import Replies
from kept.stores.service.jobs import Jobs
from kept.stores.service.keys import Access, Key, Policy, Role
from kept.text.access import Principal

OPERATOR = "operator"
USUAL = Bounds()


@dataclass(frozen=True, slots=True)
class Clocks:
    """The time of day, and a clock that never goes back."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


class Service:
    """One store with its keys, audit, jobs, caches and limits."""

    def __init__(
        self,
        settings: Settings,
        limits: ServiceSettings,
        clocks: Clocks,
        bounds: Bounds = USUAL,
    ) -> None:
        self.settings = settings
        self.limits = limits
        self.bounds = bounds
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
        self.workers = WorkerThreads(limits.threads, bounds.queue)
        # Language models take seconds: answers must not occupy the threads of searches.
        self.answering = WorkerThreads(limits.threads, bounds.queue)
        self.rates = RateLimit(limits.rate_per_minute, clocks.steady)
        size = (limits.cache_seconds, bounds.cache_entries, clocks.steady)
        self.found: ResponseCache[tuple[Found, str]] = ResponseCache(*size)
        self.asked: ResponseCache[tuple[Asked, str]] = ResponseCache(*size)
        self.spool = self.base.store.spool()
        self.runner = JobWorker(
            jobs=self.jobs,
            base_of=self.base_of,
            spool=self.spool,
            done=lambda status: self.metrics.documents.labels(status).inc(),
        )
        self.following = StreamPlaces(bounds.streams)
        self.stopping = threading.Event()
        self.warm = False
        self._warming = threading.Lock()
        self.metrics.watch(self._gauges)

    def first_key(self) -> str | None:
        """Make sure that there is a key to administer with; return one that was made.

        The key in the settings takes precedence over making one.
        """
        given = self.limits.admin_key
        if given is not None:
            token = given.get_secret_value()
            # A key that has this id already stays as it is, and may be revoked.
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
        """Load the models that every question needs, once for all tenants."""
        with self._warming:
            if not self.warm:
                self.base.demand_parts()
                embedder, _ = self.base.embedder, self.base.parts
                _ = self.base.calibration
                # Fingerprints change with the embedder: claimed only by the first
                # ingest, they would show a tenant that another one has ingested.
                self.base.store.claim(embedder.id, embedder.dimension)
                self.warm = True

    def base_of(
        self,
        tenant: str,
        preset: str | None = None,
        policy: Policy | None = None,
        asker: Principal | None = None,
    ) -> KnowledgeBase:
        """Return a tenant's view of the store; the caller must not close it.

        It shows what *asker* may read, and everything without one. Queries are recorded
        as the tenant's policy allows.
        """
        self.warm_up()
        changes: dict[str, Any] = {"tenant": tenant}
        if preset is not None:
            changes["preset"] = preset
        if self.settings.record_queries != "off":
            allowed = policy or self.access.policy(tenant)
            changes["record_queries"] = "text" if allowed.keeps_text else "fingerprints"
        view = self.base.viewed(**changes)
        return view if asker is None else view.read_as(asker)

    def key_of_session(self, cookie: str) -> tuple[Key, str] | None:
        """Return the key of a session cookie, and the session's CSRF token."""
        token = self.signer.opened(cookie)
        if token is None:
            return None
        key = self.access.session(token, int(self.clocks.wall()))
        return None if key is None else (key, self.signer.csrf(token))

    def start(self) -> None:
        """Start to work on jobs."""
        self.runner.start(asyncio.get_running_loop())

    def stop(self) -> None:
        """Accept no more requests, end event streams, and pause jobs."""
        self.stopping.set()
        self.runner.stop()

    def close(self) -> None:
        """Finish what was accepted, and close the store."""
        # Jobs and requests write audit rows, and all of them use the store.
        self.stop()
        self.runner.join()
        self.workers.close()
        self.answering.close()
        self.audit.close()
        self.holds.close()
        self.base.close()

    def checks(self) -> dict[str, bool]:
        """Return the conditions for answering questions, and whether each holds."""
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
