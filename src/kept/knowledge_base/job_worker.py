"""Ingestion jobs: their sources, and a thread that ingests one after the other."""

import asyncio
import hashlib
import io
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any, BinaryIO

from kept._runtime import Logger
from kept.errors import InputError, KeptError, UnreadableSourceError
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Receipt
from kept.ingest.sources import failed, ready
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import fetch_limits_of, read_options_of
from kept.search.render import receipt_json
from kept.stores.service.jobs import Job, JobLost, Jobs
from kept.stores.service.spool import Spool
from kept.text.draft import Draft
from kept.text.readers.files import Reading, read_bytes, read_url

POLL_SECONDS = 0.5
LONGEST_NAME = 500

logger = Logger(__name__)


@dataclass(frozen=True, slots=True)
class JobSource:
    """A source of a job as the store keeps it, and its bytes if it brought some."""

    item: Mapping[str, Any] = field(hash=False)
    data: BinaryIO | None = None

    @classmethod
    def of_text(cls, place: int, text: str, declared: Mapping[str, Any]) -> "JobSource":
        """Return a text, or refuse it as the worker would."""
        Draft(**{**declared, "text": text})
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        uri = declared.get("source_uri") or f"text:{digest[:16]}"
        item = {"kind": "text", "name": str(place), "uri": uri, "fields": declared}
        return cls(item, io.BytesIO(data))

    @classmethod
    def of_url(cls, url: str, declared: Mapping[str, Any]) -> "JobSource":
        """Return a page to fetch."""
        return cls({"kind": "url", "uri": url, "fields": declared})

    @classmethod
    def of_file(
        cls,
        place: int,
        name: str,
        data: BinaryIO,
        content_type: str,
        declared: Mapping[str, Any],
    ) -> "JobSource":
        """Return a file; its name and type say how to read it."""
        name = (name or f"file-{place + 1}")[-LONGEST_NAME:]
        name = name.encode("utf-8", "replace").decode()
        item = {
            "kind": "file",
            "name": str(place),
            "file": name,
            "uri": declared.get("source_uri") or f"upload:{name}",
            "content_type": content_type,
            "fields": declared,
        }
        return cls(item, data)


@dataclass
class JobWorker:
    """Runs jobs one at a time, in a thread of its own.

    Several processes of a store share the jobs, and take over those of a process that
    died. An interrupted job continues after its last receipt. *done* is called with
    the status of each receipt.
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
        """Start the thread; *loop* is where requests wait for jobs."""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name="kept-jobs")
        self._thread.start()

    def nudge(self) -> None:
        """Wake the thread: there is a new job."""
        self._work.set()

    def stop(self) -> None:
        """Stop after the sources that are being stored."""
        self._stopping.set()
        self._work.set()
        self._ring()

    def join(self) -> None:
        """Wait for the thread to end."""
        if self._thread is not None:
            self._thread.join()

    def bell(self) -> asyncio.Event:
        """Return an event that is set when a job may have progressed anywhere."""
        bell = asyncio.Event()
        self._bells.add(bell)
        return bell

    def unplug(self, bell: asyncio.Event) -> None:
        """Remove a bell."""
        self._bells.discard(bell)

    def _ring(self) -> None:
        def ring() -> None:
            for bell in self._bells:
                bell.set()

        if self._loop is not None:
            # The loop is closed if this is the end of the process.
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
                # Other processes do not wake this thread: poll for their jobs.
                self._work.wait(POLL_SECONDS)
                self._ring()
            else:
                self._attempt(job)

    def _attempt(self, job: Job) -> None:
        """Run a job; release it if the store cannot even note its failure."""
        try:
            self._do(job)
        except KeptError as error:
            logger.warning("job_let_go", job=job.id, why=str(error))
            self.jobs.lose(job)
            self._stopping.wait(self.retry_seconds)

    def _do(self, job: Job) -> None:
        """Run a job; put it back if an error may be temporary."""
        ended = True
        try:
            ended = self._ingested(job)
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

    def _ingested(self, job: Job) -> bool:
        """Ingest the sources of a job; return false if it was put back."""
        self._ring()
        if job.cancel:
            self.jobs.end(job, "cancelled")
            return True
        base = self.base_of(job.tenant)
        stored: list[Receipt] = []
        enough = False

        def goes_on() -> bool:
            """Note what was stored in one transaction, before the next source."""
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
    """Yield every text of a job, in the order of its sources."""
    for item in job.items:
        uri = item["uri"]
        try:
            for draft in _drafts(job.id, item, spool, settings):
                if isinstance(draft, Draft):
                    yield ready(draft, uri)
                else:
                    yield failed(uri, draft)
        except UnreadableSourceError as error:
            yield failed(uri, error)


def _drafts(
    job_id: str, item: Mapping[str, Any], spool: Spool, settings: Settings
) -> Reading:
    options = read_options_of(settings, fields=item["fields"])
    if item["kind"] == "text":
        text = spool.read(job_id, item["name"]).decode()
        return iter((Draft(**{**item["fields"], "text": text}),))
    if item["kind"] == "url":
        limits = fetch_limits_of(settings)
        return read_url(item["uri"], limits=limits, options=options)
    return read_bytes(
        spool.read(job_id, item["name"]),
        item["file"],
        options=options,
        source_uri=item["uri"],
        content_type=item["content_type"],
    )
