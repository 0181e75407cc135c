"""kept audit-access: what it says before there is anything to check."""

from pathlib import Path

import pytest

from commands import kept
from free_ports import free_port
from served import serving


def test_without_a_key_it_says_which_variable_to_set() -> None:
    """Keys are no option: they would stand in the list of processes."""
    ran = kept("audit-access", "http://127.0.0.1:8750")

    assert "KEPT_AUDIT_KEY is not set" in ran.complaint(3)


# {port} is filled in by the test: xdist refuses parameters that differ by process.
@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}", "127.0.0.1"])
def test_a_service_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """An address without a scheme, or with nothing behind it, is the user's."""
    monkeypatch.setenv("KEPT_AUDIT_KEY", "kept_x")
    url = address.format(port=free_port())

    assert f"the service at {url} cannot be asked" in kept(
        "audit-access", url
    ).complaint(3)


def test_a_service_is_checked_over_its_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service as it is started has no leak, and says how many requests that took."""
    with serving(tmp_path / "kb") as service:
        monkeypatch.setenv("KEPT_AUDIT_KEY", service.key or "")
        ran = kept("audit-access", service.url, "--json")
        other = kept("audit-access", service.url, "--tenant", "other")

    assert ran.code == 0, ran
    assert ran.json["findings"] == []
    assert "nothing was shown" in other.out
    assert "LEAKS" not in other.out
