import os
import stat

import pytest

from webhook.manifests.editing import atomic_write
from webhook.manifests.editing.atomic_write import replace_file


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old")
    return path


def test_the_mode_stays(file):
    file.chmod(0o640)
    replace_file(str(file), b"old", b"new")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"new", 0o640)
    assert [*file.parent.iterdir()] == [file]


def test_a_link_still_leads_there(file, tmp_path):
    link = tmp_path / "link.yaml"
    link.symlink_to(file.name)
    replace_file(str(link), b"old", b"new")
    assert (link.is_symlink(), file.read_bytes()) == (True, b"new")


def test_a_link_out_of_its_folder_is_not_followed(file, tmp_path):
    (tmp_path / "chart").mkdir()
    link = tmp_path / "chart" / "a.yaml"
    link.symlink_to(file)
    with pytest.raises(OSError, match=f"a link to {file}, outside its folder"):
        replace_file(str(link), b"old", b"new")
    assert file.read_bytes() == b"old"


def test_a_folder_may_be_a_link(file, tmp_path):
    (tmp_path / "chart").symlink_to(file.parent)
    replace_file(str(tmp_path / "chart" / "a.yaml"), b"old", b"new")
    assert file.read_bytes() == b"new"


def test_a_read_only_file_stays(file):
    file.chmod(0o444)
    with pytest.raises(OSError, match="the file is read-only"):
        replace_file(str(file), b"old", b"new")
    assert file.read_bytes() == b"old"


def test_a_file_that_others_own_stays(file, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OSError, match="the file is read-only"):
        replace_file(str(file), b"old", b"new")


def test_the_owner_stays(file, monkeypatch):
    given = []
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    monkeypatch.setattr(os, "fchown", lambda _, *owner: given.append(owner))
    replace_file(str(file), b"old", b"new")
    assert given == [(file.stat().st_uid, file.stat().st_gid)]


@pytest.mark.parametrize("failing", ["fsync", "fchmod"])
def test_what_goes_wrong_changes_nothing(file, monkeypatch, failing):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_write.os, failing, fail)
    with pytest.raises(OSError, match="No space"):
        replace_file(str(file), b"old", b"new")
    assert file.read_bytes() == b"old"
    assert [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize(
    ("name", "before", "message"),
    [
        ("a.yaml", b"older", "the file has changed since it was read"),
        ("pipe", b"", "not a regular file"),
    ],
)
def test_what_is_not_replaced(file, name, before, message):
    os.mkfifo(file.parent / "pipe")
    with pytest.raises(OSError, match=message):
        replace_file(str(file.parent / name), before, b"new")
    assert file.read_bytes() == b"old"
