"""The certificate authority: certificates for TLS, without any knowledge of webhooks.

    authority   issues a CA and leaf certificates, checks pairs, computes renewal times
    rotation    signing CA, trusted CAs and the next step of a rotation, as values
    store       writes a pair to disk atomically

Nothing here reads a clock. Callers pass the time.
"""
