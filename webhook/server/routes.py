"""The Flask applications: all routes without a need for speed.

They include the admission routes, for Flask's test client and for other WSGI servers.
"""

import time

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from webhook import admission
from webhook.admission import CALLER_SECONDS, Route
from webhook.admission_request import MAX_REVIEW_BYTES, ReviewError, decode_review
from webhook.core.budget import Budget
from webhook.logs import bounded
from webhook.server.state import ServerState

_TEXT = "text/plain; charset=utf-8"
_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


def create_admission(state: ServerState) -> Flask:
    """Return the application of the admission port."""
    app = _bare_app()
    app.config["MAX_CONTENT_LENGTH"] = MAX_REVIEW_BYTES

    @app.post("/<any(validate, mutate):route>")
    def judge(route: Route) -> Response:
        began = time.perf_counter()
        if request.mimetype != "application/json":
            stated = bounded(request.mimetype, 64)
            raise ReviewError(f"Content-Type is {stated!r}; it must be application/json", 415)
        answer = admission.answer(
            route,
            decode_review(request.get_data(cache=False)),
            state.engine,
            today=state.today(),
            now=state.now(),
            budget=Budget(clock=time.perf_counter, until=began + CALLER_SECONDS),
        )
        state.account(route, answer, time.perf_counter() - began)
        return Response(answer.body, mimetype="application/json")

    @app.errorhandler(ReviewError)
    def no_review(error: ReviewError) -> Response:
        state.metrics.count("admission_refusals", str(error.status))
        return Response(f"{error.message}\n", status=error.status, content_type=_TEXT)

    return app


def create_health(state: ServerState) -> Flask:
    """Return the Flask application of the plain HTTP port: the route ``/metrics``.

    The ASGI callable serves the port's health routes without Flask.
    """
    app = _bare_app()

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(state.metrics.text(), content_type=_EXPOSITION)

    return app


def _bare_app() -> Flask:
    app = Flask(__name__, static_folder=None)

    @app.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Response:
        headers = [(name, value) for name, value in error.get_headers() if name == "Allow"]
        return Response(f"{error.code} {error.name}\n", status=error.code, content_type=_TEXT, headers=headers)

    return app
