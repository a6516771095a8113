"""The routes of the console, and the headers of every response. No other module imports Flask."""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec
from flask import Flask, Response, abort, request
from werkzeug.exceptions import HTTPException

from webhook.answers.scanned import WorkloadList, scan_document, workload_document
from webhook.console.pages.first_screen import MOST_WORST, first_screen, health_page
from webhook.console.pages.groups import find_group, group_list, group_page, in_order
from webhook.console.pages.heat_map import heat_map
from webhook.console.pages.listing import chosen, cut, listing
from webhook.console.pages.workload import find, workload_page
from webhook.console.query import read_query
from webhook.console.rendering import HERE, render
from webhook.console.shown import Overview, Shown, Source
from webhook.console.what_if import MOST_NODES, MOST_REPLICAS, NoAnswer, Simulator, WhatIfChange, outcome, read_change
from webhook.core.groups.status.forms import status_json
from webhook.core.scan.scan_results import ClusterScan, ScannedWorkload

_HEADERS = {
    # Browsers load from this server only, run only our script files, and refuse frames.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "evenspread",  # without it, the server would name its Python version
    "Cache-Control": "no-cache",  # a browser asks each time, and gets 304 while nothing changed
}
# Protects against DNS rebinding: a foreign page in the user's browser can point its own host name at this address.
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_OWN_PAGES = frozenset({"same-origin", "none"})  # what browsers say of a link or form of ours, and of a typed address
_NO_SCAN = "the first scan of the cluster has not finished"
_API = "/api/"
_FILES = {
    "/static/console.css": "static/console.css",
    "/static/console.js": "static/console.js",
    "/static/icon.svg": "static/icon.svg",
    "/api/v1/schema.json": "api.schema.json",
}
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "json": "application/json"}

_View = Callable[[Shown, ClusterScan], str | Response]


def create_console(source: Source, simulator: Simulator | None = None, hosts: frozenset[str] = LOCAL_HOSTS) -> Flask:
    """Create the app. ``hosts`` are the accepted Host names. Without a simulator, it answers no what-if questions."""
    app = Flask(__name__, static_folder=None)
    app.before_request(partial(_refuse_strangers, hosts))
    app.after_request(_finished)
    app.register_error_handler(HTTPException, partial(_refused, source))
    for path, file in _FILES.items():
        app.add_url_rule(path, path, partial(_file, (HERE / file).read_bytes(), _TYPES[file.rpartition(".")[2]]))
    pages: Mapping[str, _View] = {
        "/": _overview,
        "/workloads": _workloads,
        "/workload": partial(_workload, simulator),
        "/what-if": partial(_what_if, simulator),
        "/domains": _domains,
        "/groups": _groups,
        "/group": _group,
        "/health": _health,
    }
    documents: Mapping[str, _View] = {
        "/api/v1/overview": _overview_document,
        "/api/v1/workloads": _workloads_document,
        "/api/v1/groups": _groups_document,
        "/api/v1/workload": lambda _, scan: _json(workload_document(_requested_workload(scan))),
        "/api/v1/what-if": partial(_what_if_document, simulator),
    }
    for path, view in (*pages.items(), *documents.items()):
        app.add_url_rule(path, path, partial(_with_scan, source, view))
    return app


def _with_scan(source: Source, view: _View) -> str | Response:
    """Render the latest scan, or a waiting page before the first scan ends."""
    shown = source()
    if shown.scan is not None:
        return view(shown, shown.scan)
    if request.path.startswith(_API):
        return _json({"error": _NO_SCAN}, 503)
    return render("start.html", "Overview", shown, "/", start=None)


def _overview(shown: Shown, scan: ClusterScan) -> str:
    return render("start.html", "Overview", shown, "/", start=first_screen(shown, scan), main_class="start")


def _workloads(shown: Shown, scan: ClusterScan) -> str:
    query = read_query(request.args)
    page = listing(shown, scan, query)
    return render("workloads.html", "Workloads", shown, "/workloads", query=query, listing=page)


def _domains(shown: Shown, scan: ClusterScan) -> str:
    query = read_query(request.args)
    return render("domains.html", "Domains", shown, "/domains", query=query, heat=heat_map(shown, scan, query))


def _groups(shown: Shown, _: ClusterScan) -> str:
    return render("groups.html", "Groups", shown, "/groups", **group_list(shown))


def _group(shown: Shown, _: ClusterScan) -> str:
    of = find_group(shown, request.args) or abort(404)
    return render("group.html", of.group.meta.name, shown, "", shown=group_page(of))


def _health(shown: Shown, scan: ClusterScan) -> str:
    return render("health.html", "Health", shown, "/health", health=health_page(shown, scan))


def _requested_workload(scan: ClusterScan) -> ScannedWorkload:
    """Return the workload named by the URL's parameters. Raises NotFound."""
    return find(scan, request.args) or abort(404)


def _workload(simulator: Simulator | None, shown: Shown, scan: ClusterScan) -> str:
    of = _requested_workload(scan)
    page = workload_page(shown, scan, of)
    form = _form(scan, read_change(of, {})) if simulator is not None else None
    return render("workload.html", of.name, shown, "", shown=page, form=form)


def _form(scan: ClusterScan, asked: WhatIfChange) -> dict[str, object]:
    return {
        "asked": asked,
        "zones": sorted({zone.zone for zone in scan.zones}),
        "most_replicas": MOST_REPLICAS,
        "most_nodes": MOST_NODES,
    }


def _what_if(simulator: Simulator | None, shown: Shown, scan: ClusterScan) -> str:
    of = _requested_workload(scan)
    change = read_change(of, request.args)
    page = workload_page(shown, scan, of)
    answer = outcome(_simulator(simulator), change)
    title = f"What if: {of.name}"
    return render("what_if.html", title, shown, "", shown=page, form=_form(scan, change), answer=answer, once=True)


def _what_if_document(simulator: Simulator | None, _: Shown, scan: ClusterScan) -> Response:
    try:
        return _json(_simulator(simulator).answer(read_change(_requested_workload(scan), request.args)))
    except NoAnswer as error:
        return _json({"error": str(error)}, 503)


def _simulator(simulator: Simulator | None) -> Simulator:
    """Return the simulator, for requests from our own pages only, because it is costly.

    Raises NotFound without a simulator, and Forbidden for requests from other sites.
    """
    if simulator is None:
        abort(404)
    if request.headers.get("Sec-Fetch-Site", "none") not in _OWN_PAGES:
        abort(403)
    return simulator


def _workloads_document(_: Shown, scan: ClusterScan) -> Response:
    query = read_query(request.args)
    rows, page = cut(chosen(scan, query), query)
    workloads = tuple(map(workload_document, rows))
    return _json(WorkloadList(page=page.number, pages=page.pages, total=page.total, workloads=workloads))


def _overview_document(shown: Shown, scan: ClusterScan) -> Response:
    """Return the console's overview page as JSON. Only the worst workloads are included."""
    overview = Overview(
        source=shown.source,
        moment=shown.moment,
        live=shown.live,
        health=shown.health,
        total=len(scan.workloads),
        above_max_skew=sum(any(skew.above for skew in workload.skews) for workload in scan.workloads),
        scan=scan_document(scan, scan.workloads[:MOST_WORST]),
    )
    return _json(overview)


def _groups_document(shown: Shown, _: ClusterScan) -> Response:
    """Return all SpreadGroups as JSON, each with its status."""
    groups = [
        {"namespace": known.group.meta.namespace, "name": known.group.meta.name, "status": status_json(known.status)}
        for known in in_order(shown.groups or ())
    ]
    return _json({"groups": groups})


def _file(content: bytes, kind: str) -> Response:
    return Response(content, content_type=f"{kind}; charset=utf-8")


def _json(document: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(document), status, mimetype="application/json")


def _refuse_strangers(hosts: frozenset[str]) -> Response | None:
    name = request.host.rpartition(":")[0] if request.host.rpartition(":")[2].isdecimal() else request.host
    if name.lower() in hosts:
        return None
    return Response("421 this server does not serve this host name\n", 421, mimetype="text/plain")


def _refused(source: Source, error: HTTPException) -> Response:
    """Return the HTTP error as a page, or as JSON under /api/."""
    code = error.code or 500
    text = "The object may have been deleted, or the address is mistyped." if code == 404 else error.description or ""
    if request.path.startswith(_API):
        return _json({"error": f"{code} {error.name}"}, code)
    return Response(render("refused.html", error.name, source(), "", text=text), code, mimetype="text/html")


def _finished(response: Response) -> Response:
    """Add the security headers. Answer 304 if the client's cached page has the same ETag."""
    response.headers.update(_HEADERS)
    if response.status_code == 200:
        response.add_etag()
        response.make_conditional(request)
    return response
