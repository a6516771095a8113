"""evenspread: an admission webhook and a command line for topologySpreadConstraints.

A module only imports from packages in lower lines. import-linter checks this.

    cli                            a file for each command, and their common parts
    server                         the webhook process: gunicorn worker, TLS, routes
    console                        the result of a scan as pages, JSON or a single file
    snapshot  conformance          a cluster as a file; recorded verdicts of Kubernetes, decided again
    cluster  manifests             a live API server as an index; files as objects with the positions of their fields
    report  admission              findings as report documents; AdmissionReview requests and answers
    metrics  logs                  counters and structured lines
    config                         the configuration file as core.policy.policy.Policy
    core                           pure decisions without file, clock, thread or socket

`docs/architecture.md` draws the packages and walks through the code. `certs` is a separate package. `example` holds the
cluster of ``evenspread webhook --example``.
"""

__version__ = "0.1.0"
