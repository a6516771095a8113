"""A new connection to a replica, as the API server makes it."""

import base64
import socket
import ssl


def trusted_by(api, configuration):
    """The caBundle of a webhook configuration with one webhook; empty where there is none."""
    (webhook,) = api.request("GET", configuration)["webhooks"]
    return base64.b64decode(webhook["clientConfig"].get("caBundle", ""))


def greeted(address, name, bundle):
    """The certificate that a client with this bundle is shown, as DER.

    Errors: ssl.SSLError where it is refused; OSError where nobody listens.
    """
    context = ssl.create_default_context(cadata=bundle.decode())
    plain = socket.create_connection((address, 10250), timeout=5)
    with plain, context.wrap_socket(plain, server_hostname=name) as connection:
        return connection.getpeercert(binary_form=True)
