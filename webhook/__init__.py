"""evenspread: an admission webhook and a command line for topologySpreadConstraints.

The rooms, outside in; doors open inwards only (import-linter holds them):

    cli            one command a file
    server         the process that answers: gunicorn worker, TLS, Flask routes
    report         findings -> report documents
    admission      AdmissionReview bytes <-> core.review.review
    metrics logs   counters and structured lines
    config         the configuration file -> core.policy.policy.Policy
    core           pure: values in, values out

`certs`, beside this package, stands alone.
"""

__version__ = "0.1.0"
