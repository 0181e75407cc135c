"""What people, jobs, replies and audit promise, whatever database they are kept in."""

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from kept.errors import InputError, NotFoundError
from kept.stores.locks import Holds
from kept.stores.service.audit_log import AuditLog, AuditQuery, AuditRow
from kept.stores.service.idempotency import KEPT_SECONDS, Replies, Reply, Slot
from kept.stores.service.jobs import JobLost, Jobs
from kept.stores.service.keys import Access, Policy, Role
from kept.stores.service.spool import Spool
from kept.stores.sql import Database

AT = 1_800_000_000
SLOT = Slot(tenant="acme", key_id="k1", key="once")
ITEMS = [{"kind": "text", "uri": "a", "name": "0", "fields": {}}]


@dataclass(frozen=True)
class House:
    """One database, and what each process creates around it: holds and a spool."""

    database: Database
    holds: Callable[[], Holds]
    spool: Callable[[], Spool]

    def worker(self) -> tuple[Jobs, Holds]:
        """Return a process that does jobs, and what it holds while it lives."""
        holds = self.holds()
        return Jobs(self.database, holds), holds


def row(tenant: str = "acme", **more: Any) -> AuditRow:  # noqa: ANN401 -- its fields
    """Return a row of the audit."""
    known = {"principal": "p", "key_id": "k", "role": "reader", "outcome": "done"}
    return AuditRow(tenant=tenant, **{**known, "action": "search", **more})


class ServiceContract:
    """What every database promises to a service; subclass it and override *house*."""

    @pytest.fixture
    def house(self) -> House:
        """Return an empty database."""
        raise NotImplementedError

    def test_a_key_opens_until_it_is_revoked(self, house: House) -> None:
        """A token is checked by its digest, and its sessions end with it."""
        access = Access(house.database)
        key, token = access.create("reader", Role.READER, "acme", rate=7)
        session = access.begin_session(key.id, AT + 60, AT)

        assert access.check(token) == key
        assert access.check(token + "x") is None
        assert access.session(session, AT) == key
        assert access.session(session, AT + 61) is None
        assert access.keys("acme") == [key]
        assert access.keys("other") == []
        assert access.revoke(key.id).revoked_at is not None
        assert access.check(token) is None
        assert access.session(session, AT) is None

    def test_a_given_key_is_made_once(self, house: House) -> None:
        """The same token twice is one key; a short one is refused."""
        access = Access(house.database)
        token = f"kept_operator_{'s' * 40}"
        first, _ = access.create("one", Role.ADMIN, None, token=token)
        again, _ = access.create("two", Role.ADMIN, None, token=token)

        assert again == first
        assert access.guarded
        with pytest.raises(InputError):
            access.create("one", Role.ADMIN, None, token="kept_x_short")  # noqa: S106 -- refused

    def test_an_unknown_key_is_not_revoked(self, house: House) -> None:
        """A key of another tenant is as unknown as none."""
        access = Access(house.database)
        key, _ = access.create("reader", Role.READER, "acme")

        with pytest.raises(NotFoundError):
            access.revoke("nobody")
        with pytest.raises(NotFoundError):
            access.revoke(key.id, tenant="other")

    def test_policies_and_the_secret_outlive_their_maker(self, house: House) -> None:
        """What a tenant allows is changed in place; the secret is made once."""
        access = Access(house.database)
        access.set_policy("acme", Policy(keep_questions=True))
        access.set_policy("acme", Policy(redact_personal=True))

        again = Access(house.database)
        assert again.policy("acme") == Policy(redact_personal=True)
        assert again.policy("other") == Policy()
        assert again.signing_secret() == access.signing_secret() != b""

    def test_audit_rows_are_numbered_within_their_tenant(self, house: House) -> None:
        """Two logs and many threads leave no gap and no double, and all is found."""
        one, two = AuditLog(house.database), AuditLog(house.database)
        with ThreadPoolExecutor(4) as pool:
            for stored in pool.map(
                lambda n: (one, two)[n % 2].note(
                    row(("acme", "other")[n % 3 == 0], question=f"q{n}\0 \ud800")
                ),
                range(40),
            ):
                stored.result()
        one.close()
        two.close()

        rows = one.rows("acme", before=None, limit=100)
        assert [found.no for found in rows] == list(range(len(rows), 0, -1))
        others = one.rows("other", before=None, limit=100)
        assert len(rows) + len(others) == 40
        asked = {found.question for found in (*rows, *others)}
        assert asked == {f"q{n}\0 \ud800" for n in range(40)}
        assert [r.no for r in one.rows("acme", before=3, limit=5)] == [2, 1]
        assert (
            one.rows("acme", before=None, limit=5, sought=AuditQuery(action="ask"))
            == []
        )

    def test_tenants_take_turns(self, house: House) -> None:
        """The tenant whose last job began longest ago is next."""
        jobs, _ = house.worker()
        first = jobs.add("acme", "p", "k", ITEMS)
        second = jobs.add("acme", "p", "k", ITEMS)
        other = jobs.add("other", "p", "k", ITEMS)

        begun = [jobs.begin() for _ in range(4)]

        assert [job and job.id for job in begun] == [
            *(first.id, other.id, second.id),
            None,
        ]
        assert jobs.counts() == {"running": 3}

    def test_a_job_is_done_by_one_process(self, house: House) -> None:
        """What one process does, another leaves alone, and what ended stays ended."""
        jobs, _ = house.worker()
        others, _ = house.worker()
        jobs.add("acme", "p", "k", ITEMS)

        job = jobs.begin()
        assert job is not None
        assert others.begin() is None
        job = jobs.progress(job, [{"status": "created"}, {"status": "reused"}])
        job = jobs.progress(job, [{"status": "created"}])
        ended = jobs.end(job, "done")

        assert others.begin() is None
        assert (ended.done, dict(ended.counts)) == (3, {"created": 2, "reused": 1})
        assert others.receipts(ended, after=1, limit=9) == [
            {"status": "reused"},
            {"status": "created"},
        ]
        assert others.job("acme", ended.id) == ended
        with pytest.raises(NotFoundError):
            others.job("other", ended.id)

    def test_the_job_of_a_dead_process_is_taken_over(self, house: House) -> None:
        """It goes on behind its last receipt, and the dead cannot come back to it."""
        dying, its_holds = house.worker()
        heir, _ = house.worker()
        dying.add("acme", "p", "k", ITEMS)
        job = dying.begin()
        assert job is not None
        job = dying.progress(job, [{"status": "created"}])
        its_holds.close()

        taken = heir.begin()

        assert taken is not None
        assert (taken.id, taken.done) == (job.id, 1)
        for late in (
            lambda: dying.progress(job, [{"status": "created"}]),
            lambda: dying.end(job, "done"),
            lambda: dying.put_back(job),
        ):
            with pytest.raises(JobLost):
                late()
        heir.end(taken, "done")
        assert heir.job("acme", job.id).done == 1

    def test_a_job_that_was_put_back_is_begun_again(self, house: House) -> None:
        """Another process takes a job that was put back, with its error."""
        jobs, _ = house.worker()
        others, _ = house.worker()
        jobs.add("acme", "p", "k", ITEMS)
        job = jobs.begin()
        assert job is not None
        jobs.put_back(job, "StoreBusyError")

        again = others.begin()

        assert again is not None
        assert (again.id, again.error) == (job.id, "StoreBusyError")

    def test_a_cancelled_job_stops(self, house: House) -> None:
        """A waiting job ends at once; a running one is notified."""
        jobs, _ = house.worker()
        running = jobs.add("acme", "p", "k", ITEMS)
        waiting = jobs.add("acme", "p", "k", ITEMS)
        assert jobs.begin() is not None

        assert jobs.cancel("acme", waiting.id).state == "cancelled"
        reported = jobs.cancel("acme", running.id)
        assert (reported.state, reported.cancel) == ("running", True)
        assert [job.id for job in jobs.page("acme", before=None, limit=9)] == [
            *(waiting.id, running.id),
        ]
        assert jobs.waiting("acme") == 1
        assert not jobs.unfinished(waiting.id)

    def test_a_write_is_done_once(self, house: House) -> None:
        """The same key gets the same reply; another request with it is rejected."""
        replies = Replies(house.database, house.holds())
        reply = Reply(status=201, body=b"\0{}", headers={"a": "b"})

        assert replies.claim(SLOT, "r", AT) == "ours"
        assert replies.claim(SLOT, "r", AT) == "running"
        assert replies.claim(SLOT, "s", AT) == "other"
        replies.settle(SLOT, reply)
        assert replies.claim(SLOT, "r", AT) == reply
        assert replies.claim(SLOT, "r", AT + KEPT_SECONDS + 1) == "ours"
        replies.release(SLOT)
        assert replies.claim(SLOT, "s", AT) == "ours"

    def test_a_write_of_the_dead_is_done_by_another(self, house: House) -> None:
        """As long as a process lives its writes are its own."""
        holds = house.holds()
        dying, heir = (
            Replies(house.database, holds),
            Replies(house.database, house.holds()),
        )
        assert dying.claim(SLOT, "r", AT) == "ours"

        assert heir.claim(SLOT, "r", AT) == "running"
        holds.close()
        assert heir.claim(SLOT, "r", AT) == "ours"
        assert dying.claim(SLOT, "r", AT) == "running"

    def test_many_ask_for_the_same_write_at_once(self, house: House) -> None:
        """One does it."""
        replies = [Replies(house.database, house.holds()) for _ in range(4)]

        with ThreadPoolExecutor(4) as pool:
            claims = list(pool.map(lambda one: one.claim(SLOT, "r", AT), replies))

        assert sorted(map(str, claims)) == ["ours", "running", "running", "running"]

    def test_a_name_is_held_by_one(self, house: House) -> None:
        """Not even its holder can take it twice."""
        one, two = house.holds(), house.holds()

        assert one.take("name")
        assert not one.take("name")
        assert not two.take("name")
        one.release("name")
        assert two.take("name")
        two.close()
        assert one.take("name")
        one.close()

    def test_a_source_waits_in_the_spool(self, house: House) -> None:
        """It comes back byte by byte, to any process, until its job is dropped."""
        data = bytes(range(256)) * 10_000
        house.spool().save("job", "0", io.BytesIO(data))
        house.spool().save("job", "1", io.BytesIO(b""))
        house.spool().save("other", "0", io.BytesIO(b"x"))

        again = house.spool()
        assert again.read("job", "0") == data
        assert again.read("job", "1") == b""
        again.sweep(lambda job: job == "job")
        with pytest.raises(OSError, match="other"):
            again.read("other", "0")
        again.drop("job")
        with pytest.raises(OSError, match="job"):
            again.read("job", "0")
