"""Decide admission requests: request, policy and cluster in, decision out.

Example:
    decision = review(request, Context(policy=policy, version=version, index=index))
    decision.allowed, decision.message, decision.warnings
"""
