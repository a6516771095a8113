"""Default constraints for new pods, as JSON Patch.

Example:
    result = inject(pod, namespace, context, waited=True)
    patch = result.patch if isinstance(result, Injection) else ()
"""
