"""Ingestion jobs: sources are spooled, taken in one after the other, and told of."""

import asyncio
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any

from kept.errors import InputError, KeptError, UnreadableSourceError
from kept.ingest import Handed
from kept.knowledge_base import KnowledgeBase
from kept.logs import Logger
from kept.receipts import Receipt, Source
from kept.render import receipt_json
from kept.settings import Settings
from kept.stores.jobs import Job, JobLost, Jobs
from kept.stores.spool import Spool
from kept.text.draft import Draft
from kept.text.reading import ReadOptions, read_bytes, read_url
from kept.wiring import fetch_limits_of

POLL_SECONDS = 0.5

logger = Logger(__name__)


@dataclass
class Runner:
    """Does jobs, one at a time, in a thread of its own.

    Several processes of a store share the jobs, and take over those of one that died.
    *done* hears the status of each receipt. A job that is interrupted goes on behind
    its last receipt.
    """

    jobs: Jobs
    base_of: Callable[[str], KnowledgeBase]
    spool: Spool
    done: Callable[[str], None]
    retry_seconds: float = 5.0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _work: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _bells: set[asyncio.Event] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin; *loop* is where those who follow jobs are woken."""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name="kept-jobs")
        self._thread.start()

    def nudge(self) -> None:
        """Say that there is something to do."""
        self._work.set()

    def stop(self) -> None:
        """Stop behind the sources that are being stored."""
        self._stopping.set()
        self._work.set()
        self._ring()

    def join(self) -> None:
        """Wait until nothing is done any more."""
        if self._thread is not None:
            self._thread.join()

    def bell(self) -> asyncio.Event:
        """Return an event that is set when a job may have moved, here or elsewhere."""
        bell = asyncio.Event()
        self._bells.add(bell)
        return bell

    def unplug(self, bell: asyncio.Event) -> None:
        """Let go of a bell."""
        self._bells.discard(bell)

    def _ring(self) -> None:
        def ring() -> None:
            for bell in self._bells:
                bell.set()

        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(ring)

    def _run(self) -> None:
        self.spool.sweep(self.jobs.unfinished)
        while not self._stopping.is_set():
            self._work.clear()
            try:
                job = self.jobs.begin()
            except KeptError as error:
                logger.warning("jobs_wait", why=str(error))
                job = None
            if job is None:
                self._work.wait(POLL_SECONDS)
                self._ring()
            else:
                self._attempt(job)

    def _attempt(self, job: Job) -> None:
        """Do a job; one of which not even the trouble could be noted is let go."""
        try:
            self._do(job)
        except KeptError as error:
            logger.warning("job_let_go", job=job.id, why=str(error))
            self.jobs.lose(job)
            self._stopping.wait(self.retry_seconds)

    def _do(self, job: Job) -> None:
        """Do a job; what only a passing trouble keeps from being done is put back."""
        ended = True
        try:
            ended = self._taken_in(job)
        except JobLost as error:
            logger.warning("job_lost", job=job.id, why=str(error))
            self.jobs.lose(job)
            ended = False
        except InputError as error:
            self.jobs.end(job, "failed", str(error))
        except KeptError as error:
            logger.warning("job_waits", job=job.id, why=str(error))
            self.jobs.put_back(job, type(error).__name__)
            self._stopping.wait(self.retry_seconds)
            ended = False
        except Exception as error:
            logger.exception("job_failed", job=job.id)
            self.jobs.end(job, "failed", f"{type(error).__name__}; see the log")
        if ended:
            self.spool.drop(job.id)
        self._ring()

    def _taken_in(self, job: Job) -> bool:
        """Take the sources of a job in; false if it was put back."""
        self._ring()
        if job.cancel:
            self.jobs.end(job, "cancelled")
            return True
        base = self.base_of(job.tenant)
        stored: list[Receipt] = []
        enough = False

        def goes_on() -> bool:
            """Note what was stored together, before more is handed in."""
            nonlocal job, enough
            if stored:
                job = self.jobs.progress(job, list(map(receipt_json, stored)))
                stored.clear()
                self._ring()
                enough = job.cancel or self._stopping.is_set()
            return not enough

        handed = islice(handed_in(job, self.spool, base.settings), job.done, None)
        try:
            for receipt in base.ingest(takewhile(lambda _: goes_on(), handed)):
                stored.append(receipt)
                self.done(receipt.status)
        finally:
            goes_on()
        if enough and not job.cancel:
            self.jobs.put_back(job)
            return False
        self.jobs.end(job, "cancelled" if job.cancel else "done")
        return True


def handed_in(job: Job, spool: Spool, settings: Settings) -> Iterator[Handed]:
    """Yield every text of a job, in the order they were handed in."""
    for item in job.items:
        yield from _of_item(job.id, item, spool, settings)


def _of_item(
    job_id: str, item: Mapping[str, Any], spool: Spool, settings: Settings
) -> Iterator[Handed]:
    options = ReadOptions(fields=item["fields"])
    if item["kind"] == "text":
        text = spool.read(job_id, item["name"]).decode()
        yield _ready(Draft(**{**item["fields"], "text": text}), item["uri"])
        return
    if item["kind"] == "url":
        limits = fetch_limits_of(settings)
        drafts = read_url(item["uri"], limits=limits, options=options)
    else:
        drafts = read_bytes(
            spool.read(job_id, item["name"]),
            item["file"],
            options=options,
            source_uri=item["uri"],
            content_type=item["content_type"],
        )
    try:
        for draft in drafts:
            if isinstance(draft, Draft):
                yield _ready(draft, item["uri"])
            else:
                yield _failed(item["uri"], draft)
    except UnreadableSourceError as error:
        yield _failed(item["uri"], error)


def _ready(draft: Draft, uri: str) -> Handed:
    raw = hashlib.sha256(repr(draft).encode("utf-8", "surrogatepass")).hexdigest()
    source = Source(uri=draft.source_uri or uri, raw_sha256=raw)
    return Handed(source=source, read=lambda: draft)


def _failed(uri: str, error: KeptError) -> Handed:
    return Handed(source=Source(uri=uri, raw_sha256=""), read=lambda: error)
