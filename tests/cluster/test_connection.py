"""Credentials, and what is said of an API server that cannot be used."""

import base64
import json
import pathlib
import ssl
import time
import tracemalloc

import pytest
from cluster.api import FakeApi, cut, html, refuse, short_body, silence
from cluster.following import QUICK, RESOURCES, Clock, Table, server, truth

from webhook.cluster.connection import ApiServer
from webhook.cluster.credentials import Account, connect
from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.reflector import Reflector


@pytest.fixture(name="api")
def _api():
    with FakeApi() as api:
        yield api


@pytest.fixture(name="plain")
def _plain():
    with FakeApi(tls=False) as api:
        yield api


def test_a_kubeconfig_names_server_authority_and_token(api, tmp_path):
    assert server(api, tmp_path).send("GET", "/version").content == {"gitVersion": "v1.34.2"}


def test_a_server_of_another_authority_is_not_trusted(api, tmp_path):
    with FakeApi() as other:
        file = tmp_path / "kubeconfig"
        content = json.loads(pathlib.Path(api.kubeconfig(tmp_path)).read_text())
        content["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(other.authority).decode()
        file.write_text(json.dumps(content))
        with pytest.raises(ClusterError, match=r"^https://127\.0\.0\.1:\d+: .*certificate verify failed"):
            ApiServer(Account(kubeconfig=str(file))).send("GET", "/version")


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_a_server_is_not_verified_if_the_kubeconfig_says_so(api, tmp_path):
    file = tmp_path / "kubeconfig"
    content = json.loads(pathlib.Path(api.kubeconfig(tmp_path)).read_text())
    del content["clusters"][0]["cluster"]["certificate-authority-data"]
    with_ca_of_the_system = tmp_path / "verified"
    with_ca_of_the_system.write_text(json.dumps(content))
    content["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    file.write_text(json.dumps(content))

    assert ApiServer(Account(kubeconfig=str(file))).send("GET", "/version").status == 200
    with pytest.raises(ClusterError, match=r"certificate verify failed"):
        ApiServer(Account(kubeconfig=str(with_ca_of_the_system))).send("GET", "/version")


def test_certificates_without_key_identifiers_are_accepted_as_by_kubectl(api, tmp_path):
    _, pool = connect(Account(kubeconfig=api.kubeconfig(tmp_path)))
    response = _unread(pool, api)
    context = response.connection.sock.context

    assert not context.verify_flags & ssl.VERIFY_X509_STRICT  # on since Python 3.13
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_no_two_connections_share_a_context(api, tmp_path):
    # urllib3 changes it at each connection. OpenSSL then freed a client's key twice, and a stop never ended.
    _, pool = connect(Account(kubeconfig=api.kubeconfig(tmp_path)))
    first, second = _unread(pool, api), _unread(pool, api)

    assert first.connection.sock.context is not second.connection.sock.context


def _unread(pool, api):
    return pool.request("GET", f"{api.url}/version", preload_content=False)


def test_in_a_cluster_the_service_account_is_used(api, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_bytes(api.authority)
    connected = ApiServer(Account(service_account=tmp_path))

    assert connected.url == api.url
    assert connected.send("GET", "/version").status == 200
    (tmp_path / "token").write_text("second")
    api.accepted = {"second"}
    assert connected.send("GET", "/version").status == 401
    connected.renew(0)
    assert connected.send("GET", "/version").status == 200


def test_another_user_may_be_asked_for(plain, tmp_path):
    ApiServer(Account(kubeconfig=plain.kubeconfig(tmp_path), impersonate="jane")).send("GET", "/version")

    assert plain.requests[0].headers["Impersonate-User"] == "jane"


@pytest.mark.parametrize(
    ("account", "message"),
    [
        pytest.param(
            lambda folder: Account(kubeconfig=f"{folder}/none"),
            "{folder}/none: Invalid kube-config file. No configuration found.",
            id="no such kubeconfig",
        ),
        pytest.param(
            lambda folder: Account(kubeconfig=f"{folder}/kubeconfig", context="other"),
            "{folder}/kubeconfig: Invalid kube-config file. Expected object with name other in "
            "{folder}/kubeconfig/contexts list",
            id="no such context",
        ),
        pytest.param(
            lambda folder: Account(service_account=folder),
            "{folder}: Service host/port is not set.",
            id="not in a cluster",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(plain, tmp_path, account, message, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    plain.kubeconfig(tmp_path)
    with pytest.raises(ClusterError) as raised:
        ApiServer(account(tmp_path))

    assert str(raised.value) == message.format(folder=tmp_path)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        pytest.param(refuse(403, "pods is forbidden"), r"^403 pods is forbidden$", id="a refusal says the API's words"),
        pytest.param(refuse(500, "x" * 999), r"^500 x{256}… \(743 more\)$", id="a long one is cut"),
        pytest.param(cut, r"^http://127\.0\.0\.1:\d+: Remote end closed connection without response$", id="no answer"),
        pytest.param(short_body, r"^IncompleteRead\(11 bytes read, 9989 more expected\)$", id="half an answer"),
    ],
)
def test_an_answer_that_is_none_is_one_line(plain, tmp_path, fault, message):
    plain.strike("any", fault)
    with pytest.raises(ClusterError, match=message), server(plain, tmp_path).open("/api/v1/pods") as stream:
        stream.body()


def test_silence_is_one_line(plain, tmp_path):
    plain.strike("any", silence)
    asked = server(plain, tmp_path)
    with pytest.raises(ClusterError, match=r"no answer in time$"), asked.open("/api/v1/pods", silence_seconds=0.2):
        pass


def test_a_watch_that_breaks_off_is_one_line(plain, tmp_path):
    """As when kube-apiserver is killed."""

    def killed(handler, _):
        handler.begin_stream()
        handler.chunk(b"{}\n")
        handler.cut()
        return True

    plain.strike("any", killed)
    message = "^the connection ended in the middle of the API server's response$"
    with pytest.raises(ClusterError, match=message), server(plain, tmp_path).open("/") as stream:
        for _ in stream.lines():
            pass


def test_a_body_larger_than_allowed_is_not_read(plain, tmp_path):
    plain.strike("any", html)
    with (
        pytest.raises(ClusterError, match=r"^the API server's response has more than 10 bytes$"),
        server(plain, tmp_path).open("/") as got,
    ):
        got.body(10)


def test_a_refusal_knows_how_long_to_wait(plain, tmp_path):
    plain.strike("any", refuse(429, "later", Retry_After="7"))
    with pytest.raises(RefusedError) as raised, server(plain, tmp_path).open("/"):
        pass

    assert (raised.value.status, raised.value.retry_after) == (429, 7.0)


def test_a_line_of_megabytes_is_put_together_once(plain, tmp_path):
    """Each of its thousand parts was put behind what had come before it, which took seconds."""

    def long(handler, _):
        handler.begin_stream()
        handler.chunk(b"a\n" + b"x" * 2**23)
        handler.chunk(b"x" * 2**22 + b"\nb\nc")
        handler.chunk(b"c\n")
        handler.end_stream()
        return True

    plain.strike("any", long)
    with server(plain, tmp_path).open("/") as stream:
        began = time.process_time()
        lines = [line for lines in stream.lines() for line in lines]
    assert lines == [b"a", b"x" * (2**23 + 2**22), b"b", b"cc"]
    assert time.process_time() - began < 1.0


def test_a_line_without_end_is_not_kept(plain, tmp_path):
    def endless(handler, _):
        handler.begin_stream()
        for _ in range(20):
            handler.chunk(b"x" * 1024 * 1024)
        handler.end_stream()
        return True

    plain.strike("any", endless)
    message = "^a watch event has more than 16777216 bytes$"
    with pytest.raises(ClusterError, match=message), server(plain, tmp_path).open("/") as stream:
        for _ in stream.lines():
            pass


def test_lists_over_and_over_take_no_more_memory(tmp_path):
    with FakeApi(tls=False, patient=False) as api:
        for number in range(300):
            api.put("pods", f"web-{number}", "shop", metadata={"labels": {"app": "web"}})
        table = Table()
        reflector = Reflector(server(api, tmp_path), RESOURCES["pods"], table, timing=QUICK, pace=Clock())

        def relist():
            api.forget()
            for _ in range(5):
                reflector.turn()

        for _ in range(3):
            relist()
        api.requests.clear()
        tracemalloc.start()
        before = tracemalloc.take_snapshot()
        for _ in range(10):
            relist()
        api.requests.clear()
        after = tracemalloc.take_snapshot().compare_to(before, "filename")
        tracemalloc.stop()

        ours = sum(each.size_diff for each in after if "/webhook/" in each.traceback[0].filename)
        assert ours < 256 * 1024
        assert table.values == truth(api, "pods")
