"""The credentials of a kubeconfig or of a pod.

The kubernetes package's loader supports every kind of kubeconfig credentials.
"""

import contextlib
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from webhook.cluster.errors import ClusterError
from webhook.logs import bounded

if TYPE_CHECKING:
    import ssl

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# More than the watched kinds. Connections beyond this number are closed instead of kept.
_CONNECTIONS = 64
# A dead peer is detected after 15 + 3 * 5 = 30 s, even on a quiet watch.
_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class Account(Struct, frozen=True, kw_only=True):
    """The credentials of a kubeconfig, or else of the pod's service account."""

    kubeconfig: str | None = None
    context: str | None = None
    impersonate: str | None = None
    service_account: Path = SERVICE_ACCOUNT


class _KubeContext(Struct, frozen=True, kw_only=True):
    """A context of a kubeconfig: its name, and its default namespace."""

    name: str
    namespace: str = ""


def chosen_context(account: Account) -> _KubeContext:
    """Return the account's kubeconfig context.

    Without a kubeconfig, return a context for the cluster around this pod.
    """
    if account.kubeconfig is None:
        return _KubeContext(name="around this pod")
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415 as in `connect`

    with _usable(account.kubeconfig):
        content = KubeConfigMerger(account.kubeconfig).config  # type: ignore[no-untyped-call]  # untyped there
        if content is None:
            raise ClusterError(f"{account.kubeconfig}: no such kubeconfig")
        names = [str(context.value.get("name")) for context in content.value.get("contexts") or ()]
        if account.context and account.context not in names:
            others = f"it has {bounded(', '.join(names))}" if names else "it has none"
            raise ClusterError(f"{account.kubeconfig}: no context {bounded(account.context)}: {others}")
        context = KubeConfigLoader(content, active_context=account.context).current_context  # type: ignore[no-untyped-call]  # as above
        return _KubeContext(name=str(context["name"]), namespace=str(context["context"].get("namespace") or ""))


def connect(account: Account) -> tuple[Any, Any]:  # the package has no types
    """Return the Python client's configuration for the account, and its connection pool."""
    # Imported here: it takes 0.2 s and 37 MiB, a cost that commands without a cluster must not pay.
    from kubernetes.client import ApiClient, Configuration  # noqa: PLC0415  slow to import
    from kubernetes.config import load_kube_config  # noqa: PLC0415  slow to import
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415  slow to import

    configuration = Configuration()
    place = account.kubeconfig or str(account.service_account)
    with _usable(place):
        if account.kubeconfig is not None:
            load_kube_config(account.kubeconfig, account.context, configuration, persist_config=False)  # type: ignore[no-untyped-call]  # untyped there
        else:
            token, authority = account.service_account / "token", account.service_account / "ca.crt"
            InClusterConfigLoader(token, authority).load_and_set(configuration)  # type: ignore[no-untyped-call]  # as above
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # evenspread's errors have the same content as its warnings
    configuration.socket_options = _socket_options()
    configuration.connection_pool_maxsize = _CONNECTIONS
    pool = ApiClient(configuration).rest_client.pool_manager
    has_ca = bool(configuration.ssl_ca_cert or configuration.ca_cert_data)
    https = _https_pool(verifies=configuration.verify_ssl, has_ca=has_ca)
    pool.pool_classes_by_scheme = {**pool.pool_classes_by_scheme, "https": https}
    return configuration, pool


def _https_pool(*, verifies: bool, has_ca: bool) -> type:
    """Return a class of pools whose connections accept the certificates that kubectl accepts.

    Each connection has a TLS context of its own. urllib3 loads the client certificate into the context of every
    connection that it opens. If another thread uses that context meanwhile, OpenSSL frees a key twice.
    """
    from urllib3.connection import HTTPSConnection  # noqa: PLC0415 as in `connect`
    from urllib3.connectionpool import HTTPSConnectionPool  # noqa: PLC0415 as in `connect`

    class Connection(HTTPSConnection):
        def connect(self) -> None:
            self.ssl_context = _tls_context(verifies=verifies, has_ca=has_ca)
            super().connect()

    class Pool(HTTPSConnectionPool):
        ConnectionCls = Connection

    return Pool


def _tls_context(*, verifies: bool, has_ca: bool) -> "ssl.SSLContext":
    """Return a new TLS context with Go's checks of certificates.

    The context also accepts certificates without key identifiers (RFC 5280). Many clusters have them, and Go accepts
    them. Since Python 3.13 urllib3 refuses them by default. With ``has_ca``, urllib3 adds the configured CA later.
    Otherwise the context loads the CAs of the system.
    """
    import ssl  # noqa: PLC0415 as in `connect`

    from urllib3.util.ssl_ import create_urllib3_context  # noqa: PLC0415 as in `connect`

    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verifies else ssl.CERT_NONE)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not has_ca:
        context.load_default_certs()
    return context


@contextlib.contextmanager
def _usable(place: str) -> Iterator[None]:
    """Turn every credentials error into a ClusterError of a single line."""
    from kubernetes.config import ConfigException  # noqa: PLC0415 as in `connect`
    from yaml import YAMLError  # noqa: PLC0415 as in `connect`

    try:
        yield
    except (ConfigException, OSError, ValueError) as error:
        raise ClusterError(f"{place}: {(str(error).splitlines() or ['cannot be read'])[0]}") from error
    except (YAMLError, AttributeError, KeyError, TypeError) as error:
        raise ClusterError(f"{place}: not a kubeconfig") from error


def _socket_options() -> list[tuple[int, int, int]]:
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):  # some systems lack it
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options
