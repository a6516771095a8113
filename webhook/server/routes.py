"""The Flask application of the plain HTTP port."""

from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from webhook.server.state import ServerState

_TEXT = "text/plain; charset=utf-8"
_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


def create_health(state: ServerState) -> Flask:
    """Return the application with the route ``/metrics``.

    The ASGI callable serves the port's health routes without Flask.
    """
    app = Flask(__name__, static_folder=None)

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(state.metrics.text(), content_type=_EXPOSITION)

    @app.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Response:
        headers = [(name, value) for name, value in error.get_headers() if name == "Allow"]
        return Response(f"{error.code} {error.name}\n", status=error.code, content_type=_TEXT, headers=headers)

    return app
