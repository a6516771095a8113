"""The configuration file -> `core.policy.policy.Policy`, or every fault of the file at once.

    text -> document (values with line and column) -> shape (JSON Schema) -> meaning -> build -> Policy

Callers need `load_policy`, `parse_policy`, `reloaded`, and `ConfigError.render()` when it is raised.
"""

from webhook.config.faults import ConfigError, ConfigFault
from webhook.config.files import Loaded, load_policy, parse_policy, reloaded

__all__ = ["ConfigError", "ConfigFault", "Loaded", "load_policy", "parse_policy", "reloaded"]
