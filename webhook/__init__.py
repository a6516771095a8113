"""evenspread: an admission webhook and a command line for topologySpreadConstraints.

The rooms, from the roof to the ground; a module imports from rooms below its own only (import-linter holds them apart):

    cli                            one command a file, and what commands share
    server                         the webhook process: gunicorn worker, TLS, routes
    console                        what a scan found -> pages, JSON, one file; no other room knows how they look
    snapshot  conformance          a cluster as a file; recorded verdicts of Kubernetes, decided again
    cluster  manifests             a live API server -> index; files -> objects and the places of their fields
    report  admission              findings -> report documents; AdmissionReview bytes -> core.review -> bytes
    metrics  logs                  counters and structured lines
    config                         the configuration file -> core.policy.policy.Policy
    core                           pure: values in, values out; no file, clock, thread or socket

`docs/architecture.md` draws them, walks through the code, and links the pages about each room. `certs` is beside this
package, alone; `example` holds the cluster of ``evenspread webhook --example``.
"""

__version__ = "0.1.0"
