import os

import pytest

from webhook.config import ConfigError, load_policy, reloaded
from webhook.config.files import SETTLE_SECONDS
from webhook.core.policy.policy import Mode

HEAD = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"


def write(path, body, *, age=60.0):
    """Write a file that nobody has touched for some seconds."""
    path.write_bytes((HEAD + body).encode() if isinstance(body, str) else body)
    past = path.stat().st_mtime - age
    os.utime(path, (past, past))
    return path


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(b"a: \xff\n", ":1:4: not UTF-8: byte 0xff", id="not UTF-8"),
        pytest.param("a: 1\nb: ä".encode("utf-16"), ":1:1: not UTF-8: byte 0xff", id="UTF-16"),
        pytest.param(b"# " + b"x" * 5_000_000, ": is larger than 1 MiB, the limit of a ConfigMap", id="5 MB"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, raw, message):
    path = write(tmp_path / "policy.yaml", raw)
    with pytest.raises(ConfigError) as raised:
        load_policy(path)
    assert raised.value.render() == f"{path}{message}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("nothing.yaml", "cannot be read: No such file or directory", id="no such file"),
        pytest.param(".", "cannot be read: Is a directory", id="a directory"),
        pytest.param("broken", "cannot be read: No such file or directory", id="a link to nothing"),
        pytest.param("loop", "cannot be read: Too many levels of symbolic links", id="a link to itself"),
        pytest.param("a\0b", "cannot be read: the path contains a NUL character", id="a path that is none"),
        pytest.param("pipe", "is a named pipe, not a file", id="a named pipe"),
    ],
)
def test_a_path_that_cannot_be_read(tmp_path, name, message):
    (tmp_path / "broken").symlink_to("nothing")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    path = f"{tmp_path}/{name}"
    with pytest.raises(ConfigError) as raised:
        load_policy(path)
    assert raised.value.render().endswith(f": {message}")


def test_a_byte_order_mark_is_no_fault(tmp_path):
    path = write(tmp_path / "policy.yaml", b"\xef\xbb\xbf" + HEAD.encode() + b"ceiling: deny\n")
    assert load_policy(path).policy.ceiling is Mode.DENY


def test_an_unchanged_file_is_not_read_again(tmp_path):
    loaded = load_policy(write(tmp_path / "policy.yaml", "ceiling: deny"))
    assert reloaded(loaded) is loaded


def test_a_changed_file_gives_the_new_policy(tmp_path):
    path = write(tmp_path / "policy.yaml", "ceiling: deny")
    loaded = load_policy(path)
    write(path, "ceiling: audit")
    again = reloaded(loaded)
    assert (again.policy.ceiling, again.error) == (Mode.AUDIT, None)
    assert reloaded(again) is again


def test_a_bad_file_keeps_the_last_good_policy_and_is_reported_once(tmp_path):
    path = write(tmp_path / "policy.yaml", "ceiling: deny")
    loaded = load_policy(path)
    write(path, "ceiling: nonsense", age=30)
    kept = reloaded(loaded)
    assert kept.policy is loaded.policy
    assert str(kept.error) == f'{path}:3:10: ceiling: must be one of off, audit, warn, deny, is "nonsense"'
    assert reloaded(kept) is kept

    write(path, "ceiling: audit", age=20)
    assert (reloaded(kept).policy.ceiling, reloaded(kept).error) == (Mode.AUDIT, None)


def test_a_file_that_vanishes_keeps_the_last_good_policy(tmp_path):
    path = write(tmp_path / "policy.yaml", "ceiling: deny")
    loaded = load_policy(path)
    path.unlink()
    kept = reloaded(loaded)
    assert kept.policy is loaded.policy
    assert str(kept.error) == f"{path}: cannot be read: No such file or directory"
    assert reloaded(kept) is kept


def test_a_file_written_just_now_waits_for_its_end(tmp_path):
    path = write(tmp_path / "policy.yaml", "ceiling: deny\nstuckThreshold: 0.5\n")
    loaded = load_policy(path)
    write(path, "ceiling: deny\n", age=0.0)  # the first half of a longer file, and a whole policy by itself
    assert reloaded(loaded) is loaded
    write(path, "ceiling: deny\nstuckThreshold: 0.25\n", age=SETTLE_SECONDS + 0.1)
    assert reloaded(loaded).policy.stuck_threshold == 0.25


def test_the_swap_of_a_mounted_config_map_is_a_change_at_once(tmp_path):
    for revision, ceiling in (("..1", "deny"), ("..2", "audit")):
        (tmp_path / revision).mkdir()
        write(tmp_path / revision / "policy.yaml", f"ceiling: {ceiling}", age=0.0)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    loaded = load_policy(tmp_path / "policy.yaml")
    assert loaded.policy.ceiling is Mode.DENY

    (tmp_path / "..next").symlink_to("..2")
    (tmp_path / "..next").rename(tmp_path / "..data")
    assert reloaded(loaded).policy.ceiling is Mode.AUDIT
